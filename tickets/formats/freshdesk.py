"""Freshdesk: a bare array of tickets, whose first message is their description."""

from collections.abc import Iterator, Mapping

from tickets.assembly import (
    FIRST_MESSAGE_ID,
    MessageDraft,
    TicketDraft,
    draft_messages,
    parse_items,
)
from tickets.fields import dig, envelope_items, first_present, join_path, read_flag, read_lines
from tickets.formats.base import TicketFormat, any_ticket
from tickets.model import ParseOptions, Ticket, TicketProblem

NAME = "freshdesk"
KEYS = ("tickets",)

_STATUSES = {2: "open", 3: "pending", 4: "resolved", 5: "closed"}
_OUTBOUND_EMAIL = 10


def matches(payload: object) -> bool:
    """Tell by `requester_id` beside `description_text`; see `TicketFormat`."""
    return any_ticket(payload, KEYS, lambda raw: "requester_id" in raw and "description_text" in raw)


def parse(payload: object, options: ParseOptions, path: str = "") -> Iterator[Ticket | TicketProblem]:
    """Read the tickets of one payload; see `Parse`."""
    return parse_items(envelope_items(payload, KEYS, path), _ticket, options, NAME)


def _ticket(raw: Mapping[str, object], path: str) -> TicketDraft:
    user_id = first_present(raw, "requester_id")
    status = raw.get("status")
    return TicketDraft(
        path=path,
        raw=raw,
        ticket_id=raw.get("id"),
        external_id=dig(raw, "requester", "unique_external_id"),
        user_id=dig(raw, "requester", "id") if user_id is None else user_id,
        email=dig(raw, "requester", "email"),
        customer_field="requester_id",
        subject=raw.get("subject"),
        status=_STATUSES.get(status, status) if isinstance(status, int) else status,
        tags=read_lines(raw.get("tags"), "name"),
        created_at=raw.get("created_at"),
        updated_at=raw.get("updated_at"),
        messages=[
            _description(raw, path),
            *draft_messages(raw.get("conversations"), join_path(path, "conversations"), _conversation),
        ],
    )


def _description(raw: Mapping[str, object], path: str) -> MessageDraft:
    is_outbound = raw.get("source") == _OUTBOUND_EMAIL
    return MessageDraft(
        path=path,
        message_id=FIRST_MESSAGE_ID,
        role="agent" if is_outbound else "customer",
        author=None if is_outbound else dig(raw, "requester", "name"),
        created_at=raw.get("created_at"),
        plain=raw.get("description_text"),
        html=raw.get("description"),
        text_field="description_text",
        attachments=read_lines(raw.get("attachments"), "name"),
        is_first=True,
    )


def _conversation(raw: Mapping[str, object], path: str) -> MessageDraft:
    is_incoming = read_flag(raw.get("incoming"), join_path(path, "incoming"), default=False)
    is_private = read_flag(raw.get("private"), join_path(path, "private"), default=False)
    return MessageDraft(
        path=path,
        message_id=raw.get("id"),
        role="customer" if is_incoming else "agent",
        is_public=not is_private,
        created_at=raw.get("created_at"),
        plain=raw.get("body_text"),
        html=raw.get("body"),
        text_field="body_text",
        attachments=read_lines(raw.get("attachments"), "name"),
    )


FORMAT = TicketFormat(name=NAME, matches=matches, parse=parse)
