"""Everything about one customer: complete, readable, and of nobody else."""

import base64
import json
from collections.abc import Iterable
from urllib.parse import quote

import pytest

from development.daemon import PluginProcess
from dify.exports import LISTS, PAGE_BYTES
from dify.opening import Selected, open_engine
from memory.chroma import Chroma
from memory.chroma_connection import connections
from memory.clock import Deadline
from memory.embedding import BUILTIN
from memory.identity import Caller, scope_of_customer
from memory.namespace import Namespace
from memory.records import Kind, Memory, in_scope
from memory.remembering import parts_of
from memory.settings import ChromaSettings
from memory.store import MemoryStore
from memory.text import digest, split
from tests.conftest import Json
from tests.endpoints.conftest import KEY, Api, message, peak_bytes, ticket

NEIGHBOURS = ("ann2", "an", "ANN", "ann@example.com", "ann/1", "åann", "annn", "%61nn")
NDJSON = {"Accept": "application/x-ndjson"}


def export_of(api: Api, who: str = "customer_id=ann") -> Json:
    """All pages of an export as one."""
    whole: Json = {}
    cursor = ""
    while True:
        page = api.get(f"/export?{who}&cursor={cursor}")
        for name, value in page.items():
            whole[name] = whole[name] + value if isinstance(value, list) and name in whole else value
        if page["cursor"] is None:
            return whole
        cursor = page["cursor"]


def lines_of(api: Api, who: str = "customer_id=ann") -> list[Json]:
    """An export line by line."""
    answer = api.send("GET", f"/export?{who}", headers=NDJSON)
    assert answer.status == 200, answer.body
    assert answer.headers["Content-Type"] == "application/x-ndjson"
    return [json.loads(line) for line in answer.body.splitlines()]


def fill(api: Api) -> None:
    """What there is to know of Ann, and much of her neighbours."""
    ann = ticket("1", "ann", message(1, "The lid is broken"), message(2, "We send one", role="agent"))
    api.post("/tickets/import", {"tickets": [ann, ticket("2", "ann2", message(3, "My parcel is late"))]})
    for value, day in (("Basic", 1), ("Pro", 5)):
        plan = {"content": value, "attribute": "plan", "occurred_at": f"2024-04-0{day}T08:00:00Z"}
        api.post("/memories", {"customer_id": "ann", "kind": "semantic", **plan})
    more = {"metadata": {"tier": "gold", "seats": 3}, "expires_in_days": 40, "case_id": "case-7"}
    api.post("/memories", {"customer_id": "ann", "conversation_id": "chat-1", "content": "喜欢茶", **more})
    for neighbour in NEIGHBOURS:
        api.post("/memories", {"customer_id": neighbour, "content": f"Secret of {neighbour}"})


def test_an_export_is_complete_and_readable(api: Api) -> None:
    """Memories with history, metadata and ISO times, links and tickets: what was written is what is told."""
    fill(api)
    told = export_of(api)
    assert (told["customer_id"], told["linked"], told["cursor"], told["ended"]) == ("ann", True, None, [])
    memories = {m["text"]: m for m in told["memories"]}
    assert set(memories) == {"The lid is broken", "Basic", "Pro", "喜欢茶"}
    old, new = memories["Basic"], memories["Pro"]
    assert (old["is_current"], old["superseded_by"]) == (False, new["memory_id"])
    assert (old["superseded_at"], new["occurred_at"]) == ("2024-04-05T08:00:00Z", "2024-04-05T08:00:00Z")
    assert (new["is_current"], new["attribute"], new["kind"]) == (True, "plan", "semantic")
    tea = memories["喜欢茶"]
    assert tea["metadata"] == {"tier": "gold", "seats": 3}
    assert (tea["conversation_id"], tea["case_id"], tea["is_expired"]) == ("chat-1", "case-7", False)
    lid = memories["The lid is broken"]
    assert (lid["source"], lid["ticket_id"], lid["message_id"]) == ("shop", "1", "1")
    assert (lid["topic"], lid["reply"]) == ("A question", "We send one")
    assert {link["conversation_id"] for link in told["links"]} == {"chat-1", "shop:1"}
    (entry,) = told["tickets"]
    assert (entry["ticket_id"], entry["memory_ids"]) == ("1", [lid["memory_id"]])


