"""Connections to Chroma: the one module that knows chromadb and httpx, their time limits and their errors.

Connections are opened on first use and kept for the life of the process, one for each distinct address,
tenant, database and token. Nothing of them comes from the environment.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

from memory.circuit import SILENCE_SECONDS, Circuit
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
from memory.pacing import breathe, is_background, turn
from memory.places import Places
from memory.settings import ChromaSettings

CALLS_IN_FLIGHT = 12
"""Calls to one server at once: measured, more than 8 to 16 only wait inside it and slow each other."""
BACKGROUND_CALLS_IN_FLIGHT = 2
"""Of these, how many bulk work may take: the server writes one at a time anyway."""
MAX_CONNECTIONS = 32
"""Distinct servers, tenants and tokens kept open; of the idle ones the one unused for longest is closed."""
OLDEST_MAJOR_VERSION = 1
LOOK_SECONDS = 1.0
"""A server that is there answers a heartbeat in a thousandth of that, whatever else it works on."""
LOOKS = 2
"""The first may have met an old connection, or our own process too busy to read the answer in time."""

_deadline: ContextVar[Deadline | None] = ContextVar("chroma_deadline", default=None)


class CollectionGone(Exception):
    """The collection was deleted since its handle was opened, or never existed."""


class Connection:
    """One open connection pool to one database of one server, with its collection handles."""

    def __init__(self, settings: ChromaSettings) -> None:
        import httpx
        from chromadb.api import ServerAPI
        from chromadb.config import Settings, System

        system: Any = System(
            _isolated(Settings)(
                chroma_api_impl="chromadb.api.fastapi.FastAPI",
                chroma_server_host=settings.base_url,
                chroma_server_http_port=80,  # required, but the address has its own
                chroma_server_headers={},
                chroma_server_ssl_verify=False,  # of a session that is closed unused
                anonymized_telemetry=False,
            )
        )
        self.api = system.instance(ServerAPI)
        self.database_arguments = {"tenant": settings.tenant, "database": settings.database}
        self.handles: dict[str, Any] = {}
        self.calls_in_flight = 0
        self.circuit = Circuit()
        calls = settings.quotas.calls
        self._places = Places(calls(CALLS_IN_FLIGHT))
        self._background_places = Places(calls(BACKGROUND_CALLS_IN_FLIGHT))
        # The client's own session has no time limit and reads proxies from the environment.
        headers = dict(self.api._session.headers) | settings.headers
        self.api._session.close()
        self.api._session = httpx.Client(
            headers=headers,
            trust_env=False,
            timeout=settings.timeout_seconds,
            verify=_authorities(),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=CALLS_IN_FLIGHT),
            event_hooks={"request": [_set_timeout], "response": [self._note_answer, _read_in_time]},
        )

    @contextmanager
    def place(self, deadline: Deadline) -> Iterator[None]:
        """One of the places for calls in flight; bulk work queues for its own few first.

        Raises:
            ChromaBusy: none was free in time.
            ChromaUnreachable: the server does not answer, which is known without asking it again.
        """
        with ExitStack() as places:
            if is_background():
                breathe()
                places.enter_context(self._place(self._background_places, deadline))
            places.enter_context(self._place(self._places, deadline))
            self.calls_in_flight += 1
            try:
                with self.circuit.waiting():
                    yield
            finally:
                self.calls_in_flight -= 1

    @contextmanager
    def _place(self, places: Places, deadline: Deadline) -> Iterator[None]:
        self._admit(deadline)
        with places.asked_for(turn()) as given:
            while not given.wait(min(SILENCE_SECONDS, deadline.remaining())):
                if deadline.remaining() <= 0:
                    raise ChromaBusy
                self._admit(deadline)  # those before it may have found out that nobody answers
            self._admit(deadline)
            yield

    def _admit(self, deadline: Deadline) -> None:
        self.circuit.admit(self._is_there, seconds=deadline.remaining())

    def _is_there(self) -> bool:
        """Whether anything answers at the address, within two seconds."""
        import httpx

        for _ in range(LOOKS):
            try:
                with limit(Deadline.after(LOOK_SECONDS)):
                    self.api._session.get(f"{self.api.get_api_url()}/heartbeat")
            except (httpx.TransportError, ConnectionError):
                continue
            return True
        return False

    def _note_answer(self, _response: Any) -> None:
        self.circuit.answered()

    def open(self, name: str, *, create: Mapping[str, Any] | None) -> Any:
        """A handle of a collection; None if it does not exist and is not to be created."""
        from chromadb.api.models.Collection import Collection

        if create is None:
            try:
                model = self.api.get_collection(name=name, **self.database_arguments)
            except chroma_errors().NotFoundError as error:
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


@cache
def _authorities() -> Any:
    """The certificate authorities that are trusted, read once: that takes longer than a request."""
    import httpx

    return httpx.create_ssl_context(trust_env=False)


def _isolated(settings_class: Any) -> Any:
    """Chromadb's settings without the environment and without .env files, which belong to the daemon."""

    class Isolated(settings_class):  # type: ignore[misc]
        @classmethod
        def settings_customise_sources(
            cls, settings_cls: Any, init_settings: Any, **_others: Any
        ) -> tuple[Any, ...]:
            """Only what is passed."""
            return (init_settings,)

    return Isolated


class Connections:
    """The connections of this process, least recently used closed first."""

    def __init__(self) -> None:
        self._open: OrderedDict[tuple[str, ...], Connection] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, settings: ChromaSettings) -> Connection:
        """The connection for these settings, opened if there is none yet."""
        key = (
            settings.base_url,
            settings.tenant,
            settings.database,
            settings.auth_header,
            settings.token,
            str(settings.quotas.calls(CALLS_IN_FLIGHT)),
        )
        with self._lock:
            connection = self._open.pop(key, None) or Connection(settings)
            self._open[key] = connection
            idle = [k for k, c in self._open.items() if not c.calls_in_flight and k != key]
            for k in idle[: len(self._open) - MAX_CONNECTIONS]:
                self._open.pop(k).close()
            return connection

    def states(self) -> list[bool]:
        """Of each server's circuit, whether it is open."""
        with self._lock:
            return [connection.circuit.is_open for connection in self._open.values()]

    def close(self) -> None:
        """Close them all."""
        with self._lock:
            while self._open:
                self._open.popitem()[1].close()


connections = Connections()


@contextmanager
def limit(deadline: Deadline) -> Iterator[None]:
    """Hold the requests inside to a deadline.

    Raises:
        ChromaTimeout: it is over already.
    """
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


def chroma_errors() -> Any:
    """The module of chromadb's errors, imported on first use."""
    from chromadb import errors

    return errors


def translate(error: Exception) -> MemoryFault:
    """Our error for one of chromadb's or httpx's. Its text is looked at, never passed on.

    Raises:
        CollectionGone: a collection that existed is no more there.
    """
    import httpx

    errors = chroma_errors()
    text = str(error)
    if isinstance(error, errors.NotFoundError):
        if text.startswith("Tenant"):
            return ChromaTenantMissing()
        if text.startswith("Database"):
            return ChromaDatabaseMissing()
        raise CollectionGone from None
    missing = re.search(r"(Tenant|Database) \[.*\] (not found|does not exist)", text, re.DOTALL)
    if missing and isinstance(error, errors.ChromaError):
        return ChromaTenantMissing() if missing[1] == "Tenant" else ChromaDatabaseMissing()
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
