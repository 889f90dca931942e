"""A backup of a namespace, and what becomes of it in another one."""

import base64
import gzip
import json
import uuid
from array import array
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from development.chroma_server import ChromaServer
from development.daemon import PluginProcess
from development.embedding_server import EmbeddingServer
from memory.backup import PAGE_ROWS
from memory.backup_file import bound
from memory.chroma import Chroma
from memory.chroma_connection import connections
from memory.clock import Deadline
from memory.embedding import BUILTIN
from memory.namespace import Namespace
from memory.settings import ChromaSettings
from tests.conftest import Json, Nodes
from tests.endpoints.conftest import KEY, Api, message, peak_bytes, ticket

TICKETS = {
    "tickets": [
        ticket("1", "ann", message(1, "The lid is broken"), message(2, "We send one", role="agent")),
        ticket("2", "bob", message(3, "My parcel 4711 is late")),
        ticket("3", "ann", message(4, "杯子坏了，请换一个")),
    ]
}
QUESTIONS = [
    ("ann", "broken lid"),
    ("ann", "which plan"),
    ("bob", "parcel 4711"),
    ("ann@example.com", "tea"),
    ("周", "杯子"),
]
COUNT = 20
WHOLE = {"memories": COUNT, "links": COUNT, "ledger": COUNT, "aliases": 0}
CONVERSATION = "conversation-7"
LONG = " ".join(f"Sentence number {i} about the lamp." for i in range(150))

LAST_BIT = 2.0**-23
"""How far apart two neighbouring 32-bit floats are, relatively."""


@pytest.fixture
def other(plugin: PluginProcess, settings: Json) -> Api:
    """The endpoints on a second namespace, which is empty."""
    return Api(plugin, {**settings, "namespace": a_namespace()})


def fill(api: Api, nodes: Nodes) -> None:
    """Put something of every kind into a namespace: history, parts, a provisional memory."""
    api.post("/tickets/import", TICKETS)
    for value, day in (("Basic", 1), ("Pro", 5), ("Team", 3)):
        occurred = {"attribute": "plan", "kind": "semantic", "occurred_at": f"2024-04-0{day}"}
        api.post("/memories", {"customer_id": "ann", "content": value, **occurred})
    api.post("/memories", {"customer_id": "ann@example.com", "content": "Likes tea", "metadata": {"n": 3}})
    api.post("/memories", {"customer_id": "周", "content": "喜欢红色的杯子"})
    api.post("/memories", {"customer_id": "bob", "content": LONG, "expires_in_days": 30})
    api.post("/memories", {"conversation_id": CONVERSATION, "content": "Drives a van", "attribute": "car"})
    api.post("/memories", {"conversation_id": "linked-1", "customer_id": "bob", "content": "Wants a call"})
    for value in ("Oslo", "Rome"):
        api.post("/memories", {"conversation_id": "c-8", "content": value, "attribute": "city"})
    (now,) = [
        m["memory_id"] for m in api.get("/memories?conversation_id=c-8")["memories"] if m["text"] == "Rome"
    ]
    nodes.forget(memory_ids=[now], conversation_id="c-8", scope="matching", action="delete")


def a_namespace() -> str:
    """A name nobody has used."""
    return f"t{uuid.uuid4().hex[:16]}"


@pytest.fixture(scope="module")
def filled(plugin: PluginProcess, chroma: ChromaServer) -> Api:
    """A namespace with something of every kind, which no test changes."""
    form = {"chroma_url": chroma.url, "namespace": a_namespace()}
    api = Api(plugin, {**form, "api_key": KEY})
    fill(api, Nodes(plugin, form))
    return api


@pytest.fixture(scope="module")
def numbered(plugin: PluginProcess, chroma: ChromaServer) -> list[bytes]:
    """The backup of a namespace with a memory, a link and a ledger row of each of twenty customers."""
    api = Api(plugin, {"chroma_url": chroma.url, "namespace": a_namespace(), "api_key": KEY})
    many(api, COUNT)
    return backup_of(api)


