"""What an import leaves out because it was forgotten."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from memory.content import Statement
from memory.identity import scope_of_customer
from memory.ledger import TicketKey
from memory.records import Memory
from memory.scope import Scope
from memory.text import digest
from memory.tombstones import NOTHING, Bar, Tombstones
from tickets.model import Ticket, TicketMessage


@dataclass(frozen=True, slots=True)
class Admitted:
    """What is left of a ticket.

    Attributes:
        ticket: with the messages that were forgotten as redacted ones, which makes nothing of them.
        barred_messages: ids of these messages.
        has_words: whether anything is left to make a memory of, or nothing was forgotten.
    """

    ticket: Ticket
    barred_messages: frozenset[str] = frozenset()
    has_words: bool = True


class Barring:
    """Decides what of tickets is imported, for one batch.

    Args:
        tombstones: of the namespace.
        restores: whether the import asks for what was forgotten.
    """

    def __init__(self, tombstones: Tombstones, *, restores: bool = False) -> None:
        self._tombstones, self.restores = tombstones, restores
        self._bars: dict[TicketKey, Bar] = {}

    def read(self, tickets: Sequence[tuple[Scope, Ticket]]) -> None:
        """Look up what was forgotten of a batch."""
        keys = [(_named(scope, ticket), (ticket.source, ticket.ticket_id)) for scope, ticket in tickets]
        self._bars = self._tombstones.of_tickets(keys)

    def is_touched(self, ticket: Ticket, *, restored_at: float) -> bool:
        """Whether anything of a ticket was forgotten since it was restored."""
        return self._bar(ticket).is_later_than(restored_at)

    def admit(self, ticket: Ticket, *, restored_at: float) -> Admitted:
        """What is left of a ticket.

        Args:
            ticket: as its source has it.
            restored_at: what was forgotten before is admitted; seconds since 1970.
        """
        bar = self._bar(ticket)
        if self.restores or not bar.is_later_than(restored_at):
            return Admitted(ticket)
        until = bar.until if bar.until > restored_at else float("-inf")
        barred = {
            m.message_id
            for m in ticket.messages
            if m.created_at.timestamp() <= until or self._is_forgotten(bar, ticket, m, restored_at)
        }
        if not barred:
            return Admitted(ticket)
        left = [
            replace(m, text="", is_redacted=True) if m.message_id in barred else m for m in ticket.messages
        ]
        # The subject is as old as the ticket.
        subject = None if any(m.created_at.timestamp() <= until for m in ticket.messages) else ticket.subject
        has_words = any(not m.is_redacted and (m.role == "customer" or not m.is_public) for m in left)
        return Admitted(replace(ticket, messages=tuple(left), subject=subject), frozenset(barred), has_words)

    def memories(
        self, scope: Scope, ticket: Ticket, memories: Sequence[Memory], *, restored_at: float
    ) -> list[Memory]:
        """Those of a ticket's messages as they are that the customer has not had forgotten elsewhere."""
        told = [(m.digest, m.occurred_at) for m in memories]
        allowed = self._allowed(scope, ticket, told, restored_at)
        return [memory for memory, is_allowed in zip(memories, allowed, strict=True) if is_allowed]

    def statements(
        self, scope: Scope, ticket: Ticket, statements: Sequence[Statement], *, restored_at: float
    ) -> list[Statement]:
        """Those of a ticket's facts that were not forgotten, as this ticket's or elsewhere."""
        bar, key = self._bar(ticket), (ticket.source, ticket.ticket_id)
        told = [(digest(s.text), s.occurred_at or 0.0) for s in statements]
        allowed = self._allowed(scope, ticket, told, restored_at)
        kept = [s for s, is_allowed in zip(statements, allowed, strict=True) if is_allowed]
        if self.restores:
            return kept
        return [
            s
            for s in kept
            if not s.attribute
            or bar.parts.get(self._tombstones.slot(key, s.subject, s.attribute), 0.0)
            <= max(restored_at, s.occurred_at or 0.0)
        ]

    def _allowed(
        self, scope: Scope, ticket: Ticket, told: Sequence[tuple[str, float]], restored_at: float
    ) -> list[bool]:
        """Of each digest and time whether it may be told again."""
        if self.restores or not told or not self._bar(ticket).has_statements:
            return [True] * len(told)
        scopes = _named(scope, ticket)
        hashes = [[self._tombstones.statement(s, text_digest) for s in scopes] for text_digest, _ in told]
        until = self._tombstones.of_statements(each for together in hashes for each in together)
        return [
            max(until.get(each, 0.0) for each in together) <= max(restored_at, at)
            for together, (_, at) in zip(hashes, told, strict=True)
        ]

    def _is_forgotten(self, bar: Bar, ticket: Ticket, message: TicketMessage, restored_at: float) -> bool:
        if not bar.parts:
            return False
        key = (ticket.source, ticket.ticket_id)
        return bar.parts.get(self._tombstones.message(key, message.message_id), 0.0) > restored_at

    def _bar(self, ticket: Ticket) -> Bar:
        return self._bars.get((ticket.source, ticket.ticket_id), NOTHING)


def _named(scope: Scope, ticket: Ticket) -> list[Scope]:
    """Whose forgetting counts for a ticket: of who answers for its customer, and of the one it names."""
    return list(dict.fromkeys((scope, scope_of_customer(ticket.customer_id))))
