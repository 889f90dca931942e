"""The live rows this process has read, kept as long as their ids show that they are still there.

A row's words never change under its id without a `revision` row of a new id being written beside it, by
whichever process. So a set of row ids stands for the rows themselves. A search by vector, which is made for a
question anyway, brings that set along; and of a scope that is asked about again and again the vectors are
kept as well, so that reading the ids is all that is left to do. Where there are further ids, only those rows
are read.
"""

import threading
from collections import OrderedDict

from memory.live_rows import LiveRows

MOST_ROWS = 12_000
"""Kept in all, of the customers asked about last; some 20 MB, measured with generated memories."""
MOST_NUMBERS = 6_000_000
"""The same of the numbers in their vectors; 12 MB."""
LONGEST_SECONDS = 43_200.0
"""How long rows are relied on: half as long as the sign that they changed stays in the store."""

type Key = tuple[str, ...]
"""Server, database, collection and scope."""


class KnownRows:
    """Rows by scope, those of the scope unused for longest dropped first."""

    def __init__(self) -> None:
        self._rows: OrderedDict[Key, LiveRows] = OrderedDict()
        self._numbers: OrderedDict[Key, int] = OrderedDict()
        self._lock = threading.Lock()
        self._rows_held = 0

    def find(self, key: Key, *, now: float) -> LiveRows | None:
        """The rows known of a scope, which have to be compared with what is there; None for none.

        Args:
            key: which scope.
            now: seconds since 1970; of a scope in which something has expired nothing is known.
        """
        with self._lock:
            known = self._rows.get(key)
            if known is None or not known.hold(now) or known.age > LONGEST_SECONDS:
                return None
            self._rows.move_to_end(key)
            if key in self._numbers:
                self._numbers.move_to_end(key)
        return known

    def put(self, key: Key, rows: LiveRows) -> None:
        """Keep the rows of a scope; too many are not kept, and of some only the vectors are not."""
        with self._lock:
            self._drop(key)
            if len(rows.rows) > MOST_ROWS:
                return
            self._rows[key] = rows
            self._rows_held += len(rows.rows)
            if rows.numbers:
                self._numbers[key] = rows.numbers
            while self._rows_held > MOST_ROWS:
                self._drop(next(iter(self._rows)))
            while sum(self._numbers.values()) > MOST_NUMBERS:
                oldest, _ = self._numbers.popitem(last=False)
                self._rows[oldest] = self._rows[oldest].without_vectors()

    def drop(self, key: Key) -> None:
        """Keep nothing of a scope."""
        with self._lock:
            self._drop(key)

    def _drop(self, key: Key) -> None:
        rows = self._rows.pop(key, None)
        self._numbers.pop(key, None)
        if rows is not None:
            self._rows_held -= len(rows.rows)


known_rows = KnownRows()
"""Those of this process."""
