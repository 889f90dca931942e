"""The systems that are compared: the interface, and our engine behind it, used as the nodes use it."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from threading import Lock
from typing import Protocol

from benchmarks.data_sets import Memories, Question
from benchmarks.metrics import Answer
from memory.content import Note, read_content
from memory.embedding import BUILTIN, Embedder, EmbedderIdentity, Vector
from memory.embedding.builtin import BuiltinEmbedder
from memory.engine import Engine
from memory.identity import Caller
from memory.recalling import Question as Recall
from memory.settings import ChromaSettings

LIMIT = 10
"""Memories in an answer."""
_TIMEOUT_SECONDS = 240.0


@dataclass(frozen=True, slots=True)
class Stored:
    """How many turns were stored the way the system's users do, and the seconds that took."""

    turns: int = 0
    seconds: float = 0.0

    def __add__(self, other: "Stored") -> "Stored":
        return Stored(self.turns + other.turns, self.seconds + other.seconds)

    @property
    def rate(self) -> float | None:
        """Turns a second, embedding included; None where none were stored."""
        return self.turns / self.seconds if self.turns else None


class System(Protocol):
    """A memory that can be asked."""

    @property
    def name(self) -> str:
        """What the table calls it."""
        ...

    def remember(self, memories: Memories) -> Stored:
        """Store all that is known of one customer."""
        ...

    def recall(self, question: Question, *, is_usual: bool) -> Answer:
        """Ask for ten memories: the nearest whatever they score, or those that pass the usual threshold."""
        ...


class CachedEmbedder:
    """The built-in embedder, which embeds each text once. Each system has one of its own.

    Attributes:
        seconds: spent in it so far.
        keeps: whether it keeps the vectors of texts from now on; it knows what it has kept until `clear`.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.keeps = True
        self._known: dict[str, Vector] = {}
        self._embedder = BuiltinEmbedder()
        self._embedding = Lock()

    @property
    def identity(self) -> EmbedderIdentity:
        """Which model it is."""
        return self._embedder.identity

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """See `memory.embedding.Embedder`."""
        started = time.perf_counter()
        with self._embedding:
            unknown = [text for text in dict.fromkeys(texts) if text not in self._known]
            new = dict(zip(unknown, self._embedder.embed_documents(unknown), strict=True))
            vectors = [new[text] if text in new else self._known[text] for text in texts]
            if self.keeps:
                self._known.update(new)
        self.seconds += time.perf_counter() - started
        return vectors

    def clear(self) -> None:
        """Know no text any more."""
        with self._embedding:
            self._known.clear()

    def embed_query(self, text: str) -> Vector:
        """See `memory.embedding.Embedder`."""
        return self.embed_documents([text])[0]

    def chosen(self) -> EmbedderIdentity | None:
        """See `memory.embedding.EmbedderChoice`."""
        return BUILTIN

    def open(self, identity: EmbedderIdentity) -> Embedder:
        """See `memory.embedding.EmbedderChoice`."""
        return self


class OurEngine:
    """Our engine on a Chroma server.

    Args:
        url: of the server.
        namespace: one that nobody has used.
    """

    name = "ours"

    def __init__(self, url: str, namespace: str) -> None:
        self._settings = ChromaSettings(url=url, namespace=namespace, timeout_seconds=_TIMEOUT_SECONDS)
        self._embedder = CachedEmbedder()
        self._turns: dict[str, list[str]] = {}

    def remember(self, memories: Memories) -> Stored:
        """See `System.remember`; a call for the turns of one moment in a session, as messages in JSON."""
        started = time.perf_counter()
        for session in memories.sessions:
            caller = Caller.checked(memories.scope, session.conversation_id)
            for at, together in groupby(session.turns, key=lambda turn: turn.at):
                turns = list(together)
                messages = json.dumps([{"role": turn.role, "content": turn.text} for turn in turns])
                statements, skipped = read_content(messages, kind=None)
                told = self._engine().remember(caller, statements, Note(occurred_at=at), skipped=skipped)
                for statement, outcome in zip(statements, told.outcomes, strict=True):
                    turn_id = turns[statement.index].turn_id
                    self._turns.setdefault(outcome.memory.memory_id, []).append(turn_id)
        return Stored(len(memories.turns), time.perf_counter() - started)

    def recall(self, question: Question, *, is_usual: bool) -> Answer:
        """See `System.recall`."""
        asked = Recall(query=question.text, limit=LIMIT, since=question.since, until=question.until)
        if not is_usual:
            asked = Recall(
                query=question.text, limit=LIMIT, since=question.since, until=question.until, min_score=0.0
            )
        started, embedding = time.perf_counter(), self._embedder.seconds
        recalled = self._engine().recall(Caller.checked(question.scope), asked)
        seconds = time.perf_counter() - started
        ranked = [turn for hit in recalled.hits for turn in self._turns[hit.memory.memory_id]]
        return Answer(tuple(dict.fromkeys(ranked)), seconds, self._embedder.seconds - embedding)

    def _engine(self) -> Engine:
        """One for each call, as the nodes have it."""
        return Engine(self._settings, self._embedder)
