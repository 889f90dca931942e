"""The audit through the real endpoint and the real nodes: who did what, and nothing of what it was about."""

import hashlib
import hmac
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from development.chroma_server import ChromaServer
from development.daemon import PluginFailure
from memory.chroma import Chroma
from memory.chroma_rows import Row
from memory.clock import Deadline
from memory.namespace import Namespace
from memory.settings import ChromaSettings
from tests import fake_servers
from tests.conftest import Json, Nodes
from tests.endpoints.conftest import Api, message, ticket
from tests.endpoints.test_access import zendesk_delivery
from tests.fake_servers import serve

HASH_KEY = "a-hash-key-of-the-administrator"
READER, WRITER = "reader-key-of-some-length", "writer-key-of-some-length"


@pytest.fixture
def audited(api: Api) -> Api:
    """The endpoint with two named keys, and a key for the hashes."""
    api.settings |= {
        "api_keys": f"reader {READER} read; writer {WRITER} write,erase customer_prefix=acme-",
        "hash_key": HASH_KEY,
    }
    return api


def entries(api: Api, query: str = "") -> list[Json]:
    """The first page of the audit."""
    found: list[Json] = api.get(f"/audit{query}")["entries"]
    return found


def acts(api: Api, query: str = "") -> list[tuple[str, str, str]]:
    """Who, verb and outcome of each entry, newest first."""
    return [(e["who"], e["verb"], e["outcome"]) for e in entries(api, query)]


def keyed(*parts: str) -> str:
    """The hash of an id, made independently."""
    text = b"".join(b"%d:%b" % (len(part.encode()), part.encode()) for part in parts)
    return hmac.new(HASH_KEY.encode(), text, hashlib.sha256).hexdigest()[:32]


def inside(settings: Json) -> Namespace:
    """The namespace as the store holds it."""
    chroma = ChromaSettings(url=settings["chroma_url"], namespace=settings["namespace"])
    return Namespace(Chroma(chroma, Deadline.after(60.0)), chroma)


def test_every_change_is_noted_with_who_did_it(audited: Api) -> None:
    """Through every route that writes or erases, newest first, with its counts."""
    own = {"customer_id": "acme-1", "conversation_id": "c-1"}
    told = audited.post("/memories", {**own, "content": "Prefers tea"}, key=WRITER)
    audited.send("PUT", "/links", {**own, "case_id": "case-1"}, key=WRITER)
    tickets = [ticket("77", "acme-1", message(1, "A kettle")), ticket("78", "other", message(1, "A pan"))]
    audited.post("/tickets/import", {"tickets": tickets}, key=WRITER)
    audited.send("DELETE", "/tickets?source=shop&ticket_id=77", key=WRITER)
    audited.send("DELETE", "/memories?customer_id=acme-1&everything=true&dry_run=false", key=WRITER)
    audited.post("/maintenance/expire", None)

    expired, forgot, forgot_ticket, imported, linked, remembered = entries(audited)
    assert [e["verb"] for e in (remembered, linked, imported, forgot_ticket, forgot, expired)] == [
        "remember",
        "link_conversation",
        "import_tickets",
        "forget_ticket",
        "forget",
        "expire",
    ]
    assert [e["who"] for e in (expired, forgot, remembered)] == ["api_key", "writer", "writer"]
    assert {e["outcome"] for e in entries(audited)} == {"ok"}
    customer = keyed("customer", "acme-1")
    assert [e["customer"] for e in (remembered, linked, forgot)] == [customer] * 3
    assert remembered["memories"] == [keyed("memory", m["memory_id"]) for m in told["memories"]]
    assert remembered["conversations"] == [keyed("conversation", "c-1")]
    assert imported["tickets"] == [keyed("ticket", "shop", "77"), keyed("ticket", "shop", "78")]
    assert forgot_ticket["tickets"] == [keyed("ticket", "shop", "77")]
    assert (remembered["counts"]["stored"], forgot["counts"]["deleted"]) == (1, 1)
    assert (imported["counts"]["imported"], imported["counts"]["failed"]) == (1, 1)


