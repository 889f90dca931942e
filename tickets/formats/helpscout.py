"""Help Scout: conversations with embedded threads, newest first."""

from collections.abc import Iterator, Mapping

from tickets.assembly import MessageDraft, TicketDraft, draft_messages, parse_items
from tickets.fields import dig, envelope_items, first_present, join_path, read_lines, read_mapping
from tickets.formats.base import TicketFormat, any_ticket
from tickets.model import ParseOptions, Role, Ticket, TicketProblem

NAME = "helpscout"
KEYS = ("_embedded", "conversations")

# What the customer never saw: notes, and mails to third parties.
_PRIVATE_TYPES = ("note", "forwardparent", "forwardchild")
_PRIVATE_STATES = ("draft", "hidden", "underreview")


def matches(payload: object) -> bool:
    """Tell by `_embedded.threads`; see `TicketFormat`."""
    return any_ticket(payload, KEYS, lambda raw: "threads" in read_mapping(raw.get("_embedded")))


def parse(payload: object, options: ParseOptions, path: str = "") -> Iterator[Ticket | TicketProblem]:
    """Read the tickets of one payload; see `Parse`."""
    return parse_items(envelope_items(payload, KEYS, path), _ticket, options, NAME)


def _ticket(raw: Mapping[str, object], path: str) -> TicketDraft:
    customer = read_mapping(raw.get("primaryCustomer"))
    return TicketDraft(
        path=path,
        raw=raw,
        ticket_id=raw.get("id"),
        user_id=customer.get("id"),
        email=customer.get("email"),
        customer_field="primaryCustomer",
        subject=raw.get("subject"),
        status=raw.get("status"),
        tags=read_lines(raw.get("tags"), "tag", "name"),
        created_at=raw.get("createdAt"),
        updated_at=first_present(raw, "userUpdatedAt", "updatedAt"),
        created_field="createdAt",
        updated_field="userUpdatedAt",
        messages=draft_messages(
            dig(raw, "_embedded", "threads"), join_path(path, "_embedded.threads"), _thread
        ),
    )


def _thread(raw: Mapping[str, object], path: str) -> MessageDraft | None:
    if raw.get("type") == "lineitem":
        return None  # a change of state, without words
    writer = read_mapping(raw.get("createdBy"))
    names = [name for name in (writer.get("first"), writer.get("last")) if isinstance(name, str)]
    return MessageDraft(
        path=path,
        message_id=raw.get("id"),
        role=_role(raw, writer),
        author=" ".join(names) or None,
        is_public=raw.get("type") not in _PRIVATE_TYPES and raw.get("state") not in _PRIVATE_STATES,
        created_at=raw.get("createdAt"),
        time_field="createdAt",
        html=raw.get("body"),
        attachments=read_lines(dig(raw, "_embedded", "attachments"), "filename", "name"),
    )


def _role(raw: Mapping[str, object], writer: Mapping[str, object]) -> Role:
    kind = raw.get("type")
    if kind in ("chat", "beaconchat"):
        return "customer" if writer.get("type") == "customer" else "agent"
    return "customer" if kind == "customer" else "agent"


FORMAT = TicketFormat(name=NAME, matches=matches, parse=parse)
