"""CSV with a row a message, put together to tickets of the canonical format."""

import csv
import io
import re
from collections.abc import Iterator, Mapping

from tickets.errors import TicketFormatError

# Messages are longer than the 128 KiB that the module takes for a field by default.
csv.field_size_limit(2**31 - 1)

RowsTicket = tuple[Mapping[str, object], list[str]]

_DELIMITERS = (",", ";", "\t")
_HEADERS: Mapping[str, tuple[str, ...]] = {
    "ticket_id": ("ticket_id", "ticketid", "ticket", "ticket_number", "ticket_no", "id"),
    "customer_id": (
        "customer_id",
        "customerid",
        "customer",
        "requester_id",
        "user_id",
        "contact_id",
    ),
    "customer_email": (
        "customer_email",
        "email",
        "email_address",
        "requester_email",
        "user_email",
        "contact_email",
    ),
    "message_id": ("message_id", "messageid", "comment_id", "reply_id", "post_id"),
    "role": ("role", "author_role", "author_type", "sender_type", "sender_role"),
    "author": ("author", "author_name", "sender", "sender_name"),
    "public": ("public", "is_public"),
    "private": ("private", "is_private", "internal", "is_internal"),
    "redacted": ("redacted", "is_redacted"),
    "text": ("body", "text", "message", "comment", "content", "body_text", "plain_body"),
    "html": ("html", "body_html", "html_body"),
    "created_at": ("created_at", "created", "date", "datetime", "time", "timestamp", "sent_at"),
    "subject": ("subject", "title"),
    "status": ("status", "state"),
    "tags": ("tags", "labels"),
    "conversation_id": ("conversation_id", "conversation"),
    "case_id": ("case_id", "case"),
    "source": ("source",),
    "updated_at": ("updated_at", "updated", "modified_at", "last_modified"),
}
_MESSAGE_FIELDS = ("message_id", "role", "author", "redacted", "text", "html", "created_at")
_TICKET_FIELDS = (
    "customer_id",
    "customer_email",
    "subject",
    "status",
    "conversation_id",
    "case_id",
    "updated_at",
)
_REQUIRED = ("ticket_id", "message_id", "role", "created_at")
_TAG_SEPARATORS = re.compile(r"[,;|]")
_MAX_COLUMNS = 1000


def looks_like_rows(text: str) -> bool:
    """Tell whether a body begins with a header that names tickets.

    Args:
        text: The body.

    Returns:
        True when one of its columns is the ticket's id and another its text.
    """
    try:
        columns = _columns(text)[1]
    except (csv.Error, TicketFormatError):
        return False
    return "ticket_id" in columns and bool({"text", "html", "message_id"} & columns.keys())


def read_rows(text: str) -> list[RowsTicket]:
    """Put the rows of every ticket together, wherever they stand.

    The delimiter is `,`, `;` or a tab, whichever gives the most known headers. A ticket's own
    fields are those of its first row that has them; rows that name different customers make the
    ticket unusable.

    Args:
        text: The body, without a byte order mark.

    Returns:
        Each ticket in the canonical shape, with the path of each of its messages: `lines[n]` is the
        line where the row begins, counted from 1.

    Raises:
        TicketFormatError: `csv_column_missing` when a column is missing that every row needs,
            `csv_invalid` when a quote does not end.
    """
    try:
        delimiter, columns = _columns(text)
        for field in _REQUIRED:
            if field not in columns:
                raise TicketFormatError("csv_column_missing", field)
        if not {"text", "html"} & columns.keys():
            raise TicketFormatError("csv_column_missing", "body")
        return _group(_records(text, delimiter, columns))
    except csv.Error:
        raise TicketFormatError("csv_invalid") from None


def _columns(text: str) -> tuple[str, dict[str, int]]:
    """Choose the delimiter, and find the column of each known field."""
    best: tuple[str, dict[str, int]] = (",", {})
    for delimiter in _DELIMITERS:
        header = next(csv.reader(io.StringIO(text.lstrip(), newline=""), delimiter=delimiter), [])
        columns = _known(header[:_MAX_COLUMNS])
        if len(columns) > len(best[1]):
            best = (delimiter, columns)
    return best


def _known(header: list[str]) -> dict[str, int]:
    """Match headers with fields; of several synonyms the first of the table counts."""
    names = [
        re.sub(r"[\W_]+", "_", name.strip().lower()).strip("_").replace("e_mail", "email") for name in header
    ]
    columns: dict[str, int] = {}
    for field, synonyms in _HEADERS.items():
        position = next((names.index(name) for name in synonyms if name in names), None)
        if position is not None:
            columns[field] = position
    return columns


def _records(text: str, delimiter: str, columns: Mapping[str, int]) -> Iterator[tuple[str, dict[str, str]]]:
    """Read the rows below the header, each with its path."""
    skipped = text[: len(text) - len(text.lstrip())].count("\n")
    reader = csv.reader(io.StringIO(text.lstrip(), newline=""), delimiter=delimiter, strict=True)
    next(reader, None)
    while True:
        path = f"lines[{reader.line_num + skipped + 1}]"
        try:
            row = next(reader, None)
        except csv.Error:
            raise TicketFormatError("csv_invalid", path) from None
        if row is None:
            return
        if any(value.strip() for value in row):
            yield path, {field: row[at] for field, at in columns.items() if at < len(row)}


def _group(records: Iterator[tuple[str, dict[str, str]]]) -> list[RowsTicket]:
    """Collect the rows of each ticket in the order of first appearance."""
    tickets: dict[tuple[str, str], tuple[dict[str, object], list[str]]] = {}
    for path, record in records:
        ticket_id, source = record.get("ticket_id", "").strip(), record.get("source", "").strip()
        # Rows without a ticket stay apart, so that each is reported.
        key = (source, ticket_id) if ticket_id else ("", path)
        ticket, paths = tickets.setdefault(
            key, ({"ticket_id": ticket_id, "source": source or None, "messages": []}, [])
        )
        _add(ticket, record, path, paths)
    return list(tickets.values())


def _add(ticket: dict[str, object], record: dict[str, str], path: str, paths: list[str]) -> None:
    """Add one row to its ticket."""
    if _differs(ticket, record, "customer_id") or (
        not ticket.get("customer_id") and _differs(ticket, record, "customer_email")
    ):
        ticket["has_customer_conflict"] = True
    for field in _TICKET_FIELDS:
        value = record.get(field, "").strip()
        if value:
            ticket.setdefault(field, value)
    tags = [tag.strip() for tag in _TAG_SEPARATORS.split(record.get("tags", "")) if tag.strip()]
    if tags:
        ticket.setdefault("tags", tags)
    message: dict[str, object] = {field: record.get(field) for field in _MESSAGE_FIELDS}
    message["public"] = _visibility(record)
    messages = ticket["messages"]
    if isinstance(messages, list):
        messages.append(message)
        paths.append(path)


def _differs(ticket: Mapping[str, object], record: Mapping[str, str], field: str) -> bool:
    """Say whether a row names another customer than the rows before."""
    known, value = ticket.get(field), record.get(field, "").strip()
    if not isinstance(known, str) or not value:
        return False
    return known.lower() != value.lower() if field == "customer_email" else known != value


def _visibility(record: dict[str, str]) -> str | None:
    """Read `public`, or the opposite of `private`; what is unclear is refused later."""
    if record.get("public", "").strip():
        return record["public"]
    private = record.get("private", "").strip().lower()
    opposite = {
        "true": "no",
        "yes": "no",
        "1": "no",
        "false": "yes",
        "no": "yes",
        "0": "yes",
        "": None,
    }
    return opposite.get(private, private)
