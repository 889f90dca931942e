"""A namespace moves to another layout while it is read and written, and after any crash."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from development.chroma_server import ChromaServer
from development.places import PROJECT
from memory.about import Stage, known_about
from memory.backup import MEMORIES
from memory.chroma import Chroma
from memory.chroma_rows import Row
from memory.clock import Deadline
from memory.embedding import Embedder, EmbedderIdentity, Source
from memory.embedding.model import Vector, cosine
from memory.engine import Engine
from memory.errors import EmbedderMismatch, MoveConflict, NamespaceMoving, ParameterInvalid
from memory.forgetting import Reach
from memory.identity import Caller, scope_of_customer
from memory.recalling import Question
from memory.records import from_row
from memory.resharding import PAGE_ROWS, Progress, Resharding
from memory.rows import is_near, shard_of_row
from memory.settings import ChromaSettings
from tests.endpoints.conftest import message, ticket
from tests.scenarios.engines import DIMENSION, HashChoice, Place, tickets_of, vector_of

SHARDS = 4
CUSTOMERS = [f"customer-{n}@example.com" for n in range(8)]
LONG = " ".join(f"Step {n} of the story, told in full." for n in range(200))

type Stored = dict[str, Row]


class OtherEmbedder:
    """Another model: more dimensions, other directions."""

    identity = EmbedderIdentity(Source.OPENAI_COMPATIBLE, "", "other hashes")

    def embed_documents(self, texts: Any) -> list[Vector]:
        """One vector a text."""
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> Vector:
        """The same for a query."""
        return [*vector_of(f"other {text}"), 0.0, 0.0]


class BothChoice(HashChoice):
    """Can open both models; settings name one of them or none."""

    def __init__(self, named: EmbedderIdentity | None = None) -> None:
        super().__init__()
        self._named = named

    def chosen(self) -> EmbedderIdentity:
        """Which one the settings name."""
        return self._named  # type: ignore[return-value]

    def open(self, identity: EmbedderIdentity) -> Embedder:
        """The one that is asked for."""
        return OtherEmbedder() if identity == OtherEmbedder.identity else super().open(identity)


def furnish(place: Place) -> None:
    """Everything a namespace can hold: history, long texts, links, tickets, receipts, an alias, erasures."""
    for number, customer_id in enumerate(CUSTOMERS):
        place.remember(customer_id, f"Likes {number} lamps", f"Lives on floor {number}")
        place.remember(customer_id, f"Is on plan {number}", attribute="plan")
        place.remember(customer_id, f"Is on plan {number + 100}", attribute="plan")
    place.remember(CUSTOMERS[0], LONG)
    place.remember("", "Said before anybody knew who", conversation_id="early")
    place.remember("", "Said by nobody known", conversation_id="nobodys")
    place.engine.link(Caller.checked(CUSTOMERS[1], "early", "case-1"))
    body = [ticket(f"t{n}", CUSTOMERS[n % 3], message(1, f"Parcel {n} is lost")) for n in range(6)]
    place.engine.import_tickets(tickets_of(json.dumps({"tickets": body}).encode()))
    place.erase(CUSTOMERS[6])
    place.remember(CUSTOMERS[6], "Came back after being forgotten")
    place.erase(CUSTOMERS[1], Reach.CONVERSATION, conversation_id="early")
    place.engine.administration.merge(CUSTOMERS[7], CUSTOMERS[5])


def forget_cache(place: Place) -> None:
    """Let this process look at the namespace as a new one would."""
    known_about.pop(place.namespace.place)


def stored(place: Place) -> dict[str, Stored]:
    """Every row of the namespace with its vector: memories together, the rest by collection."""
    forget_cache(place)
    space = place.namespace
    space.chroma.renew()
    about = space.about()
    assert about is not None
    rows: dict[str, Stored] = {MEMORIES: {}}
    for shard in range(about.shards):
        for row in space.chroma.get(space.memories(shard, about.generation), with_vectors=True):
            assert row.row_id not in rows[MEMORIES]
            assert shard_of_row(row, about.shards, shard) == shard
            rows[MEMORIES][row.row_id] = row
    for name in (space.links, space.ledger, space.aliases, space.tombstones, space.receipts):
        rows[name] = {row.row_id: row for row in space.chroma.get(name, with_vectors=True)}
        assert rows[name]
    return rows


def assert_equal(now: dict[str, Stored], before: dict[str, Stored]) -> None:
    """The same rows: ids, texts, columns, and vectors as far as a store by angle keeps them."""
    assert {name: sorted(rows) for name, rows in now.items()} == {n: sorted(r) for n, r in before.items()}
    for name, rows in before.items():
        for row_id, row in rows.items():
            other = now[name][row_id]
            assert (other.text, other.columns) == (row.text, row.columns)
            assert is_near(other.vector or (), row.vector or ())


def known(place: Place) -> dict[str, list[str]]:
    """What recall finds of everybody, by a process that has not looked before."""
    forget_cache(place)
    return {customer_id: place.texts(customer_id) for customer_id in CUSTOMERS}


def collections(place: Place) -> set[str]:
    """Names of the namespace's collections on the server."""
    from memory.chroma_connection import connections

    connection = connections.get(place.settings)
    found = connection.api.list_collections(limit=100_000, **connection.database_arguments)
    return {each.name for each in found if each.name.startswith(f"cm-{place.namespace.name}-")}