def backup_of(api: Api, cursor: str = "") -> list[bytes]:
    """The lines of a backup in one answer."""
    answer = api.send("GET", f"/backup?cursor={cursor}")
    assert answer.status == 200, answer.body
    assert answer.headers["Content-Type"] == "application/x-ndjson"
    return answer.body.splitlines()


def body_of(lines: list[bytes]) -> bytes:
    """Lines as a body."""
    return b"".join(line + b"\n" for line in lines)


def restored(api: Api, lines: list[bytes]) -> Json:
    """The report of a load that has to succeed."""
    report: Json = api.post("/backup", body_of(lines))
    return report


def sealed(lines: list[bytes]) -> list[bytes]:
    """Lines whose checkpoints and trailer were made to fit, as a forger does."""
    checksum, counts = bound("", lines[:1]), Counter[str]()
    fitting = lines[:1]
    for line in lines[1:]:
        value = json.loads(line)
        if value["type"] == "row":
            checksum = bound(checksum, [line])
            counts[str(value["collection"])] += 1
            fitting.append(line)
        else:
            changed = {"checksum": checksum} | ({"counts": dict(counts)} if "counts" in value else {})
            fitting.append(json.dumps(value | changed).encode())
    return fitting


def seen_from_outside(api: Api) -> dict[str, Any]:
    """What a namespace answers: recalls, lists with history, links and tickets."""
    seen: dict[str, Any] = {}
    for customer, query in QUESTIONS:
        answer = api.post("/recall", {"customer_id": customer, "query": query, "include_superseded": True})
        seen[f"recall {customer} {query}"] = [
            (m["memory_id"], m["text"], m["score"]) for m in answer["memories"]
        ]
        seen[f"context {customer} {query}"] = answer["context"]
    for caller in (
        "customer_id=ann",
        "customer_id=bob",
        "customer_id=%E5%91%A8",
        f"conversation_id={CONVERSATION}",
    ):
        seen[f"list {caller}"] = api.get(f"/memories?{caller}&include_superseded=true")["memories"]
        seen[f"links {caller}"] = api.get(f"/links?{caller}")["links"]
    for number in "123":
        seen[f"ticket {number}"] = api.get(f"/tickets?source=shop&ticket_id={number}")
    return seen


def rows_of(api: Api) -> dict[str, Any]:
    """Every row of a namespace, without its vector."""
    return rows_in(backup_of(api))


def rows_in(lines: list[bytes]) -> dict[str, Any]:
    """Every row of a backup, without its vector."""
    rows = [value for value in map(json.loads, lines) if value["type"] == "row"]
    return {f"{row['collection']} {row['id']}": (row["text"], row["columns"]) for row in rows}


# --- there and back -----------------------------------------------------------------------------


def test_a_restored_namespace_answers_the_same(filled: Api, other: Api) -> None:
    """Recalls with scores, lists, history, links, tickets and rows; the same import changes nothing."""
    lines = backup_of(filled)
    report = restored(other, lines)

    header, trailer = json.loads(lines[0]), json.loads(lines[-1])
    assert report["complete"] is report["done"] is True
    assert report["loaded"] == {"aliases": 0} | trailer["counts"]
    # The header counts rows as they lie there: a sign for other processes, which a backup leaves out, too.
    assert header["counts"] == report["loaded"] | {"memories": report["loaded"]["memories"] + 1}
    assert (report["left_out"], report["problems"], report["embedded_again"]) == (0, [], 0)
    assert report["checksum"] == trailer["checksum"]
    assert seen_from_outside(other) == seen_from_outside(filled)
    assert rows_of(other) == rows_of(filled)
    again = other.post("/tickets/import", TICKETS)
    assert again["tickets"]["unchanged"] == 3
    assert again["memories"] == {"stored": 0, "removed": 0}


def test_a_forgotten_value_stays_forgotten_after_a_restore(filled: Api, other: Api) -> None:
    """The mark of a conversation that is linked to nobody names nobody; it is placed all the same."""
    restored(other, backup_of(filled))
    assert other.get("/memories?conversation_id=c-8")["memories"] == []
    older = {"attribute": "city", "occurred_at": "2020-01-01", "content": "Bonn", "conversation_id": "c-8"}
    assert other.post("/memories", older)["memories"][0]["is_current"] is False


