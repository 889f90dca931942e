"""The one module that knows chromadb: rows in named collections, with time limits and our own errors.

It knows nothing of customers; `memory.store` and `memory.links` do. Connections are opened on first use and
kept for the life of the process, one for each distinct address, tenant, database and token.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any

from memory.clock import Deadline
from memory.errors import (
    ChromaBusy,
    ChromaDatabaseMissing,
    ChromaFailed,
    ChromaNotFound,
    ChromaQuotaExceeded,
    ChromaRefused,
    ChromaTenantMissing,
    ChromaTimeout,
    ChromaTooOld,
    ChromaUnreachable,
    EmbedderDimensionMismatch,
    MemoryFault,
)
from memory.pacing import breathe, is_background
from memory.settings import ChromaSettings

PAGE = 1_000
"""Rows asked for in one read."""
WRITE_BATCH = 500
"""Rows in one write; well below the server's limit of 5,461 and 40 MB."""
CALLS_IN_FLIGHT = 12
"""Calls to one server at once: measured, more than 8 to 16 only wait inside it and slow each other."""
BACKGROUND_CALLS_IN_FLIGHT = 2
"""Of these, how many bulk work may take: the server writes one at a time anyway."""
MAX_CONNECTIONS = 32
"""Distinct servers, tenants and tokens kept open; of the idle ones the one unused for longest is closed."""
OLDEST_MAJOR_VERSION = 1

type Where = dict[str, str]
"""One equality. More than one condition is looked up over the whole database, so none can be given."""
type Vector = Sequence[float]

_deadline: ContextVar[Deadline | None] = ContextVar("chroma_deadline", default=None)


@dataclass(frozen=True, slots=True)
class Row:
    """One stored row. `vector` is there only where it was asked for."""

    row_id: str
    text: str
    columns: dict[str, Any]
    vector: Vector | None = None


class _CollectionGone(Exception):
    """The collection was deleted since its handle was opened, or never existed."""


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
            for batch in _batches(list(ids), PAGE):
                rows.extend(_rows(self._read(collection, "get", ids=batch, include=include)))
            return rows
        while limit is None or len(rows) < limit:
            size = PAGE if limit is None else min(PAGE, limit - len(rows))
            start = offset + len(rows)
            found = self._read(collection, "get", where=where, limit=size, offset=start, include=include)
            page = _rows(found)
            rows.extend(page)
            if found is None or len(found["ids"]) < size:
                break
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
        return dict(self._handle(collection, create=metadata).metadata or {})

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
        for batch in _batches(list(ids), WRITE_BATCH):
            self._write(collection, "delete", ids=batch)

    def drop(self, collection: str) -> None:
        """Delete a whole collection; a missing one is no error."""

        def dropped(connection: _Connection) -> None:
            try:
                connection.api.delete_collection(name=collection, **connection.database_arguments)
            except _chroma_errors().NotFoundError:
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
        except _CollectionGone:
            raise ChromaDatabaseMissing from None

    # --- plumbing --------------------------------------------------------------------------------

    def _write_rows(self, method: str, collection: str, rows: Sequence[Row]) -> None:
        for batch in _batches(list(rows), WRITE_BATCH):
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
            except _CollectionGone:
                self._connection().handles.clear()
                self.when_gone(create is not None)
        raise ChromaFailed

    def _handle(self, name: str, *, create: Mapping[str, Any] | None) -> Any:
        connection = self._connection()
        handle = connection.handles.get(name)
        if handle is None:
            handle = self._call(lambda c: c.open(name, create=create))
            if handle is not None:
                connection.handles[name] = handle
        return handle

    def _call(self, work: Callable[[_Connection], Any]) -> Any:
        """Run one request of the connection; see `_run`."""
        return self._run(partial(work, self._connection()))

    def _run(self, work: Callable[[], Any]) -> Any:
        """Run one request within the deadline, once more if the connection broke or the server stumbled."""
        connection = self._connection()
        for attempt in range(2):
            try:
                with connection.place(self._deadline), _limit(self._deadline):
                    return work()
            except (MemoryFault, _CollectionGone):
                raise
            except Exception as error:  # the lower libraries' errors have no common base
                fault = translate(error)
            if isinstance(fault, ChromaNotFound):
                fault = self._what_answers(connection)
            may_pass = isinstance(fault, ChromaUnreachable | ChromaFailed)
            if attempt or not may_pass or self._deadline.remaining() <= 0:
                raise fault from None
        raise ChromaFailed

    def _what_answers(self, connection: _Connection) -> MemoryFault:
        """What is wrong with a server whose answer was not Chroma's: another one, or an old one."""
        try:
            with _limit(self._deadline):
                connection.version()
        except MemoryFault as fault:
            return fault
        except Exception as error:
            return translate(error)
        return ChromaFailed()

    def _connection(self) -> _Connection:
        return _connections.get(self._settings)


