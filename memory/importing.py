"""Importing past tickets: each public message of a customer becomes an event; again, it changes nothing.

A batch is written in steps that may each be repeated: links, then the ledger with all rows that may be there
from now on, then the memories, then what is no more, then the ledger as it is in the end. Cut anywhere and
done again, it ends in the same state.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from memory.content import Statement
from memory.embedding import Embedder
from memory.errors import IdInvalid, RequestError
from memory.identity import scope_of_customer
from memory.import_learning import Lesson, TicketLearner
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
from tickets.model import Ticket, content_hash

TICKETS_BETWEEN_BREATHS = 4
"""A few milliseconds of work."""


class Status(StrEnum):
    """What became of a ticket."""

    IMPORTED = "imported"
    REPLACED = "replaced"
    """It had been imported and has changed: what it had made was replaced."""
    UNCHANGED = "unchanged"
    OUTDATED = "outdated"
    """A newer version of it had been imported before."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class TicketResult:
    """What became of one ticket.

    Attributes:
        source, ticket_id: which one.
        status: see there.
        stored, removed: memories written, and memories that are no more.
        code: for a failed one, why; for one whose facts could not be extracted, why its messages were kept.
        rejected: extracted facts that were left out.
    """

    source: str
    ticket_id: str
    status: Status
    stored: int = 0
    removed: int = 0
    code: str = ""
    rejected: int = 0


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


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of a batch: one result a ticket, secrets replaced by type, tokens a language model took."""

    results: tuple[TicketResult, ...]
    redacted: Mapping[str, int]
    tokens: int


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is to be done for one ticket."""

    ticket: Ticket
    scope: Scope
    entry: Entry | None
    memories: tuple[Memory, ...]
    kept_rows: tuple[str, ...]
    lesson: Lesson | None = None

    @property
    def mode(self) -> Mode:
        """What is made of the messages."""
        if self.lesson is None:
            return Mode.AS_IS
        return Mode.EXTRACT_FAILED if self.lesson.statements is None else Mode.EXTRACT

    @property
    def rows(self) -> list[str]:
        """The rows that stand for the ticket in the end."""
        written = (r for m in self.memories for r in m.row_ids)
        return list(dict.fromkeys([*self.kept_rows, *written]))

    @property
    def stale(self) -> list[str]:
        """Rows of an earlier import that stand for nothing any more."""
        kept = set(self.rows)
        return [r for r in (self.entry.row_ids if self.entry else ()) if r not in kept]


