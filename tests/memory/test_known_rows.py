"""Rows read before are used again only while they are all there is, whoever writes meanwhile."""

import subprocess
import sys
from collections.abc import Callable

import pytest

from development.chroma_server import ChromaServer
from development.places import PROJECT
from memory.chroma import Chroma
from memory.clock import Deadline
from memory.embedding import BUILTIN
from memory.identity import scope_of_customer
from memory.known_rows import MOST_ROWS, KnownRows, known_rows
from memory.namespace import Namespace
from memory.records import Kind, Memory, in_scope
from memory.settings import ChromaSettings
from memory.store import MemoryStore
from memory.text import digest

SCOPE = scope_of_customer("ann")
VECTOR = [1.0, 0.0]


def _memory(text: str) -> Memory:
    statement = Memory(
        memory_id="", text=text, kind=Kind.SEMANTIC, occurred_at=1.0, recorded_at=1.0, digest=digest(text)
    )
    return in_scope(statement, SCOPE)


@pytest.fixture
def store(chroma: ChromaServer, namespace: str) -> MemoryStore:
    """A store that holds one memory, read before."""
    settings = ChromaSettings(url=chroma.url, namespace=namespace)
    space = Namespace(Chroma(settings, Deadline.after(60.0)), settings)
    store = MemoryStore(space, space.start(BUILTIN, 2, noise=0.1))
    store.write(SCOPE, [(_memory("Likes tea."), VECTOR)])
    assert _texts(store) == ["Likes tea."]
    assert known_rows.has(store._key(SCOPE))
    return store


def _texts(store: MemoryStore) -> list[str]:
    rows, _ = store.search(SCOPE, VECTOR, limit=100, now=0.0)
    return sorted(row.text for row in rows if not row.ends_slot)


def test_rows_read_before_are_not_read_again(store: MemoryStore) -> None:
    """The very same values come back."""
    first, _ = store.search(SCOPE, VECTOR, limit=100, now=0.0)
    second, _ = store.search(SCOPE, VECTOR, limit=100, now=0.0)
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
    found, _ = store.search(SCOPE, VECTOR, limit=100, now=0.0)
    assert sorted(found, key=_by_id) == sorted(store.live(SCOPE), key=_by_id)
    again, _ = store.search(SCOPE, VECTOR, limit=100, now=0.0)
    assert sorted(again, key=_by_id) == sorted(found, key=_by_id)


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


def test_a_search_that_does_not_reach_all_rows_keeps_none(store: MemoryStore) -> None:
    """Ids that are not all cannot stand for the rows."""
    store.write(SCOPE, [(_memory("Likes coffee."), VECTOR)])
    rows, similarity = store.search(SCOPE, VECTOR, limit=1, now=0.0)
    assert (len(rows), len(similarity)) == (2, 1)
    store.erase(SCOPE, [_memory("Likes coffee.")])
    assert _texts(store) == ["Likes tea."]


def test_a_search_that_reaches_just_as_many_rows_as_asked_for_keeps_none(store: MemoryStore) -> None:
    """There may be more of them by the next search."""
    store.write(SCOPE, [(_memory("Likes coffee."), VECTOR)])
    known_rows.drop(store._key(SCOPE))
    store.search(SCOPE, VECTOR, limit=2, now=0.0)
    assert not known_rows.has(store._key(SCOPE))


def test_only_what_was_written_since_is_read(store: MemoryStore) -> None:
    """The rows known before stay the very same."""
    [old], _ = store.search(SCOPE, VECTOR, limit=100, now=0.0)
    store.write(SCOPE, [(_memory("Likes coffee."), VECTOR)])
    rows, _ = store.search(SCOPE, VECTOR, limit=100, now=0.0)
    assert [row.text for row in rows] == ["Likes tea.", "Likes coffee."]
    assert rows[0] is old


def test_rows_that_changed_are_read_anew_when_others_were_written_too(store: MemoryStore) -> None:
    """One search meets both."""
    store.write(SCOPE, [(_memory("Likes coffee."), VECTOR)])
    store.confirm(SCOPE, [_memory("Likes tea.")._replace(confirmed_at=9.0)])
    rows, _ = store.search(SCOPE, VECTOR, limit=100, now=0.0)
    assert {row.text: row.confirmed_at for row in rows if row.text} == {
        "Likes tea.": 9.0,
        "Likes coffee.": None,
    }


def test_the_scope_unused_for_longest_is_dropped_first() -> None:
    """What is kept has a bound, counted in rows."""
    rows = [_memory(f"{i}") for i in range(MOST_ROWS // 2)]
    ids = {row.memory_id for row in rows}
    kept = KnownRows()
    for name in ("a", "b"):
        kept.put((name,), rows)
    assert kept.find(("a",), ids, now=0.0) is not None
    kept.put(("c",), rows)
    assert [kept.has((name,)) for name in ("a", "b", "c")] == [True, False, True]
    kept.put(("d",), [*rows, *rows, *rows])
    assert not kept.has(("d",))


def test_other_ids_are_not_what_is_known() -> None:
    """One more, one less, or another one."""
    kept = KnownRows()
    rows = [_memory("a"), _memory("b")]
    kept.put(("k",), rows)
    ids = [row.memory_id for row in rows]
    assert kept.find(("k",), ids, now=0.0) == rows
    for other in (ids[:1], [*ids, "x"], [ids[0], "x"]):
        assert kept.find(("k",), other, now=0.0) is None


def test_what_has_expired_is_not_relied_on() -> None:
    """It may have gone and been said again, under the id it had."""
    kept, rows = KnownRows(), [_memory("Has a voucher")._replace(expires_at=5.0)]
    kept.put(("k",), rows)
    ids = [row.memory_id for row in rows]
    assert (kept.find(("k",), ids, now=4.9), kept.within(("k",), ids, now=4.9)) == (rows, rows)
    assert (kept.find(("k",), ids, now=5.0), kept.within(("k",), ids, now=5.0)) == (None, None)


def test_what_is_known_within_other_ids() -> None:
    """All of it, or nothing."""
    kept = KnownRows()
    rows = [_memory("a"), _memory("b")]
    kept.put(("k",), rows)
    ids = [row.memory_id for row in rows]
    assert kept.within(("k",), [*ids, "x"], now=0.0) == rows
    for other in (ids[:1], [ids[0], "x"]):
        assert kept.within(("k",), other, now=0.0) is None
    assert kept.within(("other",), ids, now=0.0) is None


def test_rows_read_anew_are_kept_again(store: MemoryStore) -> None:
    """After a change the new state is what is known."""
    store.write(SCOPE, [(_memory("Likes coffee."), VECTOR)])
    first, _ = store.search(SCOPE, VECTOR, limit=100, now=0.0)
    second, _ = store.search(SCOPE, VECTOR, limit=100, now=0.0)
    assert len(first) == 2
    assert second is first
