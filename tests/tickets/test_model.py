"""Tickets as values."""

from dataclasses import FrozenInstanceError, replace
from datetime import UTC, datetime

import pytest

from tickets.errors import TicketFormatError
from tickets.model import ParseOptions, Ticket, TicketMessage, content_hash

AT = datetime(2024, 5, 1, 8, tzinfo=UTC)
FIRST = TicketMessage(message_id="1", role="customer", text="My mug is broken.", created_at=AT)
SECOND = TicketMessage(message_id="2", role="agent", text="We send another.", created_at=AT)
TICKET = Ticket(source="shop", ticket_id="T-1", customer_id="c", subject="Mug", messages=(FIRST, SECOND))


def test_conversation_is_named_after_source_and_ticket() -> None:
    """A ticket that names no conversation has one of its own."""
    assert TICKET.conversation_id == "shop:T-1"
    assert replace(TICKET, conversation_id="conv-9").conversation_id == "conv-9"


def test_tickets_cannot_be_changed() -> None:
    """A ticket is a value."""
    with pytest.raises(FrozenInstanceError):
        TICKET.subject = "Cup"  # type: ignore[misc]


def test_hash_does_not_depend_on_the_order_of_messages() -> None:
    """Newest first or oldest first is the same ticket; so is one seen again later."""
    again = replace(TICKET, messages=(SECOND, FIRST), updated_at=AT, created_at=AT)
    assert content_hash(again) == content_hash(TICKET)
    assert len(content_hash(TICKET)) == 64


@pytest.mark.parametrize(
    "changed",
    [
        replace(TICKET, subject="Cup"),
        replace(TICKET, customer_id="d"),
        replace(TICKET, customer_id=None),
        replace(TICKET, case_id="case"),
        replace(TICKET, ticket_id="T-2"),
        replace(TICKET, source="other"),
        replace(TICKET, messages=(FIRST,)),
        replace(TICKET, messages=(replace(FIRST, text="It is fine."), SECOND)),
        replace(TICKET, messages=(replace(FIRST, role="agent"), SECOND)),
        replace(TICKET, messages=(replace(FIRST, created_at=AT.replace(hour=9)), SECOND)),
        replace(TICKET, messages=(replace(FIRST, is_redacted=True), SECOND)),
        replace(TICKET, messages=(replace(FIRST, is_public=False), SECOND)),
        replace(TICKET, messages=(replace(FIRST, message_id="3"), SECOND)),
    ],
)
def test_hash_changes_with_the_content(changed: Ticket) -> None:
    """Whatever a memory could be made of counts."""
    assert content_hash(changed) != content_hash(TICKET)


def test_hash_is_stable_between_releases() -> None:
    """A stored hash means the same tomorrow: changing it makes every ticket look changed."""
    assert content_hash(TICKET) == "5dbdcdbac0e70f5f3cd1a368506eb523f9297a2b7870b74af7054c7106d2cf2b"


def test_unknown_time_zone_is_refused_at_once() -> None:
    """Options are checked when they are made, not at the first time without a zone."""
    with pytest.raises(TicketFormatError) as caught:
        ParseOptions(timezone="Mars/Olympus")
    assert (caught.value.code, caught.value.path) == ("timezone_unknown", "timezone")


def test_errors_are_no_value_errors() -> None:
    """Nobody catches them by accident."""
    assert not issubclass(TicketFormatError, ValueError)
    assert TicketFormatError("json_invalid", "lines[3]").retryable is False
