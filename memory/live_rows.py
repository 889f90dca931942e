"""The live rows of a scope as they were read at one moment, and what was worked out of them since."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from memory.chroma_rows import Vector
from memory.corpus import Corpus
from memory.records import Memory, row_id
from memory.slots import without_stale

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    type Vectors = NDArray[np.float16]


class LiveRows:
    """All rows of a scope that were not marked as history.

    Args:
        rows: as read, marks and signs among them.
        now: when they were read, seconds since 1970.
        earlier: the same scope's as read before; what was worked out of the same rows is taken over.

    Attributes:
        searches: how often they have been searched since they were read.
    """

    def __init__(self, rows: Sequence[Memory], *, now: float, earlier: LiveRows | None = None) -> None:
        self.rows = rows
        self.searches: int = earlier.searches if earlier else 0
        self._now = now
        self._read_at: float = earlier._read_at if earlier else time.monotonic()
        self._earlier = earlier.corpus if earlier else None
        self._vectors: Vectors | None = None

    @cached_property
    def row_ids(self) -> list[str]:
        """The ids of the rows in the store."""
        return [row_id(row.memory_id, row.part) for row in self.rows]

    @cached_property
    def ids(self) -> frozenset[str]:
        """The same as a set."""
        return frozenset(self.row_ids)

    def are(self, ids: Collection[str]) -> bool:
        """Whether these are the ids of the rows, each and no other."""
        return len(ids) == len(self.ids) and self.ids.issuperset(ids)

    def hold(self, now: float) -> bool:
        """Whether none of them has expired by then: it may have gone and been said again, under its id."""
        return now < self._first_to_expire

    @cached_property
    def _first_to_expire(self) -> float:
        return min((row.expires_at for row in self.rows if row.expires_at is not None), default=math.inf)

    @property
    def age(self) -> float:
        """Seconds since the oldest of them was read."""
        return time.monotonic() - self._read_at

    @cached_property
    def corpus(self) -> Corpus:
        """The statements among them, to be ranked."""
        earlier, self._earlier = self._earlier, None
        return Corpus(present(self.rows, now=self._now), earlier)

    def updated(
        self, ids: Collection[str], added: Sequence[tuple[Memory, Vector]], *, now: float
    ) -> LiveRows:
        """Those that are still there, and others that were written since.

        Args:
            ids: the rows that are there now.
            added: the others, with vectors if these have some.
            now: seconds since 1970.
        """
        import numpy as np

        there = set(ids)
        kept = [place for place, row in enumerate(self.row_ids) if row in there]
        rows = [*(self.rows[place] for place in kept), *(row for row, _ in added)]
        changed = LiveRows(rows, now=now, earlier=self)
        if self._vectors is not None:
            more = _directions([vector for _, vector in added], self._vectors.shape[1])
            changed._vectors = np.vstack([self._vectors[kept], more])
        return changed

    # --- nearness --------------------------------------------------------------------------------

    @property
    def has_vectors(self) -> bool:
        """Whether `similarity` can be told."""
        return self._vectors is not None

    @property
    def numbers(self) -> int:
        """Numbers in the vectors that are kept, 2 bytes each."""
        return 0 if self._vectors is None else self._vectors.size

    def with_vectors(self, vectors: Mapping[str, Vector], dimension: int) -> LiveRows:
        """The same with the vectors of all rows, given by row id."""
        return self._with(_directions([vectors[i] for i in self.row_ids], dimension))

    def without_vectors(self) -> LiveRows:
        """The same without vectors, as if never searched."""
        plain = self._with(None)
        plain.searches = 0
        return plain

    def _with(self, vectors: Vectors | None) -> LiveRows:
        changed = copy.copy(self)  # with all that was worked out
        changed._vectors = vectors
        return changed

    def similarity(self, vector: Vector) -> dict[str, float]:
        """Row id → cosine similarity with a vector, -1 to 1, of all rows; their vectors have to be there.

        They are kept in half the precision, for which it is off by some 0.00001 with hundreds of dimensions.
        """
        import numpy as np

        if self._vectors is None:
            raise ValueError("there are no vectors")
        asked = np.array(vector, np.float32)
        cosines = self._vectors.astype(np.float32) @ (asked / (np.linalg.norm(asked) or 1.0))
        return dict(zip(self.row_ids, np.clip(cosines, -1.0, 1.0).tolist(), strict=True))


def present(rows: Iterable[Memory], *, now: float) -> list[Memory]:
    """The statements among rows; what slots say is made out anew, since marks can lag behind."""
    statements = [row for row in rows if not row.ends_slot and not row.is_expired(now)]
    current = without_stale([row for row in statements if row.is_current])
    return [*current, *(row for row in statements if not row.is_current)]


def _directions(vectors: Sequence[Vector], dimension: int) -> Vectors:
    """The vectors one below the other, each of length 1; one of nothing but zeros stays as it is."""
    import numpy as np

    rows = np.array(vectors, np.float32).reshape(-1, dimension)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, lengths, out=rows, where=lengths > 0.0).astype(np.float16)
