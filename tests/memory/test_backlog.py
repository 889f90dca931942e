"""The server's log stays short, so that writes stay quick, whatever the number of collections."""

import sqlite3

import pytest

from development.chroma_server import ChromaServer
from memory.backlog import FEWEST, ROWS_BEHIND, Backlog
from memory.chroma import Chroma
from memory.chroma_connection import connections
from memory.errors import ChromaFailed
from memory.identity import scope_of_customer
from memory.store import Stored
from tests.scenarios.engines import Place, rows_of, vector_of

ADA = "ada@example.com"


def statements(count: int, start: int = 0) -> list[Stored]:
    """So many memories of one customer."""
    return rows_of(ADA, [f"Bought lamp {number}" for number in range(start, start + count)])


def in_log(chroma: ChromaServer, place: Place) -> int:
    """Rows of the customer's collection that the server still reads at every write to it."""
    connection = connections.get(place.settings)
    name = place.store.collection(scope_of_customer(ADA))
    handle = connection.open(name, create=None)
    database = sqlite3.connect(f"file:{chroma.folder}/data/chroma.sqlite3?mode=ro", uri=True, timeout=60)
    try:
        query = "SELECT count(*) FROM embeddings_queue WHERE topic LIKE ?"
        return int(database.execute(query, (f"%{handle.id}%",)).fetchone()[0])
    finally:
        database.close()


@pytest.fixture
def place(chroma: ChromaServer, namespace: str) -> Place:
    """A namespace of 64 collections, as usual."""
    own = Place(chroma.url, namespace, shards=64)
    own.remember(ADA, "Likes teal")
    return own


def test_what_was_written_does_not_stay_in_the_log(chroma: ChromaServer, place: Place) -> None:
    """After 62 rows; the server would keep 1,000 of each collection."""
    scope = scope_of_customer(ADA)
    place.store.write(scope, statements(50))
    assert in_log(chroma, place) > 50
    place.store.write(scope, statements(20, 50))
    assert in_log(chroma, place) < 30
    assert len(place.store.live(scope)) == 71
    assert len(place.store.nearest(scope, vector_of("Likes teal"), limit=1_000)) == 71


def test_a_write_stands_though_the_file_cannot_be_written(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was acknowledged, and the file is written another time."""

    def broken(_chroma: Chroma, _collection: str, **_more: object) -> bool:
        raise ChromaFailed

    monkeypatch.setattr(Chroma, "flush", broken)
    place.store.write(scope_of_customer(ADA), statements(300))
    assert len(place.store.live(scope_of_customer(ADA))) == 301


@pytest.mark.parametrize(("shards", "rows"), [(64, 62), (128, 31), (1_024, FEWEST), (5, 800)])
def test_a_file_is_written_after_its_share_of_the_rows(shards: int, rows: int) -> None:
    """So that the log holds as many rows whatever the number of collections."""
    backlog = Backlog()
    due = [backlog.is_due(("a",), 1, shards=shards) for _ in range(3 * rows)]
    assert [number + 1 for number, is_due in enumerate(due) if is_due] == [rows, 2 * rows, 3 * rows]
    assert rows * shards <= ROWS_BEHIND or rows == FEWEST


def test_few_collections_are_left_to_the_server() -> None:
    """Their logs are short anyway."""
    assert not any(Backlog().is_due(("a",), 5_000, shards=shards) for shards in (1, 2, 4))


def test_each_collection_counts_by_itself() -> None:
    """Of one server and of another."""
    backlog = Backlog()
    assert not backlog.is_due(("a",), 61, shards=64)
    assert not backlog.is_due(("b",), 61, shards=64)
    assert backlog.is_due(("a",), 1, shards=64)
    assert not backlog.is_due(("a",), 61, shards=64)
    assert backlog.is_due(("b",), 1, shards=64)
