"""The memories of one scope in the store. Every function takes the scope first and checks what comes back."""

from collections.abc import Iterable, Iterator, Sequence

from memory.chroma import PAGE, Chroma, Row, Vector
from memory.namespace import About, Namespace
from memory.records import (
    Columns,
    Kind,
    Memory,
    belongs_to,
    from_row,
    row_id,
    to_columns,
    to_mark_columns,
)
from memory.scope import Scope
from memory.slots import settle

SETTLE_ROUNDS = 6
"""Times a slot is looked at again after its marks were changed; the next write does the rest."""

_BLANK = Memory(memory_id="", text="", kind=Kind.SEMANTIC, occurred_at=0.0, recorded_at=0.0)

type Stored = tuple[Memory, Vector]
"""One row with its vector."""


class MemoryStore:
    """Reads and writes the rows of one namespace, always within one scope.

    A row that answers a read without belonging to the scope is dropped, whatever the store's filter said.

    Args:
        namespace: where the rows lie.
        about: what the namespace remembers of itself.
    """

    def __init__(self, namespace: Namespace, about: About) -> None:
        self._namespace = namespace
        self._about = about

    # --- reading ---------------------------------------------------------------------------------

    def read(self, scope: Scope, memory_ids: Iterable[str]) -> list[Memory]:
        """The statements with these ids, all rows of each; ids of other scopes and unknown ones are left
        out.
        """
        # A dot is in the ids of further parts only; they have no life of their own.
        wanted = [i for i in dict.fromkeys(memory_ids) if "." not in i]
        heads = self._memories(scope, self._chroma.get(self._collection(scope), ids=wanted))
        rest = [row for head in heads for row in head.row_ids[1:]]
        if rest:
            heads += self._memories(scope, self._chroma.get(self._collection(scope), ids=rest))
        return heads

    def live(self, scope: Scope, *, limit: int | None = None) -> list[Memory]:
        """The rows that were not marked as history, in the order they were written."""
        return self._listed(scope, scope.key, limit=limit)

    def history(self, scope: Scope, *, limit: int | None = None) -> list[Memory]:
        """The rows marked as history, and the marks that end slots."""
        return self._listed(scope, scope.history_key, limit=limit)

    def everything(self, scope: Scope) -> list[Memory]:
        """All rows: live, history and marks."""
        return self.live(scope) + self.history(scope)

    def slot(self, scope: Scope, slot: str) -> list[Memory]:
        """All rows of one slot: its value now, its history, its marks."""
        return self._memories(scope, self._chroma.get(self._collection(scope), where={"slot": slot}))

    def expiring(self, scope: Scope) -> list[Memory]:
        """The rows that expire some day."""
        rows = self._chroma.get(self._collection(scope), where={"expiring": scope.key})
        return self._memories(scope, rows)

    def nearest(self, scope: Scope, vector: Vector, *, limit: int) -> dict[str, float]:
        """Row ids of the live rows nearest to a vector, with their cosine similarity, -1 to 1."""
        found = self._chroma.nearest(self._collection(scope), vector, where={"scope": scope.key}, limit=limit)
        return {row: 1.0 - distance for row, distance in found.items()}

    def with_vectors(self, scope: Scope, memories: Sequence[Memory]) -> Iterator[list[Stored]]:
        """These rows with their vectors, in pages."""
        ids = [row_id(memory.memory_id, memory.part) for memory in memories]
        for start in range(0, len(ids), PAGE):
            rows = self._chroma.get(self._collection(scope), ids=ids[start : start + PAGE], with_vectors=True)
            yield [
                (from_row(row.row_id, row.text, row.columns), row.vector)
                for row in rows
                if row.vector is not None and belongs_to(row.columns, scope)
            ]

    # --- writing ---------------------------------------------------------------------------------

    def write(self, scope: Scope, memories: Sequence[Stored]) -> None:
        """Write rows whole, over earlier ones of the same id."""
        self._chroma.put(
            self._collection(scope),
            [
                Row(row_id(m.memory_id, m.part), m.text, to_columns(m, scope), vector)
                for m, vector in memories
            ],
        )

    def write_all(self, memories: Sequence[tuple[Scope, Stored]]) -> None:
        """Write rows of many scopes, each given with its own; one write a collection."""
        by_collection: dict[str, list[Row]] = {}
        for scope, (m, vector) in memories:
            row = Row(row_id(m.memory_id, m.part), m.text, to_columns(m, scope), vector)
            by_collection.setdefault(self._collection(scope), []).append(row)
        for collection, rows in by_collection.items():
            self._chroma.put(collection, rows)

    def erase_all(self, rows: Sequence[tuple[Scope, str]]) -> None:
        """Delete imported rows of many scopes by row id, each given with its own, if they are of that scope.

        Slots that lose a row are settled anew: what was imported may be replaced, unlike what was forgotten.
        """
        by_scope: dict[Scope, list[str]] = {}
        for scope, row in rows:
            by_scope.setdefault(scope, []).append(row)
        for scope, ids in by_scope.items():
            stored = self._chroma.get(self._collection(scope), ids=ids)
            found = [memory for memory in self._memories(scope, stored) if memory.source]
            self.erase(scope, found)
            for slot in sorted({memory.slot for memory in found if memory.slot}):
                self.settle(scope, slot)

    def write_marks(self, scope: Scope, marks: Sequence[Memory]) -> None:
        """Write marks that end slots; they have no text and a constant vector."""
        self.write(scope, [(mark, self._constant_vector) for mark in marks])

    def restate(self, scope: Scope, memories: Sequence[Memory]) -> None:
        """Change only what says whether these rows are current."""
        self._change(scope, [(m, to_mark_columns(m, scope)) for m in memories])

    def confirm(self, scope: Scope, memories: Sequence[Memory]) -> None:
        """Change only when these were last stated and when they expire."""
        self._change(
            scope,
            [
                (
                    m,
                    {
                        "confirmed_at": m.confirmed_at,
                        "expires_at": m.expires_at,
                        "expiring": None if m.expires_at is None else scope.key,
                    },
                )
                for m in memories
            ],
        )

    def adopt(self, scope: Scope, memories: Sequence[Memory]) -> None:
        """Note that these rows are known from elsewhere too, not only from the ticket they came from."""
        self._change(scope, [(m, {"source": None, "ticket_id": None}) for m in memories])

    def file(self, scope: Scope, memories: Sequence[Memory]) -> None:
        """Change only the case these rows belong to."""
        self._change(scope, [(m, {"case_id": m.case_id or None}) for m in memories])

    def erase(self, scope: Scope, memories: Sequence[Memory]) -> None:
        """Delete these rows, their words overwritten first."""
        ids = [row_id(memory.memory_id, memory.part) for memory in memories]
        blank = dict.fromkeys(to_columns(_BLANK, scope))
        blank |= {"scope": scope.history_key, "customer_id": scope.customer_id or None, "ends_slot": True}
        vector = self._constant_vector
        self._chroma.put(self._collection(scope), [Row(i, "", blank, vector) for i in ids])
        self._chroma.delete(self._collection(scope), ids)

    def settle(self, scope: Scope, slot: str) -> list[Memory]:
        """Make the marks of a slot tell the truth, also while others write to it.

        Returns:
            All rows of the slot, as they are in the end.
        """
        rows = self.slot(scope, slot)
        for _ in range(SETTLE_ROUNDS):
            changes = settle(rows)
            if not changes:
                break
            self.restate(scope, changes)
            # Somebody may have written meanwhile, seeing less than we do or more: look again.
            rows = self.slot(scope, slot)
        return rows

    # --- plumbing --------------------------------------------------------------------------------

    @property
    def _constant_vector(self) -> list[float]:
        return [1.0] + [0.0] * (self._about.dimension - 1)

    @property
    def _chroma(self) -> Chroma:
        return self._namespace.chroma

    def _collection(self, scope: Scope) -> str:
        return self._namespace.memories(scope.shard(self._about.shards))

    def _listed(self, scope: Scope, key: str, *, limit: int | None) -> list[Memory]:
        rows = self._chroma.get(self._collection(scope), where={"scope": key}, limit=limit)
        return self._memories(scope, rows)

    def _memories(self, scope: Scope, rows: Iterable[Row]) -> list[Memory]:
        return [from_row(row.row_id, row.text, row.columns) for row in rows if belongs_to(row.columns, scope)]

    def _change(self, scope: Scope, changes: Sequence[tuple[Memory, Columns]]) -> None:
        self._chroma.change(
            self._collection(scope),
            {row_id(m.memory_id, m.part): columns for m, columns in changes},
        )
