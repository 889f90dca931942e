"""Epochs: how one call tells rows that are there from rows that were erased, at no cost of its own.

The rows of erasures come with the rows a call reads anyway. What a call writes carries the epoch it saw
first, and after its writes it looks once more: a write that an erasure has overtaken is taken back.
"""

from collections.abc import Iterable

from memory.about import About
from memory.chroma_rows import Row
from memory.erasures import Erasure, Stage, erasure_row_id, from_row, to_row
from memory.namespace import Namespace, constant_vector
from memory.scope import Scope, shard_of


def epoch_of(row: Row) -> int:
    """The epoch a row was written in."""
    return int(row.columns.get("epoch", 0))


class Epochs:
    """What one call has met of erasures, by scope.

    Args:
        namespace: where their rows lie.
        about: what it remembers of itself.

    Attributes:
        written: scopes the call wrote to, and the epoch each had when the call first looked.
        met: erasures that are not done, and scopes that hold erased rows still, each with its scope.
    """

    def __init__(self, namespace: Namespace, about: About) -> None:
        self._namespace, self._about = namespace, about
        self._first: dict[Scope, int] = {}
        self._last: dict[Scope, Erasure | None] = {}
        self.written: dict[Scope, int] = {}
        self.met: dict[str, tuple[Scope, Erasure]] = {}

    def knows(self, scope: Scope) -> bool:
        """Whether the call has looked already."""
        return scope in self._last

    def see(self, scope: Scope, rows: Iterable[Row]) -> None:
        """Take note of a read that would have met the scope's erasure row."""
        whole = None
        for row in rows:
            erasure = from_row(row) if row.columns.get("scope") == scope.key else None
            if erasure is None:
                continue
            if erasure.is_whole:
                whole = erasure
            if erasure.stage is not Stage.DONE:
                self.met[erasure.token] = (scope, erasure)
        self.note(scope, whole)

    def note(self, scope: Scope, erasure: Erasure | None) -> None:
        """Take note of what the scope's erasure row says now; None for no row."""
        self._first.setdefault(scope, erasure.epoch if erasure else 0)
        self._last[scope] = erasure

    def last(self, scope: Scope) -> Erasure | None:
        """The scope's last erasure of everything, as far as the call knows; None for none."""
        return self._last.get(scope)

    def epoch(self, scope: Scope) -> int:
        """The epoch from which rows are there."""
        erasure = self._last.get(scope)
        return erasure.epoch if erasure else 0

    def first(self, scope: Scope) -> int:
        """The epoch the scope had when the call first looked: what it decides is decided in it."""
        return self._first[scope]

    def admit(self, scope: Scope, rows: Iterable[Row]) -> list[Row]:
        """The rows that are not erased ones; of those it takes note."""
        erasure = self._last.get(scope)
        if erasure is None:
            return list(rows)
        admitted = []
        for row in rows:
            if epoch_of(row) >= erasure.epoch or "erasure" in row.columns:
                admitted.append(row)
            else:
                self.met.setdefault(erasure.token, (scope, erasure))
        return admitted

    # --- in the store ----------------------------------------------------------------------------

    def look(self, scopes: Iterable[Scope]) -> None:
        """Make sure that the epochs of these scopes are known; one read a collection at the most."""
        self._look_again(scope for scope in scopes if not self.knows(scope))

    def overtaken(self) -> list[Scope]:
        """The scopes that this call wrote to and that were erased meanwhile; one read a collection."""
        written = dict(self.written)
        self._look_again(written)
        return [scope for scope, epoch in written.items() if self.epoch(scope) > epoch]

    def put(self, erasure: Erasure) -> None:
        """Write how far an erasure is."""
        chroma, vector = self._namespace.chroma, constant_vector(self._about)
        chroma.put(self._collection(erasure.scope_key), [to_row(erasure, vector)])

    def drop(self, erasure: Erasure) -> None:
        """Delete the row of an erasure that is done."""
        self._namespace.chroma.delete(self._collection(erasure.scope_key), [erasure.row_id])

    def is_flushable(self, erasure: Erasure) -> bool:
        """Whether the files of its collection can be prepared for a vacuum; see `Chroma.flush`."""
        return self._namespace.chroma.has_log(self._collection(erasure.scope_key))

    def drop_and_flush(self, erasure: Erasure) -> None:
        """Delete the row of an erasure of a part, and prepare its collection for a vacuum, in one request."""
        collection = self._collection(erasure.scope_key)
        self._namespace.chroma.flush(collection, dropping=[erasure.row_id])

    def _look_again(self, scopes: Iterable[Scope]) -> None:
        by_collection: dict[str, list[Scope]] = {}
        for scope in scopes:
            by_collection.setdefault(self._collection(scope.key), []).append(scope)
        for collection, together in by_collection.items():
            ids = [erasure_row_id(scope) for scope in together]
            found = {row.row_id: row for row in self._namespace.chroma.get(collection, ids=ids)}
            for scope in together:
                row = found.get(erasure_row_id(scope))
                self.see(scope, [] if row is None else [row])

    def _collection(self, key: str) -> str:
        return self._namespace.memories(shard_of(key, self._about.shards), self._about.generation)
