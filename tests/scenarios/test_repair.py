"""A server killed while it writes an index file leaves a torn collection: it is found, and mended."""

import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress

import pytest

from development.chroma_server import ChromaServer
from development.places import PROJECT
from memory.about import known_about
from memory.chroma_connection import connections
from memory.embedding import BUILTIN, Embedder, EmbedderIdentity
from memory.embedding.builtin import BuiltinEmbedder
from memory.errors import MemoryFault, MoveConflict, NamespaceMoving
from memory.identity import Caller, scope_of_customer
from memory.recalling import Question
from memory.records import row_id
from memory.repairing import Condition, Finding, Repair
from memory.resharding import Resharding
from tests.scenarios.engines import HashChoice, Place

SYNC_THRESHOLD = 100
"""Changes after which the server writes this index out, instead of 1,000: it is torn as well at any size."""
CUSTOMERS = 10
EACH = 20
KILLS = 10
MOST_WRITES = 100
"""Of twenty rows each: many times what it takes until the server writes its index out."""


class BuiltinChoice:
    """The built-in model, as the command line opens it."""

    def chosen(self) -> EmbedderIdentity | None:
        """None was chosen."""
        return None

    def open(self, identity: EmbedderIdentity) -> Embedder:
        """It."""
        assert identity == BUILTIN
        return BuiltinEmbedder()


