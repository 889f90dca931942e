"""Mending a collection whose vector index was torn, as a Chroma server killed in a write leaves it.

Texts and columns survive in such a collection; some vectors cannot be read, and searches fail or miss rows.
What can be read is copied into a collection of its own, which then takes the torn one's name. Nothing is
written into the torn one, since that can bring the server down.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum

from memory.about import About
from memory.chroma import Chroma
from memory.chroma_rows import Row, Vector
from memory.clock import Deadline
from memory.embedding import EmbedderChoice
from memory.embedding.remembered import NamespaceEmbedders
from memory.errors import ChromaFailed, ChromaTimeout, MemoryFault, MoveConflict, MoveUnverified
from memory.namespace import Namespace, unsearched_vector
from memory.resharding import NOTICE_SECONDS
from memory.rows import is_same, vectors_of
from memory.settings import ChromaSettings

PAGE_ROWS = 200
CHUNK_ROWS = 20
"""Vectors read at a time where a page cannot be; a chunk that cannot be read is made anew as a whole."""
LENGTHS = (1e-6, 1e6)
"""Of a vector that has a direction; what lies in the place of one that was not written has none."""


class Condition(StrEnum):
    """What was found of a collection."""

    SOUND = "sound"
    TORN = "torn"
    """Its rows can be read, and some of them not with their vectors, or not by a search."""
    UNREADABLE = "unreadable"
    """The server answers nothing about it; its index has to be taken away first."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of one collection.

    Attributes:
        collection: its name in the store.
        condition: see there.
        rows: how many it has, as far as is known.
        unread: rows whose vector cannot be read, or is none.
        unfound: rows that are read and not found by a search.
    """

    collection: str
    condition: Condition
    rows: int = 0
    unread: int = 0
    unfound: int = 0


@dataclass(frozen=True, slots=True)
class Mended:
    """What was done to one collection: its rows, and how many of them got a vector made anew."""

    collection: str
    rows: int
    made_anew: int


class Repair:
    """Looks at the collections of one namespace and mends them.

    Args:
        settings: server and namespace.
        embedders: opens the namespace's model, where vectors have to be made anew.
        pause: waits for so many seconds.
    """

    def __init__(
        self,
        settings: ChromaSettings,
        embedders: EmbedderChoice,
        *,
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        self._namespace = Namespace(Chroma(settings, Deadline.after(settings.timeout_seconds)), settings)
        # Not the namespace's own, which writes nothing to a collection that is being mended.
        self._chroma = Chroma(settings, Deadline.after(settings.timeout_seconds))
        self._embedders = embedders
        self._pause = pause

    def collections(self) -> list[str]:
        """The names of all collections of the namespace, of those too that are not there yet.

        Raises:
            MoveConflict: it is being moved to another layout.
        """
        about = self._about()
        if about is None:
            return []
        space = self._namespace
        return [
            *(space.memories(shard, about.generation) for shard in range(about.shards)),
            *(space.links, space.ledger, space.aliases, space.tombstones, space.receipts),
            *(space.audit, space.restore),
        ]

    def resume(self) -> str:
        """Finish a mending that was cut, or take it back; the collection's name, "" for none."""
        about = self._about()
        if about is None or not about.mending:
            return ""
        self._renew()
        if about.is_replacing:
            self._replace(about.mending)
        else:
            self._chroma.drop(_copy_of(about.mending))
        self._open(about)
        return about.mending

    def examine(self, collection: str) -> Finding:
        """Look at a collection; nothing is written.

        Raises:
            ChromaUnreachable: there is no server, or looking at this collection brought it down.
        """
        self._renew()
        try:
            rows = self._rows(collection)
        except (ChromaFailed, ChromaTimeout):
            return Finding(collection, Condition.UNREADABLE)
        unread = len(rows) - len(self._vectors(collection, rows))
        unfound = len(self._unfound(collection, rows))
        condition = Condition.TORN if unread or unfound else Condition.SOUND
        return Finding(collection, condition, len(rows), unread, unfound)

    def mend(self, collection: str) -> Mended:
        """Put a collection in the place of a torn one that holds the same rows; its writes fail meanwhile.

        Raises:
            MoveUnverified: the copy is no better; the torn one stays.
            SetupError, ServiceError: vectors are to be made anew, and the model cannot be used.
        """
        about = self._about()
        if about is None:
            raise MoveConflict(reason="nothing was ever remembered in this namespace")
        if self.resume() == collection and (found := self.examine(collection)).condition is Condition.SOUND:
            return Mended(collection, found.rows, 0)
        closed = replace(about, mending=collection, is_replacing=False)
        self._namespace.state(closed)
        copy = _copy_of(collection)
        try:
            self._pause(NOTICE_SECONDS)
            self._renew()
            self._chroma.drop(copy)
            mended = self._copy(about, collection, copy)
            found = self.examine(copy)
            if (found.condition, found.rows) != (Condition.SOUND, mended.rows):
                raise MoveUnverified(rows=max(found.unread, found.unfound, abs(found.rows - mended.rows)))
        except BaseException:
            with suppress(MemoryFault):  # whatever it is, writes are not to stay closed for it
                self._renew()
                self._open(about)
            raise
        self._renew()
        # From here on the copy is what counts: if this is cut, writes stay closed until it is resumed.
        self._namespace.state(replace(closed, is_replacing=True))
        self._replace(collection)
        self._open(about)
        return mended

    # --- reading ---------------------------------------------------------------------------------

    def _rows(self, collection: str) -> list[Row]:
        rows: list[Row] = []
        for page in _pages(self._chroma.ids(collection), PAGE_ROWS):
            self._renew()
            rows += self._chroma.get(collection, ids=page)
        return rows

    def _vectors(self, collection: str, rows: Sequence[Row]) -> dict[str, Vector]:
        """The vectors that can be read and are such."""
        vectors: dict[str, Vector] = {}
        for page in _pages([row.row_id for row in rows], PAGE_ROWS):
            read = self._read(collection, page)
            if read is None:
                for chunk in _pages(page, CHUNK_ROWS):
                    vectors |= self._read(collection, chunk) or {}
            else:
                vectors |= read
        return vectors

    def _read(self, collection: str, ids: Sequence[str]) -> dict[str, Vector] | None:
        self._renew()
        try:
            rows = self._chroma.get(collection, ids=ids, with_vectors=True)
        except ChromaFailed:
            return None
        return {
            row.row_id: row.vector for row in rows if row.vector is not None and _has_direction(row.vector)
        }

    def _unfound(self, collection: str, rows: Sequence[Row]) -> set[str]:
        """The rows that a search among their customer's own does not find."""
        by_scope: dict[str, set[str]] = {}
        for row in rows:
            if "scope" in row.columns:
                by_scope.setdefault(str(row.columns["scope"]), set()).add(row.row_id)
        about = self._about()
        unfound: set[str] = set()
        for key, ids in by_scope.items() if about else ():
            self._renew()
            probe = [about.dimension**-0.5] * about.dimension if about else []
            try:
                found = self._chroma.nearest(collection, probe, where={"scope": key}, limit=len(ids))
                missing = ids - found.keys()
                if missing:  # they may have been written or deleted meanwhile
                    now = {row.row_id for row in self._chroma.get(collection, where={"scope": key})}
                    found = self._chroma.nearest(collection, probe, where={"scope": key}, limit=len(now) or 1)
                    missing = (ids & now) - found.keys()
            except ChromaFailed:
                missing = ids
            unfound |= missing
        return unfound

    # --- copying ---------------------------------------------------------------------------------

    def _copy(self, about: About, collection: str, copy: str) -> Mended:
        made_anew = 0
        rows = self._rows(collection)
        for page in _pages(rows, PAGE_ROWS):
            vectors = self._vectors(collection, page)
            lost = [row for row in page if row.row_id not in vectors]
            made_anew += len(lost)
            whole = [replace(r, vector=vectors[r.row_id]) for r in page if r.row_id in vectors]
            whole += self._with_new_vectors(about, lost)
            self._renew()
            self._chroma.put(copy, whole)
            back = {row.row_id: row for row in self._chroma.get(copy, ids=[r.row_id for r in whole])}
            wrong = [row for row in whole if not is_same(row, back.get(row.row_id))]
            if wrong:
                raise MoveUnverified(rows=len(wrong))
        return Mended(collection, len(rows), made_anew)

    def _with_new_vectors(self, about: About, rows: Sequence[Row]) -> list[Row]:
        searched = [row for row in rows if "scope" in row.columns]
        rest = [replace(r, vector=unsearched_vector(r.row_id)) for r in rows if "scope" not in r.columns]
        if not searched:
            return rest
        embedder = NamespaceEmbedders(self._namespace, self._embedders).of(about)
        return rest + vectors_of(searched, embedder, about.dimension)

    def _replace(self, collection: str) -> None:
        """Let the copy take the place of a torn collection, unless it has."""
        if self._chroma.metadata(_copy_of(collection)) is not None:
            self._chroma.drop(collection)
            self._chroma.rename(_copy_of(collection), collection)

    # --- plumbing --------------------------------------------------------------------------------

    def _about(self) -> About | None:
        about = self._namespace.look()
        if about is not None and about.move is not None:
            raise MoveConflict(reason="it is being moved to another layout, so finish that first")
        return about

    def _open(self, about: About) -> None:
        self._namespace.state(replace(about, mending="", is_replacing=False))

    def _renew(self) -> None:
        for chroma in (self._chroma, self._namespace.chroma):
            chroma.renew()


def _copy_of(collection: str) -> str:
    return f"{collection}copy"


def _has_direction(vector: Vector) -> bool:
    least, most = LENGTHS
    return least < math.hypot(*vector) < most  # false as well where a number is none


def _pages[T](items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))
