"""Memories as they are ranked, and what ranking needs of them whatever is asked, worked out once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from memory.neighbours import Neighbours
from memory.records import Memory, Role, row_id
from memory.terms import terms

if TYPE_CHECKING:
    from memory.neighbours import Numbers


class Corpus:
    """Memories of one scope, all that a neighbour may be among. None of it changes.

    Args:
        rows: the memories, in any order; everything else has one value a row, in the same order.
        earlier: what was worked out of words before, for rows that are here again.
    """

    def __init__(self, rows: Sequence[Memory], earlier: Corpus | None = None) -> None:
        self.rows = rows
        self._earlier: Mapping[str, Mapping[str, int]] = earlier.terms_by_id if earlier else {}

    def prepare(self) -> None:
        """Work out what takes longest; else it is when it is first asked for."""
        if self.rows:
            _ = self.lengths_together

    @cached_property
    def row_ids(self) -> list[str]:
        """The ids of the rows in the store."""
        return [row_id(row.memory_id, row.part) for row in self.rows]

    @cached_property
    def terms_by_id(self) -> dict[str, Mapping[str, int]]:
        """Row id → what the row is searched by, and how often each term occurs in it."""
        earlier, self._earlier = self._earlier, {}
        return {i: earlier.get(i) or terms(row.words) for i, row in zip(self.row_ids, self.rows, strict=True)}

    @cached_property
    def terms(self) -> list[Mapping[str, int]]:
        """The same in the order of the rows."""
        return [self.terms_by_id[i] for i in self.row_ids]

    @cached_property
    def lengths(self) -> Numbers:
        """Terms of each row, repeated ones counted again."""
        import numpy as np

        return np.fromiter((sum(found.values()) for found in self.terms), float, len(self.rows))

    @cached_property
    def neighbours(self) -> Neighbours:
        """Which rows stand beside each other in a conversation."""
        return Neighbours(self.rows)

    @cached_property
    def lengths_together(self) -> Numbers:
        """Terms of each row and its neighbours."""
        return self.neighbours.total(self.lengths)

    @cached_property
    def by_agent(self) -> Numbers:
        """1 for what an agent said, else 0."""
        return _marks(row.role is Role.AGENT for row in self.rows)

    @cached_property
    def current(self) -> Numbers:
        """1 for the current value of a slot, else 0."""
        return _marks(bool(row.slot) and row.is_current for row in self.rows)

    @cached_property
    def recency(self) -> Numbers:
        """The place of each row in time, from 0 for the oldest to 1 for the newest; equal times share one."""
        import numpy as np

        known, places = np.unique([row.stated_at for row in self.rows], return_inverse=True)
        return places / max(1, len(known) - 1)

    def of_case(self, case_id: str) -> Numbers:
        """1 for what belongs to a case, else 0; of none with ""."""
        return _marks(bool(case_id) and row.case_id == case_id for row in self.rows)

    def occurrences(self, words: Collection[str]) -> Numbers:
        """How often each row has each term: one line a term, one column a row."""
        import numpy as np

        lines = [np.fromiter((found.get(word, 0) for found in self.terms), float) for word in words]
        return np.array(lines).reshape(len(lines), len(self.rows))


def _marks(holds: Iterable[bool]) -> Numbers:
    import numpy as np

    return np.fromiter(holds, float)