def test_a_merge_and_its_undoing_name_both_customers(audited: Api) -> None:
    """By their hashes, with counts; a preview is a read, and a refusal names them too."""
    for customer_id in ("acme-1", "acme-2"):
        for text in ("Prefers tea", f"Said by {customer_id}"):
            audited.post("/memories", {"customer_id": customer_id, "content": text})
    audited.send("PUT", "/links", {"customer_id": "acme-1", "conversation_id": "c-1"})
    audited.post("/merge", {"from": "acme-1", "into": "acme-2"})
    merge = {"from": "acme-1", "into": "acme-2", "dry_run": False}
    told = audited.post("/merge", merge)
    audited.post("/merge/undo", {"merge_id": told["merge_id"]})
    audited.send("POST", "/merge", merge, key=WRITER)

    refused, undone, merged, linked = entries(audited)[:4]
    assert linked["verb"] == "link_conversation"
    assert (linked["customer"], linked["merged"]) == (keyed("customer", "acme-1"), "")
    assert [e["verb"] for e in (merged, undone, refused)] == [
        "merge_customers",
        "undo_merge",
        "merge_customers",
    ]
    assert (merged["outcome"], undone["outcome"], refused["outcome"]) == ("ok", "ok", "forbidden")
    both = (keyed("customer", "acme-2"), keyed("customer", "acme-1"))
    for entry in (merged, undone):
        assert (entry["customer"], entry["merged"]) == both
        assert entry["memories"] == [keyed("memory", each) for each in told["memory_ids"]]
        assert entry["counts"] == {"memories": 2, "shared": 1, "links": 1, "tickets": 0}


def test_a_refusal_of_a_known_key_is_noted_and_an_unknown_sender_is_not(audited: Api) -> None:
    """Who tried what is worth knowing; whoever has no key must not be able to fill the audit."""
    audited.send("POST", "/memories", {"customer_id": "acme-1", "content": "x"}, key=READER)
    audited.send("POST", "/memories", {"customer_id": "other", "content": "x"}, key=WRITER)
    audited.send("POST", "/memories", {"customer_id": "acme-1", "content": 7}, key=WRITER)
    audited.send("POST", "/memories", b"{", key=WRITER)
    body, headers = zendesk_delivery(datetime.now(UTC), "another secret")
    for options in ({"key": None}, {"key": "wrong"}, {"key": None, "headers": headers}):
        audited.send("POST", "/tickets/import?timezone=nowhere", body, **options)
        audited.send("POST", "/tickets/import", body, **options)
        audited.send("POST", "/memories", {"customer_id": "acme-1", "content": "x"}, **options)
    assert acts(audited) == [
        ("writer", "remember", "body_invalid"),
        ("writer", "remember", "content_invalid"),
        ("writer", "remember", "forbidden"),
        ("reader", "remember", "forbidden"),
    ]
    assert entries(audited)[2]["customer"] == keyed("customer", "other")


def test_a_signed_delivery_is_the_webhooks(audited: Api) -> None:
    """It has no key; its signature says who it is."""
    body, headers = zendesk_delivery(datetime.now(UTC))
    audited.post("/tickets/import", body, headers=headers, key=None)
    assert acts(audited) == [("webhook", "import_tickets", "ok")]


def test_a_streamed_import_is_noted_at_its_end(audited: Api) -> None:
    """With the counts of its last line."""
    body = {"tickets": [ticket(str(n), f"acme-{n}", message(1, "Hi")) for n in range(5)]}
    audited.send("POST", "/tickets/import", body, headers={"Accept": "application/x-ndjson"}, key=WRITER)
    (entry,) = entries(audited)
    assert (entry["who"], entry["outcome"], entry["counts"]["imported"]) == ("writer", "ok", 5)


def test_what_changes_nothing_is_noted_only_if_reads_are(audited: Api) -> None:
    """Recalls, lists, previews and dry runs."""
    audited.post("/memories", {"customer_id": "acme-1", "content": "Prefers tea"})
    before = acts(audited)

    def read() -> None:
        audited.post("/recall", {"customer_id": "acme-1", "query": "tea"}, key=READER)
        audited.send("GET", "/memories?customer_id=acme-1", key=READER)
        audited.send("DELETE", "/memories?customer_id=acme-1&everything=true")
        audited.post("/tickets/import?dry_run=true", {"tickets": [ticket("1", "acme-1", message(1, "Hi"))]})
        audited.send("POST", "/recall", {"customer_id": "*"}, key=READER)

    read()
    assert acts(audited) == before
    audited.settings["audit_reads"] = "true"
    read()
    noted = acts(audited)
    assert noted[:5] == [
        ("reader", "recall", "id_invalid"),
        ("api_key", "import_tickets", "ok"),
        ("api_key", "forget", "ok"),
        ("reader", "list_memories", "ok"),
        ("reader", "recall", "ok"),
    ]
    assert acts(audited)[0] == ("api_key", "list_audit", "ok")


