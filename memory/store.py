"""The memories of one scope in the store. Every function takes the scope first and checks what comes back."""

import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from memory.about import About
from memory.chroma import PAGE, Chroma
from memory.chroma_rows import Row, Vector
from memory.clock import system_clock
from memory.epochs import Epochs, epoch_of
from memory.erasures import Erasure, Stage, erasure_row_id
from memory.errors import ErasureUnderWay
from memory.known_rows import Key, known_rows
from memory.namespace import Namespace, constant_vector
from memory.records import (
    Columns,
    Kind,
    Memory,
    belongs_to,
    from_row,
    row_id,
    to_columns,
    to_confirmation_columns,
    to_mark_columns,
)
from memory.scope import Scope
from memory.signposts import heed, is_signpost, signpost, signpost_id
from memory.slots import settle

SETTLE_ROUNDS = 6
"""Times a slot is looked at again after its marks were changed; the next write does the rest."""

REVISION_SECONDS = 86_400.0
"""How long the sign stays that rows changed under their ids. Known rows are relied on for less."""

PAGE_STATEMENTS = 200
"""Statements read at a time where there may be any number; a long one has hundreds of rows."""

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
        self.about = about
        """What the namespace remembers of itself."""
        self.epochs = Epochs(namespace, about)
        """What this call has met of erasures."""
        self.wiped: set[int] = set()
        """Shards in which this call deleted something."""
        self.before_write: Callable[[Scope, Erasure], None] = _refuse
        """Called before a write into a scope that is being erased: finishes that, or refuses the write."""
        self.most_found = namespace.chroma.most_found
        """Rows that one search finds at the most, where so many are wanted."""
        self.signed: set[Scope] = set()
        """Scopes in which this call has met a signpost; see `memory.signposts`."""

    # --- reading ---------------------------------------------------------------------------------

    def read(self, scope: Scope, memory_ids: Iterable[str]) -> list[Memory]:
        """The statements with these ids, all rows of each; ids of other scopes and unknown ones are left
        out.
        """
        # A dot is in the ids of further parts only; they have no life of their own.
        wanted = [i for i in dict.fromkeys(memory_ids) if "." not in i]
        asked = [*wanted, signpost_id(scope)] if wanted else []
        heads = self._memories(scope, self._with_erasure(scope, asked)) if asked else []
        rest = [row for head in heads for row in head.row_ids[1:]]
        if rest:
            heads += self._memories(scope, self._chroma.get(self.collection(scope), ids=rest))
        return heads

    def live(self, scope: Scope, *, limit: int | None = None) -> list[Memory]:
        """The rows that were not marked as history, in the order they were written."""
        rows = self._chroma.get(self.collection(scope), where={"scope": scope.key}, limit=limit)
        if limit is None:
            self.epochs.see(scope, rows)
        return self._memories(scope, rows)

    def history(self, scope: Scope, *, limit: int | None = None) -> list[Memory]:
        """The rows marked as history, and the marks that end slots."""
        rows = self._chroma.get(self.collection(scope), where={"scope": scope.history_key}, limit=limit)
        return self._memories(scope, rows)

    def everything(self, scope: Scope) -> list[Memory]:
        """All rows: live, history and marks."""
        return self.live(scope) + self.history(scope)

    def pages(self, scope: Scope, *, is_history: bool, after: str = "") -> Iterator[list[Memory]]:
        """The statements, live ones or history with its marks, all rows of each, in pages ordered by id.

        Args:
            scope: whose.
            is_history: which of the two.
            after: the memory id behind which to begin; "" for all.
        """
        key = scope.history_key if is_history else scope.key
        ids = self._chroma.ids(self.collection(scope), where={"scope": key})
        heads = [i for i in ids if "." not in i and i > after]
        for start in range(0, len(heads), PAGE_STATEMENTS):
            yield self.read(scope, heads[start : start + PAGE_STATEMENTS])

    def slot(self, scope: Scope, slot: str) -> list[Memory]:
        """All rows of one slot: its value now, its history, its marks."""
        return self._memories(scope, self._chroma.get(self.collection(scope), where={"slot": slot}))

    def expiring(self, scope: Scope) -> list[Memory]:
        """The rows that expire some day."""
        rows = self._chroma.get(self.collection(scope), where={"expiring": scope.key})
        self.epochs.see(scope, rows)
        return self._memories(scope, rows)

    def nearest(self, scope: Scope, vector: Vector, *, limit: int) -> dict[str, float]:
        """Row ids of the live rows nearest to a vector, with their cosine similarity, -1 to 1."""
        found = self._chroma.nearest(self.collection(scope), vector, where={"scope": scope.key}, limit=limit)
        return {row: 1.0 - distance for row, distance in found.items()}

    def live_ids(self, scope: Scope) -> list[str]:
        """The ids of the rows that `live` would read, and of those it would leave out."""
        return self._chroma.ids(self.collection(scope), where={"scope": scope.key})

    def live_vectors(self, scope: Scope, *, limit: int) -> dict[str, Vector]:
        """The same with their vectors, so many at the most."""
        return self._chroma.vectors(self.collection(scope), where={"scope": scope.key}, limit=limit)

    def added(self, scope: Scope, ids: Sequence[str], *, with_vectors: bool) -> list[tuple[Memory, Vector]]:
        """Rows by row id, each with its vector, which is empty unless it is asked for.

        Those of other scopes and those that were erased are left out.
        """
        found = self._with_erasure(scope, ids, with_vectors=with_vectors)
        vectors = {row.row_id: row.vector or () for row in found}
        rows = self._memories(scope, found)
        return [(row, vectors[row_id(row.memory_id, row.part)]) for row in rows]

    def with_vectors(self, scope: Scope, memories: Sequence[Memory]) -> Iterator[list[Stored]]:
        """These rows with their vectors, in pages."""
        ids = [row_id(memory.memory_id, memory.part) for memory in memories]
        for start in range(0, len(ids), PAGE):
            rows = self._chroma.get(self.collection(scope), ids=ids[start : start + PAGE], with_vectors=True)
            yield [
                (from_row(row.row_id, row.text, row.columns), row.vector)
                for row in rows
                if row.vector is not None and belongs_to(row.columns, scope)
            ]

    # --- writing ---------------------------------------------------------------------------------

    def write(self, scope: Scope, memories: Sequence[Stored]) -> None:
        """Write rows whole, over earlier ones of the same id."""
        self.write_all([(scope, stored) for stored in memories])

    def write_all(self, memories: Sequence[tuple[Scope, Stored]]) -> None:
        """Write rows of many scopes, each given with its own; one write a collection."""
        scopes = dict.fromkeys(scope for scope, _ in memories)
        self.epochs.look(scopes)
        epochs = {scope: self.opened(scope) for scope in scopes}
        by_collection: dict[str, list[Row]] = {}
        for scope, (m, vector) in memories:
            columns = {**to_columns(m, scope), "epoch": epochs[scope] or None}
            row = Row(row_id(m.memory_id, m.part), m.text, columns, vector)
            by_collection.setdefault(self.collection(scope), []).append(row)
        for collection, rows in by_collection.items():
            self._chroma.put(collection, rows)

    def batches(self, memories: Sequence[tuple[Scope, Memory]]) -> Iterator[list[tuple[Scope, Memory]]]:
        """Rows of many scopes, each given with its own, in groups that `write_all` writes at once."""
        by_collection: dict[str, list[tuple[Scope, Memory]]] = {}
        for scope, memory in memories:
            by_collection.setdefault(self.collection(scope), []).append((scope, memory))
        for rows in by_collection.values():
            size = self._chroma.write_batch
            for start in range(0, len(rows), size):
                yield rows[start : start + size]

    def erase_all(self, rows: Sequence[tuple[Scope, str]]) -> None:
        """Delete imported rows of many scopes by row id, each given with its own, if they are of that scope.

        Slots that lose a row are settled anew: what was imported may be replaced, unlike what was forgotten.
        """
        by_scope: dict[Scope, list[str]] = {}
        for scope, row in rows:
            by_scope.setdefault(scope, []).append(row)
        for scope, ids in by_scope.items():
            stored = self._with_erasure(scope, ids)
            found = [memory for memory in self._memories(scope, stored) if memory.source]
            self.erase(scope, found, leaves_sign=True)
            for slot in sorted({memory.slot for memory in found if memory.slot}):
                self.settle(scope, slot)

    def write_marks(self, scope: Scope, marks: Sequence[Memory]) -> None:
        """Write marks that end slots; they have no text and a constant vector."""
        self.write(scope, [(mark, self._constant_vector) for mark in marks])

    def put_signpost(self, scope: Scope) -> None:
        """Mark a scope as one whose customer was merged with another; see `memory.signposts`."""
        sign = signpost(scope, self._constant_vector, epoch=self.opened(scope))
        self._chroma.put(self.collection(scope), [sign])

    def erase_signpost(self, scope: Scope) -> None:
        """Take this mark away."""
        self._erase_rows(scope, [signpost_id(scope)])

    def restate(self, scope: Scope, memories: Sequence[Memory]) -> None:
        """Change only what says whether these rows are current."""
        self._change(scope, [(m, to_mark_columns(m, scope)) for m in memories])

    def touch(self, scopes: Sequence[Scope]) -> None:
        """Have every process read these scopes anew, since some of their rows changed under their ids.

        It leaves a row without content in each, which goes with the expired ones; see `memory.known_rows`.
        """
        by_collection: dict[str, list[Row]] = {}
        for scope in dict.fromkeys(scopes):
            by_collection.setdefault(self.collection(scope), []).append(self._sign(scope))
        for collection, rows in by_collection.items():
            self._chroma.put(collection, rows)

    def _sign(self, scope: Scope) -> Row:
        until = system_clock() + REVISION_SECONDS
        sign = _BLANK._replace(conversation_id=scope.conversation_id, ends_slot=True, expires_at=until)
        columns = to_columns(sign, scope) | {"scope": scope.key, "epoch": self.opened(scope) or None}
        return Row(secrets.token_hex(16), "", columns, self._constant_vector)

    def confirm(self, scope: Scope, memories: Sequence[Memory]) -> None:
        """Change only when these were last stated and when they expire."""
        self._change(scope, [(m, to_confirmation_columns(m, scope)) for m in memories])
        self._touch_if(scope, memories)

    def adopt(self, scope: Scope, memories: Sequence[Memory]) -> None:
        """Note that these rows are known from elsewhere too, not only from the ticket they came from."""
        self._change(scope, [(m, {"source": None, "ticket_id": None}) for m in memories])
        self._touch_if(scope, memories)

    def file(self, scope: Scope, memories: Sequence[Memory]) -> None:
        """Change only the case these rows belong to."""
        self._change(scope, [(m, {"case_id": m.case_id or None}) for m in memories])
        self._touch_if(scope, memories)

    def erase(self, scope: Scope, memories: Sequence[Memory], *, leaves_sign: bool = False) -> None:
        """Delete these rows, their words overwritten first.

        Args:
            scope: whose.
            memories: which.
            leaves_sign: whether they may come back under the ids they had, said again or moved back: then
                every process is to read the scope anew, as after `touch`.
        """
        signs = [self._sign(scope)] if leaves_sign and any(m.is_current for m in memories) else []
        self._erase_rows(scope, [row_id(m.memory_id, m.part) for m in memories], signs)

    def _erase_rows(self, scope: Scope, ids: Sequence[str], signs: Sequence[Row] = ()) -> None:
        blank = dict.fromkeys(to_columns(_BLANK, scope))
        blank |= {"scope": scope.history_key, "customer_id": scope.customer_id or None, "ends_slot": True}
        vector = self._constant_vector
        self._chroma.put(self.collection(scope), [*(Row(i, "", blank, vector) for i in ids), *signs])
        self._chroma.delete(self.collection(scope), ids)
        known_rows.drop(self.key(scope))
        if ids:
            self.wiped.add(self.shard(scope))

    # --- erasures --------------------------------------------------------------------------------

    def opened(self, scope: Scope) -> int:
        """The epoch to write in, after making sure that a write may be.

        Raises:
            ErasureUnderWay: the scope is being erased.
        """
        self.epochs.look([scope])
        erasure = self.epochs.last(scope)
        if erasure is not None and erasure.stage is Stage.ERASING:
            self.before_write(scope, erasure)
        return self.epochs.written.setdefault(scope, self.epochs.first(scope))

    def before_epoch(self, scope: Scope, epoch: int) -> list[Memory]:
        """All rows written before an epoch, which no other read returns."""
        rows = [
            row
            for key in (scope.key, scope.history_key)
            for row in self._chroma.get(self.collection(scope), where={"scope": key})
            if epoch_of(row) < epoch and belongs_to(row.columns, scope)
        ]
        return [from_row(row.row_id, row.text, row.columns) for row in rows]

    def shard(self, scope: Scope) -> int:
        """Which collection of memories holds a scope."""
        return scope.shard(self.about.shards)

    def collection(self, scope: Scope) -> str:
        """The name of that collection."""
        return self._namespace.memories(self.shard(scope), self.about.generation)

    def _with_erasure(self, scope: Scope, ids: Sequence[str], *, with_vectors: bool = False) -> list[Row]:
        """Rows by id, and in the same request what is to be known of erasures."""
        asked = [*ids, erasure_row_id(scope)]
        rows = self._chroma.get(self.collection(scope), ids=asked, with_vectors=with_vectors)
        self.epochs.see(scope, rows)
        return rows

    def settle(self, scope: Scope, slot: str, *, without: Collection[str] = ()) -> list[Memory]:
        """Make the marks of a slot tell the truth, also while others write to it.

        Args:
            scope: whose.
            slot: which.
            without: ids of memories that are about to go, and count no more.

        Returns:
            All rows of the slot, as they are in the end.
        """
        rows = self.slot(scope, slot)
        for _ in range(SETTLE_ROUNDS):
            changes = settle(row for row in rows if row.memory_id not in without)
            if not changes:
                break
            self.restate(scope, changes)
            # Somebody may have written meanwhile, seeing less than we do or more: look again.
            rows = self.slot(scope, slot)
        return rows

    # --- plumbing --------------------------------------------------------------------------------

    @property
    def _constant_vector(self) -> list[float]:
        return constant_vector(self.about)

    @property
    def _chroma(self) -> Chroma:
        return self._namespace.chroma

    def key(self, scope: Scope) -> Key:
        """What the scope's rows are known by in this process."""
        return (*self._namespace.place, self.collection(scope), scope.key)

    def _memories(self, scope: Scope, rows: Sequence[Row]) -> list[Memory]:
        if rows:
            self.epochs.look([scope])
        admitted = self.epochs.admit(scope, rows)
        own = [row for row in admitted if belongs_to(row.columns, scope)]
        if any(map(is_signpost, own)):
            heed()
            self.signed.add(scope)
        return [from_row(row.row_id, row.text, row.columns) for row in own if not is_signpost(row)]

    def _touch_if(self, scope: Scope, changed: Sequence[Memory]) -> None:
        if changed:
            self.touch([scope])

    def _change(self, scope: Scope, changes: Sequence[tuple[Memory, Columns]]) -> None:
        self._chroma.change(
            self.collection(scope),
            {row_id(m.memory_id, m.part): columns for m, columns in changes},
        )


def _refuse(_scope: Scope, _erasure: Erasure) -> None:
    raise ErasureUnderWay
