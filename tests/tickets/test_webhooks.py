"""Deliveries of Zendesk and Intercom."""

import base64
import hashlib
import hmac
import json
from typing import cast

import pytest

from tests.tickets.fixtures import describe
from tickets.errors import TicketFormatError
from tickets.formats import detect_format, find_format
from tickets.model import ParseOptions
from tickets.webhooks import intercom_payload, verify_intercom, verify_zendesk, zendesk_payload

SECRET = "a-made-up-secret"
BODY = '{"name": "Åsa"}'.encode()
STAMP = "2024-05-01T10:00:00Z"
ZENDESK = base64.b64encode(hmac.digest(SECRET.encode(), STAMP.encode() + BODY, hashlib.sha256)).decode()
INTERCOM = "sha1=" + hmac.digest(SECRET.encode(), BODY, "sha1").hex()


def test_right_zendesk_signature_is_accepted() -> None:
    """The signature covers the time stamp and the body."""
    assert verify_zendesk(SECRET, STAMP, BODY, ZENDESK)


@pytest.mark.parametrize(
    ("secret", "stamp", "body", "signature"),
    [
        ("other", STAMP, BODY, ZENDESK),
        ("", STAMP, BODY, ZENDESK),
        (SECRET, "2024-05-01T10:00:01Z", BODY, ZENDESK),
        (SECRET, "", BODY, ZENDESK),
        (SECRET, STAMP, BODY + b" ", ZENDESK),
        (SECRET, STAMP, BODY, ""),
        (SECRET, STAMP, BODY, "ü\ud800"),
        (SECRET, STAMP, BODY, ZENDESK[:-4]),
    ],
)
def test_wrong_zendesk_signature_is_refused(secret: str, stamp: str, body: bytes, signature: str) -> None:
    """Any change of secret, time, body or signature fails, and nothing raises."""
    assert not verify_zendesk(secret, stamp, body, signature)


def test_empty_secret_never_verifies() -> None:
    """A signature made with the empty secret is not a signature."""
    made = base64.b64encode(hmac.digest(b"", STAMP.encode() + BODY, "sha256")).decode()
    assert not verify_zendesk("", STAMP, BODY, made)
    assert not verify_intercom("", BODY, "sha1=" + hmac.digest(b"", BODY, "sha1").hex())


def test_right_intercom_signature_is_accepted() -> None:
    """Hexadecimal digits may be in upper case."""
    assert verify_intercom(SECRET, BODY, INTERCOM)
    assert verify_intercom(SECRET, BODY, INTERCOM.upper())


@pytest.mark.parametrize(
    "signature", ["", INTERCOM[5:], "sha1=", INTERCOM[:-1] + "g", "sha256=" + INTERCOM[5:], "ü"]
)
def test_wrong_intercom_signature_is_refused(signature: str) -> None:
    """Without the prefix, or with other digits, it fails."""
    assert not verify_intercom(SECRET, BODY, signature)


def zendesk_event(kind: str, comment: object, **detail: object) -> bytes:
    """Write an event of Zendesk."""
    return json.dumps(
        {
            "type": f"zen:event-type:ticket.{kind}",
            "account_id": 1,
            "id": "event-1",
            "time": "2024-05-01T09:00:00Z",
            "subject": "zen:ticket:11",
            "event": {"comment": comment},
            "detail": {
                "id": "11",
                "requester_id": "501",
                "subject": "Blue mug",
                "description": "My mug is broken.",
                "is_public": True,
                "status": "OPEN",
                "tags": ["mug"],
                "via": {"channel": "email"},
                "created_at": "2024-05-01T08:00:00Z",
                "updated_at": "2024-05-01T09:00:00Z",
                **detail,
            },
        }
    ).encode()


def parse(name: str, payload: object) -> list[dict[str, object]]:
    """Parse a payload with a format that detection finds too."""
    assert detect_format([payload]).name == name
    return describe(find_format(name).parse(payload, ParseOptions()))


def messages_of(kind: str, comment: object, **detail: object) -> list[dict[str, object]]:
    """Parse an event and give its messages, of a ticket that is always partial."""
    (ticket,) = parse("zendesk", zendesk_payload(zendesk_event(kind, comment, **detail)))
    assert ticket["is_partial"] is True
    assert (ticket["ticket_id"], ticket["customer_id"], ticket["status"]) == ("11", "501", "open")
    return cast("list[dict[str, object]]", ticket["messages"])


FIRST = {
    "message_id": "description",
    "role": "customer",
    "text": "My mug is broken.",
    "created_at": "2024-05-01T08:00:00+00:00",
}


