"""A stage of two customers, the verbs that move what is theirs, and a way to stop at any of their writes."""

import itertools
import os
import signal
import uuid
from collections.abc import Callable
from datetime import UTC, datetime

from memory.chroma import Chroma
from memory.clock import Deadline
from memory.content import Note, Statement
from memory.engine import Engine
from memory.identity import Caller
from memory.namespace import Namespace
from memory.recalling import Question
from memory.records import Columns, Kind, Role
from memory.settings import ChromaSettings
from tests.memory.test_histories import Tiny
from tickets.model import Ticket, TicketMessage

OLD, NEW, THIRD = "crm/42: Ada", "ada@example.com", "grace@example.com"
NOW = datetime(2026, 3, 1, tzinfo=UTC).timestamp()
SHARDS = 3

type Row = tuple[str, str, tuple[tuple[str, object], ...], tuple[float, ...]]
"""A stored row, whole."""


def staged(url: str) -> ChromaSettings:
    """A namespace of its own with the two customers."""
    name = f"w{uuid.uuid4().hex[:12]}"
    settings = ChromaSettings(url=url, namespace=name, shards=SHARDS, timeout_seconds=120.0)
    set_up(settings)
    return settings


def engine_on(settings: ChromaSettings, *, now: float = NOW) -> Engine:
    """An engine whose clock stands still, so that two runs write the same."""
    return Engine(settings, Tiny(), clock=lambda: now)


def remember(
    engine: Engine,
    text: str,
    customer_id: str = "",
    conversation_id: str = "",
    *,
    attribute: str = "",
    day: int = 0,
) -> None:
    """Remember one statement."""
    occurred_at = NOW - 86_400.0 * (100 - day) if day else None
    engine.remember(
        Caller.checked(customer_id, conversation_id),
        [Statement(text, Role.CUSTOMER, Kind.SEMANTIC, 0)],
        Note(attribute=attribute, occurred_at=occurred_at),
    )


def ticket(ticket_id: str, customer_id: str, text: str) -> Ticket:
    """A ticket of one message."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    written = TicketMessage(message_id="1", role="customer", text=text, created_at=at)
    return Ticket(source="shop", ticket_id=ticket_id, customer_id=customer_id, messages=(written,))


def set_up(settings: ChromaSettings) -> None:
    """Two customers with history, a shared statement, conversations, tickets and a forgotten value."""
    engine = engine_on(settings, now=NOW - 3_600.0)
    remember(engine, "Plan is Basic", OLD, attribute="plan", day=1)
    remember(engine, "Plan is Pro", OLD, "conv-old", attribute="plan", day=9)
    remember(engine, "Plan is Trial", NEW, attribute="plan", day=5)
    remember(engine, "Likes teal", OLD, "conv-old")
    remember(engine, "Likes teal", NEW)
    remember(engine, "Long " * 900, OLD)
    remember(engine, "Owns a bicycle", NEW, "conv-new")
    remember(engine, "Drives a van", "", "conv-free", attribute="car", day=3)
    remember(engine, "Drives a bus", "", "conv-free", attribute="car", day=4)
    engine.import_tickets([ticket("1", OLD, "The lamp is broken"), ticket("2", NEW, "The chair wobbles")])


def merge(settings: ChromaSettings) -> None:
    """Merge the two."""
    engine_on(settings).administration.merge(OLD, NEW)


def undo(settings: ChromaSettings) -> None:
    """Undo the merge."""
    engine_on(settings).administration.undo_merge(merge_id_of(settings))


def link(settings: ChromaSettings) -> None:
    """Link a conversation with a memory of its own."""
    engine_on(settings).link(Caller.checked(NEW, "conv-free"))


def relink(settings: ChromaSettings) -> None:
    """Let a conversation change hands."""
    engine_on(settings).link(Caller.checked(NEW, "conv-old"), relink=True)


VERBS: dict[str, Callable[[ChromaSettings], None]] = {
    "merge": merge,
    "undo": undo,
    "link": link,
    "relink": relink,
}


def merge_id_of(settings: ChromaSettings) -> str:
    """The merge's id, as the same merge again gives it; read from the store so that nothing is written."""
    namespace = Namespace(Chroma(settings, Deadline.after(60.0)), settings)
    rows = namespace.chroma.get(namespace.aliases)
    return next((str(row.columns["made_by"]) for row in rows if row.columns.get("made_by")), "")


def known(settings: ChromaSettings, customer_id: str = "", conversation_id: str = "") -> dict[str, bool]:
    """What a recall shows, history included, with whether each is current; long texts by their start."""
    question = Question(limit=100, include_superseded=True)
    hits = engine_on(settings).recall(Caller.checked(customer_id, conversation_id), question).hits
    return {hit.memory.text[:20]: hit.memory.is_current for hit in hits}


def before_each_write(engine: Engine, act: Callable[[int], None]) -> None:
    """Do something before each write of an engine; it gets the number of the write, from 1."""
    chroma = engine._namespace.chroma
    write = chroma._write
    numbers = itertools.count(1)

    def watched(collection: str, method: str, **arguments: object) -> None:
        act(next(numbers))
        write(collection, method, **arguments)

    chroma._write = watched  # type: ignore[method-assign]


def run_and_die(settings: ChromaSettings, verb: str, at_write: int) -> None:
    """Run a verb and kill the process before one of its writes. It runs in a process of its own."""
    write = Chroma._write
    numbers = itertools.count(1)

    def stepping(chroma: Chroma, collection: str, method: str, **arguments: object) -> None:
        if next(numbers) == at_write:
            os.kill(os.getpid(), signal.SIGKILL)
        write(chroma, collection, method, **arguments)

    Chroma._write = stepping  # type: ignore[assignment,method-assign]
    VERBS[verb](settings)


def copy_namespace(source: ChromaSettings, target: ChromaSettings) -> None:
    """Fill a new namespace with everything that lies in another."""
    old = Namespace(Chroma(source, Deadline.after(60.0)), source)
    new = Namespace(Chroma(target, Deadline.after(60.0)), target)
    about = old.about()
    assert about is not None
    new.start(about.embedder, about.dimension, noise=about.noise, shards=about.shards, salt=about.salt)
    for name, copy in zip(_collections(old), _collections(new), strict=True):
        new.chroma.put(copy, old.chroma.get(name, with_vectors=True))


def _collections(namespace: Namespace) -> list[str]:
    return [namespace.links, namespace.ledger, namespace.aliases, *map(namespace.memories, range(SHARDS))]


def whole(settings: ChromaSettings) -> dict[str, list[Row]]:
    """Every row of the namespace that says something as it lies in the store, by collection."""
    namespace = Namespace(Chroma(settings, Deadline.after(60.0)), settings)
    found = {}
    for name in _collections(namespace):
        rows = namespace.chroma.get(name, with_vectors=True)
        found[name.rpartition("-")[2]] = sorted(
            (
                row.row_id,
                row.text,
                tuple(sorted((k, v) for k, v in row.columns.items() if v is not None)),
                tuple(round(float(x), 5) for x in row.vector or ()),
            )
            for row in rows
            if not _is_empty(row.columns)
        )
    return found


def _is_empty(columns: Columns) -> bool:
    """Whether a row was overwritten to be deleted, or only has the scope read anew."""
    is_sign = bool(columns.get("ends_slot")) and "slot" not in columns and "is_signpost" not in columns
    return is_sign or not {"scope", "customer_id", "what"} & columns.keys()
