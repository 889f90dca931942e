"""Recalling: what is known of one scope, ranked by a query or by time."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from memory.corpus import Corpus
from memory.embedding import Embedder
from memory.embedding.model import cosine
from memory.folding import folded
from memory.live_rows import LiveRows, present
from memory.periods import mentions
from memory.ranking import EXACT, Score, score
from memory.records import Kind, Memory, row_id
from memory.scope import Scope
from memory.searching import search
from memory.slots import heads, without_stale
from memory.store import MemoryStore
from memory.text import digest

NEAREST = 1_000
"""Rows the index is asked for; of a customer with more, those further off count as unrelated in meaning
and are found by their words."""
DEFAULT_LIMIT = 8
"""Memories in an answer: five to ten serve a prompt best."""
LIMIT_RANGE = (1, 100)
USUAL_MIN_SCORE = 0.19
"""What the best memory has to reach where no least score is given: nine in ten questions on matters the
customer never spoke of find nothing then; measured with `python -m benchmarks.recall_quality` on the tuning
half of the support cases. The others have to reach half of it."""
FOLLOWER_SHARE = 0.5
USUAL_MEMORIES = 32
"""Memories of a customer for which that holds. Among fewer, fewer resemble a question by chance, so that less
is enough: in proportion to the square root of their number."""
DEFAULT_MAX_TOKENS = 600
MAX_TOKENS_RANGE = (50, 32_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What to recall.

    Attributes:
        query: free text; "" for the most recent.
        limit: memories at the most, 1 to 100.
        min_score: least score of each memory, 0 to 1; None for the usual, which finds nothing for a question
            that has nothing to do with the customer. It does not apply without a query.
        max_tokens: for the context block.
        kinds: which kinds; empty for all.
        since, until: bounds of when it was so, seconds since 1970, both inclusive; None for open.
        case_id: only what belongs to this case; "" for all.
        near_case_id: the case the caller is in, whose memories are raised a little; "" for none.
        include_superseded: whether history is wanted too.
    """

    query: str = ""
    limit: int = DEFAULT_LIMIT
    min_score: float | None = None
    max_tokens: int = DEFAULT_MAX_TOKENS
    kinds: frozenset[Kind] = frozenset()
    since: float | None = None
    until: float | None = None
    case_id: str = ""
    near_case_id: str = ""
    include_superseded: bool = False

    def admits(self, memory: Memory, *, now: float) -> bool:
        """Whether a memory is asked for at all, whatever its score."""
        return (
            not memory.ends_slot
            and not memory.is_expired(now)
            and (memory.is_current or self.include_superseded)
            and (not self.kinds or memory.kind in self.kinds)
            and (not self.case_id or memory.case_id == self.case_id)
            and (self.since is None or memory.stated_at >= self.since)
            and (self.until is None or memory.occurred_at <= self.until)
        )


@dataclass(frozen=True, slots=True)
class Hit:
    """A memory that answers.

    Attributes:
        score: None where there was no query.
    """

    memory: Memory
    score: Score | None

    @property
    def total(self) -> float:
        """The score, 0 to 1; 0 where there was no query."""
        return self.score.total if self.score else 0.0


@dataclass(frozen=True, slots=True)
class Recalled:
    """What a call to recall found, best first, and the block for the prompt.

    Attributes:
        degraded: code of the fault for which words alone were compared; "" where meaning was too.
    """

    hits: tuple[Hit, ...]
    context: str
    customer_id: str
    is_linked: bool
    degraded: str = ""


def recall(
    store: MemoryStore, embedder: Embedder, scope: Scope, question: Question, *, now: float
) -> tuple[list[Hit], list[Memory]]:
    """The memories of one scope that answer a question, and those a prompt should know anyway.

    Args:
        store, embedder: where from, and what makes the query's vector; one without numbers stands for a
            meaning that is not known, and then words alone decide.
        scope: whose memory.
        question: what is asked.
        now: seconds since 1970; what has expired by then is left out.

    Returns:
        The hits best first, of a long statement its best part; without a query the most recent first. And
        the standing memories: rules and current values of slots.
    """
    if not question.query.strip():
        admitted = _admitted(_all_rows(store, scope, question), question, now=now)
        recent = _newest_first(heads(admitted))
        return [Hit(memory, None) for memory in recent[: question.limit]], standing_of(admitted)
    vector = embedder.embed_query(question.query)
    corpus, similarity = _read_and_search(store, scope, question, vector, now=now)
    hits = _scored(store, question, corpus, similarity, now=now)
    hits = [hit for hit in hits if question.admits(hit.memory, now=now)]
    enough = _usual_least(hits) if question.min_score is None else question.min_score
    best = _best_parts(hit for hit in hits if hit.total >= enough)
    return folded(best, limit=question.limit), standing_of(hit.memory for hit in hits)


