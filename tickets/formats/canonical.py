"""Our own format: `{"tickets": [...]}`, a bare array, one ticket a line, or CSV."""

from collections.abc import Iterator, Mapping, Sequence

from tickets.assembly import MessageDraft, TicketDraft, draft_messages, parse_items
from tickets.fields import FieldFault, envelope_items, join_path, read_flag, read_lines
from tickets.formats.base import TicketFormat, any_ticket
from tickets.model import ParseOptions, Role, Ticket, TicketProblem

NAME = "canonical"
KEYS = ("tickets",)

_ROLES: Mapping[str, Role] = {
    "customer": "customer",
    "user": "customer",
    "end-user": "customer",
    "requester": "customer",
    "contact": "customer",
    "agent": "agent",
    "admin": "agent",
    "staff": "agent",
    "support": "agent",
    "bot": "bot",
    "system": "system",
}


def matches(payload: object) -> bool:
    """Tell by `customer_id` or `customer_email` beside `messages`; see `TicketFormat`."""
    return any_ticket(payload, KEYS, _looks_like)


def _looks_like(raw: Mapping[str, object]) -> bool:
    return ("customer_id" in raw or "customer_email" in raw) and "messages" in raw


def parse(payload: object, options: ParseOptions, path: str = "") -> Iterator[Ticket | TicketProblem]:
    """Read the tickets of one payload; see `Parse`."""
    return parse_items(envelope_items(payload, KEYS, path), _ticket, options, NAME)


def parse_rows(
    tickets: Sequence[tuple[Mapping[str, object], Sequence[str]]], options: ParseOptions
) -> Iterator[Ticket | TicketProblem]:
    """Read tickets that were put together from rows of a table.

    Args:
        tickets: Each ticket, with the path of each of its messages.
        options: What the importer says.

    Yields:
        The tickets, and the problems of those that had to be left out.
    """
    for raw, message_paths in tickets:

        def build(item: Mapping[str, object], path: str, rows: Sequence[str] = message_paths) -> TicketDraft:
            return _ticket(item, path, rows)

        yield from parse_items(iter([(message_paths[0], raw)]), build, options, NAME)


def _ticket(raw: Mapping[str, object], path: str, message_paths: Sequence[str] | None = None) -> TicketDraft:
    messages_path = join_path(path, "messages")
    paths = dict(_message_paths(messages_path, message_paths or ()))

    def build(message: Mapping[str, object], where: str) -> MessageDraft:
        return _message(message, paths.get(where, where))

    messages = draft_messages(raw.get("messages"), messages_path, build)
    if raw.get("has_customer_conflict") is True:
        conflict = join_path(path, "customer_id")
        messages = [MessageDraft(path=conflict, fault="customer_conflict")]
    return TicketDraft(
        path=path,
        raw=raw,
        source=raw.get("source"),
        ticket_id=raw.get("ticket_id"),
        id_field="ticket_id",
        external_id=raw.get("customer_id"),
        email=raw.get("customer_email"),
        customer_field="customer_id",
        conversation_id=raw.get("conversation_id"),
        case_id=raw.get("case_id"),
        subject=raw.get("subject"),
        status=raw.get("status"),
        tags=read_lines(raw.get("tags"), "name"),
        created_at=raw.get("created_at"),
        updated_at=raw.get("updated_at"),
        messages=messages,
    )


def _message_paths(messages_path: str, paths: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Pair the place of a message in the ticket with its row in the table."""
    for position, path in enumerate(paths):
        yield f"{messages_path}[{position}]", path


def _message(raw: Mapping[str, object], path: str) -> MessageDraft:
    if raw.get("text") is None and raw.get("html") is None and not raw.get("redacted"):
        raise FieldFault("text_missing", join_path(path, "text"))
    return MessageDraft(
        path=path,
        message_id=raw.get("message_id"),
        id_field="message_id",
        role=_role(raw.get("role"), join_path(path, "role")),
        author=raw.get("author"),
        is_public=read_flag(raw.get("public"), join_path(path, "public"), default=True),
        is_redacted=read_flag(raw.get("redacted"), join_path(path, "redacted"), default=False),
        created_at=raw.get("created_at"),
        plain=raw.get("text"),
        html=raw.get("html"),
        text_field="text",
        attachments=read_lines(raw.get("attachments"), "name"),
    )


def _role(value: object, path: str) -> Role:
    """Read the role; without one nobody knows whose words these are."""
    if value is None or value == "":
        raise FieldFault("role_missing", path)
    role = _ROLES.get(value.strip().lower()) if isinstance(value, str) else None
    if role is None:
        raise FieldFault("role_invalid", path)
    return role


FORMAT = TicketFormat(name=NAME, matches=matches, parse=parse)