def test_vectors_come_back_as_they_were(filled: Api, other: Api) -> None:
    """Nothing is embedded or rounded anew; the server scales to length 1, which may turn last bits."""
    lines = backup_of(filled)
    restored(other, lines)

    def vectors(lines: list[bytes]) -> dict[str, list[float]]:
        rows = [v for v in map(json.loads, lines) if v.get("collection") == "memories"]
        return {
            row["id"]: array("f", base64.b64decode(row["vector"])).tolist()
            for row in rows
            if "ends_slot" not in row["columns"]
        }

    before, after = vectors(lines), vectors(backup_of(other))
    assert len(before) > 10
    assert before.keys() == after.keys()
    for row_id, vector in before.items():
        assert after[row_id] == pytest.approx(vector, rel=4 * LAST_BIT, abs=1e-12)


def test_a_backup_may_be_gzip(filled: Api, other: Api) -> None:
    """Also of several members, as what was downloaded in pieces is."""
    lines = backup_of(filled)
    body = gzip.compress(body_of(lines[:5])) + gzip.compress(body_of(lines[5:]))
    assert other.post("/backup", body)["complete"] is True
    assert rows_of(other) == rows_of(filled)


def test_another_number_of_shards_is_fine(filled: Api, other: Api) -> None:
    """Rows are placed by whom they belong to, wherever they lay."""
    url = other.settings["chroma_url"]
    old = ChromaSettings(url=url, namespace=filled.settings["namespace"])
    about = Namespace(Chroma(old, Deadline.after(30)), old).about()
    assert about is not None
    new = ChromaSettings(url=url, namespace=other.settings["namespace"], shards=3)
    Namespace(Chroma(new, Deadline.after(30)), new).start(BUILTIN, 512, noise=about.noise)
    connections.close()
    assert restored(other, backup_of(filled))["complete"] is True
    assert other.get("/health")["shards"] == 3
    assert seen_from_outside(other) == seen_from_outside(filled)


def test_another_embedder_embeds_the_texts_again(filled: Api, other: Api) -> None:
    """Every value gets a vector of the chosen model, marks and links none, and recall finds with it."""
    with EmbeddingServer(dimension=64) as service:
        other.settings |= {
            "embedding_source": "openai_compatible",
            "embedding_base_url": service.url,
            "embedding_model_name": "test-embed",
        }
        report = restored(other, backup_of(filled))
        values = [
            v for k, v in rows_of(filled).items() if k.startswith("memories") and "ends_slot" not in v[1]
        ]
        assert report["embedded_again"] == len(values) > 10
        asked = {text for request in service.asked for text in request.texts}
        assert any("The lid is broken" in text for text in asked)
        health = other.get("/health")
        assert (health["dimension"], health["embedder"]) == (64, "openai_compatible/test-embed")
        found = other.post("/recall", {"customer_id": "bob", "query": "parcel 4711"})["memories"]
        assert "4711" in found[0]["text"]
        assert rows_of(other) == rows_of(filled)
        # And back again: the settings of this call lead to the built-in model only.
        lines = backup_of(other)
    third = Api(other.process, {**filled.settings, "namespace": a_namespace()})
    assert restored(third, lines)["embedded_again"] == len(values)
    assert seen_from_outside(third) == seen_from_outside(filled)


def test_a_namespace_with_links_only(api: Api, other: Api) -> None:
    """Nothing was remembered yet, so there is no model; the links are there all the same."""
    api.send("PUT", "/links", {"conversation_id": "c", "customer_id": "ann"})
    lines = backup_of(api)
    assert json.loads(lines[0])["embedder"] is None
    report = restored(other, lines)
    assert report["complete"] is True
    assert report["loaded"] == {"memories": 0, "links": 1, "ledger": 0, "aliases": 0}
    assert other.get("/links?customer_id=ann") == api.get("/links?customer_id=ann")