class _Connection:
    """One open connection pool to one database of one server, with its collection handles."""

    def __init__(self, settings: ChromaSettings) -> None:
        import httpx
        from chromadb.api import ServerAPI
        from chromadb.config import Settings, System

        settings_class: Any = Settings
        system: Any = System(
            settings_class(
                _env_file=None,
                chroma_api_impl="chromadb.api.fastapi.FastAPI",
                chroma_server_host=settings.base_url,
                chroma_server_http_port=80,  # required, but the address has its own
                chroma_server_headers={},
                anonymized_telemetry=False,
            )
        )
        self.api = system.instance(ServerAPI)
        self.database_arguments = {"tenant": settings.tenant, "database": settings.database}
        self.handles: dict[str, Any] = {}
        self.calls_in_flight = 0
        self._places = threading.BoundedSemaphore(CALLS_IN_FLIGHT)
        self._background_places = threading.BoundedSemaphore(BACKGROUND_CALLS_IN_FLIGHT)
        # The client's own session has no time limit and reads proxies from the environment.
        headers = dict(self.api._session.headers) | settings.headers
        self.api._session.close()
        self.api._session = httpx.Client(
            headers=headers,
            trust_env=False,
            timeout=settings.timeout_seconds,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=CALLS_IN_FLIGHT),
            event_hooks={"request": [_set_timeout], "response": [_read_in_time]},
        )

    @contextmanager
    def place(self, deadline: Deadline) -> Iterator[None]:
        """One of the places for calls in flight; bulk work queues for its own few first."""
        with ExitStack() as places:
            if is_background():
                breathe()
                places.enter_context(_place(self._background_places, deadline))
            places.enter_context(_place(self._places, deadline))
            self.calls_in_flight += 1
            try:
                yield
            finally:
                self.calls_in_flight -= 1

    def open(self, name: str, *, create: Mapping[str, Any] | None) -> Any:
        """A handle of a collection; None if it does not exist and is not to be created."""
        from chromadb.api.models.Collection import Collection

        if create is None:
            try:
                model = self.api.get_collection(name=name, **self.database_arguments)
            except _chroma_errors().NotFoundError as error:
                if not str(error).startswith("Collection"):
                    raise
                return None
        else:
            model = self.api.get_or_create_collection(
                name=name,
                metadata=dict(create) or None,
                configuration={"hnsw": {"space": "cosine"}},
                **self.database_arguments,
            )
        return Collection(client=self.api, model=model, embedding_function=None, data_loader=None)

    def version(self) -> str:
        """The server's version, after making sure that it is a Chroma server of our time."""
        session, address = self.api._session, self.api.get_api_url()
        answer = session.get(f"{address}/heartbeat")
        if not _is_heartbeat(answer):
            _refuse(answer)
            older = session.get(f"{address.removesuffix('v2')}v1/heartbeat")
            raise ChromaTooOld if _is_heartbeat(older) else ChromaNotFound
        version = str(self.api.get_version())
        number = re.match(r"\d+", version)
        if number and int(number.group()) < OLDEST_MAJOR_VERSION:
            raise ChromaTooOld
        return version

    def close(self) -> None:
        """Close the connection pool."""
        self.api._session.close()


@contextmanager
def _place(places: threading.BoundedSemaphore, deadline: Deadline) -> Iterator[None]:
    if not places.acquire(timeout=deadline.remaining()):
        raise ChromaBusy
    try:
        yield
    finally:
        places.release()


