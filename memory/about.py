"""What a namespace remembers of itself: its layout and embedder, and whether that is being changed.

It lies in the store as the metadata of one small collection. A process keeps what it has read for two
seconds; every write looks anew afterwards, see `memory.namespace`.
"""

import json
import threading
import time
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from memory.embedding import EmbedderIdentity, Source
from memory.errors import ChromaNotFound

FRESH_SECONDS = 2.0
"""How long a process relies on what it has read. Whoever changes a layout waits for longer than that."""
_LAYOUT = 1
"""Version of the columns of stored rows."""

type Metadata = dict[str, Any]


class Stage(StrEnum):
    """How far a change of layout is."""

    COPYING = "copying"
    """The new collections are being filled; writes go to the old ones and are noted."""
    CLOSED = "closed"
    """What was noted last is being copied, and no write of a memory succeeds."""
    SWITCHED = "switched"
    """The new layout counts; writes stay closed until every process knows of it."""
    CLEANING = "cleaning"
    """Writes go to the new layout, and the old collections are being deleted."""
    ABANDONING = "abandoning"
    """It was given up: the new collections are being deleted."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where memories lie, and which model their vectors come from.

    Attributes:
        embedder: the model all its vectors come from.
        dimension: length of a vector.
        shards: collections its customers are spread over.
        noise: how alike the model finds unrelated texts, as a cosine; see `memory.embedding.noise`.
        generation: tells the collections of one layout from those of the next.
    """

    embedder: EmbedderIdentity
    dimension: int
    shards: int
    noise: float
    generation: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A change of layout under way.

    Attributes:
        origin: the layout before.
        target: the layout after.
        stage: see there.
        run: who is at it; a later run takes over by writing its own name.
        turn: what writers note is noted under this number, from 1.
        done: collections of the old layout that are copied.
    """

    origin: Layout
    target: Layout
    stage: Stage
    run: str
    turn: int = 1
    done: int = 0


@dataclass(frozen=True, slots=True)
class About:
    """What a namespace remembers of itself from its first write on.

    Attributes:
        embedder, dimension, shards, noise, generation: see `Layout`.
        salt: goes into the hashes that stand for what was forgotten; random for each namespace.
        previous: the model before the present one; None if there was none.
        move: the change of layout under way; None for none.
        kept: layouts left behind, as generation and shards.
        mending: the collection no write may go to, since it is being mended; "" for none.
        is_replacing: whether its copy is complete and takes its place.
    """

    embedder: EmbedderIdentity
    dimension: int
    shards: int
    noise: float
    salt: str = field(default="", repr=False, compare=False)
    generation: int = 0
    previous: EmbedderIdentity | None = field(default=None, compare=False)
    move: Move | None = field(default=None, compare=False)
    kept: tuple[tuple[int, int], ...] = field(default=(), compare=False)
    mending: str = field(default="", compare=False)
    is_replacing: bool = field(default=False, compare=False)

    @property
    def layout(self) -> Layout:
        """The present layout."""
        return Layout(self.embedder, self.dimension, self.shards, self.noise, self.generation)

    @property
    def is_closed(self) -> bool:
        """Whether no memory can be written for the moment."""
        return self.move is not None and self.move.stage in {Stage.CLOSED, Stage.SWITCHED}

    def accepts(self, embedder: EmbedderIdentity) -> bool:
        """Whether settings may name this model: it is the present one, the one before or the one to come.

        With these two, settings can be changed before or after a change of the model; vectors are made with
        the present one in any case.
        """
        coming = self.move.target.embedder if self.move else None
        return embedder in {self.embedder, self.previous, coming}

    def in_layout(self, layout: Layout) -> "About":
        """It in another layout."""
        return replace(
            self,
            embedder=layout.embedder,
            dimension=layout.dimension,
            shards=layout.shards,
            noise=layout.noise,
            generation=layout.generation,
            previous=self.embedder if layout.embedder != self.embedder else self.previous,
        )


# --- as metadata --------------------------------------------------------------------------------


def to_metadata(about: About) -> Metadata:
    """It as a collection's metadata, whole."""
    move = about.move
    noted: Metadata = {"layout": _LAYOUT, **_plain(about.layout), "salt": about.salt}
    if about.previous is not None:
        noted["previous"] = json.dumps(_of_model(about.previous))
    if move is not None:
        plain = {"origin": _plain(move.origin), "target": _plain(move.target), "stage": str(move.stage)}
        noted["move"] = json.dumps(plain | {"run": move.run, "turn": move.turn, "done": move.done})
    if about.kept:
        noted["kept"] = json.dumps(about.kept)
    if about.mending:
        noted["mending"], noted["is_replacing"] = about.mending, about.is_replacing
    return noted


