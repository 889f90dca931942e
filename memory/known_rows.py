"""The live rows this process has read, kept as long as a search shows that they are still there.

A row's words never change under its id without a `revision` row of a new id being written beside it, by
whichever process. So a set of row ids stands for the rows themselves, and a search by vector, which is made
for every question anyway, brings that set along. Where it brings further ids as well, only those are read.
"""

import threading
from collections import OrderedDict
from collections.abc import Collection, Sequence

from memory.records import Memory, row_id

MOST_ROWS = 20_000
"""Kept in all, of the customers asked about last; some 40 MB."""

type Key = tuple[str, ...]
"""Server, database, collection and scope."""


class KnownRows:
    """Rows by scope, those of the scope unused for longest dropped first."""

    def __init__(self) -> None:
        self._rows: OrderedDict[Key, tuple[frozenset[str], Sequence[Memory]]] = OrderedDict()
        self._lock = threading.Lock()
        self._count = 0

    def find(self, key: Key, ids: Collection[str], *, now: float) -> Sequence[Memory] | None:
        """The rows of a scope, if these are the ids they have; None if others are known, or none."""
        with self._lock:
            known = self._rows.get(key)
            if known is None or len(known[0]) != len(ids) or not known[0].issuperset(ids):
                return None
            self._rows.move_to_end(key)
        return _lasting(known[1], now)

    def within(self, key: Key, ids: Collection[str], *, now: float) -> Sequence[Memory] | None:
        """The rows known of a scope, if all of them are among these ids; None if not, or none are known."""
        with self._lock:
            known = self._rows.get(key)
            if known is None or not known[0].issubset(ids):
                return None
        return _lasting(known[1], now)

    def has(self, key: Key) -> bool:
        """Whether anything is known of a scope."""
        return key in self._rows

    def put(self, key: Key, rows: Sequence[Memory]) -> None:
        """Keep the rows of a scope; too many are not kept."""
        self.drop(key)
        if len(rows) > MOST_ROWS:
            return
        ids = frozenset(row_id(row.memory_id, row.part) for row in rows)
        with self._lock:
            self._rows[key] = (ids, rows)
            self._count += len(rows)
            while self._count > MOST_ROWS:
                self._count -= len(self._rows.popitem(last=False)[1][1])

    def drop(self, key: Key) -> None:
        """Keep nothing of a scope."""
        with self._lock:
            known = self._rows.pop(key, None)
            self._count -= len(known[1]) if known else 0


def _lasting(rows: Sequence[Memory], now: float) -> Sequence[Memory] | None:
    """The rows, unless one has expired: it may have gone and been said again, under the id it had."""
    return None if any(row.is_expired(now) for row in rows) else rows


known_rows = KnownRows()
"""Those of this process."""
