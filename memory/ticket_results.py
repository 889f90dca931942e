"""What became of tickets in an import."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from memory.errors import ErasureUnderWay
from memory.scope import Scope
from tickets.model import Ticket


class Status(StrEnum):
    """What became of a ticket."""

    IMPORTED = "imported"
    REPLACED = "replaced"
    """It had been imported and has changed: what it had made was replaced."""
    UNCHANGED = "unchanged"
    OUTDATED = "outdated"
    """A newer version of it had been imported before."""
    FORGOTTEN = "forgotten"
    """All that is in it was forgotten before, and stays so."""
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
class Imported:
    """What became of a batch: one result a ticket, secrets replaced by type, tokens a language model took."""

    results: tuple[TicketResult, ...]
    redacted: Mapping[str, int]
    tokens: int


def result_of(ticket: Ticket, status: Status, code: str = "") -> TicketResult:
    """The result of a ticket that nothing was done for."""
    return TicketResult(ticket.source, ticket.ticket_id, status, code=code)


def taken_back(
    results: Sequence[TicketResult],
    tickets: Sequence[Ticket],
    overtaken: Sequence[Scope],
    scope_of: Callable[[object], Scope],
) -> list[TicketResult]:
    """The results of a batch, of which some customers' were taken back since they were erased meanwhile.

    Args:
        results, tickets: of the batch.
        overtaken: whose were taken back.
        scope_of: gives the scope of who answers for a ticket's customer.
    """
    gone = set(overtaken)
    return [
        result_of(ticket, Status.FAILED, ErasureUnderWay.code)
        if gone and result.status is not Status.FAILED and scope_of(ticket.customer_id) in gone
        else result
        for result, ticket in zip(results, tickets, strict=True)
    ]
