"""Importing past tickets: each public message of a customer becomes an event; again, it changes nothing.

A batch is written in steps that may each be repeated: links, then the ledger with all rows that may be there
from now on, then the memories, then what is no more, then the ledger as it is in the end. Cut anywhere and
done again, it ends in the same state.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from memory.barring import Barring
from memory.content import Statement
from memory.embedding import Embedder, Vector
from memory.errors import ConversationMismatch, ErasureUnderWay, Forbidden, IdInvalid, RequestError
from memory.identity import out_of_reach_among, scope_of_customer
from memory.import_learning import TicketLearner
from memory.ledger import Entry, Ledger, Mode, TicketKey
from memory.links import Link, LinkStore
from memory.pacing import breathe
from memory.policy import Policy, Redactor
from memory.records import Memory
from memory.remembering import Action, Writing, parts_of, record_of, remember
from memory.scope import Scope, checked_id
from memory.settings import DEFAULT_SHARDS
from memory.store import MemoryStore
from memory.ticket_memories import memories_of, memory_id_of
from memory.ticket_plans import Plan, entry_of, updated_at_of
from memory.ticket_results import Status, TicketResult, result_of
from memory.write_behind import WriteBehind
from tickets.model import Ticket, content_hash

TICKETS_BETWEEN_BREATHS = 4
"""A few milliseconds of work."""


@dataclass(frozen=True, slots=True)
class Handling:
    """What an import does with the words.

    Attributes:
        redactor: replaces secrets by marks before anything else sees a text.
        policy: how long memories are kept.
        renew: starts the store's time limit anew, for each step of the work.
        learner: extracts facts instead of keeping the messages; None keeps them as they are.
        is_dry: whether to say what would happen and write nothing.
    """

    redactor: Redactor
    policy: Policy
    renew: Callable[[], None]
    learner: TicketLearner | None = None
    is_dry: bool = False


class Importer:
    """Imports tickets into one namespace, a batch at a time.

    Args:
        store, links, ledger: of the namespace.
        embedder: makes the vectors.
        scope_of: gives a customer's scope; from identity resolution.
        handling: what is done with the words.
        barring: what is left out because it was forgotten.
    """

    def __init__(
        self,
        store: MemoryStore,
        links: LinkStore,
        ledger: Ledger,
        embedder: Embedder,
        scope_of: Callable[[str], Scope],
        handling: Handling,
        barring: Barring,
    ) -> None:
        self._store, self._links, self._ledger = store, links, ledger
        self._embedder, self._scope_of = embedder, scope_of
        self._redactor, self._policy = handling.redactor, handling.policy
        self._learner, self._is_dry = handling.learner, handling.is_dry
        self._renew, self._barring = handling.renew, barring
        self._limits = links.limits

    def run(self, tickets: Sequence[Ticket], *, now: float) -> list[TicketResult]:
        """Import a batch.

        Args:
            tickets: any tickets, none twice.
            now: seconds since 1970.

        Returns:
            One result a ticket, in order.

        Raises:
            SetupError, ServiceError: embedder or store failed; the same batch again completes it.
        """
        known = self._ledger.find_all((t.source, t.ticket_id) for t in tickets)
        results: dict[TicketKey, TicketResult] = {}
        wanted: list[tuple[Scope, Ticket]] = []
        for ticket in tickets:
            entry = known.get((ticket.source, ticket.ticket_id))
            settled = self._settled(ticket, entry)
            if isinstance(settled, TicketResult):
                results[ticket.source, ticket.ticket_id] = settled
            else:
                wanted.append((settled, ticket))
        plans: list[Plan] = []
        for number, (scope, ticket) in enumerate(self._open(wanted, known, results)):
            if number % TICKETS_BETWEEN_BREATHS == 0:
                breathe()
            key = (ticket.source, ticket.ticket_id)
            plan = self._plan(ticket, scope, known.get(key), now=now)
            if isinstance(plan, TicketResult):
                results[key] = plan
            else:
                plans.append(plan)
        plans = self._link(plans, results, now=now)
        if plans and not self._is_dry:
            plans = self._write(self._learned(plans, now=now), now=now)
        for plan in plans:
            results[plan.ticket.source, plan.ticket.ticket_id] = TicketResult(
                plan.ticket.source,
                plan.ticket.ticket_id,
                Status.REPLACED if plan.entry else Status.IMPORTED,
                sum(1 for row in plan.rows if "." not in row and row not in plan.kept_rows),
                sum(1 for row in plan.stale if "." not in row),
                plan.lesson.code if plan.lesson else "",
                plan.lesson.rejected if plan.lesson else 0,
            )
        return [results[t.source, t.ticket_id] for t in tickets]

    # --- what is to be done ----------------------------------------------------------------------

    def _settled(self, ticket: Ticket, entry: Entry | None) -> TicketResult | Scope:
        """The result of a ticket nothing is to be done for; otherwise whose it is."""
        try:
            customer_id = checked_id("customer_id", ticket.customer_id)
            checked_id("conversation_id", ticket.conversation_id)
            checked_id("case_id", ticket.case_id)
        except IdInvalid as fault:
            return result_of(ticket, Status.FAILED, fault.code)
        if not customer_id:
            return result_of(ticket, Status.FAILED, "customer_missing")
        scope = self._scope_of(customer_id)  # of who answers for the customer
        owner = entry.customer_id if entry else customer_id
        concerned = (customer_id, owner, scope.customer_id)
        if not all(self._limits.admits(ticket.source, whose) for whose in concerned):
            return result_of(ticket, Status.FAILED, Forbidden.code)
        if entry is None or not entry.is_complete:
            return scope
        may_lack = self._barring.restores and not entry.restored_at
        if self._is_unchanged(ticket, entry) and not may_lack:
            return result_of(ticket, Status.UNCHANGED)
        updated_at = updated_at_of(ticket)
        if updated_at is not None and entry.updated_at is not None and updated_at < entry.updated_at:
            return result_of(ticket, Status.OUTDATED)
        return scope

    def _is_unchanged(self, ticket: Ticket, entry: Entry) -> bool:
        wanted = Mode.AS_IS if self._learner is None else Mode.EXTRACT
        is_same = entry.content_hash == content_hash(ticket) and entry.mode is wanted
        return is_same and entry.is_complete and not ticket.is_partial

    def _open(
        self,
        wanted: Sequence[tuple[Scope, Ticket]],
        known: Mapping[TicketKey, Entry],
        results: dict[TicketKey, TicketResult],
    ) -> list[tuple[Scope, Ticket]]:
        """The tickets whose customers are not being erased right now, and what was forgotten of them."""
        entries = [known.get((ticket.source, ticket.ticket_id)) for _, ticket in wanted]
        scopes = {scope for scope, _ in wanted} | {entry.scope for entry in entries if entry}
        self._store.epochs.look(scopes)
        being_erased = set()
        for scope in {scope for scope, _ in wanted}:
            try:
                self._store.opened(scope)
            except ErasureUnderWay:
                being_erased.add(scope)
        opened = []
        for scope, ticket in wanted:
            if scope in being_erased:
                results[ticket.source, ticket.ticket_id] = result_of(
                    ticket, Status.FAILED, ErasureUnderWay.code
                )
            else:
                opened.append((scope, ticket))
        self._barring.read(opened)
        return opened

    def _plan(self, ticket: Ticket, scope: Scope, entry: Entry | None, *, now: float) -> Plan | TicketResult:
        """What is to be done for a ticket, or its result where everything in it was forgotten."""
        restored_at = now if self._barring.restores else entry.restored_at if entry else 0.0
        was_looked_at = self._barring.restores and entry is not None and self._is_unchanged(ticket, entry)
        if entry and was_looked_at and not self._barring.is_touched(ticket, restored_at=entry.restored_at):
            return result_of(ticket, Status.UNCHANGED)
        admitted = self._barring.admit(ticket, restored_at=restored_at)
        if not admitted.has_words:
            return result_of(ticket, Status.FORGOTTEN)
        whole, ticket = ticket, admitted.ticket
        memories = tuple(memories_of(ticket, scope, self._redactor, self._policy, now=now))
        memories = tuple(self._barring.memories(scope, whole, memories, restored_at=restored_at))
        kept: tuple[str, ...] = ()
        if ticket.is_partial and entry is not None and entry.customer_id == scope.customer_id:
            told = {memory_id_of(ticket, m, scope) for m in ticket.messages}
            kept = tuple(r for r in entry.row_ids if r.partition(".")[0] not in told)
        return Plan(
            ticket,
            content_hash(whole),
            scope,
            entry,
            memories,
            kept,
            barred_messages=admitted.barred_messages,
            epoch=self._store.epochs.first(scope),
            restored_at=restored_at,
        )

    def _link(
        self, plans: Sequence[Plan], results: dict[TicketKey, TicketResult], *, now: float
    ) -> list[Plan]:
        """Link the tickets' conversations; those of another customer are refused and left out."""
        wanted: dict[str, Link] = {}
        for plan in plans:
            link = Link(
                conversation_id=plan.ticket.conversation_id,
                customer_id=plan.scope.customer_id,
                case_id=plan.ticket.case_id or "",
                linked_at=now,
                is_moving=True,
                epoch=plan.epoch,
            )
            wanted.setdefault(link.conversation_id, link)
        found = self._links.find_all(wanted)
        barred = out_of_reach_among(self._limits, self._store, wanted, found)
        if not self._is_dry:
            self._links.put(*self._handed_over(plans, found, wanted))
            free = [link for c, link in wanted.items() if c not in found and c not in barred]
            found |= self._links.claim_all(free)
        allowed = []
        for plan in plans:
            ticket = plan.ticket
            link = found.get(ticket.conversation_id, wanted[ticket.conversation_id])
            was_ours = plan.entry is not None and link.customer_id == plan.entry.customer_id
            is_barred = ticket.conversation_id in barred
            if not is_barred and (link.customer_id == plan.scope.customer_id or was_ours):
                allowed.append(plan)
            else:
                code = Forbidden.code if is_barred else ConversationMismatch.code
                results[ticket.source, ticket.ticket_id] = result_of(ticket, Status.FAILED, code)
        return allowed

    def _handed_over(
        self, plans: Sequence[Plan], found: dict[str, Link], wanted: dict[str, Link]
    ) -> list[Link]:
        """New links for tickets that an import had linked to another customer, or to another case."""
        changed = {}
        for plan in plans:
            link = found.get(plan.ticket.conversation_id)
            if link is None:
                continue
            new = wanted[link.conversation_id]
            was_ours = plan.entry is not None and link.customer_id == plan.entry.customer_id
            if was_ours and link.customer_id != new.customer_id:
                changed[link.conversation_id] = replace(
                    new,
                    moves_from=link.customer_id,
                    trail=tuple(sorted({*link.trail, self._store.shard(link.scope)})),
                )
            elif link.customer_id == new.customer_id and new.case_id not in {"", link.case_id}:
                changed[link.conversation_id] = replace(link, case_id=new.case_id)
        found.update(changed)
        return list(changed.values())

    # --- doing it --------------------------------------------------------------------------------

    def _learned(self, plans: Sequence[Plan], *, now: float) -> list[Plan]:
        """The plans with what a language model learned of each ticket; where it failed, messages are kept."""
        if self._learner is None:
            return list(plans)
        lessons = self._learner.learn([(plan.scope, plan.ticket) for plan in plans], now=now)
        learned = []
        for plan, lesson in zip(plans, lessons, strict=True):
            if lesson.statements is None:
                # What was known stays until the model answers again.
                known = plan.entry.row_ids if plan.entry and plan.entry.mode is Mode.EXTRACT else ()
                kept = tuple(dict.fromkeys([*plan.kept_rows, *known]))
                learned.append(replace(plan, lesson=lesson, kept_rows=kept))
                continue
            facts = self._barring.statements(
                plan.scope, plan.ticket, lesson.statements, restored_at=plan.restored_at
            )
            expected = [m for s in facts for m in [self._fact(plan, s, now=now)] if m]
            learned.append(
                replace(
                    plan,
                    lesson=replace(lesson, statements=tuple(facts)),
                    kept_rows=(*plan.kept_rows, *self._kept_facts(plan)),
                    memories=tuple(expected),
                )
            )
        return learned

    def _kept_facts(self, plan: Plan) -> list[str]:
        """Rows of facts whose message was not shown again since another fact of it was forgotten."""
        if not plan.barred_messages or plan.entry is None or plan.entry.mode is not Mode.EXTRACT:
            return []
        stored = self._store.read(plan.scope, plan.entry.row_ids)
        return [row for m in stored if m.origin in plan.barred_messages for row in m.row_ids]

    def _fact(self, plan: Plan, statement: Statement, *, now: float) -> Memory | None:
        """The record a fact is going to be, before it is known which others there are."""
        return record_of(self._writing(plan), statement, now=now) if statement.is_still_so else None

    def _writing(self, plan: Plan) -> Writing:
        return Writing(
            scope=plan.scope,
            conversation_id=plan.ticket.conversation_id,
            case_id=plan.ticket.case_id or "",
            policy=self._policy,
            source=plan.ticket.source,
            ticket_id=plan.ticket.ticket_id,
        )

    def _write(self, plans: Sequence[Plan], *, now: float) -> list[Plan]:
        """Write a batch; the plans as they came out, with the rows that stand for each ticket now."""
        with WriteBehind() as behind:
            entries = [entry_of(plan, now=now, is_complete=False) for plan in plans]
            behind.put(lambda: self._ledger.put(entries))
            self._write_messages([plan for plan in plans if plan.mode is not Mode.EXTRACT], behind)
        self._store.touch([plan.scope for plan in plans if plan.entry is not None])
        done = [self._write_facts(plan, now=now) for plan in plans]
        self._erase_stale(done)
        self._complete(plans, done, now=now)
        return done

    def _complete(self, planned: Sequence[Plan], done: Sequence[Plan], *, now: float) -> None:
        """Note the end in the ledger; where the entry says already what is there, only that it is the end."""
        before = [replace(entry_of(p, now=now, is_complete=False), is_complete=True) for p in planned]
        after = [entry_of(plan, now=now, is_complete=True) for plan in done]
        pairs = list(zip(before, after, strict=True))
        self._ledger.complete(entry for was, entry in pairs if was == entry)
        self._ledger.put([entry for was, entry in pairs if was != entry])

    def _write_messages(self, plans: Sequence[Plan], behind: WriteBehind) -> None:
        """Embed and write, collection by collection: one is written while the next is embedded."""
        rows = [(plan.scope, part) for plan in plans for m in plan.memories for part in parts_of(m)]
        for batch in self._store.batches(rows):
            vectors = self._embedder.embed_documents([part.index_text for _, part in batch])
            behind.put(partial(self._write_batch, batch, vectors))

    def _write_batch(self, batch: Sequence[tuple[Scope, Memory]], vectors: Sequence[Vector]) -> None:
        self._renew()
        self._store.write_all(
            [(scope, (part, vector)) for (scope, part), vector in zip(batch, vectors, strict=True)]
        )

    def _write_facts(self, plan: Plan, *, now: float) -> Plan:
        if plan.mode is not Mode.EXTRACT or plan.lesson is None:
            return plan
        statements = plan.lesson.statements or ()
        self._renew()
        outcomes = remember(self._store, self._embedder, self._writing(plan), statements, now=now)
        # A fact that was known from elsewhere is not the ticket's to take away again.
        kept = [o.memory for o in outcomes if o.action is not Action.ENDED and o.memory.source]
        return replace(plan, memories=tuple(kept))

    def _erase_stale(self, plans: Sequence[Plan]) -> None:
        """Delete what stands for nothing any more; a fact that another ticket states too stays."""
        stale = [(p.entry.scope, row) for p in plans if p.entry is not None for row in p.stale]
        if not stale:
            return
        kept = {row for plan in plans for row in plan.rows}
        keys = {(p.ticket.source, p.ticket.ticket_id) for p in plans}
        if self._learner is not None:
            kept |= self._ledger.held({scope for scope, _ in stale}, apart_from=keys)
        stale = [(scope, row) for scope, row in stale if row not in kept]
        self._renew()
        self._store.erase_all(stale)


def neighbourhood(ticket: Ticket) -> int:
    """A number that tickets share whose memories are stored together.

    A batch of tickets with few such numbers is written in few requests. It is exact for a namespace with the
    usual number of shards; for another one it is only a worse order.
    """
    try:
        return scope_of_customer(ticket.customer_id).shard(DEFAULT_SHARDS)
    except RequestError:  # told when its turn comes
        return -1
