"""Rows in named collections of a Chroma database, within the time of the call and with our own errors.

It knows nothing of customers; `memory.store` and `memory.links` do. The connections are those of
`memory.chroma_connection`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from memory.chroma_connection import (
    CollectionGone,
    Connection,
    chroma_errors,
    connections,
    limit,
    translate,
)
from memory.clock import Deadline
from memory.errors import (
    ChromaDatabaseMissing,
    ChromaFailed,
    ChromaNotFound,
    ChromaUnreachable,
    MemoryFault,
)
from memory.settings import ChromaSettings

PAGE = 1_000
"""Rows asked for in one read."""
WRITE_BATCH = 500
"""Rows in one write; well below the server's limit of 5,461 and 40 MB."""
type Where = dict[str, str]
"""One equality. More than one condition is looked up over the whole database, so none can be given."""
type Vector = Sequence[float]


@dataclass(frozen=True, slots=True)
class Row:
    """One stored row. `vector` is there only where it was asked for."""

    row_id: str
    text: str
    columns: dict[str, Any]
    vector: Vector | None = None


class Chroma:
    """Rows in the collections of one Chroma database.

    Building one opens nothing. Reads of a collection that does not exist give nothing; writes create it.
    Every call ends by the deadline, with a `MemoryFault` if it could not be done.

    Args:
        settings: address, token, tenant, database.
        deadline: when the whole call this object serves has to be over.
    """

    def __init__(self, settings: ChromaSettings, deadline: Deadline) -> None:
        self._settings = settings
        self._deadline = deadline
        self.before_create: Callable[[str], None] = _nothing
        """Called with a collection's name before a write creates it, or finds it created by another."""
        self.when_gone: Callable[[bool], None] = _nothing
        """Called when a collection was deleted behind our back; with True before a write goes to it."""

    def allow(self, seconds: float) -> None:
        """Put the time limit off by what something else took meanwhile."""
        self._deadline = Deadline(self._deadline.at + seconds)

    def renew(self) -> None:
        """Start the time limit anew, for one more step of a long piece of work."""
        self._deadline = Deadline.after(self._settings.timeout_seconds)

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
            for batch in _batches(list(dict.fromkeys(ids)), PAGE):
                rows.extend(_rows(self._read(collection, "get", ids=batch, include=include)))
            return rows
        start = offset
        while limit is None or len(rows) < limit:
            size = PAGE if limit is None else min(PAGE, limit - len(rows))
            found = self._read(collection, "get", where=where, limit=size, offset=start, include=include)
            page = _rows(found)
            rows.extend(page)
            if found is None or len(found["ids"]) < size:
                break
            start += size
        return rows

    def nearest(self, collection: str, vector: Vector, *, where: Where, limit: int) -> dict[str, float]:
        """The rows nearest to a vector among those that meet one equality.

        Returns:
            Row id → cosine distance, 0 for the same direction to 2 for the opposite; nearest first.
        """
        found = self._read(
            collection,
            "query",
            query_embeddings=[list(vector)],
            n_results=limit,
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
        handle = self._handle(collection, create=None)
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

    def put(self, collection: str, rows: Sequence[Row]) -> None:
        """Write rows whole, over earlier ones of the same id; a column that is None goes away."""
        self._write_rows("upsert", collection, rows)

    def add(self, collection: str, rows: Sequence[Row]) -> None:
        """Write rows whose id is not there yet; an id that exists keeps what it has, without an error."""
        self._write_rows("add", collection, rows)

    def change(self, collection: str, columns: Mapping[str, Mapping[str, Any]]) -> None:
        """Change columns of rows that exist: row id → columns; None clears one."""
        for batch in _batches(list(columns.items()), WRITE_BATCH):
            ids = [row_id for row_id, _ in batch]
            values = [dict(change) for _, change in batch]
            self._write(collection, "update", ids=ids, metadatas=values)

    def delete(self, collection: str, ids: Sequence[str]) -> None:
        """Delete rows by id; a missing id is no error."""
        for batch in _batches(list(dict.fromkeys(ids)), WRITE_BATCH):
            self._write(collection, "delete", ids=batch)

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
        for batch in _batches(once, WRITE_BATCH):
            arguments: dict[str, Any] = {
                "ids": [row.row_id for row in batch],
                "documents": [row.text for row in batch],
                "metadatas": [dict(row.columns) for row in batch],
                "embeddings": [list(row.vector or ()) for row in batch],
            }
            if method == "add":
                arguments["metadatas"] = [_present(m) for m in arguments["metadatas"]]
            self._write(collection, method, **arguments)

    def _read(self, collection: str, method: str, **arguments: Any) -> Any:
        """Run a read on a collection; None if the collection does not exist."""
        return self._on_collection(collection, method, arguments, create=None)

    def _write(self, collection: str, method: str, **arguments: Any) -> None:
        """Run a write; every write here may be repeated, since ids are given and values are whole."""
        self._on_collection(collection, method, arguments, create={})

    def _on_collection(
        self, name: str, method: str, arguments: dict[str, Any], *, create: Mapping[str, Any] | None
    ) -> Any:
        for _ in range(2):
            handle = self._handle(name, create=create)
            if handle is None:
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
        """Run one request within the deadline, once more if the connection broke or the server stumbled."""
        connection = self._connection()
        for attempt in range(2):
            try:
                with connection.place(self._deadline), limit(self._deadline):
                    return work()
            except (MemoryFault, CollectionGone):
                raise
            except Exception as error:  # the lower libraries' errors have no common base
                fault = translate(error)
            if isinstance(fault, ChromaNotFound):
                fault = self._what_answers(connection)
            may_pass = isinstance(fault, ChromaUnreachable | ChromaFailed)
            if attempt or not may_pass or self._deadline.remaining() <= 0:
                raise fault from None
        raise ChromaFailed

    def _what_answers(self, connection: Connection) -> MemoryFault:
        """What is wrong with a server whose answer was not Chroma's: another one, or an old one."""
        try:
            with limit(self._deadline):
                connection.version()
        except MemoryFault as fault:
            return fault
        except Exception as error:
            return translate(error)
        return ChromaFailed()

    def _connection(self) -> Connection:
        return connections.get(self._settings)


def _nothing(_detail: object) -> None:
    return None


# --- small change -------------------------------------------------------------------------------


def _rows(found: Any) -> list[Row]:
    """A get's answer as rows. A row deleted while it was read has no document: it is gone."""
    if found is None:
        return []
    vectors = found["embeddings"]
    return [
        Row(
            row_id,
            found["documents"][i],
            dict(found["metadatas"][i] or {}),
            None if vectors is None else vectors[i].tolist(),
        )
        for i, row_id in enumerate(found["ids"])
        if found["documents"][i] is not None
    ]


def _batches[T](items: Sequence[T], size: int) -> Iterable[Sequence[T]]:
    return (items[i : i + size] for i in range(0, len(items), size))


def _present(columns: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in columns.items() if value is not None}