def test_an_empty_namespace(api: Api, other: Api) -> None:
    """A header, a checkpoint and a trailer."""
    lines = backup_of(api)
    assert [json.loads(line)["type"] for line in lines] == ["header", "checkpoint", "trailer"]
    assert restored(other, lines)["complete"] is True


# --- in parts -----------------------------------------------------------------------------------


def many(api: Api, count: int) -> None:
    """A namespace with so many memories of as many customers."""
    tickets = [ticket(f"t{i}", f"c{i}", message(1, f"Question {i} about the lamp")) for i in range(count)]
    api.post("/tickets/import", {"tickets": tickets})


def test_a_backup_goes_on_from_any_checkpoint(api: Api) -> None:
    """What is cut anywhere and gone on with is, line for line, what is read in one go."""
    many(api, 30)
    whole = backup_of(api)
    rows = [line for line in whole if json.loads(line)["type"] == "row"]
    checkpoints = [i for i, line in enumerate(whole) if json.loads(line)["type"] == "checkpoint"]
    assert len(checkpoints) > 10
    for at in checkpoints[::7]:
        rest = backup_of(api, json.loads(whole[at])["cursor"])
        assert rest == whole[at:]
    assert len(rows) == 90  # a memory, a link and a ledger row each


def test_what_is_written_and_deleted_meanwhile_moves_nothing(api: Api) -> None:
    """Rows that stay are neither missed nor told twice, whatever comes and goes."""
    many(api, 40)
    whole = backup_of(api)
    middle = [i for i, line in enumerate(whole) if json.loads(line)["type"] == "checkpoint"][8]
    for i in range(0, 40, 2):
        api.send("DELETE", f"/memories?customer_id=c{i}&everything=true&dry_run=false")
    api.post("/memories", {"customer_id": "new", "content": "Just arrived"})
    rest = backup_of(api, json.loads(whole[middle])["cursor"])
    both = [json.loads(line) for line in whole[: middle + 1] + rest]
    ids = [row["id"] for row in both if row["type"] == "row"]
    staying = {row["id"] for row in map(json.loads, backup_of(api)) if row["type"] == "row"}
    late = {i for i in staying if i not in {json.loads(line).get("id") for line in whole}}
    assert len(ids) == len(set(ids))
    assert staying - late <= set(ids)


def parts_of(lines: list[bytes], size: int) -> list[list[bytes]]:
    """A backup in parts of so many checkpoints, each with header and checkpoint before."""
    ends = [i for i, line in enumerate(lines) if json.loads(line)["type"] != "row"][1:]
    parts, start = [], 1
    for end in [*ends[size - 1 : -1 : size], ends[-1]]:
        parts.append([lines[0], *([lines[start - 1]] if start > 1 else []), *lines[start : end + 1]])
        start = end + 1
    return parts


def test_parts_are_loaded_one_after_the_other(numbered: list[bytes], other: Api) -> None:
    """Each goes on where the one before ended; one that is sent again changes nothing."""
    parts = parts_of(numbered, 4)
    assert len(parts) > 3
    for number, part in enumerate(parts):
        report = restored(other, part)
        assert report["done"] is True
        assert report["complete"] is (number == len(parts) - 1)
        assert restored(other, part) | {"seconds": 0} == report | {"seconds": 0}
    assert report["loaded"] == WHOLE
    assert rows_of(other) == rows_in(numbered)


def test_a_part_out_of_order_is_refused(numbered: list[bytes], other: Api) -> None:
    """A part left out would be missed only at the very end."""
    first, _, third, *_ = parts_of(numbered, 4)
    assert other.error("POST", "/backup", body_of(third)) == (409, "backup_out_of_order")
    restored(other, first)
    assert other.error("POST", "/backup", body_of(third)) == (409, "backup_out_of_order")


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_a_body_that_was_cut_goes_on_when_it_is_sent_whole(
    numbered: list[bytes], other: Api, share: float
) -> None:
    """What stood before the last whole checkpoint is there already, and counted once."""
    body = body_of(numbered)
    cut = body[: int(len(body) * share)]
    assert other.error("POST", "/backup", cut) == (422, "backup_damaged")
    assert 0 < other.get("/health")["rows"] <= COUNT
    report = other.post("/backup", body)
    assert report["complete"] is True
    assert report["loaded"] == WHOLE
    assert rows_of(other) == rows_in(numbered)


