"""Zendesk: pages of the API with side-loaded users, a bare array, or one ticket a line."""

from collections.abc import Iterator, Mapping

from tickets.assembly import (
    FIRST_MESSAGE_ID,
    MessageDraft,
    TicketDraft,
    draft_messages,
    parse_items,
)
from tickets.fields import (
    as_key,
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

NAME = "zendesk"
KEYS = ("tickets",)

REDACTION_SIGN = "▇"
_SYSTEM_AUTHOR = -1

_User = Mapping[str, object]


def matches(payload: object) -> bool:
    """Tell by `requester_id` beside `via` or `comments`; see `TicketFormat`."""
    return any_ticket(_as_page(payload), KEYS, _looks_like)


def _looks_like(raw: Mapping[str, object]) -> bool:
    return "requester_id" in raw and ("via" in raw or "comments" in raw)


def parse(payload: object, options: ParseOptions, path: str = "") -> Iterator[Ticket | TicketProblem]:
    """Read the tickets of one payload; see `Parse`."""
    users = _users(dig(payload, "users"))

    def build(raw: Mapping[str, object], where: str) -> TicketDraft:
        return _ticket(raw, where, users)

    return parse_items(envelope_items(_as_page(payload), KEYS, path), build, options, NAME)


def _as_page(payload: object) -> object:
    """Turn the answer about a single ticket, `{"ticket": {...}}`, into a page of one."""
    if isinstance(dig(payload, "ticket"), Mapping) and "tickets" not in read_mapping(payload):
        return {**read_mapping(payload), "tickets": [dig(payload, "ticket")]}
    return payload


def _users(listed: object) -> dict[str, _User]:
    """Index users by id."""
    users: dict[str, _User] = {}
    for listed_user in read_list(listed):
        user = read_mapping(listed_user)
        key = as_key(user.get("id"))
        if key is not None:
            users[key] = user
    return users


def _ticket(raw: Mapping[str, object], path: str, users: Mapping[str, _User]) -> TicketDraft:
    embedded = [raw.get("requester"), raw.get("submitter"), raw.get("assignee")]
    known = {**users, **_users([user for user in embedded if user is not None])}
    requester_id = first_present(raw, "requester_id")
    if requester_id is None:
        requester_id = dig(raw, "requester", "id")
    requester = known.get(as_key(requester_id) or "", {})

    def build(comment: Mapping[str, object], where: str) -> MessageDraft:
        return _comment(comment, where, requester_id, known)

    messages = draft_messages(raw.get("comments"), join_path(path, "comments"), build)
    if not messages and raw.get("is_partial") is not True:
        # The description repeats the first comment, so it counts only where no comments came along.
        messages = [_description(raw, path, requester)]
    return TicketDraft(
        path=path,
        raw=raw,
        ticket_id=raw.get("id"),
        external_id=requester.get("external_id"),
        user_id=requester_id,
        email=requester.get("email"),
        customer_field="requester_id",
        subject=raw.get("subject"),
        status=raw.get("status"),
        tags=read_lines(raw.get("tags"), "name"),
        created_at=raw.get("created_at"),
        updated_at=raw.get("updated_at"),
        messages=messages,
        is_partial=raw.get("is_partial") is True,
    )


def _description(raw: Mapping[str, object], path: str, requester: _User) -> MessageDraft:
    return MessageDraft(
        path=path,
        message_id=FIRST_MESSAGE_ID,
        role="customer",
        author=requester.get("name"),
        is_public=read_flag(raw.get("is_public"), join_path(path, "is_public"), default=True),
        is_redacted=_is_redacted(raw, raw.get("description")),
        created_at=raw.get("created_at"),
        plain=raw.get("description"),
        text_field="description",
        is_first=True,
    )


def _comment(
    raw: Mapping[str, object], path: str, requester_id: object, users: Mapping[str, _User]
) -> MessageDraft:
    author = users.get(as_key(raw.get("author_id")) or "") or read_mapping(raw.get("author"))
    plain = first_present(raw, "plain_body", "body")
    return MessageDraft(
        path=path,
        message_id=raw.get("id"),
        role=_role(raw, author, requester_id),
        author=author.get("name"),
        is_public=read_flag(raw.get("public"), join_path(path, "public"), default=True),
        is_redacted=_is_redacted(raw, plain),
        created_at=raw.get("created_at"),
        plain=plain.replace("&nbsp;", " ") if isinstance(plain, str) else plain,
        html=raw.get("html_body"),
        attachments=read_lines(raw.get("attachments"), "file_name"),
    )


def _role(raw: Mapping[str, object], author: _User, requester_id: object) -> Role:
    author_id = first_present(raw, "author_id")
    if author_id == _SYSTEM_AUTHOR or dig(raw, "via", "channel") == "system":
        return "system"
    if dig(raw, "via", "channel") == "rule":
        return "bot"
    if author_id is None:
        author_id = author.get("id")
    is_customer = same_id(author_id, requester_id) or author.get("role") == "end-user"
    return "customer" if is_customer else "agent"


def _is_redacted(raw: Mapping[str, object], body: object) -> bool:
    """Tell by a flag, or by words that Zendesk blackened altogether."""
    blackened = isinstance(body, str) and REDACTION_SIGN in body and not body.strip(REDACTION_SIGN + " \n\r")
    return raw.get("redacted") is True or blackened


FORMAT = TicketFormat(name=NAME, matches=matches, parse=parse)