def test_an_export_agrees_with_the_list(api: Api) -> None:
    """It has the very memories that are listed with their history, field by field."""
    fill(api)
    listed = api.get("/memories?customer_id=ann&include_superseded=true")["memories"]
    told = {m["memory_id"]: m for m in export_of(api)["memories"]}
    assert {m["memory_id"]: m for m in listed} == {
        i: {name: m[name] for name in listed[0]} for i, m in told.items()
    }


def test_nobody_elses_words_are_in_it(api: Api) -> None:
    """Neighbours of similar names stay out, are untouched, and have an export of their own."""
    fill(api)
    before = {n: api.get(f"/memories?customer_id={base(n)}")["memories"] for n in NEIGHBOURS}
    assert "Secret" not in json.dumps(export_of(api))
    assert "parcel" not in json.dumps(lines_of(api))
    for neighbour in NEIGHBOURS:
        own = {m["text"] for m in export_of(api, f"customer_id={base(neighbour)}")["memories"]}
        assert f"Secret of {neighbour}" in own
    assert {n: api.get(f"/memories?customer_id={base(n)}")["memories"] for n in NEIGHBOURS} == before


def base(customer_id: str) -> str:
    """An id as a query carries it."""
    return quote(customer_id, safe="")


def test_lines_and_pages_tell_the_same(api: Api) -> None:
    """The first line says who, the last one counts, and those between are the page's items with a type."""
    fill(api)
    first, *items, last = lines_of(api)
    page = export_of(api)
    assert (first["type"], first["customer_id"]) == ("customer", "ann")
    assert last == {
        "type": "end",
        "complete": True,
        "cursor": None,
        "counts": {name: len(page[name]) for name in LISTS.values()},
    }
    for kind, name in LISTS.items():
        told = [{k: v for k, v in item.items() if k != "type"} for item in items if item["type"] == kind]
        assert told == page[name]


def write(api: Api, texts: Iterable[str]) -> None:
    """Put memories of Ann into the store as they lie there, each with a vector nobody looks for."""
    address = {"url": api.settings["chroma_url"], "namespace": api.settings["namespace"]}
    settings = ChromaSettings(**address)
    namespace = Namespace(Chroma(settings, Deadline.after(200)), settings)
    store = MemoryStore(namespace, namespace.start(BUILTIN, 2, noise=0.1))
    scope = scope_of_customer("ann")
    records = [
        in_scope(
            Memory(
                memory_id="",
                text=text,
                kind=Kind.SEMANTIC,
                occurred_at=1_700_000_000.0,
                recorded_at=1_700_000_000.0,
                digest=digest(text),
                parts=len(split(text)),
            ),
            scope,
        )
        for text in texts
    ]
    rows = [part for record in records for part in parts_of(record)]
    store.write(scope, [(row, (1.0, i / len(rows))) for i, row in enumerate(rows)])
    connections.close()


def test_a_long_text_is_told_whole(api: Api) -> None:
    """The parts it is stored in make one text again, every word of it."""
    text = " ".join(f"Sentence number {i} about the lamp." for i in range(2_000))
    chinese = "".join(f"第{i}句话说的是台灯。" for i in range(1_500))
    write(api, [text, chinese])
    assert {m["text"] for m in export_of(api)["memories"]} == {text, chinese}


def test_a_large_export_comes_in_pages(api: Api) -> None:
    """No page is much over its size, none repeats an item, and together they are all there is."""
    texts = [f"{i} " + "台灯坏了。" * 12_000 for i in range(6)]
    write(api, texts)
    cursor, sizes, told = "", [], []
    while cursor is not None:
        answer = api.send("GET", f"/export?customer_id=ann&cursor={cursor}")
        sizes.append(len(answer.body))
        page = answer.json()
        told += [m["text"] for m in page["memories"]]
        cursor = page["cursor"]
    assert len(sizes) > 1
    assert max(sizes) < PAGE_BYTES + 500_000
    assert sorted(told) == sorted(texts)


def test_a_million_characters_fit_into_the_protocol(api: Api) -> None:
    """The longest memory there can be, six bytes a character: sent in pieces, told whole."""
    text = "台" * 999_999
    write(api, [text])
    answer = api.send("GET", "/export?customer_id=ann")
    assert max(map(len, answer.chunks)) <= 500_000
    (memory,) = answer.json()["memories"]
    assert memory["text"].replace(" ", "") == text
    assert lines_of(api)[1]["text"] == memory["text"]