def test_a_recall_costs_no_request_more(audited: Api, chroma: ChromaServer) -> None:
    """With named keys, limits and an audit the server is asked exactly what it was asked without."""

    def requests(settings: Json, key: str) -> list[tuple[str, str]]:
        api = Api(audited.process, {**audited.settings, **settings})
        with serve(fake_servers.guarded(chroma.url, "Authorization", "Bearer t")) as proxy:
            api.settings |= {"chroma_url": proxy.url, "chroma_token": "t"}
            api.post("/recall", {"customer_id": "acme-1", "query": "tea"}, key=key)  # opens the connection
            proxy.asked.clear()
            api.post("/recall", {"customer_id": "acme-1", "conversation_id": "c", "query": "tea"}, key=key)
            return [(asked.method, asked.path) for asked in proxy.asked]

    own = {"customer_id": "acme-1", "conversation_id": "c"}
    audited.post("/memories", {**own, "content": "Prefers tea"})
    plain = requests({"api_keys": "", "hash_key": ""}, "an-api-key")
    limited = f"limited {READER} read customer_prefix=acme-"
    assert plain
    assert requests({"api_keys": limited}, READER) == plain
    assert len(requests({"api_keys": limited, "audit_reads": "true"}, READER)) > len(plain)


def test_nodes_are_noted_as_such(audited: Api, nodes: Nodes) -> None:
    """What writes or erases, and what fails; a recall and a preview are not."""
    nodes.credentials["hash_key"] = HASH_KEY
    chat = nodes.within("conv-1")
    chat.remember("Prefers tea", customer_id="ana")
    chat.recall("tea")
    chat.forget(scope="everything")
    chat.link(customer_id="ana", case_id="case-1")
    with pytest.raises(PluginFailure):
        chat.remember("Prefers tea", customer_id="bert")
    chat.forget(scope="everything", action=" Delete ")
    assert acts(audited) == [
        ("node", "forget", "ok"),
        ("node", "remember", "conversation_of_another_customer"),
        ("node", "link_conversation", "ok"),
        ("node", "remember", "ok"),
    ]
    assert entries(audited)[3]["customer"] == keyed("customer", "ana")
    assert entries(audited)[3]["conversations"] == [keyed("conversation", "conv-1")]


def stored(settings: Json) -> list[Row]:
    """The rows of the audit as the store holds them."""
    namespace = inside(settings)
    return namespace.chroma.get(namespace.audit)


@pytest.mark.parametrize("hash_key", ["", HASH_KEY])
def test_nothing_of_what_it_was_about_is_in_it(audited: Api, hash_key: str) -> None:
    """No text, no metadata, no plain id, no key; without a key for hashes no id of any sort."""
    audited.settings |= {"hash_key": hash_key}
    own = {"customer_id": "acme-plainid", "conversation_id": "conv-plainid", "case_id": "case-plainid"}
    told = audited.post(
        "/memories", {**own, "content": "Prefers zebras", "metadata": {"stored": 4711}}, key=WRITER
    )
    memory_id = told["memories"][0]["memory_id"]
    row = ticket("ticket-plainid", "acme-plainid", message(1, "zebras"), source="source-plainid")
    audited.post("/tickets/import", {"tickets": [row]}, key=WRITER)
    audited.send("DELETE", f"/memories?customer_id=acme-plainid&memory_ids={memory_id}&dry_run=false")
    rows = stored(audited.settings)
    assert len(rows) == 3
    text = json.dumps([(r.row_id, r.text, r.columns) for r in rows])
    for word in ("plainid", "zebras", "4711", memory_id, WRITER, HASH_KEY):
        assert word not in text
    hashes = [
        h
        for e in entries(audited)
        for h in [*e["memories"], *e["tickets"], *e["conversations"], e["customer"]]
        if h
    ]
    assert bool(hashes) == bool(hash_key)


