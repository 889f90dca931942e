"""How far the index files of collections are behind, and when a collection's has to be written.

A Chroma server with index files keeps what was written in one log of all collections until a collection's
file is written, by itself after 1,000 changes of that collection (`sync_threshold`). At every write it reads
the log from the last such moment of the collection on, whatever the rows belong to: measured, 2.5 ms for each
1,000 rows, so that with 64 collections a write of one memory takes 100 ms instead of 15. So files are written
sooner, after so many changes that the log stays short whatever the number of collections.
"""

import threading
from collections import OrderedDict

ROWS_BEHIND = 4_000
"""Rows the log may hold at the most; half of that on average, which costs a write 5 ms, while writing the
files so often costs it 1 ms on average."""
FEWEST, MOST = 16, 1_000
"""Changes of a collection after which its file is written: writing it takes some 60 ms, so not for a few; and
the server does it by itself after 1,000."""
_COLLECTIONS = 100_000
"""Known at a time; of others the count begins anew."""

type Key = tuple[str, ...]
"""Server, database and collection."""


class Backlog:
    """Counts what this process has written to each collection since its file was last written for it."""

    def __init__(self) -> None:
        self._rows: OrderedDict[Key, int] = OrderedDict()
        self._lock = threading.Lock()

    def is_due(self, key: Key, rows: int, *, shards: int) -> bool:
        """Whether a collection's file is to be written after so many more rows; then it counts as written.

        Args:
            key: which collection.
            rows: changed just now.
            shards: collections that share the log evenly.
        """
        limit = max(FEWEST, ROWS_BEHIND // shards)
        if limit >= MOST:
            return False
        with self._lock:
            behind = self._rows.pop(key, 0) + rows
            is_due = behind >= limit
            self._rows[key] = 0 if is_due else behind
            while len(self._rows) > _COLLECTIONS:
                self._rows.popitem(last=False)
        return is_due


backlog = Backlog()
"""That of this process."""