def no_pause(_seconds: float) -> None:
    """Nobody else is at the namespace, so nobody has to notice."""


def resharding(place: Place, pause: Callable[[float], None] = no_pause) -> Resharding:
    """A run of a move."""
    return Resharding(place.settings, BothChoice(), pause=pause)


def finish(steps: Iterator[Progress]) -> list[Progress]:
    """Go on to the end."""
    return list(steps)


@pytest.fixture
def place(chroma: ChromaServer, namespace: str) -> Place:
    """A furnished namespace of four collections."""
    own = Place(chroma.url, namespace, shards=SHARDS)
    furnish(own)
    return own


@pytest.mark.parametrize("shards", [1, 7])
def test_everything_comes_along_to_another_number_of_collections(place: Place, shards: int) -> None:
    """Rows are the same to the letter, each where it belongs, and the old collections are gone."""
    before, found = stored(place), known(place)
    finish(resharding(place).move(shards=shards, embedder=None))
    assert_equal(stored(place), before)
    assert known(place) == found
    about = place.namespace.about()
    assert about is not None
    assert (about.shards, about.generation, about.move, about.kept) == (shards, 1, None, ())
    memories = {name for name in collections(place) if name.rpartition("-")[2][-5:-4] == "m"}
    assert memories <= {place.namespace.memories(shard, 1) for shard in range(shards)}
    assert place.namespace.changes not in collections(place)


def test_calls_work_on_after_a_move(place: Place) -> None:
    """Values are replaced and forgotten as before, and the namespace still knows what was forgotten."""
    finish(resharding(place).move(shards=6, embedder=None))
    forget_cache(place)
    place.remember(CUSTOMERS[2], "Is on plan 500", attribute="plan")
    assert "Is on plan 500" in place.texts(CUSTOMERS[2])
    assert place.erase(CUSTOMERS[3]).receipt is not None
    assert place.texts(CUSTOMERS[3]) == []
    body = [ticket("t9", CUSTOMERS[3], message(1, "An old message"))]
    (result,) = place.engine.import_tickets(tickets_of(json.dumps({"tickets": body}).encode())).results
    assert result.status == "forgotten"
    assert place.texts(CUSTOMERS[7]) == place.texts(CUSTOMERS[5])
    finish(resharding(place).move(shards=2, embedder=None))
    assert "Is on plan 500" in known(place)[CUSTOMERS[2]]


