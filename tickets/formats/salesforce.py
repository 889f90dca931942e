"""Salesforce: Case records with their comments and e-mails from subqueries."""

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
    read_mapping,
    same_id,
)
from tickets.formats.base import TicketFormat, any_ticket
from tickets.model import ParseOptions, Role, Ticket, TicketProblem

NAME = "salesforce"
KEYS = ("records",)

_PORTAL_USERS = ("CspLitePortal", "CustomerSuccess", "PowerCustomerSuccess")
_EMAIL_DRAFT = "5"


def matches(payload: object) -> bool:
    """Tell by `attributes.type` being `Case`; see `TicketFormat`."""
    return any_ticket(payload, KEYS, lambda raw: dig(raw, "attributes", "type") == "Case")


def parse(payload: object, options: ParseOptions, path: str = "") -> Iterator[Ticket | TicketProblem]:
    """Read the tickets of one payload; see `Parse`."""
    return parse_items(envelope_items(payload, KEYS, path), _ticket, options, NAME)


def _ticket(raw: Mapping[str, object], path: str) -> TicketDraft:
    contact_id = first_present(raw, "ContactId")

    def comment(record: Mapping[str, object], where: str) -> MessageDraft:
        return _comment(record, where, contact_id)

    return TicketDraft(
        path=path,
        raw=raw,
        ticket_id=first_present(raw, "Id", "CaseNumber"),
        id_field="Id",
        user_id=contact_id,
        email=first_present(raw, "SuppliedEmail") or dig(raw, "Contact", "Email"),
        customer_field="ContactId",
        subject=raw.get("Subject"),
        status=raw.get("Status"),
        created_at=raw.get("CreatedDate"),
        updated_at=raw.get("LastModifiedDate"),
        created_field="CreatedDate",
        updated_field="LastModifiedDate",
        messages=[
            _description(raw, path),
            *draft_messages(
                dig(raw, "EmailMessages", "records"),
                join_path(path, "EmailMessages.records"),
                _email,
            ),
            *draft_messages(
                dig(raw, "CaseComments", "records"),
                join_path(path, "CaseComments.records"),
                comment,
            ),
        ],
        is_partial=any(dig(raw, each, "done") is False for each in ("EmailMessages", "CaseComments")),
    )


def _description(raw: Mapping[str, object], path: str) -> MessageDraft:
    return MessageDraft(
        path=path,
        message_id=FIRST_MESSAGE_ID,
        role="customer",
        author=first_present(raw, "SuppliedName") or dig(raw, "Contact", "Name"),
        created_at=raw.get("CreatedDate"),
        time_field="CreatedDate",
        plain=raw.get("Description"),
        text_field="Description",
        is_first=True,
    )


def _email(raw: Mapping[str, object], path: str) -> MessageDraft:
    is_incoming = read_flag(raw.get("Incoming"), join_path(path, "Incoming"), default=False)
    is_visible = read_flag(
        raw.get("IsExternallyVisible"), join_path(path, "IsExternallyVisible"), default=True
    )
    time_field = "MessageDate" if first_present(raw, "MessageDate") else "CreatedDate"
    return MessageDraft(
        path=path,
        message_id=raw.get("Id"),
        id_field="Id",
        role="customer" if is_incoming else "agent",
        author=raw.get("FromName"),
        is_public=is_visible and raw.get("Status") != _EMAIL_DRAFT,
        is_redacted=_is_deleted(raw, path),
        created_at=raw.get(time_field),
        time_field=time_field,
        plain=raw.get("TextBody"),
        html=raw.get("HtmlBody"),
        text_field="TextBody",
    )


def _comment(raw: Mapping[str, object], path: str, contact_id: object) -> MessageDraft:
    writer = read_mapping(raw.get("CreatedBy"))
    return MessageDraft(
        path=path,
        message_id=raw.get("Id"),
        id_field="Id",
        role=_comment_role(writer, contact_id),
        author=writer.get("Name"),
        is_public=read_flag(raw.get("IsPublished"), join_path(path, "IsPublished"), default=False),
        is_redacted=_is_deleted(raw, path),
        created_at=raw.get("CreatedDate"),
        time_field="CreatedDate",
        plain=raw.get("CommentBody"),
        text_field="CommentBody",
    )


def _comment_role(writer: Mapping[str, object], contact_id: object) -> Role:
    """Comments of agents and of portal users look alike but for their writer."""
    is_contact = same_id(writer.get("ContactId"), contact_id)
    return "customer" if is_contact or writer.get("UserType") in _PORTAL_USERS else "agent"


def _is_deleted(raw: Mapping[str, object], path: str) -> bool:
    return read_flag(raw.get("IsDeleted"), join_path(path, "IsDeleted"), default=False)


FORMAT = TicketFormat(name=NAME, matches=matches, parse=parse)
