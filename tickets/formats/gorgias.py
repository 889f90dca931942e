"""Gorgias: tickets with their messages; quotations are cut by the vendor where it could."""

from collections.abc import Iterator, Mapping

from tickets.assembly import MessageDraft, TicketDraft, draft_messages, parse_items
from tickets.fields import dig, envelope_items, first_present, join_path, read_flag, read_lines
from tickets.formats.base import TicketFormat, any_ticket
from tickets.model import ParseOptions, Role, Ticket, TicketProblem

NAME = "gorgias"
KEYS = ("data",)


def matches(payload: object) -> bool:
    """Tell by `created_datetime`; see `TicketFormat`."""
    return any_ticket(payload, KEYS, lambda raw: "created_datetime" in raw)


def parse(payload: object, options: ParseOptions, path: str = "") -> Iterator[Ticket | TicketProblem]:
    """Read the tickets of one payload; see `Parse`."""
    return parse_items(envelope_items(payload, KEYS, path), _ticket, options, NAME)


def _ticket(raw: Mapping[str, object], path: str) -> TicketDraft:
    return TicketDraft(
        path=path,
        raw=raw,
        ticket_id=raw.get("id"),
        external_id=dig(raw, "customer", "external_id"),
        user_id=dig(raw, "customer", "id"),
        email=dig(raw, "customer", "email"),
        customer_field="customer",
        subject=raw.get("subject"),
        status=raw.get("status"),
        tags=read_lines(raw.get("tags"), "name"),
        created_at=raw.get("created_datetime"),
        updated_at=raw.get("updated_datetime"),
        created_field="created_datetime",
        updated_field="updated_datetime",
        messages=draft_messages(raw.get("messages"), join_path(path, "messages"), _message),
    )


def _message(raw: Mapping[str, object], path: str) -> MessageDraft:
    is_public = read_flag(raw.get("public"), join_path(path, "public"), default=True)
    is_note = "internal-note" in (raw.get("channel"), dig(raw, "source", "type"))
    stripped = first_present(raw, "stripped_text")
    # A message that was brought in from elsewhere was sent long before it was created here.
    time_field = "sent_datetime" if first_present(raw, "sent_datetime") else "created_datetime"
    return MessageDraft(
        path=path,
        message_id=raw.get("id"),
        role=_role(raw, path),
        author=dig(raw, "sender", "name"),
        is_public=is_public and not is_note,
        is_redacted=first_present(raw, "deleted_datetime") is not None,
        created_at=raw.get(time_field),
        time_field=time_field,
        plain=first_present(raw, "body_text") if stripped is None else stripped,
        html=first_present(raw, "stripped_html", "body_html"),
        text_field="stripped_text",
        attachments=read_lines(raw.get("attachments"), "name"),
        is_stripped=stripped is not None,
    )


def _role(raw: Mapping[str, object], path: str) -> Role:
    if not read_flag(raw.get("from_agent"), join_path(path, "from_agent"), default=True):
        return "customer"
    return "agent" if raw.get("rule_id") is None else "bot"


FORMAT = TicketFormat(name=NAME, matches=matches, parse=parse)