def test_to_another_embedder_every_text_is_embedded_again(place: Place) -> None:
    """Text, columns and ids stay; vectors are the new model's, and the namespace remembers that one."""
    before, found = stored(place), known(place)
    finish(resharding(place).move(shards=None, embedder=OtherEmbedder.identity))
    now = stored(place)
    about = place.namespace.about()
    assert about is not None
    assert (about.embedder, about.dimension, about.shards) == (OtherEmbedder.identity, DIMENSION + 2, SHARDS)
    assert {i: (r.text, r.columns) for i, r in now[MEMORIES].items()} == {
        i: (r.text, r.columns) for i, r in before[MEMORIES].items()
    }
    for row in now[MEMORIES].values():
        memory = from_row(row.row_id, row.text, row.columns)
        has_words = row.text and "erasure" not in row.columns and not memory.ends_slot
        wanted = OtherEmbedder().embed_query(memory.index_text) if has_words else [1.0]
        assert cosine(wanted + [0.0] * (DIMENSION + 2 - len(wanted)), row.vector or ()) > 0.9999  # type: ignore[operator]
    for named in (None, HashChoice().chosen(), OtherEmbedder.identity):
        engine = Engine(place.settings, BothChoice(named))
        hits = engine.recall(Caller.checked(CUSTOMERS[2]), Question(limit=100, include_superseded=True)).hits
        assert sorted(hit.memory.text for hit in hits) == found[CUSTOMERS[2]]
    third = EmbedderIdentity(Source.OPENAI_COMPATIBLE, "", "a third one")
    with pytest.raises(EmbedderMismatch):
        Engine(place.settings, BothChoice(third)).recall(
            Caller.checked(CUSTOMERS[2]), Question(query="lamps")
        )