def test_many_memories_within_bounded_memory(credentials: Json) -> None:
    """Twenty thousand memories are told completely, and the plugin grows by less than they are."""
    with PluginProcess() as process:
        api = Api(process, {**credentials, "api_key": KEY})
        texts = [f"Statement {i} " + "about the lamp " * 40 for i in range(20_000)]
        write(api, texts)
        lines_of(api, "customer_id=nobody")  # whatever is loaded once is loaded
        before = peak_bytes(process.pid, anew=True)
        answer = api.send("GET", "/export?customer_id=ann", headers=NDJSON)
        assert peak_bytes(process.pid) - before < 16_000_000 < len(answer.body)
        told = [json.loads(line) for line in answer.body.splitlines()]
    assert {item["text"] for item in told if item["type"] == "memory"} == set(texts)
    assert told[-1]["counts"]["memories"] == 20_000


def test_an_export_goes_on_behind_any_item(api: Api) -> None:
    """Links and tickets too are told in the order of their ids, none twice and none missed."""
    tickets = [ticket(f"t{i}", "ann", message(1, f"Question {i}")) for i in range(12)]
    api.post("/tickets/import", {"tickets": tickets})
    caller = Caller.checked("ann")
    form = {"chroma_url": api.settings["chroma_url"], "namespace": api.settings["namespace"]}
    administration = open_engine(form, Selected(), None).administration
    items = list(administration.export(caller, "")[0])
    assert len(items) == 36
    for at in range(0, 36, 5):
        assert list(administration.export(caller, items[at].cursor)[0]) == items[at + 1 :]
    connections.close()


def test_a_conversation_that_is_linked_to_nobody(api: Api) -> None:
    """Its own memory is exported; once it is linked, the customer's; with another one it is refused."""
    api.post("/memories", {"conversation_id": "c", "content": "Drives a van"})
    told = export_of(api, "conversation_id=c")
    assert (told["customer_id"], told["linked"]) == ("", False)
    assert [m["text"] for m in told["memories"]] == ["Drives a van"]
    api.send("PUT", "/links", {"conversation_id": "c", "customer_id": "ann"})
    assert export_of(api, "conversation_id=c")["customer_id"] == "ann"
    assert api.error("GET", "/export?conversation_id=c&customer_id=bob") == (
        409,
        "conversation_of_another_customer",
    )


def test_a_forgotten_value_is_told_as_ended(api: Api) -> None:
    """When it ended is there, what it was is not."""
    api.post("/memories", {"customer_id": "ann", "content": "Oslo", "attribute": "city"})
    (city,) = export_of(api)["memories"]
    api.send("DELETE", f"/memories?customer_id=ann&memory_ids={city['memory_id']}&dry_run=false")
    told = export_of(api)
    assert told["memories"] == []
    (ended,) = told["ended"]
    assert ended["ended_at"] == city["occurred_at"]
    assert "Oslo" not in json.dumps(told)


def test_nothing_is_known(api: Api) -> None:
    """Of a customer nobody has heard of, and of a namespace nothing was stored in, an export is empty."""
    told = export_of(api, "customer_id=eve")
    assert [told[name] for name in LISTS.values()] == [[], [], [], []]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", (400, "customer_missing")),
        ("customer_id=*", (400, "id_invalid")),
        ("customer_id=%7B%7Bcustomer%7D%7D", (400, "id_invalid")),
        ("customer_id=ann&cursor=x", (400, "parameter_invalid")),
        (
            f"customer_id=ann&cursor={base64.urlsafe_b64encode(b'[[], 1]').decode()}",
            (400, "parameter_invalid"),
        ),
    ],
)
@pytest.mark.parametrize("headers", [{}, NDJSON])
def test_a_wrong_request_is_refused_by_status(
    api: Api, query: str, expected: tuple[int, str], headers: Json
) -> None:
    """Before anything is answered, in either form."""
    assert api.error("GET", f"/export?{query}", headers=headers) == expected


def test_an_export_wants_the_key(api: Api) -> None:
    """Nobody else reads it."""
    assert api.error("GET", "/export?customer_id=ann", key=None) == (401, "unauthorized")


def test_another_customers_cursor_leads_nowhere_else(api: Api) -> None:
    """A cursor is a place in an order; whose memories are told is decided by the ids of the call alone."""
    fill(api)
    own = [item for item in lines_of(api) if item["type"] == "memory"]
    cursor = base64.urlsafe_b64encode(json.dumps(["memories", own[0]["memory_id"]]).encode()).decode()
    told = export_of(api, f"customer_id=ann2&cursor={cursor}")
    assert "lid" not in json.dumps(told)
