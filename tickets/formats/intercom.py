"""Intercom: conversations, whose first message is their `source`."""

from collections.abc import Iterator, Mapping

from tickets.assembly import (
    FIRST_MESSAGE_ID,
    MessageDraft,
    TicketDraft,
    draft_messages,
    parse_items,
)
from tickets.fields import (
    dig,
    envelope_items,
    first_present,
    join_path,
    read_flag,
    read_lines,
    read_list,
    read_mapping,
    same_id,
)
from tickets.formats.base import TicketFormat, any_ticket
from tickets.model import ParseOptions, Role, Ticket, TicketProblem
from tickets.text import html_to_text

NAME = "intercom"
KEYS = ("conversations",)

_ROLES: Mapping[object, Role] = {
    "user": "customer",
    "lead": "customer",
    "contact": "customer",
    "admin": "agent",
    "team": "agent",
    "bot": "bot",
}


def matches(payload: object) -> bool:
    """Tell by `conversation_parts`; see `TicketFormat`."""
    return any_ticket(payload, KEYS, lambda raw: "conversation_parts" in raw)


def parse(payload: object, options: ParseOptions, path: str = "") -> Iterator[Ticket | TicketProblem]:
    """Read the tickets of one payload; see `Parse`."""
    return parse_items(envelope_items(payload, KEYS, path), _ticket, options, NAME)


def _ticket(raw: Mapping[str, object], path: str) -> TicketDraft:
    source = read_mapping(raw.get("source"))
    author = read_mapping(source.get("author"))
    writer = author if _role(author) == "customer" else {}
    contact = _contact(raw, writer)
    messages = draft_messages(
        dig(raw, "conversation_parts", "conversation_parts"),
        join_path(path, "conversation_parts.conversation_parts"),
        _part,
    )
    if source:
        messages.insert(0, _source(raw, source, path))
    title = first_present(raw, "title") or source.get("subject")
    return TicketDraft(
        path=path,
        raw=raw,
        ticket_id=raw.get("id"),
        external_id=first_present(contact, "external_id", "user_id"),
        user_id=first_present(contact, "id") or writer.get("id"),
        email=first_present(contact, "email") or writer.get("email"),
        customer_field="contacts",
        subject=html_to_text(title) if isinstance(title, str) else None,
        status=raw.get("state"),
        tags=read_lines(dig(raw, "tags", "tags"), "name"),
        created_at=raw.get("created_at"),
        updated_at=raw.get("updated_at"),
        messages=messages,
        is_partial=raw.get("is_partial") is True,
    )


def _contact(raw: Mapping[str, object], writer: Mapping[str, object]) -> Mapping[str, object]:
    """Find the contact: who began the conversation, else the first; `user` in old versions."""
    contacts = [read_mapping(each) for each in read_list(dig(raw, "contacts", "contacts"))]
    if not contacts:
        return read_mapping(raw.get("user"))
    return next((each for each in contacts if same_id(each.get("id"), writer.get("id"))), contacts[0])


def _role(author: Mapping[str, object]) -> Role:
    kind = author.get("type")
    return _ROLES.get(kind, "system") if isinstance(kind, str) else "system"


def _source(raw: Mapping[str, object], source: Mapping[str, object], path: str) -> MessageDraft:
    author = read_mapping(source.get("author"))
    where = join_path(path, "source")
    message_id = first_present(source, "id")
    return MessageDraft(
        path=where,
        message_id=FIRST_MESSAGE_ID if message_id is None else message_id,
        role=_role(author),
        author=author.get("name"),
        is_redacted=read_flag(source.get("redacted"), join_path(where, "redacted"), default=False),
        created_at=raw.get("created_at"),
        html=source.get("body"),
        attachments=read_lines(source.get("attachments"), "name"),
        is_first=message_id is None,
    )


def _part(raw: Mapping[str, object], path: str) -> MessageDraft:
    author = read_mapping(raw.get("author"))
    kind = raw.get("part_type")
    return MessageDraft(
        path=path,
        message_id=raw.get("id"),
        role=_role(author),
        author=author.get("name"),
        is_public=kind is None or (isinstance(kind, str) and not kind.startswith("note")),
        is_redacted=read_flag(raw.get("redacted"), join_path(path, "redacted"), default=False),
        created_at=raw.get("created_at"),
        html=raw.get("body"),
        attachments=read_lines(raw.get("attachments"), "name"),
    )


FORMAT = TicketFormat(name=NAME, matches=matches, parse=parse)