def test_killed_at_any_write_a_move_is_readable_and_goes_on(chroma: ChromaServer, namespace: str) -> None:
    """Killed before each of its writes in turn: all is found at once, and the same command finishes it."""
    place = Place(chroma.url, namespace, shards=2)
    for customer_id in CUSTOMERS[:3]:
        place.remember(customer_id, "Likes lamps", "Has a cat")
    place.erase(CUSTOMERS[2])
    place.remember(CUSTOMERS[2], "Came back after being forgotten")
    place.engine.link(Caller.checked(CUSTOMERS[0], "conversation"))
    body = [ticket("t1", CUSTOMERS[0], message(1, "A parcel is lost"))]
    place.engine.import_tickets(tickets_of(json.dumps({"tickets": body}).encode()))
    place.engine.administration.merge(CUSTOMERS[7], CUSTOMERS[0])
    before, found = stored(place), known(place)
    for number in range(1, 1_000):
        shards = 3 if number % 2 else 2
        arguments = [chroma.url, namespace, "move", str(shards), str(number)]
        done = subprocess.run(  # noqa: S603 - our own interpreter
            [sys.executable, "-m", "tests.scenarios.moving_process", *arguments],
            cwd=PROJECT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert known(place) == found, number
        if done.returncode == 0:
            break
        assert done.returncode < 0, done.stderr
        finish(resharding(place).move(shards=shards, embedder=None))
        assert_equal(stored(place), before)
    assert number > 10
    assert_equal(stored(place), before)


def test_what_is_written_while_it_is_copied_comes_along(place: Place) -> None:
    """New, changed and forgotten memories, at every step until writes are closed; then writes are refused."""
    steps = resharding(place).move(shards=3, embedder=None)
    refused = 0
    kept: list[str] = []
    for number, _ in enumerate(steps):
        customer_id = CUSTOMERS[number % 4]
        try:
            place.remember(customer_id, f"Said during the move {number}")
        except NamespaceMoving:
            refused += 1
        else:
            kept.append(f"Said during the move {number}")
        if number == 1:
            place.remember(customer_id, "Is on the newest plan", attribute="plan")
            place.erase(CUSTOMERS[4])
    assert len(kept) > 4
    assert refused > 0
    found = known(place)
    said = sorted(text for texts in found.values() for text in texts if text.startswith("Said during"))
    assert said == sorted(kept)
    assert "Is on the newest plan" in found[CUSTOMERS[1]]
    assert found[CUSTOMERS[4]] == []


def test_a_layout_that_is_kept_takes_no_write_and_can_be_deleted(place: Place) -> None:
    """A process that has not noticed the switch cannot write into what was left behind."""
    about = place.namespace.about()
    assert about is not None
    old = place.namespace.memories(0, about.generation)
    finish(resharding(place).move(shards=2, embedder=None, keeps_old=True))
    assert old in collections(place)
    known_about.put(place.namespace.place, about, 10.0**12)  # read before the switch, and still relied on
    row = Row("f" * 32, "", {"scope": "s"}, [1.0] * DIMENSION)
    with pytest.raises(NamespaceMoving):
        place.namespace.chroma.put(old, [row])
    forget_cache(place)
    assert resharding(place).drop_kept() == 1
    assert old not in collections(place)
    assert known(place)[CUSTOMERS[0]]


def test_a_process_that_missed_the_switch_reads_no_empty_memory(place: Place) -> None:
    """Whether it had opened the old collections or not, it is told to ask again."""
    about = place.namespace.about()
    assert about is not None
    for has_handles in (True, False):
        other = ChromaSettings(url=place.settings.url, namespace=place.namespace.name, token=f"{has_handles}")
        stale = Place(place.settings.url, place.namespace.name)
        stale.settings = other
        stale.namespace = type(place.namespace)(Chroma(other, Deadline.after(100.0)), other)
        store = stale.store
        scope = scope_of_customer(CUSTOMERS[2])
        if has_handles:
            assert store.live(scope)
        finish(resharding(place).move(shards=store.about.shards + 1, embedder=None))
        with pytest.raises(NamespaceMoving):
            store.live(scope)
        forget_cache(place)
        assert stale.store.live(scope)


def test_a_move_that_is_given_up_leaves_nothing(place: Place) -> None:
    """The old layout counts on, and what was copied is gone; another move can begin."""
    before, names = stored(place), collections(place)
    steps = resharding(place).move(shards=3, embedder=None)
    next(steps)
    with pytest.raises(MoveConflict):
        next(resharding(place).move(shards=5, embedder=None))
    assert resharding(place).abandon()
    assert not resharding(place).abandon()
    assert collections(place) == names
    with pytest.raises(MoveConflict):  # the run that was given up does not go on
        finish(steps)
    finish(resharding(place).move(shards=5, embedder=None))
    assert_equal(stored(place), before)


def test_a_later_run_takes_over(place: Place) -> None:
    """Of two runs the one that began later goes on, and the other one stops."""
    before = stored(place)
    first = resharding(place).move(shards=3, embedder=None)
    next(first)
    second = resharding(place).move(shards=3, embedder=None)
    next(second)
    with pytest.raises(MoveConflict):
        finish(first)
    finish(second)
    assert_equal(stored(place), before)


def test_a_failure_in_the_last_step_opens_writes_again(place: Place) -> None:
    """Whatever stops it while writes are closed, they do not stay closed."""

    def interrupted(_seconds: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        finish(resharding(place, interrupted).move(shards=3, embedder=None))
    about = place.namespace.look()
    assert about is not None
    assert about.move is not None
    assert about.move.stage is Stage.COPYING
    place.remember(CUSTOMERS[0], "Said after the interruption")
    finish(resharding(place).move(shards=3, embedder=None))
    assert "Said after the interruption" in known(place)[CUSTOMERS[0]]


def test_a_backup_begun_before_a_move_does_not_go_on_after_it(place: Place) -> None:
    """Its cursor counts collections that are no more; it is refused instead of leaving rows out."""
    engine = place.engine
    pages = engine.administration.back_up("")
    next(pages)
    cursor = json.loads(next(pages)[-1])["cursor"]
    assert list(place.engine.administration.back_up(cursor))
    finish(resharding(place).move(shards=3, embedder=None))
    forget_cache(place)
    with pytest.raises(ParameterInvalid):
        list(place.engine.administration.back_up(cursor))


def test_pages_and_turns_are_gone_through_to_the_end(chroma: ChromaServer, namespace: str) -> None:
    """More rows in a collection than a page has, and more noted than one turn may leave."""
    place = Place(chroma.url, namespace, shards=1)
    texts = [f"Statement number {n}" for n in range(2 * PAGE_ROWS + 10)]
    place.remember("ada", *texts)
    moving = resharding(place)
    steps = moving.move(shards=2, embedder=None)
    next(steps)
    place.remember("grace", *texts)
    finish(steps)
    forget_cache(place)
    assert moving.written >= 4 * PAGE_ROWS + 20
    for customer_id in ("ada", "grace"):
        rows = place.store.live(scope_of_customer(customer_id))
        assert sorted(row.text for row in rows) == sorted(texts)
