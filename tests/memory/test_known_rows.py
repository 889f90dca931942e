"""Rows read before are used again only while they are all there is, whoever writes meanwhile."""

import math
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from development.chroma_server import ChromaServer
from development.places import PROJECT
from memory import known_rows as known_rows_module
from memory import searching
from memory.chroma import Chroma
from memory.clock import Deadline
from memory.embedding import BUILTIN
from memory.identity import scope_of_customer
from memory.known_rows import MOST_NUMBERS, MOST_ROWS, KnownRows, known_rows
from memory.live_rows import LiveRows
from memory.namespace import Namespace
from memory.records import Kind, Memory, in_scope
from memory.searching import SEARCHES_BEFORE_VECTORS, search
from memory.settings import ChromaSettings
from memory.store import REVISION_SECONDS, MemoryStore
from memory.text import digest

SCOPE = scope_of_customer("ann")
VECTOR = [1.0, 0.0]


def _memory(text: str) -> Memory:
    statement = Memory(
        memory_id="", text=text, kind=Kind.SEMANTIC, occurred_at=1.0, recorded_at=1.0, digest=digest(text)
    )
    return in_scope(statement, SCOPE)


@pytest.fixture(params=[0, SEARCHES_BEFORE_VECTORS], ids=["rows known", "vectors known"])
def store(request: pytest.FixtureRequest, chroma: ChromaServer, namespace: str) -> MemoryStore:
    """A store that holds one memory, read before; once, and so often that its vector is known as well."""
    settings = ChromaSettings(url=chroma.url, namespace=namespace)
    space = Namespace(Chroma(settings, Deadline.after(60.0)), settings)
    store = MemoryStore(space, space.start(BUILTIN, 2, noise=0.1))
    store.write(SCOPE, [(_memory("Likes tea."), VECTOR)])
    _ask_again(store, request.param)
    return store


def _ask_again(store: MemoryStore, times: int = SEARCHES_BEFORE_VECTORS) -> None:
    for _ in range(2 + times if times else 1):
        assert _texts(store) == ["Likes tea."]
    known = known_rows.find(store.key(SCOPE), now=0.0)
    assert known is not None
    assert known.has_vectors == bool(times)


def _search(store: MemoryStore, *, limit: int = 100) -> tuple[LiveRows, dict[str, float]]:
    live, similarity = search(store, SCOPE, VECTOR, limit=limit, now=0.0)
    return live, dict(similarity)


def _texts(store: MemoryStore) -> list[str]:
    live, _ = _search(store)
    return sorted(row.text for row in live.rows if not row.ends_slot)


def test_rows_read_before_are_not_read_again(store: MemoryStore) -> None:
    """The very same values come back."""
    first, _ = _search(store)
    second, _ = _search(store)
    assert second is first


