"""From a draft, which says where a vendor keeps what, to a ticket: the rules of every format."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from tickets.errors import TimeFormatError
from tickets.fields import FieldFault, follow, join_path, read_email, read_id, read_line, require_id
from tickets.model import ParseOptions, Role, Ticket, TicketMessage, TicketProblem
from tickets.text import clean_text, cut_history, html_to_text
from tickets.times import parse_time

FIRST_MESSAGE_ID = "description"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageDraft:
    """A message as the vendor wrote it, before anything is checked.

    Attributes:
        path: The message's path; the ticket's for a first message outside the list.
        message_id: Its id, unread.
        role: Who wrote it.
        created_at: Its time, unread.
        plain: The plain text, preferred when it is there.
        html: The HTML.
        id_field: The field of the id, for problems.
        time_field: The field of the time, for problems.
        text_field: The field of the text, for problems.
        author: The writer's name, unread.
        is_public: False for a private note.
        is_redacted: True when its words were removed at the source.
        attachments: File names.
        is_stripped: True when the vendor cut quotations already.
        is_first: True for a first message from outside the list, which the list may repeat.
        fault: A code when the message is unusable in the first place.
    """

    path: str
    message_id: object = None
    role: Role = "agent"
    created_at: object = None
    plain: object = None
    html: object = None
    id_field: str = "id"
    time_field: str = "created_at"
    text_field: str = "body"
    author: object = None
    is_public: bool = True
    is_redacted: bool = False
    attachments: tuple[str, ...] = ()
    is_stripped: bool = False
    is_first: bool = False
    fault: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TicketDraft:
    """A ticket as the vendor wrote it, before anything is checked.

    Attributes:
        path: The ticket's path.
        raw: The ticket itself, for `customer_field`.
        ticket_id: Its id, unread.
        id_field: The field of the id.
        external_id: The customer's id in the importer's own system, unread.
        user_id: The customer's id at the vendor, unread.
        email: The customer's address, unread.
        customer_field: Where the customer should have been, for problems.
        subject: One line, unread.
        status: One line, unread.
        tags: The tags.
        created_at: Time, unread.
        updated_at: Time, unread.
        created_field: The field of `created_at`.
        updated_field: The field of `updated_at`.
        source: The ticket's own source, unread.
        conversation_id: Its own conversation, unread.
        case_id: Its case, unread.
        messages: The drafts, in any order.
        is_partial: True when not all messages are here.
    """

    path: str
    raw: Mapping[str, object]
    ticket_id: object
    id_field: str = "id"
    external_id: object = None
    user_id: object = None
    email: object = None
    customer_field: str
    subject: object = None
    status: object = None
    tags: tuple[str, ...] = ()
    created_at: object = None
    updated_at: object = None
    created_field: str = "created_at"
    updated_field: str = "updated_at"
    source: object = None
    conversation_id: object = None
    case_id: object = None
    messages: Sequence[MessageDraft] = ()
    is_partial: bool = False


def draft_messages(
    found: object,
    path: str,
    build: Callable[[Mapping[str, object], str], MessageDraft | None],
) -> list[MessageDraft]:
    """Draft every message of a list.

    Args:
        found: The list, or None when the ticket has none.
        path: The list's path.
        build: Drafts one message; None leaves out what is no message, such as a change of state.

    Returns:
        The drafts; an unusable message, or list, is a draft with a fault.
    """
    if found is None:
        return []
    if not isinstance(found, list):
        return [MessageDraft(path=path, fault="messages_invalid")]
    drafts: list[MessageDraft] = []
    for position, raw in enumerate(found):
        where = f"{path}[{position}]"
        try:
            if not isinstance(raw, Mapping):
                raise FieldFault("message_invalid", where)
            draft = build(raw, where)
        except FieldFault as fault:
            draft = MessageDraft(path=fault.path, fault=fault.code)
        if draft is not None:
            drafts.append(draft)
    return drafts


def parse_items(
    items: Iterator[tuple[str, object]],
    build: Callable[[Mapping[str, object], str], TicketDraft],
    options: ParseOptions,
    format_name: str,
) -> Iterator[Ticket | TicketProblem]:
    """Parse tickets one by one, so that none stops the others.

    Args:
        items: Path and value of each ticket.
        build: Drafts one ticket.
        options: What the importer says.
        format_name: The source where none is named.

    Yields:
        Tickets, and problems of those that had to be left out.

    Raises:
        TicketFormatError: When the items themselves cannot be found.
    """
    for path, raw in items:
        if not isinstance(raw, Mapping):
            yield TicketProblem(code="ticket_invalid", path=path)
            continue
        ticket_id: str | None = None
        try:
            draft = build(raw, path)
            id_path = join_path(path, draft.id_field)
            ticket_id = require_id(draft.ticket_id, id_path, "ticket_id")
            yield from _assemble(draft, ticket_id, options, format_name)
        except FieldFault as fault:
            yield TicketProblem(code=fault.code, path=fault.path, ticket_id=ticket_id)


def _assemble(
    draft: TicketDraft, ticket_id: str, options: ParseOptions, format_name: str
) -> Iterator[Ticket | TicketProblem]:
    """Put one ticket together; a ticket of which no message is usable is its problems only."""
    own_source = read_id(draft.source, join_path(draft.path, "source"), "source")
    conversation_id = read_id(
        draft.conversation_id, join_path(draft.path, "conversation_id"), "conversation_id"
    )
    case_id = read_id(draft.case_id, join_path(draft.path, "case_id"), "case_id")
    customer_id = _customer_id(draft, options)
    problems: list[TicketProblem] = []
    messages = _messages(draft, ticket_id, options, problems)
    if problems and not messages:
        yield from problems
        return
    created_at = _ticket_time(draft.created_at, draft.path, draft.created_field, options, problems)
    updated_at = _ticket_time(draft.updated_at, draft.path, draft.updated_field, options, problems)
    yield Ticket(
        source=own_source or options.source or format_name,
        ticket_id=ticket_id,
        customer_id=customer_id,
        customer_email=read_email(draft.email),
        conversation_id=conversation_id or "",
        case_id=case_id,
        subject=read_line(draft.subject),
        status=read_line(draft.status),
        tags=draft.tags,
        created_at=created_at or (messages[0].created_at if messages else None),
        updated_at=updated_at,
        messages=messages,
        problems=_with_ticket(problems, ticket_id),
        is_partial=draft.is_partial,
    )


def _with_ticket(problems: list[TicketProblem], ticket_id: str) -> tuple[TicketProblem, ...]:
    """Drop what was reported twice: the ticket's bad time is that of its description too."""
    return tuple(
        dict.fromkeys(
            TicketProblem(code=problem.code, path=problem.path, ticket_id=ticket_id) for problem in problems
        )
    )


