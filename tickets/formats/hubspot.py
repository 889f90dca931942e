"""HubSpot: threads of the conversations inbox with their messages, with or without their ticket."""

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
    read_email,
    read_flag,
    read_lines,
    read_list,
    read_mapping,
)
from tickets.formats.base import TicketFormat, any_ticket
from tickets.model import ParseOptions, Role, Ticket, TicketProblem

NAME = "hubspot"
KEYS = ("results",)

_WORDS = ("MESSAGE", "COMMENT", "WELCOME_MESSAGE")
_BOT_ACTOR = "B-"


def matches(payload: object) -> bool:
    """Tell by `associatedContactId`, or by `direction` in the messages; see `TicketFormat`."""
    return any_ticket(payload, KEYS, _looks_like)


def _looks_like(raw: Mapping[str, object]) -> bool:
    messages = [read_mapping(message) for message in read_list(raw.get("messages"))]
    return "associatedContactId" in raw or any(
        "direction" in message and "senders" in message for message in messages
    )


def parse(payload: object, options: ParseOptions, path: str = "") -> Iterator[Ticket | TicketProblem]:
    """Read the tickets of one payload; see `Parse`."""
    return parse_items(envelope_items(payload, KEYS, path), _ticket, options, NAME)


def _ticket(raw: Mapping[str, object], path: str) -> TicketDraft:
    record, properties_field = raw, "properties"
    if not isinstance(raw.get("properties"), Mapping) and isinstance(raw.get("ticket"), Mapping):
        record, properties_field = read_mapping(raw.get("ticket")), "ticket.properties"
    properties = read_mapping(record.get("properties"))
    properties_path = join_path(path, properties_field)
    messages = draft_messages(raw.get("messages"), join_path(path, "messages"), _message)
    created_at, created_field = _first_time(
        (raw, "createdAt", ""), (properties, "createdate", properties_field)
    )
    updated_at, updated_field = _first_time(
        (raw, "updatedAt", ""),
        (raw, "latestMessageTimestamp", ""),
        (properties, "hs_lastmodifieddate", properties_field),
    )
    if first_present(properties, "content") is not None:
        messages.insert(0, _content(properties, properties_path, raw.get("createdAt")))
    return TicketDraft(
        path=path,
        raw=raw,
        ticket_id=raw.get("id"),
        user_id=raw.get("associatedContactId"),
        email=_sender_email(raw),
        customer_field="associatedContactId",
        case_id=dig(raw, "threadAssociations", "associatedTicketId"),
        subject=first_present(properties, "subject") or _message_subject(raw),
        status=first_present(raw, "status") or properties.get("hs_pipeline_stage"),
        created_at=created_at,
        updated_at=updated_at,
        created_field=created_field,
        updated_field=updated_field,
        messages=messages,
    )


def _first_time(*places: tuple[Mapping[str, object], str, str]) -> tuple[object, str]:
    """Give the first time that is there, and its path within the thread."""
    for holder, field, where in places:
        value = first_present(holder, field)
        if value is not None:
            return value, join_path(where, field)
    return None, places[0][1]


def _message_subject(raw: Mapping[str, object]) -> object:
    """Take the subject of the first message that has one."""
    subjects = (dig(message, "subject") for message in read_list(raw.get("messages")))
    return next((subject for subject in subjects if subject), None)


def _sender_email(raw: Mapping[str, object]) -> str | None:
    """Take the address of the first customer who wrote."""
    for message in read_list(raw.get("messages")):
        if dig(message, "direction") != "INCOMING":
            continue
        for sender in read_list(dig(message, "senders")):
            email = read_email(dig(sender, "deliveryIdentifier", "value"))
            if email is not None:
                return email
    return None


def _content(properties: Mapping[str, object], path: str, thread_time: object) -> MessageDraft:
    own_time = first_present(properties, "createdate")
    return MessageDraft(
        path=path,
        message_id=FIRST_MESSAGE_ID,
        role="customer",
        created_at=thread_time if own_time is None else own_time,
        time_field="createdate",
        plain=properties.get("content"),
        text_field="content",
        is_first=True,
    )


def _message(raw: Mapping[str, object], path: str) -> MessageDraft | None:
    kind = raw.get("type")
    if kind is not None and kind not in _WORDS:
        return None  # an assignment or a change of state
    senders = read_list(raw.get("senders"))
    return MessageDraft(
        path=path,
        message_id=raw.get("id"),
        role=_role(raw),
        author=dig(senders[0], "name") if senders else None,
        is_public=kind != "COMMENT",
        is_redacted=read_flag(raw.get("archived"), join_path(path, "archived"), default=False),
        created_at=raw.get("createdAt"),
        time_field="createdAt",
        plain=raw.get("text"),
        html=raw.get("richText"),
        text_field="text",
        attachments=read_lines(raw.get("attachments"), "name"),
    )


def _role(raw: Mapping[str, object]) -> Role:
    if raw.get("direction") == "INCOMING":
        return "customer"
    actors = [
        raw.get("createdBy"),
        *(dig(each, "actorId") for each in read_list(raw.get("senders"))),
    ]
    is_bot = raw.get("type") == "WELCOME_MESSAGE" or any(
        isinstance(actor, str) and actor.startswith(_BOT_ACTOR) for actor in actors
    )
    return "bot" if is_bot else "agent"


FORMAT = TicketFormat(name=NAME, matches=matches, parse=parse)
