"""What an import is going to do for one ticket, and the ledger's entry that says so."""

from dataclasses import dataclass

from memory.import_learning import Lesson
from memory.ledger import Entry, Mode
from memory.records import Memory
from memory.scope import Scope
from tickets.model import Ticket


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done for one ticket.

    Attributes:
        ticket: as far as it is not forgotten.
        content_hash: of the ticket as its source has it.
        scope: whose it is.
        entry: what was imported of it before; None for nothing.
        memories: what is to be written.
        kept_rows: rows of an earlier import that stay.
        lesson: what a language model learned of it; None where messages are kept as they are.
        barred_messages: ids of messages that were forgotten.
        epoch: of the customer the entry is going to name.
        restored_at: what was forgotten before is admitted; seconds since 1970.
    """

    ticket: Ticket
    content_hash: str
    scope: Scope
    entry: Entry | None
    memories: tuple[Memory, ...]
    kept_rows: tuple[str, ...]
    lesson: Lesson | None = None
    barred_messages: frozenset[str] = frozenset()
    epoch: int = 0
    restored_at: float = 0.0

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


def entry_of(plan: Plan, *, now: float, is_complete: bool) -> Entry:
    """The ledger's entry for a plan: before the end with every row that may be there."""
    ticket = plan.ticket
    rows = plan.rows if is_complete else [*plan.rows, *plan.stale]
    moved = plan.entry is not None and plan.entry.customer_id != plan.scope.customer_id
    owner = plan.entry.customer_id if plan.entry and moved and not is_complete else plan.scope.customer_id
    return Entry(
        source=ticket.source,
        ticket_id=ticket.ticket_id,
        content_hash=plan.content_hash,
        customer_id=owner,
        conversation_id=ticket.conversation_id,
        row_ids=tuple(rows),
        memories=sum(1 for row in plan.rows if "." not in row),
        updated_at=updated_at_of(ticket),
        imported_at=now,
        is_complete=is_complete,
        mode=plan.mode,
        epoch=plan.epoch,
        restored_at=plan.restored_at,
    )


def updated_at_of(ticket: Ticket) -> float | None:
    """When a ticket last changed, seconds since 1970; None if its source does not say."""
    return None if ticket.updated_at is None else ticket.updated_at.timestamp()
