"""Who may ask, and what an unknown request is told."""

import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime, timedelta

import pytest
import yaml

from development.embedding_server import EmbeddingServer
from development.places import PROJECT
from tests.endpoints.conftest import SECRET, Api, message, ticket

NOW = datetime.now(UTC)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/tickets/import"),
        ("GET", "/tickets?source=a&ticket_id=b"),
        ("DELETE", "/tickets?source=a&ticket_id=b"),
        ("POST", "/memories"),
        ("GET", "/memories?customer_id=A"),
        ("DELETE", "/memories?customer_id=A&everything=true"),
        ("POST", "/recall"),
        ("PUT", "/links"),
        ("GET", "/links?customer_id=A"),
        ("GET", "/metrics"),
    ],
)
def test_every_path_but_health_needs_the_key(api: Api, method: str, path: str) -> None:
    """Without a key, with a wrong one, and with none in the settings: 401 and how to do it."""
    for answer in (api.send(method, path, {}, key=None), api.send(method, path, {}, key="wrong")):
        assert answer.status == 401
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")
        assert answer.json()["error"]["code"] == "unauthorized"
    api.settings["api_key"] = ""
    assert api.error(method, path, {}, key="") == (401, "unauthorized")


def test_key_is_taken_from_its_own_header_too(api: Api) -> None:
    """X-API-Key does as well."""
    answer = api.send("GET", "/links?customer_id=A", key=None, headers={"X-API-Key": "an-api-key"})
    assert answer.status == 200


def test_health_says_ok_without_a_key_and_more_with_it(api: Api) -> None:
    """The details are for who has the key."""
    assert api.send("GET", "/health", key=None).json() == {"status": "ok"}
    api.post("/memories", {"customer_id": "A", "content": "Prefers tea"})
    manifest = yaml.safe_load((PROJECT / "manifest.yaml").read_text(encoding="utf-8"))
    details = api.get("/health")
    assert (details["rows"], details["dimension"], details["shards"]) == (1, 512, 64)
    assert details["embedder"].startswith("builtin/")
    assert details["namespace"] == api.settings["namespace"]
    assert details["version"] == manifest["version"]
    assert details["uptime_seconds"] > 0.0
    assert details["chroma_heartbeat_ms"] > 0.0
    assert details["open_circuits"].keys() == {"chroma", "embedder"}
    assert details["embedder_fault"] is None
    assert api.error("GET", "/health", key="wrong") == (401, "unauthorized")


def test_health_tells_settings_that_lead_to_another_embedding_model(api: Api) -> None:
    """By its code, without asking the model for anything."""
    api.post("/memories", {"customer_id": "A", "content": "Prefers tea"})
    with EmbeddingServer() as service:
        api.settings |= {
            "embedding_source": "openai_compatible",
            "embedding_base_url": service.url,
            "embedding_model": "test-embed",
        }
        assert api.get("/health")["embedder_fault"] == "embedder_mismatch"
        assert service.asked == []


@pytest.mark.parametrize("path", ["/", "/nothing", "/memories/A", "/tickets/import/x", "/e/%F0%9F%8D%B5"])
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS"])
def test_unknown_path_gets_json_too(api: Api, method: str, path: str) -> None:
    """404 in the same shape as every other failure."""
    assert api.error(method, path, b"") == (404, "not_found")


def test_wrong_method_says_which_are_right(api: Api) -> None:
    """405 with Allow."""
    answer = api.send("PUT", "/memories", {})
    assert (answer.status, answer.headers["Allow"]) == (405, "DELETE, GET, POST")
    assert answer.json()["error"]["code"] == "method_not_allowed"


def test_body_of_the_size_dify_cuts_is_refused(api: Api) -> None:
    """At 10,485,760 bytes the body is not whole."""
    assert api.error("POST", "/memories", b" " * 10_485_760) == (413, "body_too_large")


def test_settings_that_cannot_be_used_are_told_as_such(api: Api) -> None:
    """The administrator's mistake is no 404 and shows no text of another library."""
    api.settings["chroma_url"] = "not an address"
    assert api.error("POST", "/recall", {"customer_id": "A"}) == (500, "chroma_address_invalid")
    api.settings["chroma_url"] = "http://127.0.0.1:9"
    answer = api.send("POST", "/recall", {"customer_id": "A"})
    assert (answer.status, answer.json()["error"]["code"]) == (503, "chroma_unreachable")
    assert int(answer.headers["Retry-After"]) > 0


