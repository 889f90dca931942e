"""Rows in named collections of a Chroma database, within the time of the call and with our own errors.

It knows nothing of customers; `memory.store` and `memory.links` do. The connections are those of
`memory.chroma_connection`.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

from memory.chroma_attempts import run
from memory.chroma_connection import CollectionGone, Connection, chroma_errors, connections
from memory.chroma_rows import Row, Vector, present, rows_of
from memory.clock import Deadline
from memory.errors import ChromaDatabaseMissing, ChromaFailed
from memory.quotas import cut
from memory.settings import ChromaSettings

PAGE = 1_000
"""Rows asked for in one read, where no quota is below it."""
WRITE_BATCH = 500
"""Rows in one write, where no quota is below it; well below the server's limit of 5,461 and 40 MB."""
MOST_IN_A_WRITE = 5_000
"""Ids in one deletion."""
SYNC_THRESHOLD = 1_000
"""Chroma's own, where a collection does not say."""
type Where = dict[str, str]
"""One equality. More than one condition is looked up over the whole database, so none can be given."""


class Chroma:
    """Rows in the collections of one Chroma database.

    Building one opens nothing. Reads of a collection that does not exist give nothing; writes create it.
    Every call ends by the deadline, with a `MemoryFault` if it could not be done.

    Args:
        settings: address, token, tenant, database.
        deadline: when the whole call this object serves has to be over.
        connection: one of its own; None for the one the process shares.
    """

    def __init__(
        self, settings: ChromaSettings, deadline: Deadline, connection: Connection | None = None
    ) -> None:
        self._settings = settings
        self._own = connection
        self._deadline = deadline
        self.before_create: Callable[[str], None] = _nothing
        """Called with a collection's name before a write creates it, or finds it created by another."""
        self.when_gone: Callable[[bool], None] = _nothing
        """Called when a collection was deleted behind our back; with True before a write goes to it."""
        self.when_missing: Callable[[str], None] = _nothing
        """Called with the name of a collection that was to be read and is not there."""
        self.around_write: Callable[[str, Sequence[str]], AbstractContextManager[None]] = _around_nothing
        """What each write is done within: called with the collection's name and the ids of the rows."""

    def allow(self, seconds: float) -> None:
        """Put the time limit off by what something else took meanwhile."""
        self._deadline = Deadline(self._deadline.at + seconds)

    def renew(self) -> None:
        """Start the time limit anew, for one more step of a long piece of work."""
        self._deadline = Deadline.after(self._settings.timeout_seconds)

    @property
    def page(self) -> int:
        """Rows asked for in one read."""
        return self._settings.quotas.read_size(PAGE)

    @property
    def write_batch(self) -> int:
        """Rows in one write."""
        return self._settings.quotas.write_size(WRITE_BATCH)

    def most_found(self, limit: int) -> int:
        """Rows that one search finds at the most, where so many are wanted."""
        return self._settings.quotas.read_size(limit)

    @contextmanager
    def apart(self) -> Iterator[Chroma]:
        """The same database through a fresh connection, for reading what no earlier answer can colour."""
        connection = Connection(self._settings)
        try:
            yield Chroma(self._settings, self._deadline, connection)
        finally:
            connection.close()

    # --- reading ---------------------------------------------------------------------------------

    def get(
        self,
        collection: str,
        *,
        ids: Sequence[str] | None = None,
        where: Where | None = None,
        limit: int | None = None,
        offset: int = 0,
        with_vectors: bool = False,
    ) -> list[Row]:
        """Rows by id, or by one equality in the order they were written.

        Args:
            collection: its name.
            ids: which rows; missing ones are left out. An empty list gives nothing.
            where: one equality, when there are no ids.
            limit: rows at the most; None for all.
            offset: rows to skip.
            with_vectors: whether to fetch the vectors too (many times the bytes).
        """
        include = ["documents", "metadatas", *(["embeddings"] if with_vectors else [])]
        rows: list[Row] = []
        if ids is not None:
            for batch in _batches(list(dict.fromkeys(ids)), self.page):
                rows.extend(rows_of(self._read(collection, "get", ids=batch, include=include)))
            return rows
        start = offset
        while limit is None or len(rows) < limit:
            size = self.page if limit is None else min(self.page, limit - len(rows))
            found = self._read(collection, "get", where=where, limit=size, offset=start, include=include)
            page = rows_of(found)
            rows.extend(page)
            if found is None or len(found["ids"]) < size:
                break
            start += size
        return rows

    def ids(self, collection: str, *, where: Where | None = None) -> list[str]:
        """The ids of all rows, or of those that meet one equality, in their own order.

        They are read in one request, so that no row is missed because others were deleted meanwhile; where a
        quota makes it several, they are read until they bring nothing new.
        """
        size = self._settings.quotas.records_per_read
        if size is None:
            found = self._read(collection, "get", where=where, include=[])
            return [] if found is None else sorted(found["ids"])
        ids: set[str] = set()
        while True:
            new = set(self._paged_ids(collection, where, size))
            if new <= ids or len(new) < size:
                return sorted(ids | new)
            ids |= new

    def _paged_ids(self, collection: str, where: Where | None, size: int) -> Iterator[str]:
        for start in itertools.count(step=size):
            found = self._read(collection, "get", where=where, limit=size, offset=start, include=[])
            yield from () if found is None else found["ids"]
            if found is None or len(found["ids"]) < size:
                return

    def vectors(self, collection: str, *, where: Where, limit: int) -> dict[str, Vector]:
        """By row id the vectors of rows that meet one equality, as many as are wanted and quotas let pass."""
        limit = self.most_found(limit)
        found = self._read(collection, "get", where=where, limit=limit, include=["embeddings"])
        return {} if found is None else dict(zip(found["ids"], found["embeddings"], strict=True))

    def nearest(self, collection: str, vector: Vector, *, where: Where, limit: int) -> dict[str, float]:
        """The rows nearest to a vector among those that meet one equality, as many as quotas let pass.

        Returns:
            Row id → cosine distance, 0 for the same direction to 2 for the opposite; nearest first.
        """
        found = self._read(
            collection,
            "query",
            query_embeddings=[list(vector)],
            n_results=self.most_found(limit),
            where=where,
            include=["distances"],
        )
        if found is None:
            return {}
        return dict(zip(found["ids"][0], found["distances"][0], strict=True))

    def count(self, collection: str) -> int:
        """Rows in a collection; 0 if it does not exist."""
        return int(self._read(collection, "count") or 0)

    def metadata(self, collection: str) -> dict[str, Any] | None:
        """What a collection was created with; None if it does not exist."""
        # Asked of the server always, since it may have been amended.
        handle = self._call(lambda c: c.open(collection, create=None))
        return None if handle is None else dict(handle.metadata or {})

    # --- writing ---------------------------------------------------------------------------------

    def create(self, collection: str, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """Create a collection unless it exists; the first creator's metadata stays.

        Returns:
            What the collection was really created with, by whomever.
        """
        # Asked of the server always: the handle we have may be of a collection that is no more.
        handle = self._call(lambda c: c.open(collection, create=metadata))
        self._connection().handles[collection] = handle
        return dict(handle.metadata or {})

    def amend(self, collection: str, metadata: Mapping[str, Any]) -> None:
        """Give a collection that exists other metadata, whole."""
        handle = self._call(lambda c: c.open(collection, create=None))
        if handle is None:
            raise ChromaFailed
        self._run(lambda: handle.modify(metadata=dict(metadata)))

    def rename(self, collection: str, name: str) -> None:
        """Give a collection that exists another name, which nobody has."""
        handle = self._call(lambda c: c.open(collection, create=None))
        if handle is None:
            raise ChromaFailed
        self._run(lambda: handle.modify(name=name))
        self._connection().handles.pop(collection, None)

    def put(self, collection: str, rows: Sequence[Row]) -> None:
        """Write rows whole, over earlier ones of the same id; a column that is None goes away."""
        self._write_rows("upsert", collection, rows)

    def add(self, collection: str, rows: Sequence[Row]) -> None:
        """Write rows whose id is not there yet; an id that exists keeps what it has, without an error."""
        self._write_rows("add", collection, rows)

    def change(self, collection: str, columns: Mapping[str, Mapping[str, Any]]) -> None:
        """Change columns of rows that exist: row id → columns; None clears one."""
        for batch in _batches(list(columns.items()), self.write_batch):
            ids = [row_id for row_id, _ in batch]
            values = [dict(change) for _, change in batch]
            self._write(collection, "update", ids=ids, metadatas=values)

    def delete(self, collection: str, ids: Sequence[str]) -> None:
        """Delete rows by id; a missing id is no error."""
        for batch in _batches(list(dict.fromkeys(ids)), self.write_batch):
            self._write(collection, "delete", ids=batch)

    def flush(self, collection: str, *, dropping: Sequence[str] = ()) -> bool:
        """Bring the server to write a collection's log into its index file, so that a vacuum drops the log.

        A server with an index file does so after as many changes as its `sync_threshold` says, and the
        deletion of an id that does not exist is one: about 50 ms for the usual 1,000.

        Args:
            collection: which.
            dropping: ids of rows to delete first, in the same request as far as quotas allow.

        Returns:
            See `has_log`.
        """
        handle = self._handle(collection, create=None)
        if handle is None:
            return True
        changes = _sync_threshold(handle)
        ids = [*dropping, *(f"none-{n}" for n in range(changes))]
        size = self._settings.quotas.write_size(MOST_IN_A_WRITE)
        with self.around_write(collection, dropping) if dropping else nullcontext():
            for batch in _batches(ids, size):
                self._read(collection, "delete", ids=batch)
        return changes > 0

    def has_log(self, collection: str) -> bool:
        """Whether a collection's log goes into an index file; a hosted Chroma keeps its files its own way."""
        handle = self._handle(collection, create=None)
        return handle is None or _sync_threshold(handle) > 0

    def drop(self, collection: str) -> None:
        """Delete a whole collection; a missing one is no error."""

        def dropped(connection: Connection) -> None:
            try:
                connection.api.delete_collection(name=collection, **connection.database_arguments)
            except chroma_errors().NotFoundError:
                return

        self._call(dropped)
        self._connection().handles.pop(collection, None)

    # --- the server ------------------------------------------------------------------------------

    def check(self) -> str:
        """Make sure that a usable Chroma server is there, with the tenant and database.

        Returns:
            The version it reports.

        Raises:
            ChromaUnreachable, ChromaTimeout, ChromaNotFound, ChromaTooOld, ChromaRefused,
            ChromaTenantMissing, ChromaDatabaseMissing.
        """
        version = str(self._call(lambda connection: connection.version()))
        self.check_database()
        return version

    def heartbeat(self) -> float:
        """Seconds that the least the server can be asked takes."""
        started = time.monotonic()
        self._call(lambda connection: connection.api.heartbeat())
        return time.monotonic() - started

    def check_database(self) -> None:
        """Make sure that tenant and database exist; a missing collection does not tell.

        Raises:
            ChromaTenantMissing, ChromaDatabaseMissing.
        """
        tenant, database = self._settings.tenant, self._settings.database
        self._call(lambda connection: connection.api.get_tenant(name=tenant))
        try:
            self._call(lambda c: c.api.get_database(name=database, tenant=tenant))
        except CollectionGone:
            raise ChromaDatabaseMissing from None

    # --- plumbing --------------------------------------------------------------------------------

    def _write_rows(self, method: str, collection: str, rows: Sequence[Row]) -> None:
        once = list({row.row_id: row for row in rows}.values())  # of one id the last
        for batch in _batches(once, self.write_batch):
            cuts = [cut(row.text, row.columns, self._settings.quotas) for row in batch]
            arguments: dict[str, Any] = {
                "ids": [row.row_id for row in batch],
                "documents": [text for text, _ in cuts],
                "metadatas": [columns for _, columns in cuts],
                "embeddings": [list(row.vector or ()) for row in batch],
            }
            if method == "add":
                arguments["metadatas"] = [present(m) for m in arguments["metadatas"]]
            self._write(collection, method, **arguments)

    def _read(self, collection: str, method: str, **arguments: Any) -> Any:
        """Run a read on a collection; None if the collection does not exist."""
        return self._on_collection(collection, method, arguments, create=None)

    def _write(self, collection: str, method: str, **arguments: Any) -> None:
        """Run a write; every write here may be repeated, since ids are given and values are whole."""
        with self.around_write(collection, arguments["ids"]):
            self._on_collection(collection, method, arguments, create={})

    def _on_collection(
        self, name: str, method: str, arguments: dict[str, Any], *, create: Mapping[str, Any] | None
    ) -> Any:
        for _ in range(2):
            handle = self._handle(name, create=create)
            if handle is None:
                self.when_missing(name)
                return None
            work = partial(getattr(handle, method), **arguments)
            try:
                return self._run(work)
            except CollectionGone:
                self._connection().handles.clear()
                self.when_gone(create is not None)
        raise ChromaFailed

    def _handle(self, name: str, *, create: Mapping[str, Any] | None) -> Any:
        connection = self._connection()
        handle = connection.handles.get(name)
        if handle is None:
            if create is not None:
                self.before_create(name)
            handle = self._call(lambda c: c.open(name, create=create))
            if handle is not None:
                connection.handles[name] = handle
        return handle

    def _call(self, work: Callable[[Connection], Any]) -> Any:
        """Run one request of the connection; see `_run`."""
        return self._run(partial(work, self._connection()))

    def _run(self, work: Callable[[], Any]) -> Any:
        """Run one request within the deadline; every one made here may be repeated."""
        return run(self._connection(), self._deadline, work)

    def _connection(self) -> Connection:
        if self._own is not None:
            return self._own
        started = time.monotonic()
        connection = connections.get(self._settings)
        # The first one brings chromadb in: a second or more of our own work, not the server's.
        self.allow(time.monotonic() - started)
        return connection


def _sync_threshold(handle: Any) -> int:
    """Changes after which the server writes a collection's index out; 0 where it has no such file."""
    index = (handle.configuration_json or {}).get("hnsw")
    return int(index.get("sync_threshold", SYNC_THRESHOLD)) if index else 0


def _nothing(_detail: object) -> None:
    return None


def _around_nothing(_collection: str, _ids: Sequence[str]) -> AbstractContextManager[None]:
    return nullcontext()


def _batches[T](items: Sequence[T], size: int) -> Iterable[Sequence[T]]:
    return (items[i : i + size] for i in range(0, len(items), size))