def test_a_gzip_that_was_cut_is_damaged(numbered: list[bytes], other: Api) -> None:
    """Its lines so far are loaded, and sent whole it goes on."""
    body = gzip.compress(body_of(numbered))
    assert other.error("POST", "/backup", body[: len(body) // 2]) == (422, "backup_damaged")
    assert other.post("/backup", body)["complete"] is True


def test_progress_comes_line_by_line(numbered: list[bytes], other: Api) -> None:
    """Rows so far, and the report as the last line."""
    lines = {"Accept": "application/x-ndjson"}
    answer = other.send("POST", "/backup", body_of(numbered), headers=lines)
    *steps, last = map(json.loads, answer.body.splitlines())
    rows = [step["rows"] for step in steps]
    assert rows == sorted(rows)
    assert len(rows) > 10
    assert last["complete"] is True


# --- what is not loaded -------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["memory", "link", "ticket"])
def test_a_namespace_with_anything_in_it_is_refused(filled: Api, other: Api, what: str) -> None:
    """Nothing is loaded over what is there, by status and by line."""
    if what == "memory":
        other.post("/memories", {"customer_id": "eve", "content": "Likes tea"})
    elif what == "link":
        other.send("PUT", "/links", {"conversation_id": "c", "customer_id": "eve"})
    else:
        other.post("/tickets/import", {"tickets": [ticket("9", "eve", message(1, "  "))]})
    if what == "ticket" and not other.get("/health")["tickets"]:
        pytest.fail("the ticket left no entry")
    body = body_of(backup_of(filled))
    assert other.error("POST", "/backup", body) == (409, "namespace_not_empty")
    lines = {"Accept": "application/x-ndjson"}
    assert other.error("POST", "/backup", body, headers=lines) == (409, "namespace_not_empty")
    assert other.texts("ann") == []


def test_a_finished_load_is_not_done_again(filled: Api, other: Api) -> None:
    """What was forgotten after the restore does not come back when the backup is sent once more."""
    lines = backup_of(filled)
    restored(other, lines)
    other.send("DELETE", "/memories?customer_id=ann&everything=true&dry_run=false")
    assert restored(other, lines)["complete"] is True
    assert other.texts("ann") == []
    assert other.texts("bob") != []


def test_a_second_backup_is_refused_while_the_first_is_loaded(numbered: list[bytes], other: Api) -> None:
    """Two backups are never mixed."""
    lines = list(numbered)
    restored(other, parts_of(lines, 4)[0])
    header = json.loads(lines[0]) | {"created_at": "2020-01-01T00:00:00Z"}
    second = sealed([json.dumps(header).encode(), *lines[1:]])
    assert other.error("POST", "/backup", body_of(second)) == (409, "namespace_not_empty")


def _flip(line: bytes) -> bytes:
    return line.replace(b"Question", b"Quastion", 1)


def _without_end(line: bytes) -> bytes:
    return line[: len(line) // 2]


@pytest.mark.parametrize("damage", [_flip, _without_end, lambda line: b"", lambda line: b"[" * 100_000])
def test_a_damaged_line_is_noticed_before_it_is_written(
    numbered: list[bytes], other: Api, damage: Callable[[bytes], bytes]
) -> None:
    """Changed, cut, lost or replaced: the rows of its stretch stay out, those before it are there."""
    lines = list(numbered)
    rows = [i for i, line in enumerate(lines) if b'"memories"' in line and b'"row"' in line]
    lines[rows[10]] = damage(lines[rows[10]])
    assert other.error("POST", "/backup", body_of(lines)) == (422, "backup_damaged")
    held = [v for v in map(json.loads, backup_of(other)) if v.get("collection") == "memories"]
    assert 0 < len(held) <= 10


@pytest.mark.parametrize(
    "change",
    [
        {"checksum": "0" * 64},
        {"checksum": 7},
        {"counts": WHOLE | {"memories": COUNT - 1}},
        {"counts": None},
        {"type": "end"},
    ],
)
def test_a_wrong_trailer_does_not_complete_the_load(numbered: list[bytes], other: Api, change: Json) -> None:
    """Checksum and counts are compared; the right trailer, sent then, completes it."""
    lines = list(numbered)
    wrong = [*lines[:-1], json.dumps(json.loads(lines[-1]) | change).encode()]
    assert other.error("POST", "/backup", body_of(wrong)) == (422, "backup_damaged")
    assert restored(other, lines)["complete"] is True


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"not json",
        b"\x1f\x8b broken",
        b'{"type":"header","format":"customer-memory-backup","version":2}',
        b'{"type":"header","format":"customer-memory-backup","version":1}',
        b'{"type":"row"}',
        b"[" * 200_000,
        b"\xff\xfe",
    ],
    ids=ascii,
)
def test_what_is_no_backup_is_refused(other: Api, body: bytes) -> None:
    """With one stable code, and nothing is started."""
    assert other.error("POST", "/backup", body) == (422, "backup_damaged")
    assert other.get("/health")["embedder"] is None


def test_a_gzip_bomb_is_refused(other: Api, api: Api) -> None:
    """What expands to more than an import may is too large; it is expanded piece by piece."""
    header = backup_of(api)[0]
    body = gzip.compress(header + b"\n" + b" " * 70_000_000)
    assert other.error("POST", "/backup", body) == (413, "body_too_large")


def _to_bob(row: Json) -> None:
    row["columns"]["customer_id"] = "bob"


def _to_bobs_scope(row: Json) -> None:
    from memory.scope import hashed

    row["columns"]["scope"] = hashed("scope", "customer", "bob")


def _all_to_bob(row: Json) -> None:
    _to_bob(row)
    _to_bobs_scope(row)


def _other_id(row: Json) -> None:
    row["id"] = "0" * 32


def _as_mark(row: Json) -> None:
    _all_to_bob(row)
    row["columns"] |= {"ends_slot": True, "slot": "f" * 32}


@pytest.mark.parametrize("forge", [_to_bob, _to_bobs_scope, _all_to_bob, _other_id, _as_mark])
def test_a_foreign_row_is_reported_and_left_out(
    filled: Api, other: Api, forge: Callable[[Json], None]
) -> None:
    """A row whose scope, customer and id disagree reaches nobody, though all checksums are right."""
    lines = backup_of(filled)
    at = next(i for i, line in enumerate(lines) if b"The lid is broken" in line and b'"memories"' in line)
    row = json.loads(lines[at])
    forge(row)
    lines[at] = json.dumps(row).encode()
    report = restored(other, sealed(lines))
    assert report["complete"] is True
    assert report["problems"] == [{"line": at + 1, "collection": "memories", "code": "row_foreign"}]
    assert report["left_out"] == 1
    assert other.texts("bob") == filled.texts("bob")
    assert other.texts("ann") == [text for text in filled.texts("ann") if text != "The lid is broken"]


@pytest.mark.parametrize("collection", ["links", "ledger"])
@pytest.mark.parametrize("column", ["customer_id", "customer"])
def test_a_foreign_link_or_ticket_is_left_out(filled: Api, other: Api, collection: str, column: str) -> None:
    """A link decides whose memory a conversation reads, so it is checked as a memory is."""
    lines = backup_of(filled)
    at = next(i for i, line in enumerate(lines) if json.loads(line).get("collection") == collection)
    row = json.loads(lines[at])
    row["columns"][column] = "eve"
    lines[at] = json.dumps(row).encode()
    report = restored(other, sealed(lines))
    assert report["problems"] == [{"line": at + 1, "collection": collection, "code": "row_foreign"}]
    assert report["complete"] is True


def vector_of(*numbers: float) -> str:
    """Numbers as a backup writes a vector."""
    return base64.b64encode(array("f", numbers).tobytes()).decode()


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"vector": vector_of(1.0, 2.0)}, "row_invalid"),
        ({"vector": vector_of(*[float("nan")] * 512)}, "row_invalid"),
        ({"vector": ""}, "row_invalid"),
        ({"vector": "?"}, "row_invalid"),
        ({"vector": None}, "row_invalid"),
        ({"text": None}, "row_invalid"),
        ({"text": "\ud800"}, "row_invalid"),
        ({"id": ""}, "row_invalid"),
        ({"columns": {}}, "row_invalid"),
        ({"columns": []}, "row_invalid"),
        ({"columns": {"customer_id": "ann", "fixed": '{"kind": "no kind"}'}}, "row_invalid"),
        ({"columns": {"customer_id": "*"}}, "row_foreign"),
        ({"columns": {"customer_id": {"a": 1}}}, "row_invalid"),
        ({"columns": {"customer_id": "ann", "fixed": '{"parts": "many"}'}}, "row_invalid"),
        ({"columns": {"customer_id": "ann", "fixed": '{"occurred_at": 1e400}'}}, "row_invalid"),
        ({"columns": {"customer_id": "ann", "fixed": '{"topic": 5}'}}, "row_invalid"),
        ({"columns": {"customer_id": "ann", "fixed": '{"metadata": {"a": []}}'}}, "row_invalid"),
        ({"columns": {"customer_id": "ann", "fixed": "{"}}, "row_invalid"),
        ({"columns": {"customer_id": "ann", "expires_at": 1e400}}, "row_invalid"),
        ({"collection": "about"}, "collection_unknown"),
        ({"collection": "receipts-of-a-later-version"}, "collection_unknown"),
        ({"collection": ["links"]}, "collection_unknown"),
    ],
    ids=ascii,
)
def test_a_row_that_cannot_be_stored_is_reported_and_left_out(
    numbered: list[bytes], other: Api, change: Json, code: str
) -> None:
    """It does not stop the others, and no text or id of it is in the report."""
    lines = list(numbered)
    at = next(i for i, line in enumerate(lines) if json.loads(line).get("collection") == "memories")
    lines[at] = json.dumps(json.loads(lines[at]) | change).encode()
    report = restored(other, sealed(lines))
    assert report["complete"] is True
    assert [(p["line"], p["code"]) for p in report["problems"]] == [(at + 1, code)]
    assert report["loaded"] == WHOLE | {"memories": COUNT - 1}