CHANGES: dict[str, Callable[[MemoryStore, Memory], None]] = {
    "another memory": lambda store, _: store.write(SCOPE, [(_memory("Likes coffee."), VECTOR)]),
    "erased": lambda store, memory: store.erase(SCOPE, [memory]),
    "made history": lambda store, memory: store.restate(SCOPE, [memory._replace(superseded_at=2.0)]),
    "confirmed": lambda store, memory: store.confirm(SCOPE, [memory._replace(confirmed_at=9.0)]),
    "filed": lambda store, memory: store.file(SCOPE, [memory._replace(case_id="x")]),
    "adopted": lambda store, memory: store.adopt(SCOPE, [memory]),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_every_change_is_seen(store: MemoryStore, change: Callable[[MemoryStore, Memory], None]) -> None:
    """As if nothing had been kept."""
    change(store, _memory("Likes tea."))
    stored = sorted(store.live(SCOPE), key=_by_id)
    for _ in range(SEARCHES_BEFORE_VECTORS + 3):
        found, similarity = _search(store)
        assert sorted(found.rows, key=_by_id) == stored
        assert similarity == pytest.approx(store.nearest(SCOPE, VECTOR, limit=100), abs=1e-3)


def _by_id(memory: Memory) -> str:
    return memory.memory_id


_OTHER_PROCESS = """
import sys
from tests.memory.test_known_rows import SCOPE, VECTOR, _memory
from memory.chroma import Chroma
from memory.clock import Deadline
from memory.namespace import Namespace
from memory.settings import ChromaSettings
from memory.store import MemoryStore

settings = ChromaSettings(url=sys.argv[1], namespace=sys.argv[2])
space = Namespace(Chroma(settings, Deadline.after(60.0)), settings)
store = MemoryStore(space, space.about())
old = _memory("Likes tea.")
store.write(SCOPE, [(old._replace(text="Likes [redacted]."), VECTOR)])
store.touch([SCOPE])
"""


def test_words_changed_under_their_id_by_another_process_are_seen(
    store: MemoryStore, chroma: ChromaServer, namespace: str
) -> None:
    """As when a message of a ticket was redacted and the ticket imported again."""
    command = [sys.executable, "-c", _OTHER_PROCESS, chroma.url, namespace]
    subprocess.run(command, cwd=PROJECT, check=True, timeout=60)  # noqa: S603 - our own code
    assert _texts(store) == ["Likes [redacted]."]
    assert _texts(store) == ["Likes [redacted]."]


def test_what_is_nearest_among_many_is_told_the_same_with_and_without_their_vectors(
    store: MemoryStore,
) -> None:
    """One by the index of the server, the other worked out here, whatever the vectors' lengths."""
    store.write(SCOPE, [(_memory(f"{i}"), [math.cos(i) * (i + 1), math.sin(i) * (i + 1)]) for i in range(60)])
    known_rows.drop(store.key(SCOPE))
    found = [_search(store) for _ in range(SEARCHES_BEFORE_VECTORS + 3)]
    assert [live.has_vectors for live, _ in found] == [False] * 3 + [True] * 2
    for _, similarity in found:
        assert similarity == pytest.approx(found[0][1], abs=1e-3)
        assert len(similarity) == 61


def test_a_search_that_does_not_reach_all_rows_shows_nothing(store: MemoryStore) -> None:
    """Ids that are not all cannot stand for the rows, which are looked up beside it then."""
    store.write(SCOPE, [(_memory("Likes coffee."), VECTOR)])
    known_rows.drop(store.key(SCOPE))
    for _ in range(SEARCHES_BEFORE_VECTORS + 3):
        live, similarity = _search(store, limit=1)
        assert (len(live.rows), len(similarity)) == (2, 1)
    store.erase(SCOPE, [_memory("Likes coffee.")])
    live, _ = _search(store, limit=1)
    assert [row.text for row in live.rows] == ["Likes tea."]


def test_rows_that_outgrow_what_a_search_reaches_are_not_taken_for_gone(store: MemoryStore) -> None:
    """They were all within its reach, and are not any more."""
    store.write(SCOPE, [(_memory(f"{i}"), [0.0, 1.0]) for i in range(5)])
    for _ in range(SEARCHES_BEFORE_VECTORS + 3):
        live, _ = _search(store, limit=3)
        assert len(live.rows) == 6


@pytest.fixture
def lost(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> str:
    """The id of a row the index lost: as after many deletions, or when the server was killed while it wrote.

    It is the first of two.
    """
    store.write(SCOPE, [(_memory("Likes coffee."), [0.0, 1.0])])
    lost = _memory("Likes tea.").memory_id
    nearest = MemoryStore.nearest

    def torn(self: MemoryStore, *args: Any, **options: Any) -> dict[str, float]:
        return {row: near for row, near in nearest(self, *args, **options).items() if row != lost}

    monkeypatch.setattr(MemoryStore, "nearest", torn)
    return lost


@pytest.mark.parametrize("is_known", [False, True], ids=["unknown", "known before"])
def test_a_row_that_the_index_lost_is_there_and_as_near_as_it_is(
    store: MemoryStore, lost: str, *, is_known: bool
) -> None:
    """Its nearness is worked out here, from the first search on."""
    if not is_known:
        known_rows.drop(store.key(SCOPE))
    for _ in range(SEARCHES_BEFORE_VECTORS + 3):
        live, similarity = _search(store)
        assert sorted(row.text for row in live.rows) == ["Likes coffee.", "Likes tea."]
        assert similarity == pytest.approx({lost: 1.0, _memory("Likes coffee.").memory_id: 0.0}, abs=1e-3)


def test_a_row_that_the_index_lost_is_there_where_there_are_too_many_to_work_it_out(
    store: MemoryStore, lost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is found by its words then."""
    known_rows.drop(store.key(SCOPE))
    monkeypatch.setattr(searching, "MOST_NUMBERS", 3)
    for _ in range(SEARCHES_BEFORE_VECTORS + 3):
        live, similarity = _search(store)
        assert len(live.rows) == 2
        assert lost not in similarity


def test_only_what_was_written_since_is_read(store: MemoryStore) -> None:
    """The rows known before stay the very same."""
    [old] = _search(store)[0].rows
    store.write(SCOPE, [(_memory("Likes coffee."), [0.0, 1.0])])
    live, similarity = _search(store)
    assert [row.text for row in live.rows] == ["Likes tea.", "Likes coffee."]
    assert live.rows[0] is old
    assert [similarity[i] for i in live.row_ids] == pytest.approx([1.0, 0.0], abs=1e-3)


def test_rows_that_changed_are_read_anew_when_others_were_written_too(store: MemoryStore) -> None:
    """One search meets both."""
    store.write(SCOPE, [(_memory("Likes coffee."), VECTOR)])
    store.confirm(SCOPE, [_memory("Likes tea.")._replace(confirmed_at=9.0)])
    live, _ = _search(store)
    assert {row.text: row.confirmed_at for row in live.rows if row.text} == {
        "Likes tea.": 9.0,
        "Likes coffee.": None,
    }


def test_rows_read_anew_are_kept_again(store: MemoryStore) -> None:
    """After a change the new state is what is known."""
    store.write(SCOPE, [(_memory("Likes coffee."), VECTOR)])
    first, _ = _search(store)
    second, _ = _search(store)
    assert len(first.rows) == 2
    assert second is first


# --- what is kept -------------------------------------------------------------------------------


def _rows(*texts: str, **columns: Any) -> LiveRows:
    return LiveRows([_memory(text)._replace(**columns) for text in texts], now=0.0)


def _with_vectors(rows: LiveRows, dimension: int) -> LiveRows:
    return rows.with_vectors(dict.fromkeys(rows.row_ids, [1.0] * dimension), dimension)


def _known(kept: KnownRows, names: str) -> str:
    """Which of these are known; the rows known of one that was asked for count as used."""
    return "".join(name for name in names if kept.find((name,), now=0.0) is not None)


def test_the_scope_unused_for_longest_is_dropped_first() -> None:
    """What is kept has a bound, counted in rows."""
    rows = _rows(*(f"{i}" for i in range(MOST_ROWS // 2)))
    kept = KnownRows()
    kept.put(("a",), rows)
    kept.put(("b",), rows)
    assert _known(kept, "a") == "a"
    kept.put(("c",), rows)
    assert _known(kept, "abc") == "ac"
    kept.put(("d",), LiveRows([*rows.rows, *rows.rows, *rows.rows], now=0.0))
    assert _known(kept, "acd") == "ac"
    kept.drop(("a",))
    kept.put(("b",), rows)
    assert _known(kept, "abc") == "bc"


def test_vectors_unused_for_longest_are_dropped_first_and_their_rows_stay() -> None:
    """They have a bound of their own."""
    kept = KnownRows()
    for name in ("a", "b"):
        kept.put((name,), _with_vectors(_rows("x"), MOST_NUMBERS // 2))
    assert _known(kept, "a") == "a"
    kept.put(("c",), _with_vectors(_rows("x"), 1))
    found = [kept.find((name,), now=0.0) for name in ("a", "b", "c")]
    assert [each is not None and each.has_vectors for each in found] == [True, False, True]
    assert [len(each.rows) for each in found if each is not None] == [1, 1, 1]


def test_other_ids_are_not_what_is_known() -> None:
    """One more, one less, or another one."""
    rows = _rows("a", "b")
    ids = rows.row_ids
    assert rows.are(reversed_ := ids[::-1])
    assert not any(rows.are(other) for other in (ids[:1], [*reversed_, "x"], [ids[0], "x"]))


def test_what_has_expired_is_not_relied_on() -> None:
    """It may have gone and been said again, under the id it had."""
    kept = KnownRows()
    kept.put(("k",), _rows("Has a voucher", expires_at=5.0))
    assert kept.find(("k",), now=4.9) is not None
    assert kept.find(("k",), now=5.0) is None


def test_what_was_read_long_ago_is_not_relied_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sign that rows changed under their ids is gone from the store after a day."""
    kept = KnownRows()
    kept.put(("k",), _rows("a").updated([], [(_memory("b"), ())], now=0.0))
    assert _known(kept, "k") == "k"
    assert known_rows_module.LONGEST_SECONDS < REVISION_SECONDS
    monkeypatch.setattr(known_rows_module, "LONGEST_SECONDS", -1.0)
    assert _known(kept, "k") == ""


def test_what_went_and_what_came_is_told_apart() -> None:
    """The others stay the very same, with their vectors."""
    rows = _rows("a", "b", "c")
    rows = rows.with_vectors(dict(zip(rows.row_ids, [[2.0, 0.0], [0.0, 3.0], [0.0, 0.0]], strict=True)), 2)
    new = _memory("d")
    changed = rows.updated({*rows.row_ids[1:], new.memory_id}, [(new, [1.0, 1.0])], now=0.0)
    assert [row.text for row in changed.rows] == ["b", "c", "d"]
    assert changed.rows[0] is rows.rows[1]
    assert list(changed.similarity([0.0, 5.0]).values()) == pytest.approx(
        [1.0, 0.0, math.sqrt(0.5)], abs=1e-3
    )
    assert changed.corpus.terms == [{"b": 1}, {"c": 1}, {"d": 1}]


def test_half_the_precision_is_enough() -> None:
    """With as many dimensions as the built-in model has, a cosine is off by less than scores show."""
    chance = np.random.default_rng(7)
    vectors, asked = chance.standard_normal((200, 512)), chance.standard_normal(512)
    rows = _rows(*(f"{i}" for i in range(200)))
    rows = rows.with_vectors(dict(zip(rows.row_ids, vectors.tolist(), strict=True)), 512)
    right = vectors @ asked / np.linalg.norm(vectors, axis=1) / np.linalg.norm(asked)
    assert list(rows.similarity(asked.tolist()).values()) == pytest.approx(right.tolist(), abs=5e-5)
