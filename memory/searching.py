"""Searching one scope by meaning: all its live rows, and how near they are to a vector.

The first time, rows and nearness are read side by side. After that the rows are known, see
`memory.known_rows`, and the search for the nearest shows whether they are still all there is. Of a scope that
is searched again and again the vectors are read once: from then on reading its ids is enough, which takes the
store a third of the time and no longer among more rows of other customers. So are those of a scope of which
the index has lost rows.
"""

from collections.abc import Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial

from memory.chroma_rows import Vector
from memory.known_rows import known_rows
from memory.live_rows import LiveRows
from memory.scope import Scope
from memory.store import MemoryStore

MOST_NEW_ROWS = 100
"""Read by their ids beside those that are known; where more were written, all are read."""
SEARCHES_BEFORE_VECTORS = 2
"""Of known rows. Reading vectors takes as long as what two or three later searches save by them."""
MOST_NUMBERS = 400_000
"""In the vectors of one scope; more take too long to read, some 60 ms."""
_READS_AT_ONCE = 64
"""In threads of their own; more than `memory.chroma_connection` lets through."""

_threads = ThreadPoolExecutor(_READS_AT_ONCE, "search")

type Found = tuple[LiveRows, Mapping[str, float]]
"""All live rows, and by row id the cosine similarity, -1 to 1, of those nearest."""


def search(store: MemoryStore, scope: Scope, vector: Vector, *, limit: int, now: float) -> Found:
    """The live rows of a scope, and how near they are to a vector.

    Args:
        store, scope: whose.
        vector: of a question.
        limit: rows the index is asked for; others are as near as nothing.
        now: seconds since 1970.
    """
    limit = store.most_found(limit)
    known = known_rows.find(store.key(scope), now=now)
    if known is None:
        return _anew(store, scope, vector, limit=limit, now=now)
    known.searches += 1
    seen = _look(store, scope, vector, known, limit=limit)
    live = None if seen.ids is None else _updated(store, scope, known, seen.ids, now=now)
    if live is None:
        return _anew(store, scope, vector, limit=limit, now=now, similarity=seen.similarity)
    if seen.vectors:
        live = live.with_vectors(seen.vectors, len(vector))
    if live is not known:
        known_rows.put(store.key(scope), live)
    return live, live.similarity(vector) if live.has_vectors else seen.similarity or {}


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a look at a scope whose rows are known has shown.

    Attributes:
        ids: of all its rows; None where there may be others.
        similarity: by row id of those nearest, where the index was searched.
        vectors: by row id, where they were read.
    """

    ids: Collection[str] | None
    similarity: Mapping[str, float] | None = None
    vectors: Mapping[str, Vector] = field(default_factory=dict)


def _look(store: MemoryStore, scope: Scope, vector: Vector, known: LiveRows, *, limit: int) -> _Seen:
    if known.has_vectors:
        return _Seen(store.live_ids(scope))
    is_within_reach = len(known.rows) < limit
    if is_within_reach and known.searches > SEARCHES_BEFORE_VECTORS and _are_few(known, len(vector)):
        vectors = store.live_vectors(scope, limit=limit)
        return _Seen(vectors if len(vectors) < limit else None, vectors=vectors)
    if not is_within_reach:
        near = _beside(partial(store.nearest, scope, vector, limit=limit))
        ids = store.live_ids(scope)
        return _Seen(ids, near.result())
    similarity = store.nearest(scope, vector, limit=limit)
    # The index may have found as many as were asked for, or have lost some.
    is_all = len(similarity) < limit and known.ids.issubset(similarity)
    return _Seen(similarity if is_all else None, similarity)


def _anew(
    store: MemoryStore,
    scope: Scope,
    vector: Vector,
    *,
    limit: int,
    now: float,
    similarity: Mapping[str, float] | None = None,
) -> Found:
    """All of it from the store."""
    near = _beside(partial(store.nearest, scope, vector, limit=limit)) if similarity is None else None
    live = LiveRows(store.live(scope), now=now)
    live.corpus.prepare()  # while the index is searched
    if near is not None:
        similarity = near.result()
    ids: Collection[str] = similarity or {}
    is_within_reach = len(live.rows) < limit
    if is_within_reach and not live.ids.issubset(ids) and _are_few(live, len(vector)):
        # The index loses rows: some after many deletions, all that it had not written when it was killed.
        vectors = store.live_vectors(scope, limit=limit)
        if live.ids.issubset(vectors):
            ids, live = vectors, live.with_vectors(vectors, len(vector))
    # Ids that are not those of all rows cannot show later on that nothing changed.
    if not is_within_reach or live.are(ids):
        known_rows.put(store.key(scope), live)
    return live, live.similarity(vector) if live.has_vectors else similarity or {}


def _updated(
    store: MemoryStore, scope: Scope, known: LiveRows, ids: Collection[str], *, now: float
) -> LiveRows | None:
    """The rows known of a scope without those that went, and with those written since; None if unsure."""
    if known.are(ids):
        return known
    new = sorted(set(ids) - known.ids)
    if len(new) > MOST_NEW_ROWS:
        return None
    added = store.added(scope, new, with_vectors=known.has_vectors) if new else []
    # A row without words tells that others changed, and one that is not returned of an erasure.
    if len(added) < len(new) or not all(row.is_current for row, _ in added):
        return None
    return known.updated(ids, added, now=now)


def _are_few(rows: LiveRows, dimension: int) -> bool:
    return len(rows.rows) * dimension <= MOST_NUMBERS


def _beside[T](work: partial[T]) -> Future[T]:
    """Do a read in a thread of its own, as a part of this call."""
    return _threads.submit(copy_context().run, work)
