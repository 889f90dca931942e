"""A namespace: one independent memory space, what it remembers of itself, and its collections' names.

What it remembers is the metadata of one small collection, `about`. Creating a collection is atomic in Chroma
and the first creator's metadata stays, so that two processes starting a namespace at once agree.
"""

import re
import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress

from memory.about import About, Stage, from_metadata, known_about, to_metadata
from memory.backlog import backlog
from memory.chroma import Chroma
from memory.chroma_rows import Row
from memory.embedding import EmbedderIdentity
from memory.errors import EmbedderMismatch, MemoryFault, NamespaceMoving
from memory.limits import UNLIMITED, Limits
from memory.records import Columns
from memory.settings import ChromaSettings

_PREFIX = "cm"
_MEMORIES = re.compile(r"(?:g(\d+))?m\d{4,}")
"""Suffix of a collection of memories; the first layout's has no generation in it."""


class Namespace:
    """The collections of one namespace, and what it remembers of itself.

    Args:
        chroma: the database it lies in.
        settings: its name, and the number of shards it gets if it has to be started.
        limits: which part of it may be touched.
    """

    def __init__(self, chroma: Chroma, settings: ChromaSettings, limits: Limits = UNLIMITED) -> None:
        self.chroma = chroma
        self.limits = limits
        self._settings = settings
        chroma.when_gone = self._start_again
        chroma.before_create = self._before_create
        chroma.when_missing = self._when_missing
        chroma.around_write = self._around_write

    def without_limits(self) -> "Namespace":
        """The same, for finishing what an administrator began, whoever's call meets it."""
        return Namespace(self.chroma, self._settings)

    @property
    def name(self) -> str:
        """The namespace's name."""
        return self._settings.namespace

    @property
    def place(self) -> tuple[str, ...]:
        """What tells it from every other namespace: server, tenant, database, name."""
        return (*_place(self._settings), self.name)

    def about(self) -> About | None:
        """What the namespace remembers, read in the last two seconds; None if nothing was ever written to it.

        Raises:
            ChromaTenantMissing, ChromaDatabaseMissing: there is no such place to look in.
        """
        return known_about.fresh(self.place) or self.look()

    def look(self) -> About | None:
        """The same, read now."""
        asked_at = time.monotonic()
        stored = self.chroma.metadata(self._collection("about"))
        if stored is None:
            known_about.pop(self.place)
            self.chroma.check_database()
            return None
        return known_about.put(self.place, from_metadata(stored), asked_at)

    def state(self, about: About) -> None:
        """Write what the namespace is to remember, over what it did; for whoever changes its layout."""
        asked_at = time.monotonic()
        self.chroma.amend(self._collection("about"), to_metadata(about))
        known_about.put(self.place, about, asked_at)

    def start(
        self,
        embedder: EmbedderIdentity,
        dimension: int,
        *,
        noise: float,
        shards: int | None = None,
        salt: str = "",
        generation: int = 0,
    ) -> About:
        """Start the namespace with an embedding model, unless another call has started it already.

        Args:
            embedder, dimension, noise: the model.
            shards: collections to spread customers over; None for what the settings say.
            salt: see `About`; "" for a new one.
            generation: of its collections.

        Returns:
            What it remembers now, which may name another model than the one given.
        """
        about = About(
            embedder,
            dimension,
            shards or self._settings.shards,
            noise,
            salt or secrets.token_hex(16),
            generation,
        )
        return from_metadata(self.chroma.create(self._collection("about"), to_metadata(about)))

    def planned(self, embedder: EmbedderIdentity, dimension: int, *, noise: float) -> About:
        """What the namespace would remember if it were started now; nothing is written."""
        return About(embedder, dimension, self._settings.shards, noise)

    def count_rows(self, about: About) -> Iterator[int]:
        """Rows in each of the collections of memories."""
        return (self.chroma.count(self.memories(n, about.generation)) for n in range(about.shards))

    # --- kept to the present layout --------------------------------------------------------------

    def _before_create(self, collection: str) -> None:
        """Make sure, before a collection is created, that the namespace is still the one we know.

        Raises:
            NamespaceMoving: it has another layout by now, or the collection is being mended.
            EmbedderMismatch: it was deleted and started anew with another model.
        """
        generation = self._generation(collection)
        about = known_about.get(self.place)
        if about is None or collection == self.changes:
            return
        stored = self.look() if generation is None else self._start_as(about)
        if stored is not None and stored.mending == collection:
            raise NamespaceMoving
        if stored is None or generation is None:
            return
        if stored != about or stored.generation != generation:
            known_about.pop(self.place)
            if stored.generation != generation:
                raise NamespaceMoving
            raise EmbedderMismatch(stored=str(stored.embedder), offered=str(about.embedder))

    def _start_as(self, about: About) -> About:
        """Start the namespace, unless it is there, as it was before it was deleted."""
        return self.start(
            about.embedder,
            about.dimension,
            noise=about.noise,
            shards=about.shards,
            salt=about.salt,
            generation=about.generation,
        )

    def _start_again(self, is_write: bool) -> None:
        """A collection was deleted while this process used it.

        Either the layout changed, or the namespace was deleted: it is started anew before a write.
        """
        known = known_about.pop(self.place)
        if known is None:
            return
        now = self.look()
        if now is not None and now.generation != known.generation:
            raise NamespaceMoving
        if not is_write:
            return
        now = now or self._start_as(known)
        if now.embedder != known.embedder:
            raise EmbedderMismatch(stored=str(now.embedder), offered=str(known.embedder))

    def _when_missing(self, collection: str) -> None:
        """A collection to read is not there: make sure that this means that it is empty.

        Raises:
            NamespaceMoving: the memories lie elsewhere by now, or are about to.
        """
        generation = self._generation(collection)
        known = known_about.fresh(self.place)
        is_settled = known is not None and not known.mending and not known.is_closed
        if collection == self._collection("about") or (
            is_settled and known is not None and generation in {None, known.generation}
        ):
            return
        about = self.look()
        if about is not None and (generation not in {None, about.generation} or about.mending == collection):
            raise NamespaceMoving

    @contextmanager
    def _around_write(self, collection: str, ids: Sequence[str]) -> Iterator[None]:
        """Refuse a write that the layout of the moment does not take, also if that is found out afterwards.

        While memories are copied into another layout, the ids of what is written are noted. Only what
        neither the switch nor the last copy can have missed is acknowledged.

        Raises:
            NamespaceMoving: it may be lost, and has to be done again.
        """
        generation = self._generation(collection)
        if collection in {self.changes, self._collection("about")}:
            yield
            return
        noted = self._note(known_about.get(self.place), collection, generation, ids)
        yield
        while self._turn(now := self.look(), collection, generation) != noted:
            noted = self._note(now, collection, generation, ids)
        if generation is not None and now is not None:
            self._catch_up(collection, len(ids), now.shards)

    def _catch_up(self, collection: str, rows: int, shards: int) -> None:
        """Have the collection's index file written if it is far behind; the write stands in any case."""
        if backlog.is_due((*self.place, collection), rows, shards=shards):
            with suppress(MemoryFault):
                self.chroma.flush(collection)

    def _turn(self, about: About | None, collection: str, generation: int | None) -> int:
        """Under which number a write has to be noted; 0 for none.

        Raises:
            NamespaceMoving: there may be no such write at the moment.
        """
        if about is None:
            return 0
        if about.mending == collection:
            raise NamespaceMoving
        if generation is None:
            return 0
        if about.is_closed or about.generation != generation:
            raise NamespaceMoving
        return about.move.turn if about.move is not None and about.move.stage is Stage.COPYING else 0

    def _note(self, about: About | None, collection: str, generation: int | None, ids: Sequence[str]) -> int:
        """Note what is written, where it has to be; under which number."""
        try:
            turn = self._turn(about, collection, generation)
        except NamespaceMoving:
            about = self.look()  # it may be over by now
            turn = self._turn(about, collection, generation)
        if turn:
            columns: Columns = {"turn": str(turn), "collection": collection}
            self.chroma.put(self.changes, [Row(i, "", columns, unsearched_vector(i)) for i in ids])
        return turn

    def _generation(self, collection: str) -> int | None:
        """The generation of a collection of memories; None for any other."""
        suffix = _MEMORIES.fullmatch(collection.removeprefix(self._collection("")))
        return None if suffix is None else int(suffix[1] or 0)

    # --- collections -----------------------------------------------------------------------------

    def wipe(self, collection: str, rows: Iterable[tuple[str, str]], columns: Iterable[str]) -> None:
        """Overwrite rows that no search meets, then delete them.

        Args:
            collection: of links, tickets or aliases.
            rows: id of each row, and the key of the customer's scope. The key stays until the row is
                deleted, so that it is found again if this is cut short.
            columns: all other columns.
        """
        blank: Columns = dict.fromkeys(columns)
        wiped = [Row(row_id, "[]", {**blank, "customer": key}, CONSTANT_VECTOR) for row_id, key in rows]
        self.chroma.put(collection, wiped)
        self.chroma.delete(collection, [row.row_id for row in wiped])

    def memories(self, shard: int, generation: int = 0) -> str:
        """Name of the collection of one shard.

        Args:
            shard: which, from 0.
            generation: of the layout, see `About`; whoever works on a namespace that lives gives it always.
        """
        return self._collection(f"g{generation}m{shard:04d}" if generation else f"m{shard:04d}")

    @property
    def links(self) -> str:
        """Name of the collection of links."""
        return self._collection("links")

    @property
    def ledger(self) -> str:
        """Name of the collection of what was imported."""
        return self._collection("ledger")

    @property
    def audit(self) -> str:
        """Name of the collection of who did what."""
        return self._collection("audit")

    @property
    def restore(self) -> str:
        """Name of the collection that says which backup was loaded, and how far."""
        return self._collection("restore")

    @property
    def tombstones(self) -> str:
        """Name of the collection of what must not be imported again."""
        return self._collection("tombstones")

    @property
    def receipts(self) -> str:
        """Name of the collection of receipts."""
        return self._collection("receipts")

    @property
    def changes(self) -> str:
        """Name of the collection of what was written while the layout is being changed."""
        return self._collection("changes")

    @property
    def aliases(self) -> str:
        """Name of the collection of customers that were merged into others."""
        return self._collection("aliases")

    def _collection(self, suffix: str) -> str:
        # A suffix has no hyphen, so the names of two namespaces can never be the same.
        return f"{_PREFIX}-{self.name}-{suffix}"


def unsearched_vector(row_id: str) -> list[float]:
    """A vector for a row that is never searched by one, since the store wants one for every row.

    It differs from row to row, which keeps the index from piling them all on one point.

    Args:
        row_id: 32 hexadecimal digits.
    """
    return [int(row_id[i : i + 4], 16) / 65_535 + 0.01 for i in (0, 4)]


CONSTANT_VECTOR = [1.0, 0.0]
"""What `unsearched_vector` is overwritten with before its row is deleted."""


def constant_vector(about: About) -> list[float]:
    """The vector of rows of memories that have none, and of those whose own is overwritten."""
    return [1.0] + [0.0] * (about.dimension - 1)


def _place(settings: ChromaSettings) -> tuple[str, str, str]:
    return settings.base_url, settings.tenant, settings.database
