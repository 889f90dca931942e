"""Jira Service Management: issues with fields; bodies are documents (ADF) or text."""

from collections.abc import Iterator, Mapping

from tickets.adf import adf_attachments, adf_to_text
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

NAME = "jira"
KEYS = ("issues",)


def matches(payload: object) -> bool:
    """Tell by `fields.reporter`; see `TicketFormat`."""
    return any_ticket(payload, KEYS, lambda raw: "reporter" in read_mapping(raw.get("fields")))


def parse(payload: object, options: ParseOptions, path: str = "") -> Iterator[Ticket | TicketProblem]:
    """Read the tickets of one payload; see `Parse`."""
    return parse_items(envelope_items(payload, KEYS, path), _ticket, options, NAME)


def _ticket(raw: Mapping[str, object], path: str) -> TicketDraft:
    fields = read_mapping(raw.get("fields"))
    reporter = read_mapping(fields.get("reporter"))
    comments = dig(fields, "comment", "comments")

    def build(comment: Mapping[str, object], where: str) -> MessageDraft:
        return _comment(comment, where, reporter)

    messages = draft_messages(comments, join_path(path, "fields.comment.comments"), build)
    messages.insert(0, _description(fields, join_path(path, "fields"), reporter))
    total = dig(fields, "comment", "total")
    return TicketDraft(
        path=path,
        raw=raw,
        ticket_id=first_present(raw, "key", "id"),
        id_field="key",
        user_id=reporter.get("accountId"),
        email=reporter.get("emailAddress"),
        customer_field="fields.reporter",
        subject=fields.get("summary"),
        status=dig(fields, "status", "name"),
        tags=read_lines(fields.get("labels"), "name"),
        created_at=fields.get("created"),
        updated_at=fields.get("updated"),
        created_field="fields.created",
        updated_field="fields.updated",
        messages=messages,
        is_partial=isinstance(total, int) and total > len(read_list(comments)),
    )


def _description(fields: Mapping[str, object], path: str, reporter: Mapping[str, object]) -> MessageDraft:
    return MessageDraft(
        path=path,
        message_id=FIRST_MESSAGE_ID,
        role="customer",
        author=reporter.get("displayName"),
        created_at=fields.get("created"),
        time_field="created",
        plain=_plain(fields.get("description")),
        text_field="description",
        attachments=read_lines(fields.get("attachment"), "filename"),
        is_first=True,
    )


def _comment(raw: Mapping[str, object], path: str, reporter: Mapping[str, object]) -> MessageDraft:
    author = read_mapping(raw.get("author"))
    is_public = read_flag(raw.get("jsdPublic"), join_path(path, "jsdPublic"), default=True)
    return MessageDraft(
        path=path,
        message_id=raw.get("id"),
        role=_role(author, reporter),
        author=author.get("displayName"),
        is_public=is_public and not raw.get("visibility"),
        created_at=raw.get("created"),
        time_field="created",
        plain=_plain(raw.get("body")),
        attachments=adf_attachments(raw.get("body")),
    )


def _role(author: Mapping[str, object], reporter: Mapping[str, object]) -> Role:
    if author.get("accountType") == "app":
        return "bot"
    is_reporter = same_id(author.get("accountId"), reporter.get("accountId"))
    return "customer" if is_reporter else "agent"


def _plain(body: object) -> object:
    """Turn a document into text; anything else is judged later."""
    return adf_to_text(body) if dig(body, "type") == "doc" else body


FORMAT = TicketFormat(name=NAME, matches=matches, parse=parse)
