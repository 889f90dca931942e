"""What was said around a memory in its conversation, which often says what the memory itself does not.

"Yes, the blue one please." answers a question about a colour only beside the question before it. The
neighbours are looked up when something is recalled and are never stored with a memory, so that forgetting
one leaves no word of it behind in another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memory.records import Memory

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    type Numbers = NDArray[np.float64]

REACH = 2
"""Messages before and after that count as neighbours."""


class Neighbours:
    """Which of some rows stand beside each other in a conversation.

    Args:
        rows: any rows of one scope. Those of no conversation have no neighbours.
    """

    def __init__(self, rows: Sequence[Memory]) -> None:
        import numpy as np

        places = sorted(range(len(rows)), key=lambda i: _position(rows[i]))
        first: list[int] = []
        last: list[int] = []
        start = 0
        for end in range(1, len(places) + 1):
            if end < len(places) and _is_same(rows[places[start]], rows[places[end]]):
                continue
            first += [max(start, i - REACH) for i in range(start, end)]
            last += [min(end, i + REACH + 1) for i in range(start, end)]
            start = end
        self._order = np.array(places, dtype=int)
        self._first, self._last = np.array(first, dtype=int), np.array(last, dtype=int)

    def total(self, values: Numbers) -> Numbers:
        """The sum over each row and its neighbours.

        Args:
            values: one a row, in the last axis.
        """
        import numpy as np

        sums = np.zeros((*values.shape[:-1], values.shape[-1] + 1))
        np.cumsum(values[..., self._order], axis=-1, out=sums[..., 1:])
        result = np.empty(values.shape)
        result[..., self._order] = sums[..., self._last] - sums[..., self._first]
        return result

    def mean(self, values: Numbers) -> Numbers:
        """The mean over each row and its neighbours."""
        import numpy as np

        return self.total(values) / self.total(np.ones(values.shape[-1]))


def _position(row: Memory) -> tuple[str, float, float, str, int]:
    return row.conversation_id, row.occurred_at, row.recorded_at, row.memory_id, row.part


def _is_same(a: Memory, b: Memory) -> bool:
    return bool(a.conversation_id) and a.conversation_id == b.conversation_id
