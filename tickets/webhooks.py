"""What Zendesk and Intercom send by themselves: checking the signature, and finding the ticket."""

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping

from tickets.assembly import FIRST_MESSAGE_ID
from tickets.errors import TicketFormatError
from tickets.fields import dig, first_present, read_mapping
from tickets.formats.zendesk import REDACTION_SIGN

_ZENDESK_CREATIONS = ("created", "ticket_created", "")
_ZENDESK_REMOVALS = ("comment_redacted", "comment_made_private")
_INTERCOM_PREFIX = "sha1="


def verify_zendesk(secret: str, timestamp: str, body: bytes, signature: str) -> bool:
    """Check the signature of a Zendesk delivery: base64(HMAC-SHA256(secret, timestamp + body)).

    It says who sent the body, not that it is fresh: the caller compares `timestamp` with its clock.

    Args:
        secret: The webhook's signing secret.
        timestamp: Header `X-Zendesk-Webhook-Signature-Timestamp`, as it came.
        body: The body's bytes, as they came.
        signature: Header `X-Zendesk-Webhook-Signature`.

    Returns:
        True when the signature is right; False also for an empty secret, timestamp or signature.
    """
    if not (secret and timestamp and signature):
        return False
    digest = hmac.new(_bytes(secret), _bytes(timestamp) + body, hashlib.sha256).digest()
    return hmac.compare_digest(base64.b64encode(digest), _bytes(signature.strip()))


def verify_intercom(secret: str, body: bytes, signature: str) -> bool:
    """Check the signature of an Intercom delivery: `sha1=` and hex(HMAC-SHA1(secret, body)).

    Args:
        secret: The app's client secret.
        body: The body's bytes, as they came.
        signature: Header `X-Hub-Signature`.

    Returns:
        True when the signature is right; False also for an empty secret or signature.
    """
    signature = signature.strip().lower()
    if not secret or not signature.startswith(_INTERCOM_PREFIX):
        return False
    expected = _INTERCOM_PREFIX + hmac.new(_bytes(secret), body, hashlib.sha1).hexdigest()
    return hmac.compare_digest(_bytes(expected), _bytes(signature))


def zendesk_payload(body: bytes | str) -> dict[str, object]:
    """Find the ticket in a Zendesk delivery.

    Understood are event bodies (`detail` with `event`) and the ticket JSON of triggers, as
    `{"ticket": {...}}` or bare. An event tells of one comment, so its ticket is marked as partial;
    a comment that was redacted or made private becomes a redacted message, so that it is removed.

    Args:
        body: The body.

    Returns:
        A payload for the format `zendesk`.

    Raises:
        TicketFormatError: `json_invalid`, `json_too_deep`, or `delivery_without_ticket`.
    """
    delivery = _load(body)
    if isinstance(delivery.get("detail"), Mapping):
        ticket = _zendesk_event_ticket(delivery)
    else:
        inner = delivery.get("ticket")
        ticket = dict(read_mapping(inner) if isinstance(inner, Mapping) else delivery)
    if first_present(ticket, "id") is None:
        raise TicketFormatError("delivery_without_ticket")
    payload: dict[str, object] = {"tickets": [ticket]}
    if isinstance(delivery.get("users"), list):
        payload["users"] = delivery["users"]
    return payload


def _zendesk_event_ticket(delivery: Mapping[str, object]) -> dict[str, object]:
    """Make a ticket of an event."""
    detail = dict(read_mapping(delivery.get("detail")))
    kind = delivery.get("type")
    event = kind.rpartition(".")[2] if isinstance(kind, str) else ""
    comment = read_mapping(dig(delivery, "event", "comment"))
    comments = _zendesk_event_comments(detail, event, comment, delivery.get("time"))
    status = detail.get("status")
    if isinstance(status, str):
        detail["status"] = status.lower()
    return {**detail, "comments": comments, "is_partial": True}


def _zendesk_event_comments(
    detail: Mapping[str, object], event: str, comment: Mapping[str, object], time: object
) -> list[dict[str, object]]:
    """Write the comments that an event tells of.

    The first comment goes by the id of the description in every event, since the event of the
    ticket's creation does not know its own; events of later comments do not repeat it, or it would
    be counted twice.
    """
    description = first_present(detail, "description")
    is_first = description is not None and description == comment.get("body")
    is_removal = event in _ZENDESK_REMOVALS
    is_blackened = isinstance(description, str) and REDACTION_SIGN in description
    comments: list[dict[str, object]] = []
    if description is not None and (event in _ZENDESK_CREATIONS or is_first or (is_removal and is_blackened)):
        is_public = comment.get("is_public") if is_first else detail.get("is_public")
        comments.append(
            {
                "id": FIRST_MESSAGE_ID,
                "author_id": detail.get("requester_id"),
                "plain_body": description,
                "public": True if is_removal else is_public,
                "redacted": is_removal and is_first,
                "created_at": detail.get("created_at"),
            }
        )
    if comment and (is_removal or not is_first):
        author = read_mapping(comment.get("author"))
        comments.append(
            {
                "id": comment.get("id"),
                "author_id": first_present(author, "id"),
                "author": {"name": author.get("name")},
                "body": comment.get("body"),
                "public": True if is_removal else comment.get("is_public"),
                "redacted": is_removal,
                "created_at": first_present(comment, "created_at") or time,
            }
        )
    return comments


def intercom_payload(body: bytes | str) -> dict[str, object]:
    """Find the conversation in an Intercom delivery.

    A delivery holds the newest part only, so its conversation is marked as partial.

    Args:
        body: `{"type": "notification_event", "topic": ..., "data": {"item": conversation}}`.

    Returns:
        A payload for the format `intercom`.

    Raises:
        TicketFormatError: `json_invalid`, `json_too_deep`, or `delivery_without_ticket`, also for a
            delivery about something else than a conversation.
    """
    delivery = _load(body)
    item = read_mapping(dig(delivery, "data", "item"))
    if item.get("type") != "conversation" and "conversation_parts" not in item:
        raise TicketFormatError("delivery_without_ticket")
    return {"type": "conversation.list", "conversations": [{**item, "is_partial": True}]}


def _load(body: bytes | str) -> Mapping[str, object]:
    """Load a delivery."""
    try:
        value: object = json.loads(body)
    except RecursionError:
        raise TicketFormatError("json_too_deep") from None
    except ValueError:
        raise TicketFormatError("json_invalid") from None
    if not isinstance(value, Mapping):
        raise TicketFormatError("delivery_without_ticket")
    return read_mapping(value)


def _bytes(text: str) -> bytes:
    """Encode a header or secret; what cannot be encoded cannot match either."""
    return text.encode("utf-8", errors="replace")