# --- helpdesks' own deliveries --------------------------------------------------------------------


def zendesk_delivery(sent_at: datetime, secret: str = SECRET) -> tuple[bytes, dict[str, str]]:
    """A delivery of a Zendesk trigger, signed."""
    body = json.dumps(
        {
            "ticket": {
                "id": 7,
                "requester_id": 11,
                "subject": "Lid",
                "created_at": "2024-03-01T10:00:00Z",
                "updated_at": "2024-03-01T10:00:00Z",
                "comments": [
                    {
                        "id": 1,
                        "author_id": 11,
                        "plain_body": "The lid is broken",
                        "public": True,
                        "created_at": "2024-03-01T10:00:00Z",
                    }
                ],
            }
        }
    ).encode()
    stamp = sent_at.isoformat().replace("+00:00", "Z")
    signed = hmac.new(secret.encode(), stamp.encode() + body, hashlib.sha256).digest()
    return body, {
        "X-Zendesk-Webhook-Signature": base64.b64encode(signed).decode(),
        "X-Zendesk-Webhook-Signature-Timestamp": stamp,
    }


def test_signed_zendesk_delivery_is_imported_without_a_key(api: Api) -> None:
    """The signature is the key; the same delivery again changes nothing."""
    body, headers = zendesk_delivery(NOW)
    for stored in (1, 0):
        report = api.post("/tickets/import", body, headers=headers, key=None)
        assert report["memories"]["stored"] == stored
    assert api.texts("11") == ["The lid is broken"]


@pytest.mark.parametrize(
    ("sent_at", "secret"),
    [(NOW, "another secret"), (NOW - timedelta(hours=2), SECRET), (NOW + timedelta(hours=2), SECRET)],
)
def test_delivery_with_a_wrong_or_old_signature_is_refused(api: Api, sent_at: datetime, secret: str) -> None:
    """403, and nothing is stored."""
    body, headers = zendesk_delivery(sent_at, secret)
    assert api.error("POST", "/tickets/import", body, headers=headers, key=None) == (403, "signature_invalid")
    assert api.texts("11") == []


def test_delivery_without_a_secret_in_the_settings_is_refused(api: Api) -> None:
    """An empty secret signs nothing."""
    api.settings["webhook_secret"] = ""
    body, headers = zendesk_delivery(NOW, "")
    assert api.error("POST", "/tickets/import", body, headers=headers, key=None) == (403, "signature_invalid")


def test_signed_intercom_delivery_is_imported_without_a_key(api: Api) -> None:
    """The other helpdesk that signs."""
    body = json.dumps(
        {
            "type": "notification_event",
            "topic": "conversation.user.created",
            "data": {
                "item": {
                    "type": "conversation",
                    "id": "9",
                    "created_at": 1709287200,
                    "updated_at": 1709287200,
                    "source": {
                        "type": "conversation",
                        "id": "s1",
                        "body": "<p>Where is my order?</p>",
                        "author": {"type": "user", "id": "u1", "email": "ana@example.com"},
                    },
                    "contacts": {"contacts": [{"id": "u1", "external_id": "cust-1"}]},
                    "conversation_parts": {"conversation_parts": []},
                }
            },
        }
    ).encode()
    signature = "sha1=" + hmac.new(SECRET.encode(), body, hashlib.sha1).hexdigest()
    report = api.post("/tickets/import", body, headers={"X-Hub-Signature": signature}, key=None)
    assert report["memories"]["stored"] == 1
    assert api.texts("cust-1") == ["Where is my order?"]
    forged = api.send("POST", "/tickets/import", body, headers={"X-Hub-Signature": "sha1=00"}, key=None)
    assert forged.status == 403


def test_key_does_without_a_signature(api: Api) -> None:
    """A bulk import carries no signature."""
    report = api.post("/tickets/import", {"tickets": [ticket("1", "A", message(1, "Hello there"))]})
    assert report["tickets"]["imported"] == 1