class Importer:
    """Imports tickets into one namespace, a batch at a time.

    Args:
        store, links, ledger: of the namespace.
        embedder: makes the vectors.
        scope_of: gives a customer's scope; from identity resolution.
        handling: what is done with the words.
    """

    def __init__(
        self,
        store: MemoryStore,
        links: LinkStore,
        ledger: Ledger,
        embedder: Embedder,
        scope_of: Callable[[str], Scope],
        handling: Handling,
    ) -> None:
        self._store, self._links, self._ledger = store, links, ledger
        self._embedder, self._scope_of = embedder, scope_of
        self._redactor, self._policy = handling.redactor, handling.policy
        self._learner, self._is_dry = handling.learner, handling.is_dry
        self._renew = handling.renew

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
        plans: list[_Plan] = []
        for number, ticket in enumerate(tickets):
            if number % TICKETS_BETWEEN_BREATHS == 0:
                breathe()
            entry = known.get((ticket.source, ticket.ticket_id))
            settled = self._settled(ticket, entry)
            if isinstance(settled, TicketResult):
                results[ticket.source, ticket.ticket_id] = settled
            else:
                plans.append(self._plan(ticket, settled, entry, now=now))
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
            return _result(ticket, Status.FAILED, fault.code)
        if not customer_id:
            return _result(ticket, Status.FAILED, "customer_missing")
        if entry is None or not entry.is_complete:
            return self._scope_of(customer_id)
        wanted = Mode.AS_IS if self._learner is None else Mode.EXTRACT
        is_same = entry.content_hash == content_hash(ticket) and entry.mode is wanted
        if is_same and not ticket.is_partial:
            return _result(ticket, Status.UNCHANGED)
        updated_at = _updated_at(ticket)
        if updated_at is not None and entry.updated_at is not None and updated_at < entry.updated_at:
            return _result(ticket, Status.OUTDATED)
        return self._scope_of(customer_id)

    def _plan(self, ticket: Ticket, scope: Scope, entry: Entry | None, *, now: float) -> _Plan:
        memories = tuple(memories_of(ticket, scope, self._redactor, self._policy, now=now))
        kept: tuple[str, ...] = ()
        if ticket.is_partial and entry is not None and entry.customer_id == scope.customer_id:
            told = {memory_id_of(ticket, m, scope) for m in ticket.messages}
            kept = tuple(r for r in entry.row_ids if r.partition(".")[0] not in told)
        return _Plan(ticket, scope, entry, memories, kept)

    def _link(
        self, plans: Sequence[_Plan], results: dict[TicketKey, TicketResult], *, now: float
    ) -> list[_Plan]:
        """Link the tickets' conversations; those of another customer are refused and left out."""
        wanted: dict[str, Link] = {}
        for plan in plans:
            link = Link(
                conversation_id=plan.ticket.conversation_id,
                customer_id=plan.scope.customer_id,
                case_id=plan.ticket.case_id or "",
                linked_at=now,
                is_moving=True,
            )
            wanted.setdefault(link.conversation_id, link)
        found = self._links.find_all(wanted)
        if not self._is_dry:
            self._links.put(*self._handed_over(plans, found, wanted))
            found |= self._links.claim_all([link for c, link in wanted.items() if c not in found])
        allowed = []
        for plan in plans:
            ticket = plan.ticket
            link = found.get(ticket.conversation_id, wanted[ticket.conversation_id])
            was_ours = plan.entry is not None and link.customer_id == plan.entry.customer_id
            if link.customer_id == plan.scope.customer_id or was_ours:
                allowed.append(plan)
            else:
                results[ticket.source, ticket.ticket_id] = _result(
                    ticket, Status.FAILED, "conversation_of_another_customer"
                )
        return allowed

    def _handed_over(
        self, plans: Sequence[_Plan], found: dict[str, Link], wanted: dict[str, Link]
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
                changed[link.conversation_id] = replace(new, moves_from=link.customer_id)
            elif link.customer_id == new.customer_id and new.case_id not in {"", link.case_id}:
                changed[link.conversation_id] = replace(link, case_id=new.case_id)
        found.update(changed)
        return list(changed.values())

    # --- doing it --------------------------------------------------------------------------------

    def _learned(self, plans: Sequence[_Plan], *, now: float) -> list[_Plan]:
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
            expected = [m for s in lesson.statements for m in [self._fact(plan, s, now=now)] if m]
            learned.append(replace(plan, lesson=lesson, memories=tuple(expected)))
        return learned

    def _fact(self, plan: _Plan, statement: Statement, *, now: float) -> Memory | None:
        """The record a fact is going to be, before it is known which others there are."""
        return record_of(self._writing(plan), statement, now=now) if statement.is_still_so else None

    def _writing(self, plan: _Plan) -> Writing:
        return Writing(
            scope=plan.scope,
            conversation_id=plan.ticket.conversation_id,
            case_id=plan.ticket.case_id or "",
            policy=self._policy,
            source=plan.ticket.source,
            ticket_id=plan.ticket.ticket_id,
        )

    def _write(self, plans: Sequence[_Plan], *, now: float) -> list[_Plan]:
        """Write a batch; the plans as they came out, with the rows that stand for each ticket now."""
        self._ledger.put([_entry(plan, now=now, is_complete=False) for plan in plans])
        self._write_messages([plan for plan in plans if plan.mode is not Mode.EXTRACT])
        done = [self._write_facts(plan, now=now) for plan in plans]
        self._erase_stale(done)
        self._complete(plans, done, now=now)
        return done

    def _complete(self, planned: Sequence[_Plan], done: Sequence[_Plan], *, now: float) -> None:
        """Note the end in the ledger; where the entry says already what is there, only that it is the end."""
        before = [replace(_entry(p, now=now, is_complete=False), is_complete=True) for p in planned]
        after = [_entry(plan, now=now, is_complete=True) for plan in done]
        pairs = list(zip(before, after, strict=True))
        self._ledger.complete(entry for was, entry in pairs if was == entry)
        self._ledger.put([entry for was, entry in pairs if was != entry])

    def _write_messages(self, plans: Sequence[_Plan]) -> None:
        rows = [(plan.scope, part) for plan in plans for m in plan.memories for part in parts_of(m)]
        vectors = self._embedder.embed_documents([part.index_text for _, part in rows])
        self._store.write_all(
            [(scope, (part, vector)) for (scope, part), vector in zip(rows, vectors, strict=True)]
        )

    def _write_facts(self, plan: _Plan, *, now: float) -> _Plan:
        if plan.mode is not Mode.EXTRACT or plan.lesson is None:
            return plan
        statements = plan.lesson.statements or ()
        self._renew()
        outcomes = remember(self._store, self._embedder, self._writing(plan), statements, now=now)
        # A fact that was known from elsewhere is not the ticket's to take away again.
        kept = [o.memory for o in outcomes if o.action is not Action.ENDED and o.memory.source]
        return replace(plan, memories=tuple(kept))

    def _erase_stale(self, plans: Sequence[_Plan]) -> None:
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


def _entry(plan: _Plan, *, now: float, is_complete: bool) -> Entry:
    """The ledger's entry for a plan: before the end with every row that may be there."""
    ticket = plan.ticket
    rows = plan.rows if is_complete else [*plan.rows, *plan.stale]
    moved = plan.entry is not None and plan.entry.customer_id != plan.scope.customer_id
    owner = plan.entry.customer_id if plan.entry and moved and not is_complete else plan.scope.customer_id
    return Entry(
        source=ticket.source,
        ticket_id=ticket.ticket_id,
        content_hash=content_hash(ticket),
        customer_id=owner,
        conversation_id=ticket.conversation_id,
        row_ids=tuple(rows),
        memories=sum(1 for row in plan.rows if "." not in row),
        updated_at=_updated_at(ticket),
        imported_at=now,
        is_complete=is_complete,
        mode=plan.mode,
    )


def _updated_at(ticket: Ticket) -> float | None:
    return None if ticket.updated_at is None else ticket.updated_at.timestamp()


def _result(ticket: Ticket, status: Status, code: str = "") -> TicketResult:
    return TicketResult(ticket.source, ticket.ticket_id, status, code=code)