def test_zendesk_event_of_a_comment_gives_that_comment_only() -> None:
    """The first message came by itself before; it is not counted again."""
    author = {"id": "501", "name": "Ann"}
    comment = {"id": "2", "body": "Any news?", "is_public": True, "author": author}
    assert messages_of("comment_added", comment) == [
        {
            "message_id": "2",
            "role": "customer",
            "text": "Any news?",
            "created_at": "2024-05-01T09:00:00+00:00",
            "author": "Ann",
        }
    ]


def test_zendesk_first_message_has_one_id_in_all_events() -> None:
    """The event of the creation and that of the first comment are about the same message."""
    comment = {"id": "1", "body": "My mug is broken.", "is_public": True, "author": {"id": "501"}}
    assert messages_of("created", None) == [FIRST]
    assert messages_of("comment_added", comment) == [FIRST]


def test_zendesk_event_without_a_comment_gives_no_message() -> None:
    """A change of state repeats nothing."""
    assert messages_of("status_changed", None) == []


def test_zendesk_first_message_that_was_taken_back_is_redacted() -> None:
    """It goes under both ids by which it may have been imported."""
    comment = {"id": "1", "body": "My mug is broken.", "is_public": False, "author": {"id": "501"}}
    found = messages_of("comment_made_private", comment)
    assert [(each["message_id"], each["text"], each["is_redacted"]) for each in found] == [
        ("description", "", True),
        ("1", "", True),
    ]
    found = messages_of("comment_redacted", {"id": "1"}, description="My mug is ▇▇▇.")
    assert [(each["message_id"], each["text"]) for each in found] == [
        ("description", "My mug is ▇▇▇."),
        ("1", ""),
    ]


def test_zendesk_private_comment_stays_private() -> None:
    """Neither a private comment nor a private description becomes a message."""
    comment = {"id": "2", "body": "Be careful.", "is_public": False, "author": {"id": "502"}}
    assert messages_of("comment_added", comment) == []
    assert messages_of("created", None, is_public=False) == []
    first = {"id": "1", "body": "My mug is broken.", "is_public": False}
    assert messages_of("comment_added", first) == []


@pytest.mark.parametrize("kind", ["comment_redacted", "comment_made_private"])
def test_zendesk_comment_that_was_taken_back_is_redacted(kind: str) -> None:
    """The importer learns that the earlier words must go."""
    comment = {"id": "2", "body": "My card is 1234", "is_public": False, "author": {"id": "501"}}
    (ticket,) = parse("zendesk", zendesk_payload(zendesk_event(kind, comment, description=None)))
    assert ticket["messages"] == [
        {
            "message_id": "2",
            "role": "customer",
            "text": "",
            "created_at": "2024-05-01T09:00:00+00:00",
            "is_redacted": True,
        }
    ]


@pytest.mark.parametrize("wrap", [True, False])
def test_zendesk_trigger_sends_the_ticket_itself(wrap: bool) -> None:
    """The ticket's JSON, bare or under `ticket`, is taken as it is and as a whole."""
    ticket = {
        "id": 11,
        "requester_id": 501,
        "via": {},
        "description": "My mug is broken.",
        "created_at": "2024-05-01T08:00:00Z",
    }
    (result,) = parse("zendesk", zendesk_payload(json.dumps({"ticket": ticket} if wrap else ticket)))
    assert "is_partial" not in result
    assert result["ticket_id"] == "11"


def test_intercom_delivery_is_a_partial_conversation() -> None:
    """The conversation inside the notification is parsed, marked as not being everything."""
    item = {
        "type": "conversation",
        "id": "31",
        "created_at": 1714550400,
        "source": {"id": "s-31", "body": "<p>Hi</p>", "author": {"type": "lead", "id": "u-1"}},
        "contacts": {"contacts": [{"id": "u-1", "external_id": "Shop-Ann"}]},
        "conversation_parts": {"conversation_parts": []},
    }
    body = {
        "type": "notification_event",
        "topic": "conversation.user.replied",
        "data": {"item": item},
    }
    (ticket,) = parse("intercom", intercom_payload(json.dumps(body)))
    assert ticket["is_partial"] is True
    assert (ticket["ticket_id"], ticket["customer_id"]) == ("31", "Shop-Ann")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "json_invalid"),
        (b"\xff\xfe", "json_invalid"),
        (b"[]", "delivery_without_ticket"),
        (b"{}", "delivery_without_ticket"),
        (
            b'{"type": "notification_event", "data": {"item": {"type": "ping"}}}',
            "delivery_without_ticket",
        ),
        (b'{"detail": {"status": "OPEN"}}', "delivery_without_ticket"),
        (b"[" * 200_000, "json_too_deep"),
    ],
)
def test_other_deliveries_are_refused(body: bytes, code: str) -> None:
    """What holds no ticket is a clear error for either vendor."""
    for read in (zendesk_payload, intercom_payload):
        with pytest.raises(TicketFormatError) as caught:
            read(body)
        assert caught.value.code == code