def _customer_id(draft: TicketDraft, options: ParseOptions) -> str:
    """Find the customer: the importer's word, else external id, vendor's user id, e-mail."""
    path = join_path(draft.path, draft.customer_field)
    chosen: str | None = None
    if options.customer_field:
        field_path = join_path(draft.path, options.customer_field)
        chosen = read_id(follow(draft.raw, options.customer_field), field_path, "customer_id")
    known = [
        chosen,
        read_id(draft.external_id, path, "customer_id"),
        read_id(draft.user_id, path, "customer_id"),
        read_email(draft.email),
    ]
    present = [each for each in known if each is not None]
    if not present:
        raise FieldFault("customer_missing", path)
    # An explicit customer_field stands alone; without it any identifier of the customer is mapped.
    for each in [chosen] if chosen is not None else present:
        mapped = _mapped(each, options.customer_map)
        if mapped is not None:
            return require_id(mapped, "customer_map", "customer_id")
    return present[0]


def _mapped(identifier: str, customer_map: Mapping[str, str]) -> str | None:
    """Look an identifier up; an address also in lower case."""
    return customer_map.get(identifier, customer_map.get(identifier.lower() if "@" in identifier else ""))


def _ticket_time(
    value: object, path: str, field: str, options: ParseOptions, problems: list[TicketProblem]
) -> datetime | None:
    """Read a time of the ticket; a bad one is noted and left out."""
    try:
        return parse_time(value, options.timezone)
    except TimeFormatError as error:
        if error.code != "time_missing":
            problems.append(TicketProblem(code=error.code, path=join_path(path, field)))
        return None


def _messages(
    draft: TicketDraft, ticket_id: str, options: ParseOptions, problems: list[TicketProblem]
) -> tuple[TicketMessage, ...]:
    """Read all messages, oldest first, each once; note what had to be left out."""
    by_id: dict[str, TicketMessage] = {}
    first: TicketMessage | None = None
    for each in draft.messages:
        try:
            message = _message(each, options)
        except FieldFault as fault:
            problems.append(TicketProblem(code=fault.code, path=fault.path, ticket_id=ticket_id))
            continue
        if message is None:
            continue
        if each.is_first:
            first = message
        elif message.is_redacted or not by_id.get(message.message_id, message).is_redacted:
            by_id[message.message_id] = message
    listed = sorted(by_id.values(), key=_order)
    if first is not None and not _repeats(listed, first):
        listed = sorted(
            [first, *(each for each in listed if each.message_id != first.message_id)], key=_order
        )
    return tuple(listed)


def _message(draft: MessageDraft, options: ParseOptions) -> TicketMessage | None:
    """Read one message; None when it is private or empty."""
    if draft.fault is not None:
        raise FieldFault(draft.fault, draft.path)
    if not draft.is_public and not options.include_private:
        return None
    text = "" if draft.is_redacted else _text(draft)
    if not (text or draft.attachments or draft.is_redacted):
        return None
    message_id = require_id(draft.message_id, join_path(draft.path, draft.id_field), "message_id")
    try:
        created_at = parse_time(draft.created_at, options.timezone)
    except TimeFormatError as error:
        raise FieldFault(error.code, join_path(draft.path, draft.time_field)) from None
    return TicketMessage(
        message_id=message_id,
        role=draft.role,
        text=text,
        created_at=created_at,
        author=read_line(draft.author),
        is_public=draft.is_public,
        is_redacted=draft.is_redacted,
        attachments=() if draft.is_redacted else draft.attachments,
    )


def _text(draft: MessageDraft) -> str:
    """Choose plain text over HTML, and cut what is not of now."""
    for value in (draft.plain, draft.html):
        if value is not None and not isinstance(value, str):
            raise FieldFault("text_invalid", join_path(draft.path, draft.text_field))
    plain, html = str(draft.plain or ""), str(draft.html or "")
    text = clean_text(plain) or html_to_text(html)
    return text if draft.is_stripped else cut_history(text)


def _order(message: TicketMessage) -> tuple[datetime, int, str]:
    """Order by time; equal times by id, numbers as numbers, whatever the order in the file."""
    number = message.message_id
    digits = int(number) if number.isascii() and number.isdigit() else 0
    return message.created_at, digits, number


def _repeats(listed: Sequence[TicketMessage], first: TicketMessage) -> bool:
    """Say whether the list holds the first message too, under an id of its own."""
    if not first.text:
        return False
    earliest = next((each for each in listed if each.role == first.role and each.is_public), None)
    return earliest is not None and _bare(earliest.text) == _bare(first.text)


def _bare(text: str) -> str:
    """Reduce a text to its words, since descriptions and mails differ in white space."""
    return "".join(text.split()).casefold()
