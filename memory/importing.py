"""Importing past tickets: each public message of a customer becomes an event; again, it changes nothing.

A batch is written in steps that may each be repeated: links, then the ledger with all rows that may be there
from now on, then the memories, then what is no more, then the ledger as it is in the end. Cut anywhere and
done again, it ends in the same state.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from memory.embedding import Embedder
from memory.errors import IdInvalid
from memory.ledger import Entry, Ledger, TicketKey
from memory.links import Link, LinkStore
from memory.records import Kind, Memory, Role, in_scope
from memory.remembering import parts_of
from memory.scope import Scope, checked_id
from memory.store import MemoryStore
from memory.text import clean, digest, one_line, split
from tickets.model import Ticket, TicketMessage, content_hash

MAX_REPLY_LENGTH = 600
"""Characters of the agent's answer that are kept beside a message."""
MAX_TOPIC_LENGTH = 200
_STEP = 1e-6


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
        code: for a failed one, why.
    """

    source: str
    ticket_id: str
    status: Status
    stored: int = 0
    removed: int = 0
    code: str = ""


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is to be done for one ticket."""

    ticket: Ticket
    scope: Scope
    entry: Entry | None
    memories: tuple[Memory, ...]
    kept_rows: tuple[str, ...]

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
        is_dry: whether to say what would happen and write nothing.
    """

    def __init__(
        self,
        store: MemoryStore,
        links: LinkStore,
        ledger: Ledger,
        embedder: Embedder,
        scope_of: Callable[[str], Scope],
        *,
        is_dry: bool = False,
    ) -> None:
        self._store, self._links, self._ledger = store, links, ledger
        self._embedder, self._scope_of, self._is_dry = embedder, scope_of, is_dry

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
        for ticket in tickets:
            entry = known.get((ticket.source, ticket.ticket_id))
            settled = self._settled(ticket, entry)
            if isinstance(settled, TicketResult):
                results[ticket.source, ticket.ticket_id] = settled
            else:
                plans.append(self._plan(ticket, settled, entry, now=now))
        plans = self._link(plans, results, now=now)
        if plans and not self._is_dry:
            self._write(plans, now=now)
        for plan in plans:
            results[plan.ticket.source, plan.ticket.ticket_id] = TicketResult(
                plan.ticket.source,
                plan.ticket.ticket_id,
                Status.REPLACED if plan.entry else Status.IMPORTED,
                len(plan.memories),
                sum(1 for row in plan.stale if "." not in row),
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
        if entry.content_hash == content_hash(ticket) and not ticket.is_partial:
            return _result(ticket, Status.UNCHANGED)
        updated_at = _updated_at(ticket)
        if updated_at is not None and entry.updated_at is not None and updated_at < entry.updated_at:
            return _result(ticket, Status.OUTDATED)
        return self._scope_of(customer_id)

    def _plan(self, ticket: Ticket, scope: Scope, entry: Entry | None, *, now: float) -> _Plan:
        memories = tuple(_memories(ticket, scope, now=now))
        kept: tuple[str, ...] = ()
        if ticket.is_partial and entry is not None and entry.customer_id == scope.customer_id:
            told = {_memory_id(ticket, m, scope) for m in ticket.messages}
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

    def _write(self, plans: Sequence[_Plan], *, now: float) -> None:
        self._ledger.put([_entry(plan, now=now, is_complete=False) for plan in plans])
        rows = [(plan.scope, part) for plan in plans for m in plan.memories for part in parts_of(m)]
        vectors = self._embedder.embed_documents([part.index_text for _, part in rows])
        self._store.write_all(
            [(scope, (part, vector)) for (scope, part), vector in zip(rows, vectors, strict=True)]
        )
        self._store.erase_all(
            [(plan.entry.scope, row) for plan in plans if plan.entry is not None for row in plan.stale]
        )
        self._ledger.put([_entry(plan, now=now, is_complete=True) for plan in plans])


def _memories(ticket: Ticket, scope: Scope, *, now: float) -> list[Memory]:
    """One event a message of the customer's own, with what the ticket is about and what was answered."""
    memories = []
    for index, message in enumerate(ticket.messages):
        text = clean(message.text)
        is_customer = message.role == "customer"
        # A private note is here only if the import asked for it.
        is_wanted = is_customer or not message.is_public
        if not is_wanted or message.is_redacted or not text:
            continue
        memories.append(
            in_scope(
                Memory(
                    memory_id="",
                    text=text,
                    kind=Kind.EPISODIC,
                    role=Role.CUSTOMER if is_customer else Role.AGENT,
                    conversation_id=ticket.conversation_id,
                    case_id=ticket.case_id or "",
                    occurred_at=message.created_at.timestamp(),
                    recorded_at=now + index * _STEP,
                    basis=_basis(ticket, message),
                    topic=one_line(clean(ticket.subject or ""))[:MAX_TOPIC_LENGTH],
                    reply=_reply_to(ticket, index),
                    source=ticket.source,
                    ticket_id=ticket.ticket_id,
                    message_id=message.message_id,
                    digest=digest(text),
                    parts=max(1, len(split(text))),
                ),
                scope,
            )
        )
    return memories


def _reply_to(ticket: Ticket, index: int) -> str:
    """What an agent said next in public, before the customer spoke again; else "", cut to a few sentences."""
    for message in ticket.messages[index + 1 :]:
        if message.role == "customer":
            return ""
        if message.role == "agent" and message.is_public and message.text:
            return split(clean(message.text), length=MAX_REPLY_LENGTH)[0]
    return ""


def _basis(ticket: Ticket, message: TicketMessage) -> str:
    return f"ticket:{len(ticket.source)}:{ticket.source}:{ticket.ticket_id}:{message.message_id}"


def _memory_id(ticket: Ticket, message: TicketMessage, scope: Scope) -> str:
    """The id the memory of a message has, whether or not the message makes one now."""
    probe = Memory(
        memory_id="",
        text="",
        kind=Kind.EPISODIC,
        occurred_at=0.0,
        recorded_at=0.0,
        basis=_basis(ticket, message),
        message_id=message.message_id,
    )
    return in_scope(probe, scope).memory_id


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
    )


def _updated_at(ticket: Ticket) -> float | None:
    return None if ticket.updated_at is None else ticket.updated_at.timestamp()


def _result(ticket: Ticket, status: Status, code: str = "") -> TicketResult:
    return TicketResult(ticket.source, ticket.ticket_id, status, code=code)
