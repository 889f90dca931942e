"""Memories that go and come back under the ids they had, through another process: they are read anew."""

import multiprocessing
import uuid
from collections.abc import Callable

import pytest

from development.chroma_server import ChromaServer
from memory.chroma import Chroma
from memory.clock import Deadline
from memory.content import Note, Statement
from memory.forgetting import Phase, Reach, Request
from memory.identity import Caller, scope_of_customer
from memory.known_rows import known_rows
from memory.namespace import Namespace
from memory.recalling import Hit, Question
from memory.records import Kind, Role
from memory.settings import ChromaSettings
from memory.store import MemoryStore
from tests.memory.steps import NEW, NOW, OLD, SHARDS, engine_on

_processes = multiprocessing.get_context("forkserver")

LATER = NOW + 60.0
BICYCLE, LAMP = "Owns a bicycle", "Owns a lamp"


def say(settings: ChromaSettings, text: str, case_id: str, *, now: float, lasts: float | None = None) -> None:
    """Remember something in a conversation."""
    engine_on(settings, now=now).remember(
        Caller.checked(OLD, "conv", case_id),
        [Statement(text, Role.CUSTOMER, Kind.SEMANTIC, 0)],
        Note(expires_in_seconds=lasts),
    )


def recalled(settings: ChromaSettings, *, now: float = LATER) -> list[Hit]:
    """What a question finds."""
    question = Question(query="bicycle lamp", min_score=0.0)
    return list(engine_on(settings, now=now).recall(Caller.checked(OLD), question).hits)


def forget_and_say_again(settings: ChromaSettings) -> None:
    """The bicycle is forgotten, and mentioned again in another case."""
    (gone,) = [h.memory.memory_id for h in recalled(settings) if h.memory.text == BICYCLE]
    request = Request(reach=Reach.MATCHING, phase=Phase.DELETE, memory_ids=(gone,))
    engine_on(settings, now=LATER).forget(Caller.checked(OLD), request)
    say(settings, BICYCLE, "case-b", now=LATER)


def give_away_and_take_back(settings: ChromaSettings) -> None:
    """The conversation changes hands, and comes back in another case."""
    for customer_id, case_id in ((NEW, ""), (OLD, "case-b")):
        caller = Caller.checked(customer_id, "conv", case_id)
        engine_on(settings, now=LATER).link(caller, relink=True)


def let_expire_and_say_again(settings: ChromaSettings) -> None:
    """The lamp's time is over, and it is mentioned again."""
    say(settings, LAMP, "case-b", now=LATER, lasts=600.0)


CHANGES = (forget_and_say_again, give_away_and_take_back, let_expire_and_say_again)


@pytest.mark.parametrize("change", CHANGES)
def test_what_comes_back_under_its_id_is_read_anew(
    chroma: ChromaServer, change: Callable[[ChromaSettings], None]
) -> None:
    """As a process reads it that has known nothing before."""
    name = f"e{uuid.uuid4().hex[:12]}"
    settings = ChromaSettings(url=chroma.url, namespace=name, shards=SHARDS, timeout_seconds=120.0)
    say(settings, BICYCLE, "case-a", now=NOW)
    say(settings, LAMP, "case-a", now=NOW, lasts=30.0 if change is let_expire_and_say_again else None)
    before = recalled(settings, now=NOW)
    assert recalled(settings, now=NOW) == before
    assert {hit.memory.text for hit in before} == {BICYCLE, LAMP}

    process = _processes.Process(target=change, args=(settings,))
    process.start()
    process.join(120)
    assert process.exitcode == 0

    now = recalled(settings)
    known_rows._rows.clear()
    anew = recalled(settings)
    assert now == anew
    assert "case-b" in {hit.memory.case_id for hit in now}


def test_a_sign_after_an_erasure_is_none_of_the_erased_rows(chroma: ChromaServer) -> None:
    """Else the next call would take it away, and flush the server's log for it."""
    name = f"e{uuid.uuid4().hex[:12]}"
    settings = ChromaSettings(url=chroma.url, namespace=name, shards=SHARDS, timeout_seconds=120.0)
    say(settings, BICYCLE, "case-a", now=NOW)
    request = Request(reach=Reach.EVERYTHING, phase=Phase.DELETE)
    engine_on(settings, now=LATER).forget(Caller.checked(OLD), request)
    for lasts in (600.0, 6_000.0):
        say(settings, LAMP, "case-a", now=LATER + 1.0, lasts=lasts)

    space = Namespace(Chroma(settings, Deadline.after(60.0)), settings)
    about = space.about()
    assert about is not None
    scope = scope_of_customer(OLD)
    rows = space.chroma.get(space.memories(scope.shard(about.shards)), where={"scope": scope.key})
    assert len(rows) == 3  # of the erasure, the lamp, and the sign that it lasts longer
    assert MemoryStore(space, about).before_epoch(scope, int(LATER * 1_000)) == []
