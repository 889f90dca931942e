"""A whole namespace as lines: every row of every collection, in an order that later writes do not shift.

It is no snapshot: what is written, moved or forgotten while it runs may be in it or not. A row is whole.
"""

import base64
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from memory import aliases, ledger, links
from memory.about import About
from memory.backup_file import Header, bound, checkpoint_line, row_line, trailer_line
from memory.chroma_rows import Row
from memory.clock import iso
from memory.errors import ParameterInvalid
from memory.namespace import Namespace

MEMORIES = "memories"
PAGE_ROWS = 200
"""Rows between two checkpoints: with long vectors a few megabytes, which is what is held at a time."""


@dataclass(frozen=True, slots=True)
class SideCollection:
    """A collection of a namespace beside the memories.

    Attributes:
        name: what a backup calls it.
        collection: its name in the store.
        is_sound: whether a row's id and its columns agree about whose it is; may raise ValueError,
            TypeError or RequestError for a row that is nothing of the kind.
    """

    name: str
    collection: Callable[[Namespace], str]
    is_sound: Callable[[Row], bool]


SIDE_COLLECTIONS = (
    SideCollection("links", lambda namespace: namespace.links, links.is_sound),
    SideCollection("ledger", lambda namespace: namespace.ledger, ledger.is_sound),
    SideCollection("aliases", lambda namespace: namespace.aliases, aliases.is_sound),
)
"""All there are; one that is added here is backed up and restored."""


def count(namespace: Namespace, about: About | None) -> dict[str, int]:
    """How many rows each collection of a namespace has."""
    counts = {MEMORIES: sum(namespace.count_rows(about)) if about else 0}
    for side in SIDE_COLLECTIONS:
        counts[side.name] = namespace.chroma.count(side.collection(namespace))
    return counts


def back_up(namespace: Namespace, *, cursor: str, now: float) -> Iterator[list[bytes]]:
    """The lines of a backup, in pages that end with a checkpoint or the trailer.

    Args:
        namespace: which one.
        cursor: of a checkpoint, to go on behind it; "" to begin with the header.
        now: seconds since 1970.

    Yields:
        Lines without their ends. A backup that goes on repeats its checkpoint, so that what was there
        until then and what comes now make one file.

    Raises:
        ParameterInvalid: the cursor is none of ours.
        SetupError, ServiceError: what was given until then can be gone on from.
    """
    about = namespace.about()
    generation = about.generation if about else 0
    if cursor:
        place = _read_cursor(cursor, generation)
        yield [place.line()]
    else:
        header = Header(
            namespace=namespace.name,
            embedder=about.embedder if about else None,
            dimension=about.dimension if about else 0,
            shards=about.shards if about else 0,
            counts=count(namespace, about),
            created_at=str(iso(now)),
        ).line()
        place = _Place(checksum=bound("", [header]), generation=generation)
        yield [header, place.line()]
    parts = _parts(namespace, about)
    for position, (name, collection) in enumerate(parts):
        if position < place.part:
            continue
        after = place.row_id if position == place.part else ""
        for rows in _pages(namespace, collection, after):
            lines = [row_line(name, row) for row in rows if not _is_going(row)]
            place = place.further(position, rows[-1].row_id, name, lines)
            yield [*lines, place.line()]
    yield [trailer_line(place.counts, place.checksum)]


def _parts(namespace: Namespace, about: About | None) -> list[tuple[str, str]]:
    """What a backup's rows lie in, in order: its name in the backup, and the store's collection."""
    shards = range(about.shards if about else 0)
    memories = [(MEMORIES, namespace.memories(n, about.generation)) for n in shards] if about else []
    return memories + [(side.name, side.collection(namespace)) for side in SIDE_COLLECTIONS]


def _pages(namespace: Namespace, collection: str, after: str) -> Iterator[list[Row]]:
    chroma = namespace.chroma
    chroma.renew()
    ids = [row_id for row_id in chroma.ids(collection) if row_id > after]
    for start in range(0, len(ids), PAGE_ROWS):
        chroma.renew()
        rows = chroma.get(collection, ids=ids[start : start + PAGE_ROWS], with_vectors=True)
        if rows:
            # The server answers in an order of its own, and a cursor wants this one.
            yield sorted(rows, key=lambda row: row.row_id)


def _is_going(row: Row) -> bool:
    """Whether it is a memory whose words were overwritten, in the moment before it is deleted."""
    return bool(row.columns.get("ends_slot")) and "slot" not in row.columns


@dataclass(frozen=True, slots=True)
class _Place:
    """How far a backup is.

    Attributes:
        part: place of the collection in `_parts`.
        row_id: the last row of it.
        counts: rows of each collection so far.
        checksum: up to here.
        generation: of the layout that the collections are of.
    """

    part: int = 0
    row_id: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    checksum: str = ""
    generation: int = 0

    def further(self, part: int, row_id: str, name: str, lines: list[bytes]) -> "_Place":
        counts = dict(Counter(self.counts) + Counter({name: len(lines)}))
        return _Place(part, row_id, counts, bound(self.checksum, lines), self.generation)

    def line(self) -> bytes:
        """The checkpoint of this place."""
        plain = json.dumps([self.part, self.row_id, self.counts, self.checksum, self.generation])
        cursor = base64.urlsafe_b64encode(plain.encode()).decode()
        return checkpoint_line(sum(self.counts.values()), self.checksum, cursor)


def _read_cursor(cursor: str, generation: int) -> _Place:
    try:
        part, row_id, counts, checksum, of = json.loads(base64.urlsafe_b64decode(cursor.encode()))
        counts = {str(name): int(number) for name, number in counts.items()}
        place = _Place(int(part), str(row_id), counts, str(checksum), int(of))
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise ParameterInvalid(name="cursor", expected="the cursor of a backup's checkpoint") from None
    if place.generation != generation:
        raise ParameterInvalid(name="cursor", expected="of a backup begun since the memory was moved")
    return place