@pytest.mark.parametrize("cursor", ["x", "bm8=", base64.urlsafe_b64encode(b'["a",1,2,3]').decode()])
def test_a_cursor_of_nobody_is_refused(api: Api, cursor: str) -> None:
    """By status, before anything is answered."""
    assert api.error("GET", f"/backup?cursor={cursor}") == (400, "parameter_invalid")


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_backup_wants_the_key(api: Api, method: str) -> None:
    """Nobody else reads or fills a namespace."""
    assert api.error(method, "/backup", b"{}", key=None) == (401, "unauthorized")
    assert api.error(method, "/backup", b"{}", key="wrong") == (401, "unauthorized")


# --- size ---------------------------------------------------------------------------------------


def test_five_thousand_memories_within_bounded_memory(credentials: Json) -> None:
    """The backup is 20 MB; neither telling nor loading it lets the plugin grow by nearly as much."""
    with PluginProcess() as process:
        api = Api(process, {**credentials, "api_key": "an-api-key"})
        messages = [
            message(1 + i % 28, f"Question {i} about the lamp") | {"message_id": str(i)} for i in range(5_000)
        ]
        for start in range(0, 5_000, 1_000):
            group = [ticket(f"t{i}", f"c{i % 7}", messages[i]) for i in range(start, start + 1_000)]
            api.post("/tickets/import", {"tickets": group})
        api.send("GET", "/backup")  # whatever is loaded once is loaded
        before = peak_bytes(process.pid, anew=True)
        lines = backup_of(api)
        size = len(body_of(lines))
        assert peak_bytes(process.pid) - before < 12_000_000 < size
        counts = json.loads(lines[-1])["counts"]
        assert counts == {"memories": 5_000, "links": 5_000, "ledger": 5_000}
    # The rows of one collection are more than one page: checkpoints part them.
    assert max(Counter(json.loads(line).get("collection") for line in lines).values()) > PAGE_ROWS
