"""Loading a backup into an empty namespace, part by part, each row placed anew by whom it belongs to.

What was loaded, and how far, is kept in the store: a part that is sent again is met, and a load that was cut
goes on. Rows are written only after the checksum behind them was found right.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from memory.about import About
from memory.aliases import signed
from memory.backup import MEMORIES, SIDE_COLLECTIONS, count
from memory.backup_file import Header, bound, decoded, read_header, read_row
from memory.chroma_rows import Row
from memory.embedding import Embedder
from memory.embedding.remembered import NamespaceEmbedders
from memory.errors import BackupDamaged, BackupOutOfOrder, NamespaceNotEmpty, RequestError
from memory.identity import scope_of_owner
from memory.namespace import Namespace, unsearched_vector
from memory.pacing import breathe
from memory.records import Memory, belongs_to, check, from_row, in_scope, row_id
from memory.scope import Scope, hashed
from memory.store import MemoryStore

MAX_SEGMENT_ROWS = 5_000
"""Rows that may come without a checkpoint; they are held until their checksum is known."""
MAX_PROBLEMS = 500

ROW_FOREIGN = "row_foreign"
"""Scope, customer and id of a row do not belong together."""
ROW_INVALID = "row_invalid"
"""A row that cannot be read or stored."""
COLLECTION_UNKNOWN = "collection_unknown"
"""A row of a collection this version of the plugin does not have."""

_MARKER_ID = hashed("restore")


@dataclass(frozen=True, slots=True)
class Problem:
    """A row that was left out: where in what was sent, of which collection, and why."""

    line: int
    collection: str
    code: str


@dataclass(frozen=True, slots=True)
class Loaded:
    """How far the load of a backup is, as the store keeps it.

    Attributes:
        backup: which one: the checksum of its header.
        reached: the checksum up to which it is loaded.
        seen, stored: rows of each collection, in the backup and written.
        embedded: how many of them were embedded again.
        is_complete: whether the trailer was met and was right.
    """

    backup: str
    reached: str
    seen: Mapping[str, int] = field(default_factory=dict)
    stored: Mapping[str, int] = field(default_factory=dict)
    embedded: int = 0
    is_complete: bool = False

    @property
    def rows(self) -> int:
        """Rows of the backup so far."""
        return sum(self.seen.values())


class Restore:
    """The load of one part of a backup, from its first line on.

    Args:
        namespace: where to.
        embedders: of the call.
        lines: the part, without line ends: the header; then, unless it is the first part, the
            checkpoint the part before ended with; then what follows. The header alone begins a load, or
            asks how far it is.

    Attributes:
        loaded: how far the whole backup is; None before the first step.
        problems: rows of this part that were left out, the first 500.
        left_out: how many rows of this part that are.
        is_done: whether this part was loaded to its end.
    """

    def __init__(self, namespace: Namespace, embedders: NamespaceEmbedders, lines: Iterable[bytes]) -> None:
        self._namespace, self._embedders = namespace, embedders
        self._lines = lines
        self._writer: _Writer | None = None
        self.loaded: Loaded | None = None
        self.problems: list[Problem] = []
        self.left_out = 0
        self.is_done = False

    def steps(self) -> Iterator[None]:
        """Load segment after segment; it can be left after each, and gone on with by sending the part again.

        Raises:
            NamespaceNotEmpty: there is something in the namespace that is not of this load.
            BackupDamaged: the part was changed or cut, or is no backup.
            BackupOutOfOrder: it does not go on where the part before it ended.
            SetupError, ServiceError: what was loaded until then stays.
        """
        lines = enumerate(self._lines, 1)
        _, first = next(lines, (1, b""))
        loaded = self._begin(first)
        place, is_met = loaded.backup, loaded.is_complete
        segment: list[tuple[int, bytes, dict[str, Any]]] = []
        number = 1
        for number, line in lines:
            value = self._value(line, number)
            kind = value.get("type")
            if kind == "row" and len(segment) < MAX_SEGMENT_ROWS:
                segment.append((number, line, value))
                continue
            if number == 2 and kind == "checkpoint":
                place = str(value.get("checksum"))  # where the part before this one ended
                end = place
            else:
                end = bound(place, (line for _, line, _ in segment))
            if kind not in {"checkpoint", "trailer"} or value.get("checksum") != end:
                raise BackupDamaged(line=number, reason="the checksum is wrong")
            is_news = bool(segment) or kind == "trailer"
            if is_news and place == loaded.reached and not loaded.is_complete:
                loaded = self._apply(loaded, segment, end, value if kind == "trailer" else None, number)
                self.is_done = loaded.is_complete
                yield
            is_met = is_met or end == loaded.reached
            place, segment = end, []
        if segment:
            raise BackupDamaged(line=number, reason="it ends without a checkpoint")
        if number > 1 and not is_met:
            raise BackupOutOfOrder(rows=loaded.rows)
        self.is_done = True

    def _begin(self, line: bytes) -> Loaded:
        """Read the header, and find out whether this is a load to go on with or one to start."""
        try:
            header = read_header(line)
        except ValueError:
            raise BackupDamaged(line=1, reason="it is no header of a known version") from None
        backup = bound("", [line])
        loaded = self._stored()
        is_going_on = loaded is not None and loaded.backup == backup
        if loaded is None or not is_going_on or loaded.is_complete:
            is_empty = sum(count(self._namespace, self._namespace.about()).values()) == 0
            if not is_empty and not is_going_on:
                raise NamespaceNotEmpty
            if loaded is None or not is_going_on or (is_empty and loaded.rows > 0):
                loaded = Loaded(backup, backup)
        if not loaded.is_complete:
            self._writer = self._open(header)
            self._keep(loaded)
        self.loaded = loaded
        return loaded

    def _open(self, header: Header) -> "_Writer":
        if header.embedder is None:
            return _Writer(self._namespace, None, None, is_same=False)
        embedder, about = self._embedders.to_restore(header.embedder, header.dimension)
        is_same = (about.embedder, about.dimension) == (header.embedder, header.dimension)
        return _Writer(self._namespace, embedder, about, is_same=is_same)

    def _value(self, line: bytes, number: int) -> dict[str, Any]:
        try:
            return decoded(line)
        except ValueError:
            raise BackupDamaged(line=number, reason="it is no JSON object") from None

    def _apply(
        self,
        loaded: Loaded,
        segment: list[tuple[int, bytes, dict[str, Any]]],
        end: str,
        trailer: Mapping[str, Any] | None,
        number: int,
    ) -> Loaded:
        """Write a segment whose checksum is right, and keep how far the load is now."""
        seen = Counter(loaded.seen) + Counter(str(value.get("collection")) for _, _, value in segment)
        if trailer is not None and trailer.get("counts") != dict(seen):
            raise BackupDamaged(line=number, reason="the counts are wrong")
        if self._writer is None:
            return loaded
        self._namespace.chroma.renew()
        breathe()
        batch = self._writer.sort(segment)
        embedded = self._writer.write(batch)
        self.left_out += len(batch.problems)
        self.problems += batch.problems[: MAX_PROBLEMS - len(self.problems)]
        loaded = replace(
            loaded,
            reached=end,
            seen=dict(seen),
            stored=dict(Counter(loaded.stored) + batch.counts),
            embedded=loaded.embedded + embedded,
            is_complete=trailer is not None,
        )
        self._keep(loaded)
        self.loaded = loaded
        return loaded

    # --- what the store keeps of a load ----------------------------------------------------------

    def _stored(self) -> Loaded | None:
        rows = self._namespace.chroma.get(self._namespace.restore, ids=[_MARKER_ID])
        if not rows:
            return None
        value = json.loads(rows[0].text)
        return Loaded(**value)

    def _keep(self, loaded: Loaded) -> None:
        text = json.dumps(
            {
                "backup": loaded.backup,
                "reached": loaded.reached,
                "seen": dict(loaded.seen),
                "stored": dict(loaded.stored),
                "embedded": loaded.embedded,
                "is_complete": loaded.is_complete,
            }
        )
        row = Row(_MARKER_ID, text, {"backup": loaded.backup}, unsearched_vector(_MARKER_ID))
        self._namespace.chroma.put(self._namespace.restore, [row])


@dataclass(slots=True)
class _Batch:
    """The rows of a segment by where they go, and those that go nowhere."""

    memories: list[tuple[Scope, Memory, Row]] = field(default_factory=list)
    sides: dict[str, list[Row]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    @property
    def counts(self) -> Counter[str]:
        """How many rows each collection gets."""
        return Counter(
            {name: len(rows) for name, rows in self.sides.items()} | {MEMORIES: len(self.memories)}
        )


class _Writer:
    """Checks the rows of a backup and writes those that are what they say.

    Args:
        namespace: where to.
        embedder, about: of the namespace; None where the backup has no memories.
        is_same: whether the backup's vectors are this model's.
    """

    def __init__(
        self, namespace: Namespace, embedder: Embedder | None, about: About | None, *, is_same: bool
    ) -> None:
        self._namespace = namespace
        self._embedder, self._about, self._is_same = embedder, about, is_same
        self._sides = {side.name: side for side in SIDE_COLLECTIONS}

    def sort(self, segment: Iterable[tuple[int, bytes, Mapping[str, Any]]]) -> _Batch:
        """The rows of a segment, each checked."""
        batch = _Batch()
        for number, _, value in segment:
            name = str(value.get("collection"))
            code = self._place(batch, name, value)
            if code:
                shown = name if name == MEMORIES or name in self._sides else ""
                batch.problems.append(Problem(number, shown, code))
        return batch

    def _place(self, batch: _Batch, name: str, value: Mapping[str, Any]) -> str:
        """Put a row where it belongs; a code if it belongs nowhere."""
        side = self._sides.get(name)
        if side is None and name != MEMORIES:
            return COLLECTION_UNKNOWN
        try:
            row = read_row(value)
            if side is not None:
                if not side.is_sound(row):
                    return ROW_FOREIGN
                batch.sides.setdefault(name, []).append(row)
                return ""
            memory = from_row(row.row_id, row.text, row.columns)
            check(memory)
            scope = _owner(memory, row)
        except (ValueError, KeyError, TypeError, OverflowError, RequestError):
            return ROW_INVALID
        if self._about is None or (self._is_same and len(row.vector or ()) != self._about.dimension):
            return ROW_INVALID
        if not _is_own(scope, memory, row):
            return ROW_FOREIGN
        batch.memories.append((scope, memory, row))
        return ""

    def write(self, batch: _Batch) -> int:
        """Write the rows; how many were embedded again."""
        embedded = 0
        if batch.memories and self._embedder is not None and self._about is not None:
            store = MemoryStore(self._namespace, self._about)
            marks = [each for each in batch.memories if each[1].ends_slot]
            values = [each for each in batch.memories if not each[1].ends_slot]
            vectors = [row.vector or () for _, _, row in values]
            if not self._is_same and values:
                vectors = self._embedder.embed_documents([memory.index_text for _, memory, _ in values])
                embedded = len(values)
            store.write_all(
                [
                    (scope, (memory, vector))
                    for (scope, memory, _), vector in zip(values, vectors, strict=True)
                ]
            )
            for scope, mark, _ in marks:
                store.write_marks(scope, [mark])
        for name, rows in batch.sides.items():
            self._namespace.chroma.put(self._sides[name].collection(self._namespace), rows)
        self._put_signposts(batch.sides.get("aliases", []))
        return embedded

    def _put_signposts(self, rows: Iterable[Row]) -> None:
        """A backup has none, since they say nothing that its aliases do not."""
        if self._about is not None:
            store = MemoryStore(self._namespace, self._about)
            for scope in dict.fromkeys(scope for row in rows for scope in signed(row)):
                store.put_signpost(scope)


def _owner(memory: Memory, row: Row) -> Scope:
    """The scope a row says it belongs to.

    Raises:
        ValueError: it names nobody.
    """
    conversation_id = str(row.columns.get("provisional_of", memory.conversation_id))
    if not memory.customer_id and not conversation_id:
        raise ValueError("a memory of nobody")
    return scope_of_owner(memory.customer_id, conversation_id)


def _is_own(scope: Scope, memory: Memory, row: Row) -> bool:
    """Whether scope key, customer and id of a row belong together."""
    if row.row_id != row_id(memory.memory_id, memory.part) or not belongs_to(row.columns, scope):
        return False
    if not memory.ends_slot:
        right = in_scope(memory, scope)
        return (right.memory_id, right.slot) == (memory.memory_id, memory.slot)
    ended = hashed("end", memory.slot, f"{memory.occurred_at:.6f}")
    moved = memory.memory_id[16:] == memory.slot[:16]
    return bool(memory.slot) and (memory.memory_id == ended or moved)