class Crash:
    """A namespace of one collection on a server that is killed; what was acknowledged is remembered here."""

    def __init__(self, server: ChromaServer, namespace: str) -> None:
        self.server = server
        self.place = Place(server.url, namespace, shards=1, choice=BuiltinChoice())
        self.said: dict[str, list[str]] = {}
        self.collection = self.place.namespace.memories(0)
        connection = connections.get(self.place.settings)
        connection.api.get_or_create_collection(
            name=self.collection,
            configuration={"hnsw": {"space": "cosine", "sync_threshold": SYNC_THRESHOLD}},
            **connection.database_arguments,
        )

    @property
    def repair(self) -> Repair:
        """A repair that waits for nobody."""
        return Repair(self.place.settings, BuiltinChoice(), pause=lambda _seconds: None)

    def say(self, number: int) -> None:
        """Remember some statements of a customer."""
        customer_id = f"customer-{number}"
        texts = [f"Customer {number} bought lamp {each} in shop {number * each}" for each in range(EACH)]
        self.place.remember(customer_id, *texts)
        self.said[customer_id] = texts

    def tear(self) -> Finding:
        """Kill the server while it writes the index, until that leaves something torn."""
        number = CUSTOMERS
        for _ in range(KILLS):
            number = self._kill_in_a_write(number)
            finding = self.repair.examine(self.collection)
            if finding.condition is not Condition.SOUND:
                return finding
        pytest.fail("no kill has torn the index")

    def _kill_in_a_write(self, first: int) -> int:
        """Somebody writes and reads until the server is killed at its next index file; the next number."""
        self._look()
        place = [str(self.server.folder / "data"), str(self.server.pid)]
        killer = subprocess.Popen(  # noqa: S603 - our own interpreter
            [sys.executable, "-m", "tests.scenarios.killing", *place],
            cwd=PROJECT,
            stdout=subprocess.PIPE,
        )
        with killer:
            assert killer.stdout is not None
            assert killer.stdout.readline() == b"ready\n"
            for number in range(first, first + MOST_WRITES):
                try:
                    self.say(number)
                    self._look()
                except MemoryFault:
                    break
            else:
                pytest.fail("the index was not written out")
        self.server.kill()
        self.server.start()
        connections.close()  # a process that has not yet met the server's absence
        return number + 1

    def _look(self) -> None:
        """A search, with which the server brings its index up to date."""
        self.place.engine.recall(Caller.checked("customer-0"), Question(query="lamp"))

    def take_index_away(self) -> None:
        """What an operator does with a collection the server says nothing about; the README's words."""
        self.server.stop()
        query = re.search(r"sqlite3 \S+ \"(SELECT .*?)\"", (PROJECT / "README.md").read_text(), re.DOTALL)
        assert query is not None
        data = self.server.folder / "data"
        statement = " ".join(query[1].split()).replace("cm-default-m0003", self.collection)
        connection = sqlite3.connect(data / "chroma.sqlite3")
        folders = [str(row[0]) for row in connection.execute(statement)]
        connection.close()
        assert len(folders) == 1
        shutil.rmtree(data / folders[0])
        self.server.start()

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the command line."""
        place = ["--chroma-url", self.server.url, "--namespace", self.place.namespace.name]
        return subprocess.run(  # noqa: S603 - our own interpreter
            [sys.executable, "-W", "error", "scripts/repair.py", *place, *arguments],
            cwd=PROJECT,
            capture_output=True,
            text=True,
            check=False,
        )

    def check_everything_is_found(self) -> None:
        """Each acknowledged statement is found by its own words, by recall and by the index alone."""
        known_about.pop(self.place.namespace.place)
        store = self.place.store
        for customer_id, texts in self.said.items():
            question = Question(query=texts[-1], limit=100, min_score=0.0)
            hits = self.place.engine.recall(Caller.checked(customer_id), question).hits
            assert sorted(hit.memory.text for hit in hits) == sorted(texts)
            assert hits[0].memory.text == texts[-1]
            scope = scope_of_customer(customer_id)
            self.place.namespace.chroma.renew()
            vectors = BuiltinEmbedder().embed_documents(texts)
            ids = {m.text: row_id(m.memory_id, m.part) for m in store.live(scope)}
            for text, vector in list(zip(texts, vectors, strict=True))[::7]:
                ((found, similarity),) = store.nearest(scope, vector, limit=1).items()
                assert (found, round(similarity, 3)) == (ids[text], 1.0)


@pytest.fixture
def server() -> Iterator[ChromaServer]:
    """A server that may crash."""
    with ChromaServer() as running:
        yield running


def test_an_index_torn_by_a_kill_is_mended_and_every_memory_is_back(
    server: ChromaServer, namespace: str
) -> None:
    """Killed in the middle of writing its index for real: looked at first, then mended by the command."""
    crash = Crash(server, namespace)
    for number in range(CUSTOMERS):
        crash.say(number)
    finding = crash.tear()
    if finding.condition is Condition.UNREADABLE:
        told = crash.command("--retries", "0")
        assert (told.returncode, "move the folder of its index away" in told.stderr) == (1, True), told.stderr
        crash.take_index_away()
    told = crash.command("--dry-run")
    assert told.returncode == 1, told.stderr
    assert f"{crash.collection}: torn" in told.stdout
    assert crash.repair.examine(crash.collection).condition is Condition.TORN
    told = crash.command()
    assert told.returncode == 0, told.stderr
    assert f"{crash.collection}: mended" in told.stdout
    assert "0 not sound" in told.stdout
    assert sum(map(len, crash.said.values())) >= CUSTOMERS * EACH
    crash.check_everything_is_found()
    crash.say(0)
    crash.say(10_000)
    crash.check_everything_is_found()


@pytest.mark.parametrize("name", ["m0000", "links"])
def test_an_index_taken_away_is_made_anew(server: ChromaServer, namespace: str, name: str) -> None:
    """What remains of the last resort for a collection that cannot be read: texts without vectors."""
    crash = Crash(server, namespace)
    for number in range(10):
        crash.say(number)
        crash.place.engine.link(Caller.checked(f"customer-{number}", f"conversation-{number}"))
    crash.collection = crash.place.namespace._collection(name)
    space = crash.place.namespace
    links = sorted(row.row_id for row in space.chroma.get(space.links))
    space.chroma.flush(crash.collection)  # out of the log, into the index alone
    space.chroma.get(crash.collection, limit=1)
    crash.take_index_away()
    finding = crash.repair.examine(crash.collection)
    assert (finding.condition, finding.rows) == (Condition.TORN, 200 if name == "m0000" else 10)
    assert crash.repair.mend(crash.collection).made_anew == finding.unread > 0
    assert crash.repair.examine(crash.collection).condition is Condition.SOUND
    crash.check_everything_is_found()
    assert sorted(row.row_id for row in space.chroma.get(space.links, with_vectors=True)) == links


def test_a_sound_namespace_is_left_alone(chroma: ChromaServer, namespace: str) -> None:
    """Whatever lies in it; so is one that nobody wrote to."""
    place = Place(chroma.url, namespace, shards=2)
    repair = Repair(place.settings, HashChoice())
    assert repair.collections() == []
    place.remember("ada", "Likes tea", "Has a cat")
    place.remember("ada", "Is on plan 1", attribute="plan")
    place.remember("ada", "Is on plan 2", attribute="plan")
    place.engine.link(Caller.checked("ada", "conversation"))
    place.erase("grace")
    place.remember("grace", "Came back")
    findings = [repair.examine(name) for name in repair.collections()]
    assert {finding.condition for finding in findings} == {Condition.SOUND}
    assert sum(finding.rows for finding in findings) > 8


def test_writes_to_what_is_mended_fail_and_other_collections_take_theirs(
    chroma: ChromaServer, namespace: str
) -> None:
    """A write that the copy would not have is never acknowledged."""
    place = Place(chroma.url, namespace, shards=2)
    customers = ["ada", "grace", "edsger", "barbara", "donald", "frances"]
    for customer_id in customers:
        place.remember(customer_id, "Here before")
    shard = place.store.shard(scope_of_customer("ada"))
    inside = [c for c in customers if place.store.shard(scope_of_customer(c)) == shard]
    outside = [c for c in customers if c not in inside]
    assert outside

    def meanwhile(_seconds: float) -> None:
        known_about.pop(place.namespace.place)
        for customer_id in inside:
            with pytest.raises(NamespaceMoving):
                place.remember(customer_id, "Too early")
        for customer_id in outside:
            place.remember(customer_id, "In time")

    repair = Repair(place.settings, HashChoice(), pause=meanwhile)
    assert repair.mend(place.namespace.memories(shard)).made_anew == 0
    for customer_id in customers:
        place.remember(customer_id, "Here after")
    assert place.texts("ada") == ["Here after", "Here before"]
    assert place.texts(outside[0]) == ["Here after", "Here before", "In time"]


def test_killed_at_any_write_a_mending_loses_nothing(chroma: ChromaServer, namespace: str) -> None:
    """Killed before each of its writes in turn, it is finished or taken back by the next."""
    place = Place(chroma.url, namespace, shards=1)
    place.remember("ada", *(f"Statement {n}" for n in range(20)))
    texts = place.texts("ada")
    collection = place.namespace.memories(0)
    repair = Repair(place.settings, HashChoice(), pause=lambda _seconds: None)
    for number in range(1, 100):
        done = subprocess.run(  # noqa: S603 - our own interpreter
            [
                *(sys.executable, "-m", "tests.scenarios.moving_process"),
                *(chroma.url, namespace, "mend", collection, str(number)),
            ],
            cwd=PROJECT,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == 0:
            break
        assert done.returncode < 0, done.stderr
        known_about.pop(place.namespace.place)
        with suppress(NamespaceMoving):  # between the two names
            assert place.texts("ada") == texts
        repair.resume()
        assert repair.resume() == ""
        known_about.pop(place.namespace.place)
        assert place.texts("ada") == texts
        place.remember("ada", texts[0])
    assert number > 6
    assert place.texts("ada") == texts


def test_a_move_and_a_mending_wait_for_each_other(chroma: ChromaServer, namespace: str) -> None:
    """Neither begins while the other is under way."""
    place = Place(chroma.url, namespace, shards=1)
    place.remember("ada", "Likes tea")
    moving = Resharding(place.settings, HashChoice(), pause=lambda _seconds: None)

    def meanwhile(_seconds: float) -> None:
        with pytest.raises(MoveConflict):
            next(moving.move(shards=2, embedder=None))

    Repair(place.settings, HashChoice(), pause=meanwhile).mend(place.namespace.memories(0))
    next(moving.move(shards=2, embedder=None))
    with pytest.raises(MoveConflict):
        Repair(place.settings, HashChoice()).collections()