def _usual_least(hits: Sequence[Hit]) -> float:
    """The score that is enough where the caller names none; see `USUAL_MIN_SCORE`."""
    enough = USUAL_MIN_SCORE * min(1.0, math.sqrt(len(hits) / USUAL_MEMORIES))
    best = max((hit.total for hit in hits), default=0.0)
    return enough * FOLLOWER_SHARE if best >= enough else enough


def _scored(
    store: MemoryStore,
    question: Question,
    corpus: Corpus,
    similarity: Mapping[str, float],
    *,
    now: float,
) -> list[Hit]:
    scores = score(
        question.query,
        corpus,
        [similarity.get(i, 0.0) for i in corpus.row_ids],
        noise=store.about.noise,
        case_id=question.near_case_id,
        mentions=mentions(question.query, now=now),
    )
    asked = digest(question.query)
    return [
        Hit(row, EXACT if row.digest == asked else found)
        for row, found in zip(corpus.rows, scores, strict=True)
    ]


def known_values(store: MemoryStore, scope: Scope, *, now: float) -> list[Memory]:
    """The rules and current values of a scope, for a language model that is to change or repeat them."""
    return standing_of(m for m in without_stale(store.live(scope)) if not m.is_expired(now))


def standing_of(rows: Iterable[Memory]) -> list[Memory]:
    """What a prompt should know whatever it asks: rules, then current values of slots, newest first."""
    current = [row for row in heads(rows) if row.is_current]
    rules = [row for row in current if row.kind is Kind.PROCEDURAL]
    values = [row for row in current if row.slot and row.kind is Kind.SEMANTIC]
    return [*_newest_first(rules), *_newest_first(values)]


def _newest_first(rows: Iterable[Memory]) -> list[Memory]:
    return sorted(rows, key=lambda m: (-m.stated_at, -m.recorded_at, m.memory_id))


def _admitted(rows: Iterable[Memory], question: Question, *, now: float) -> list[Memory]:
    return [row for row in present(rows, now=now) if question.admits(row, now=now)]


def _all_rows(store: MemoryStore, scope: Scope, question: Question) -> list[Memory]:
    rows = store.live(scope)
    return rows + store.history(scope) if question.include_superseded else rows


def _read_and_search(
    store: MemoryStore, scope: Scope, question: Question, vector: Sequence[float], *, now: float
) -> tuple[Corpus, Mapping[str, float]]:
    """What to rank, and how near it is."""
    if not vector:
        # The half that is not known counts nothing, rather than as much as the words: the best score is then
        # the least it can be, so that the usual threshold lets no question through that meaning would stop.
        return LiveRows(_all_rows(store, scope, question), now=now).corpus, {}
    live, similarity = search(store, scope, vector, limit=NEAREST, now=now)
    if not question.include_superseded:
        return live.corpus, similarity
    old = store.history(scope)
    similarity = {**similarity, **_similarity(store, scope, old, vector)}
    return Corpus(present([*live.rows, *old], now=now), live.corpus), similarity


def _similarity(
    store: MemoryStore, scope: Scope, rows: Sequence[Memory], vector: Sequence[float]
) -> dict[str, float]:
    """Cosines worked out here, for rows the search by key does not meet."""
    values = [row for row in rows if not row.ends_slot]
    return {
        row_id(row.memory_id, row.part): cosine(vector, theirs)
        for page in store.with_vectors(scope, values)
        for row, theirs in page
    }


def _best_parts(hits: Iterable[Hit]) -> list[Hit]:
    """Best first; of several parts of one statement only the best."""
    ordered = sorted(
        hits,
        key=lambda hit: (
            -hit.total,
            -hit.memory.stated_at,
            hit.memory.memory_id,
            hit.memory.part,
        ),
    )
    best: dict[str, Hit] = {}
    for hit in ordered:
        best.setdefault(hit.memory.memory_id, hit)
    return list(best.values())
