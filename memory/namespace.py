"""A namespace: one independent memory space, what it remembers of itself, and its collections' names.

What it remembers is the metadata of one small collection, `about`. Creating a collection is atomic in Chroma
and the first creator's metadata stays, so that two processes starting a namespace at once agree.
"""

import threading
from collections.abc import Iterator
from dataclasses import dataclass

from memory.chroma import Chroma
from memory.embedding import EmbedderIdentity, Source
from memory.errors import ChromaNotFound, EmbedderMismatch
from memory.settings import ChromaSettings

_PREFIX = "cm"
_LAYOUT = 1
"""Version of the layout of collections and columns."""


@dataclass(frozen=True, slots=True)
class About:
    """What a namespace remembers of itself from its first write on.

    Attributes:
        embedder: the model all its vectors come from.
        dimension: length of a vector.
        shards: collections its customers are spread over.
    """

    embedder: EmbedderIdentity
    dimension: int
    shards: int


class Namespace:
    """The collections of one namespace, and what it remembers of itself.

    Args:
        chroma: the database it lies in.
        settings: its name, and the number of shards it gets if it has to be started.
    """

    def __init__(self, chroma: Chroma, settings: ChromaSettings) -> None:
        self.chroma = chroma
        self._settings = settings
        chroma.when_gone = self._start_again
        chroma.before_create = self._before_create

    @property
    def name(self) -> str:
        """The namespace's name."""
        return self._settings.namespace

    def about(self) -> About | None:
        """What the namespace remembers; None if nothing was ever written to it.

        Raises:
            ChromaTenantMissing, ChromaDatabaseMissing: there is no such place to look in.
        """
        key = (*_place(self._settings), self.name)
        known = _known.get(key)
        if known is None:
            stored = self.chroma.metadata(self._collection("about"))
            if stored is None:
                self.chroma.check_database()
                return None
            known = _known.put(key, _about(stored))
        return known

    def start(self, embedder: EmbedderIdentity, dimension: int, *, shards: int | None = None) -> About:
        """Start the namespace with an embedding model, unless another call has started it already.

        Args:
            embedder, dimension: the model.
            shards: collections to spread customers over; None for what the settings say.

        Returns:
            What it remembers now, which may name another model than the one given.
        """
        stored = self.chroma.create(
            self._collection("about"),
            {
                "layout": _LAYOUT,
                "source": str(embedder.source),
                "provider": embedder.provider,
                "model": embedder.model,
                "dimension": dimension,
                "shards": shards or self._settings.shards,
            },
        )
        return _about(stored)

    def planned(self, embedder: EmbedderIdentity, dimension: int) -> About:
        """What the namespace would remember if it were started now; nothing is written."""
        return About(embedder, dimension, self._settings.shards)

    def count_rows(self, shards: int) -> Iterator[int]:
        """Rows in each of the collections of memories."""
        return (self.chroma.count(self.memories(shard)) for shard in range(shards))

    def _before_create(self, collection: str) -> None:
        """Make sure, before a collection of memories is created, that the namespace is still the one we know.

        Raises:
            EmbedderMismatch: it was deleted and started anew with another model.
        """
        about = _known.get((*_place(self._settings), self.name))
        if about is None or not collection.startswith(self._collection("m")):
            return
        stored = self.start(about.embedder, about.dimension, shards=about.shards)
        if stored != about:
            _known.pop((*_place(self._settings), self.name))
            raise EmbedderMismatch(stored=str(stored.embedder), offered=str(about.embedder))

    def _start_again(self, is_write: bool) -> None:
        """The namespace was deleted while this process used it: start it anew before anything is written."""
        known = _known.pop((*_place(self._settings), self.name))
        if known is None or not is_write:
            return
        now = self.start(known.embedder, known.dimension, shards=known.shards)
        if now.embedder != known.embedder:
            raise EmbedderMismatch(stored=str(now.embedder), offered=str(known.embedder))

    def memories(self, shard: int) -> str:
        """Name of the collection of one shard."""
        return self._collection(f"m{shard:04d}")

    @property
    def links(self) -> str:
        """Name of the collection of links."""
        return self._collection("links")

    @property
    def ledger(self) -> str:
        """Name of the collection of what was imported."""
        return self._collection("ledger")

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


def _place(settings: ChromaSettings) -> tuple[str, str, str]:
    return settings.base_url, settings.tenant, settings.database


def _about(stored: dict[str, object]) -> About:
    try:
        return About(
            EmbedderIdentity(Source(str(stored["source"])), str(stored["provider"]), str(stored["model"])),
            int(str(stored["dimension"])),
            int(str(stored["shards"])),
        )
    except (KeyError, ValueError):
        raise ChromaNotFound from None


class _Known:
    """What this process has read of namespaces. It never changes while the namespace lives."""

    _LIMIT = 1_000

    def __init__(self) -> None:
        self._about: dict[tuple[str, ...], About] = {}
        self._lock = threading.Lock()

    def get(self, key: tuple[str, ...]) -> About | None:
        return self._about.get(key)

    def put(self, key: tuple[str, ...], about: About) -> About:
        with self._lock:
            if len(self._about) >= self._LIMIT:
                self._about.clear()
            self._about[key] = about
        return about

    def pop(self, key: tuple[str, ...]) -> About | None:
        with self._lock:
            return self._about.pop(key, None)


_known = _Known()
