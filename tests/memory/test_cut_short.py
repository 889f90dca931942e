"""A process that dies before any write of a merge, its undoing or a link: the next call puts things right."""

import multiprocessing
import signal
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import pytest

from development.chroma_server import ChromaServer
from memory.identity import Caller
from memory.recalling import Question
from memory.settings import ChromaSettings
from tests.memory.steps import (
    NEW,
    OLD,
    SHARDS,
    VERBS,
    Row,
    copy_namespace,
    engine_on,
    known,
    remember,
    run_and_die,
    set_up,
    ticket,
    whole,
)

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["tests.memory.steps"])

WRITES = {"merge": 13, "undo": 18, "link": 6, "relink": 7}
"""Writes of each verb on the stage, held by a test below."""
UNSEEN_UP_TO = {"merge": 4, "undo": 1, "link": 1, "relink": 1}
"""Before the write of this number and earlier ones nothing has begun that another call could see."""
SIGNS_GONE_FROM = {"undo": 11}
"""From this write on everything is in its place, and a call that only reads need not know of the rest."""


def fresh(chroma: ChromaServer) -> ChromaSettings:
    """A namespace nobody has used."""
    name = f"x{uuid.uuid4().hex[:12]}"
    return ChromaSettings(url=chroma.url, namespace=name, shards=SHARDS, timeout_seconds=120.0)


def staged(chroma: ChromaServer, verb: str) -> ChromaSettings:
    """A namespace of its own in which the verb can be run."""
    settings = fresh(chroma)
    copy_namespace(stage(chroma, verb), settings)
    return settings


@cache
def stage(chroma: ChromaServer, verb: str) -> ChromaSettings:
    """What the verb's namespaces are copied from."""
    settings = fresh(chroma)
    set_up(settings)
    if verb == "undo":
        VERBS["merge"](settings)
    return settings


def die(settings: ChromaSettings, verb: str, at_write: int) -> bool:
    """Whether the process died at that write; otherwise the verb ran through."""
    process = _processes.Process(target=run_and_die, args=(settings, verb, at_write))
    process.start()
    process.join(120)
    assert process.exitcode in {0, -signal.SIGKILL}
    return process.exitcode != 0


@dataclass(frozen=True)
class State:
    """The whole store, and what a recall of either customer shows."""

    rows: dict[str, list[Row]]
    shown: list[dict[str, bool]]

    @classmethod
    def of(cls, settings: ChromaSettings) -> "State":
        """The state of a namespace."""
        return cls(whole(settings), shown(settings))


def shown(settings: ChromaSettings) -> list[dict[str, bool]]:
    """What a recall of either customer shows."""
    return [known(settings, customer_id) for customer_id in (OLD, NEW)]


@cache
def outcome(chroma: ChromaServer, verb: str) -> tuple[State, State]:
    """The state before the verb, and after it was run without a cut."""
    settings = staged(chroma, verb)
    before = State.of(settings)
    VERBS[verb](settings)
    return before, State.of(settings)


def recall(customer_id: str, conversation_id: str = "") -> Callable[[ChromaSettings], object]:
    """A recall as the next call."""
    caller = Caller.checked(customer_id, conversation_id)
    return lambda settings: engine_on(settings).recall(caller, Question())


NEXT: dict[str, dict[str, Callable[[ChromaSettings], object]]] = {
    "merge": {
        "recall by the old id": recall(OLD),
        "recall by the new id": recall(NEW),
        "remember what is known": lambda settings: remember(engine_on(settings), "Likes teal", OLD),
        "import what is known": lambda settings: engine_on(settings).import_tickets(
            [ticket("1", OLD, "The lamp is broken")]
        ),
        "list the links": lambda settings: engine_on(settings).administration.find_links(Caller.checked(OLD)),
        "merge again": VERBS["merge"],
    },
    "undo": {
        "recall by the old id": recall(OLD),
        "recall by the new id": recall(NEW),
        "list the links": lambda settings: engine_on(settings).administration.find_links(Caller.checked(OLD)),
        "undo again": VERBS["undo"],
    },
    "link": {"recall by the conversation": recall("", "conv-free"), "link again": VERBS["link"]},
    "relink": {"recall by the conversation": recall("", "conv-old"), "relink again": VERBS["relink"]},
}
CUTS = [(verb, n, after) for verb in VERBS for n in range(1, WRITES[verb] + 1) for after in NEXT[verb]]


@pytest.mark.parametrize(("verb", "at_write", "after"), CUTS)
def test_the_next_call_ends_in_the_right_state(
    chroma: ChromaServer, verb: str, at_write: int, after: str
) -> None:
    """Row by row the state of the uncut run; where nothing had begun yet, doing it again leads there."""
    before, done = outcome(chroma, verb)
    settings = staged(chroma, verb)
    assert die(settings, verb, at_write)

    NEXT[verb][after](settings)
    if whole(settings) != done.rows:
        has_begun = at_write > UNSEEN_UP_TO[verb]
        assert not has_begun or (at_write > SIGNS_GONE_FROM.get(verb, 99) and after != f"{verb} again")
        assert shown(settings) == (done if has_begun else before).shown
        VERBS[verb](settings)
    assert whole(settings) == done.rows


@pytest.mark.parametrize("verb", VERBS)
def test_every_write_is_cut_once(chroma: ChromaServer, verb: str) -> None:
    """The numbers above are those of the verbs: one more, and it runs through."""
    settings = staged(chroma, verb)
    assert not die(settings, verb, WRITES[verb] + 1)
    assert whole(settings) == outcome(chroma, verb)[1].rows