def test_pages_and_filters(audited: Api) -> None:
    """By verb, by key, by both, and page after page."""
    for number in range(3):
        audited.post("/memories", {"customer_id": "acme-1", "content": f"Fact {number}"}, key=WRITER)
        audited.send("PUT", "/links", {"customer_id": "A", "conversation_id": f"c{number}"})
    assert acts(audited, "?verb=remember") == [("writer", "remember", "ok")] * 3
    assert acts(audited, "?key=api_key") == [("api_key", "link_conversation", "ok")] * 3
    assert acts(audited, "?key=api_key&verb=remember") == []
    seen: list[str] = []
    cursor = ""
    while True:
        page = audited.get(f"/audit?limit=4&cursor={cursor}")
        seen += [e["audit_id"] for e in page["entries"]]
        cursor = page["cursor"] or ""
        if not cursor:
            break
    assert len(seen) == len(set(seen)) == 6
    assert audited.error("GET", "/audit?cursor=nonsense") == (400, "parameter_invalid")
    assert audited.error("GET", "/audit?limit=0") == (400, "parameter_invalid")


def test_upkeep_says_what_it_took_from_the_audit(audited: Api) -> None:
    """An entry older than `audit_days` is not listed, and gone after upkeep."""
    namespace = inside(audited.settings)
    audited.post("/memories", {"customer_id": "acme-1", "content": "Prefers tea"})
    (row,) = stored(audited.settings)
    old = {**row.columns, "at": 1.0, "day": "1970-01-01", "hour": "1970-01-01T00"}
    namespace.chroma.add(namespace.audit, [Row("0" * 32, row.text, old, [1.0, 1.0])])
    assert audited.post("/maintenance/expire", None)["audit_expired"] == 1
    assert {r.columns["verb"] for r in stored(audited.settings)} == {"remember", "expire"}


def break_audit(settings: Json) -> None:
    """Bring the store into a state in which no entry can be written, and everything else can."""
    namespace = inside(settings)
    namespace.chroma.add(namespace.audit, [Row("0" * 32, "{}", {"at": 1.0}, [1.0] * 7)])


def test_an_entry_that_cannot_be_written_takes_nothing_away(audited: Api, nodes: Nodes) -> None:
    """The call did its work and says so; that it is not noted stands in a header and in the log, by code."""
    break_audit(audited.settings)
    logged = len(audited.process.stdout)
    answer = audited.send(
        "POST", "/memories", {"customer_id": "acme-1", "content": "Likes zebras"}, key=WRITER
    )
    assert (answer.status, answer.json()["stored"]) == (200, 1)
    assert answer.headers["X-Audit-Failed"] == "embedder_dimension_mismatch"
    assert nodes.remember("Likes pandas", customer_id="acme-1")["stored"] == 1
    assert sorted(audited.texts("acme-1")) == ["Likes pandas", "Likes zebras"]
    lines = [line for line in audited.process.stdout[logged:] if "audit_failed" in line]
    assert len(lines) == 2
    assert "remember by writer" in lines[0]
    assert "remember by node" in lines[1]
    for word in ("zebras", "acme-1", WRITER):
        assert not any(word in line for line in lines)


def test_a_server_that_is_away_is_not_asked_twice(audited: Api) -> None:
    """The failure is the call's own; the audit adds a line to the log and no second wait."""
    with serve(fake_servers.refusing(502)) as away:
        audited.settings["chroma_url"] = away.url
        logged = len(audited.process.stdout)
        assert audited.error("POST", "/memories", {"customer_id": "A", "content": "x"}) == (
            502,
            "chroma_failed",
        )
        assert not any("audit" in asked.path for asked in away.asked)
    assert any("audit_failed" in line for line in audited.process.stdout[logged:])


@pytest.mark.parametrize(
    ("name", "value"),
    [("audit_days", "0"), ("audit_days", "x"), ("audit_reads", "perhaps"), ("hash_key", "short")],
)
def test_settings_of_the_audit_are_checked(audited: Api, name: str, value: Any) -> None:
    """By name, and a short key is not shown."""
    audited.settings[name] = value
    answer = audited.send("POST", "/recall", {"customer_id": "A"})
    assert (answer.status, answer.json()["error"]["code"]) == (500, "setting_invalid")
    assert name in answer.json()["error"]["message"]
    assert b"short" not in answer.body
