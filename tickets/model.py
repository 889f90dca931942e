"""What every helpdesk's export becomes: a ticket with its messages."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Literal

from tickets.times import load_zone

Role = Literal["customer", "agent", "bot", "system"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TicketProblem:
    """Something that had to be left out, and why. It holds no words of the ticket.

    Attributes:
        code: A stable snake_case code, such as `time_without_zone`.
        path: The field in the vendor's own shape, such as `tickets[3].comments[1].created_at`;
            `lines[12]` is line 12 (counted from 1) of an NDJSON or CSV body.
        ticket_id: The ticket it belongs to, or None where that is not known.
    """

    code: str
    path: str
    ticket_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TicketMessage:
    """One message of a ticket.

    Attributes:
        message_id: Unique within the ticket. A first message that the vendor keeps outside its
            message list and gives no id is called `description`.
        role: Who wrote it. Only `customer` is the customer's own word.
        text: Plain text without quoted history and signature; "" when redacted, or when only
            attachments were sent.
        created_at: When it was written, aware, in UTC.
        author: The writer's name as displayed, or None.
        is_public: False for a private note, which is present only when asked for.
        is_redacted: True when the vendor says that its words were removed.
        attachments: Names of the files; the files are never fetched.
    """

    message_id: str
    role: Role
    text: str
    created_at: datetime
    author: str | None = None
    is_public: bool = True
    is_redacted: bool = False
    attachments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """One ticket, whatever helpdesk it came from.

    Attributes:
        source: Which helpdesk or brand; the import's `source`, else the format's name.
        ticket_id: The ticket's id in its source.
        customer_id: Whom it is about. The formats always find one or report a problem; None is for
            tickets made elsewhere.
        customer_email: The customer's address in lower case, or None.
        conversation_id: Left empty it becomes `default_conversation_id(source, ticket_id)`.
        case_id: The matter it belongs to, or None.
        subject: One line, or None.
        status: The vendor's word for the state, or None.
        tags: As in the source, in its order.
        created_at: When it was opened, aware, in UTC; the first message's time where not given.
        updated_at: When it last changed, aware, in UTC, or None.
        messages: Oldest first.
        problems: What had to be left out of this ticket.
        is_partial: True when the body held only some of the messages (a webhook delivery of one
            reply, a shortened page): messages that are absent here are not deleted.
    """

    source: str
    ticket_id: str
    customer_id: str | None
    customer_email: str | None = None
    conversation_id: str = ""
    case_id: str | None = None
    subject: str | None = None
    status: str | None = None
    tags: tuple[str, ...] = ()
    created_at: datetime | None = None
    updated_at: datetime | None = None
    messages: tuple[TicketMessage, ...] = ()
    problems: tuple[TicketProblem, ...] = ()
    is_partial: bool = False

    def __post_init__(self) -> None:
        """Fill in the conversation."""
        if not self.conversation_id:
            conversation_id = default_conversation_id(self.source, self.ticket_id)
            object.__setattr__(self, "conversation_id", conversation_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParseOptions:
    """What the one who imports says about the export.

    Attributes:
        source: Name of the helpdesk or brand; None takes the format's name. A ticket of the
            canonical format that names its own source keeps it.
        timezone: IANA name, such as `Europe/Berlin`, for times without a zone; None refuses them.
        include_private: Whether private notes come along, marked as such.
        customer_field: Dotted path into the ticket to the customer's id, such as
            `custom_fields.360001.value` (in a list: the item's `id`, else its position).
        customer_map: From an identifier of the export (the value of `customer_field`, an external
            id, a vendor's user id or an e-mail address) to the customer's id.

    Raises:
        TicketFormatError: `timezone_unknown` when `timezone` is no IANA name.
    """

    source: str | None = None
    timezone: str | None = None
    include_private: bool = False
    customer_field: str | None = None
    customer_map: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse a time zone that does not exist; let addresses be found in lower case too."""
        if self.timezone is not None:
            load_zone(self.timezone)
        lowered = {key.lower(): to for key, to in self.customer_map.items() if "@" in key}
        customer_map = MappingProxyType({**lowered, **self.customer_map})
        object.__setattr__(self, "customer_map", customer_map)


def default_conversation_id(source: str, ticket_id: str) -> str:
    """Name the conversation of a ticket that does not name one itself.

    Args:
        source: The ticket's source.
        ticket_id: The ticket's id in that source.

    Returns:
        `source:ticket_id`.
    """
    return f"{source}:{ticket_id}"


def content_hash(ticket: Ticket) -> str:
    """Fingerprint what a ticket says, to tell whether it changed since the last import.

    It covers identity, customer, conversation, case, subject, status, tags and every message with
    its role, words, time, author, visibility, redaction and attachment names. It does not depend on
    the order of the messages in the file, on the ticket's own times, or on `problems`.

    Args:
        ticket: The ticket.

    Returns:
        64 hexadecimal digits (SHA-256).
    """
    messages = sorted(
        [
            message.message_id,
            message.role,
            message.text,
            message.created_at.astimezone(UTC).isoformat(),
            message.author,
            message.is_public,
            message.is_redacted,
            list(message.attachments),
        ]
        for message in ticket.messages
    )
    content = [
        ticket.source,
        ticket.ticket_id,
        ticket.customer_id,
        ticket.customer_email,
        ticket.conversation_id,
        ticket.case_id,
        ticket.subject,
        ticket.status,
        list(ticket.tags),
        messages,
    ]
    text = json.dumps(content, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