class _Connections:
    """The connections of this process, least recently used closed first."""

    def __init__(self) -> None:
        self._open: OrderedDict[tuple[str, ...], _Connection] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, settings: ChromaSettings) -> _Connection:
        key = (
            settings.base_url,
            settings.tenant,
            settings.database,
            settings.auth_header,
            settings.token,
        )
        with self._lock:
            connection = self._open.pop(key, None) or _Connection(settings)
            self._open[key] = connection
            idle = [k for k, c in self._open.items() if not c.calls_in_flight and k != key]
            for k in idle[: len(self._open) - MAX_CONNECTIONS]:
                self._open.pop(k).close()
            return connection


_connections = _Connections()


@contextmanager
def _limit(deadline: Deadline) -> Iterator[None]:
    if deadline.remaining() <= 0:
        raise ChromaTimeout
    token = _deadline.set(deadline)
    try:
        yield
    finally:
        _deadline.reset(token)


def _set_timeout(request: Any) -> None:
    """Give the request what is left of the call's time."""
    deadline = _deadline.get()
    if deadline is not None:
        seconds = max(0.01, deadline.remaining())
        request.extensions["timeout"] = dict.fromkeys(("connect", "read", "write", "pool"), seconds)


def _read_in_time(response: Any) -> None:
    """Read a body within the call's time: a byte now and then would outlast a limit on each read."""
    import httpx

    deadline = _deadline.get()
    if deadline is None:
        return
    pieces = []
    for piece in response.iter_raw():
        pieces.append(piece)
        if deadline.remaining() <= 0:
            response.close()
            raise httpx.ReadTimeout("", request=response.request)
    response._content = response._get_content_decoder().decode(b"".join(pieces))


# --- errors -------------------------------------------------------------------------------------


def _chroma_errors() -> Any:
    from chromadb import errors

    return errors


def translate(error: Exception) -> MemoryFault:
    """Our error for one of chromadb's or httpx's. Its text is looked at, never passed on.

    Raises:
        _CollectionGone: a collection that existed is no more there.
    """
    import httpx

    errors = _chroma_errors()
    text = str(error)
    if isinstance(error, errors.NotFoundError):
        if text.startswith("Tenant"):
            return ChromaTenantMissing()
        if text.startswith("Database"):
            return ChromaDatabaseMissing()
        raise _CollectionGone from None
    dimensions = re.search(r"dimension of (\d+), got (\d+)", text)
    if dimensions:
        return EmbedderDimensionMismatch(
            offered="given",
            offered_dimension=int(dimensions[2]),
            stored="the one of its first memory",
            stored_dimension=int(dimensions[1]),
        )
    table: list[tuple[type[Exception], type[MemoryFault]]] = [
        (errors.ChromaAuthError, ChromaRefused),
        (errors.AuthorizationError, ChromaRefused),
        (errors.QuotaError, ChromaQuotaExceeded),
        (errors.RateLimitError, ChromaBusy),
        (errors.VersionMismatchError, ChromaTooOld),
        (errors.InvalidHTTPVersion, ChromaTooOld),
        (errors.ChromaError, ChromaFailed),
        (httpx.ConnectTimeout, ChromaUnreachable),
        (httpx.TimeoutException, ChromaTimeout),
        (httpx.TransportError, ChromaUnreachable),
        (ConnectionError, ChromaUnreachable),
    ]
    for theirs, ours in table:
        if isinstance(error, theirs):
            return ours()
    return _from_answer(error)


def _from_answer(error: Exception) -> MemoryFault:
    """Our error for an HTTP answer that chromadb itself could not read."""
    import httpx

    cause = error.__context__
    if isinstance(cause, httpx.HTTPStatusError):
        try:
            _refuse(cause.response)
        except MemoryFault as fault:
            return fault
        return ChromaNotFound() if cause.response.status_code < 500 else ChromaFailed()
    # 200, but no JSON, or JSON of another kind.
    return ChromaNotFound()


def _refuse(answer: Any) -> None:
    """Raise what an HTTP status says beyond "not found"."""
    if answer.status_code in {401, 403, 407}:
        raise ChromaRefused
    if answer.status_code == 429:
        raise ChromaBusy
    if answer.status_code >= 500:
        raise ChromaFailed


def _is_heartbeat(answer: Any) -> bool:
    try:
        return answer.status_code == 200 and "nanosecond heartbeat" in answer.json()
    except (ValueError, TypeError):
        return False


def _nothing(_is_write: bool) -> None:
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