def from_metadata(stored: Metadata) -> About:
    """What a collection's metadata says.

    Raises:
        ChromaNotFound: it is none of ours.
    """
    try:
        layout = _layout(stored)
        previous = json.loads(stored.get("previous", "null"))
        return About(
            layout.embedder,
            layout.dimension,
            layout.shards,
            layout.noise,
            str(stored.get("salt", "")),
            layout.generation,
            None if previous is None else _model(previous),
            _move(json.loads(stored.get("move", "null"))),
            tuple(
                (int(generation), int(shards)) for generation, shards in json.loads(stored.get("kept", "[]"))
            ),
            str(stored.get("mending", "")),
            bool(stored.get("is_replacing", False)),
        )
    except (KeyError, ValueError, TypeError):
        raise ChromaNotFound from None


def _plain(layout: Layout) -> Metadata:
    return {
        **_of_model(layout.embedder),
        "dimension": layout.dimension,
        "shards": layout.shards,
        "noise": layout.noise,
        "generation": layout.generation,
    }


def _of_model(model: EmbedderIdentity) -> Metadata:
    return {"source": str(model.source), "provider": model.provider, "model": model.model}


def _model(stored: Metadata) -> EmbedderIdentity:
    return EmbedderIdentity(Source(str(stored["source"])), str(stored["provider"]), str(stored["model"]))


def _layout(stored: Metadata) -> Layout:
    return Layout(
        _model(stored),
        int(stored["dimension"]),
        int(stored["shards"]),
        float(stored.get("noise", 0.0)),
        int(stored.get("generation", 0)),
    )


def _move(stored: Metadata | None) -> Move | None:
    if stored is None:
        return None
    return Move(
        origin=_layout(stored["origin"]),
        target=_layout(stored["target"]),
        stage=Stage(stored["stage"]),
        run=str(stored["run"]),
        turn=int(stored["turn"]),
        done=int(stored["done"]),
    )


# --- what this process has read -----------------------------------------------------------------


class KnownAbout:
    """What this process has read of namespaces, each with the moment it was asked for."""

    _LIMIT = 1_000

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], tuple[About, float]] = {}
        self._lock = threading.Lock()

    def get(self, key: tuple[str, ...]) -> About | None:
        """What was read last, however long ago."""
        known = self._known.get(key)
        return None if known is None else known[0]

    def fresh(self, key: tuple[str, ...]) -> About | None:
        """What was read in the last two seconds."""
        known = self._known.get(key)
        return None if known is None or time.monotonic() - known[1] > FRESH_SECONDS else known[0]

    def put(self, key: tuple[str, ...], about: About, asked_at: float) -> About:
        """Keep what the store answered to a question asked at a moment of the monotonic clock."""
        with self._lock:
            if len(self._known) >= self._LIMIT:
                self._known.clear()
            known = self._known.get(key)
            if known is None or known[1] <= asked_at:
                self._known[key] = (about, asked_at)
        return about

    def pop(self, key: tuple[str, ...]) -> About | None:
        """Forget it."""
        with self._lock:
            known = self._known.pop(key, None)
        return None if known is None else known[0]


known_about = KnownAbout()
"""That of this process."""
