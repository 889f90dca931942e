"""The one module that knows chromadb, on a real server."""

import inspect
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import chromadb.errors
import httpx
import pytest

from development.chroma_server import ChromaServer, free_port
from development.places import PROJECT
from memory import errors
from memory.chroma import PAGE, Chroma
from memory.chroma_attempts import ATTEMPTS
from memory.chroma_connection import (
    CALLS_IN_FLIGHT,
    LOOKS,
    CollectionGone,
    Connection,
    Connections,
    translate,
)
from memory.chroma_rows import Row
from memory.circuit import REST_SECONDS, Circuit
from memory.clock import Deadline
from memory.settings import ChromaSettings
from tests import fake_servers
from tests.fake_servers import serve
from tests.waiting import wait_until

A, B = [1.0, 0.0], [0.0, 1.0]
SECONDS = 20.0


def _chroma(url: str, *, seconds: float = SECONDS, **settings: Any) -> Chroma:
    return Chroma(ChromaSettings(url=url, **settings), Deadline.after(seconds))


@pytest.fixture
def store(chroma: ChromaServer) -> Chroma:
    """A database to read and write in, with twenty seconds for each test."""
    return _chroma(chroma.url)


@pytest.fixture
def collection(namespace: str) -> str:
    """The name of a collection nobody has used."""
    return f"cm-{namespace}-m0000"


@pytest.fixture(scope="module")
def expendable() -> Iterator[ChromaServer]:
    """A Chroma server beside the one that all tests share."""
    with ChromaServer() as server:
        yield server


@pytest.fixture
def own_server(expendable: ChromaServer) -> Iterator[ChromaServer]:
    """A Chroma server that a test may freeze or end."""
    yield expendable
    expendable.thaw()


def _row(row_id: str, vector: list[float] = A, **columns: Any) -> Row:
    return Row(row_id, f"text of {row_id}", columns, vector)


def _delete_behind_our_back(server: ChromaServer, collection: str) -> None:
    """Delete a collection as another client would."""
    database = f"{server.url}/api/v2/tenants/default_tenant/databases/default_database"
    answer = httpx.delete(f"{database}/collections/{collection}", trust_env=False)
    assert answer.status_code == 200


# --- reading and writing ------------------------------------------------------------------------


def test_a_long_listing_comes_whole_and_in_order(store: Chroma, collection: str) -> None:
    """More rows than one page holds are all read: by filter in the order written, and by id."""
    ids = [f"r{number:04d}" for number in range(PAGE + 50)]
    store.put(collection, [_row(row_id, scope="s") for row_id in ids])
    store.put(collection, [_row("other", scope="t")])
    assert [row.row_id for row in store.get(collection, where={"scope": "s"})] == ids
    assert sorted(row.row_id for row in store.get(collection, ids=ids[::-1])) == ids
    assert store.count(collection) == PAGE + 51


@pytest.mark.parametrize(
    ("limit", "offset", "expected"),
    [
        (3, 0, slice(0, 3)),
        (3, 5, slice(5, 8)),
        (None, 8, slice(8, 10)),
        (100, 0, slice(0, 10)),
        (3, 50, slice(0)),
        (0, 0, slice(0)),
    ],
)
def test_a_listing_can_be_read_in_pieces(
    store: Chroma, collection: str, limit: int | None, offset: int, expected: slice
) -> None:
    """Limit and offset cut a piece out of the whole."""
    ids = [f"r{number}" for number in range(10)]
    store.put(collection, [_row(row_id, scope="s") for row_id in ids])
    found = store.get(collection, where={"scope": "s"}, limit=limit, offset=offset)
    assert [row.row_id for row in found] == ids[expected]


def test_writing_clears_the_columns_that_are_none(store: Chroma, collection: str) -> None:
    """A row written over another keeps no column that the new one says is absent."""
    store.put(collection, [_row("a", scope="s", case_id="c", expires_at=1.0)])
    store.put(collection, [Row("a", "new", {"scope": "s", "case_id": None, "expires_at": None}, B)])
    (row,) = store.get(collection, ids=["a"], with_vectors=True)
    assert (row.text, row.columns) == ("new", {"scope": "s"})
    assert row.vector == B


def test_changing_columns_leaves_the_rest(store: Chroma, collection: str) -> None:
    """Only what is named changes; None clears; a row that does not exist is not made."""
    store.put(collection, [_row("a", scope="s", case_id="c")])
    store.change(collection, {"a": {"case_id": None, "kind": "semantic"}, "missing": {"kind": "x"}})
    (row,) = store.get(collection, where={"scope": "s"})
    assert (row.text, row.columns) == ("text of a", {"scope": "s", "kind": "semantic"})
    assert store.count(collection) == 1


def test_adding_keeps_what_is_there(store: Chroma, collection: str) -> None:
    """Of two callers that add one id the first one's row stays, and the second learns it by reading."""
    store.add(collection, [_row("a", scope="first", case_id=None)])
    store.add(collection, [_row("a", scope="second"), _row("b", scope="second")])
    found = {row.row_id: row.columns for row in store.get(collection, ids=["a", "b"])}
    assert found == {"a": {"scope": "first"}, "b": {"scope": "second"}}


def test_deleting_takes_what_is_there(store: Chroma, collection: str) -> None:
    """Rows go by id; ids that are not there, or none at all, are no error."""
    store.put(collection, [_row("a", scope="s"), _row("b", scope="s")])
    store.delete(collection, ["a", "missing"])
    store.delete(collection, [])
    assert [row.row_id for row in store.get(collection, where={"scope": "s"})] == ["b"]


def test_the_nearest_come_first_and_only_those_asked_for(store: Chroma, collection: str) -> None:
    """Cosine distance, nearest first, within the one equality."""
    rows = [
        _row("same", A, scope="s"),
        _row("between", [1.0, 1.0], scope="s"),
        _row("across", B, scope="s"),
        _row("opposite", [-1.0, 0.0], scope="s"),
        _row("foreign", A, scope="t"),
    ]
    store.put(collection, rows)
    found = store.nearest(collection, [2.0, 0.0], where={"scope": "s"}, limit=10)
    assert list(found) == ["same", "between", "across", "opposite"]
    assert list(found.values()) == pytest.approx([0.0, 0.2929, 1.0, 2.0], abs=1e-3)
    assert len(store.nearest(collection, A, where={"scope": "s"}, limit=2)) == 2


def test_what_does_not_exist_reads_as_nothing(store: Chroma, collection: str) -> None:
    """Reading a collection that nobody made gives nothing and makes none."""
    assert store.get(collection, ids=["a"]) == []
    assert store.get(collection, where={"scope": "s"}) == []
    assert store.nearest(collection, A, where={"scope": "s"}, limit=5) == {}
    assert store.count(collection) == 0
    assert store.metadata(collection) is None


def test_no_ids_give_no_rows(store: Chroma, collection: str) -> None:
    """An empty selection is empty, never everything."""
    store.put(collection, [_row("a", scope="s")])
    assert store.get(collection, ids=[]) == []


def test_the_first_creators_metadata_stays(store: Chroma, collection: str) -> None:
    """Creating a collection again answers what it was created with."""
    assert store.create(collection, {"model": "one"}) == {"model": "one"}
    assert store.create(collection, {"model": "two"}) == {"model": "one"}
    assert _chroma(store._settings.url, token="fresh").create(collection, {"model": "three"}) == {
        "model": "one"
    }


def test_a_dropped_collection_is_gone(store: Chroma, collection: str) -> None:
    """It can be dropped twice, and made anew."""
    store.put(collection, [_row("a", scope="s")])
    store.drop(collection)
    store.drop(collection)
    assert store.metadata(collection) is None
    store.put(collection, [_row("b", scope="s")])
    assert [row.row_id for row in store.get(collection, where={"scope": "s"})] == ["b"]


def test_a_collection_deleted_behind_our_back_is_opened_again(
    chroma: ChromaServer, store: Chroma, collection: str
) -> None:
    """A handle that leads nowhere is replaced: reads find nothing, writes make the collection anew."""
    store.put(collection, [_row("old", scope="s")])
    _delete_behind_our_back(chroma, collection)
    assert store.get(collection, where={"scope": "s"}) == []
    store.put(collection, [_row("new", scope="s")])
    _delete_behind_our_back(chroma, collection)
    store.put(collection, [_row("newer", scope="s")])
    assert [row.row_id for row in store.get(collection, where={"scope": "s"})] == ["newer"]


def test_somebody_is_told_of_a_deleted_collection(
    chroma: ChromaServer, store: Chroma, collection: str
) -> None:
    """A namespace may be gone: it is told by a read, and before a write could leave rows in it."""
    told: list[str] = []
    store.when_gone = lambda is_write: told.append("write" if is_write else "read")
    store.put(collection, [_row("a", scope="s")])
    assert told == []
    _delete_behind_our_back(chroma, collection)
    store.get(collection, ids=["a"])
    assert told == ["read"]
    store.put(collection, [_row("a", scope="s")])
    _delete_behind_our_back(chroma, collection)
    store.put(collection, [_row("a", scope="s")])
    assert told == ["read", "write"]


def test_another_dimension_is_refused_by_its_own_error(store: Chroma, collection: str) -> None:
    """The first row fixes the length of vectors for ever; the error names both lengths."""
    store.put(collection, [_row("a", A, scope="s")])
    with pytest.raises(errors.EmbedderDimensionMismatch) as caught:
        store.put(collection, [_row("b", [1.0, 0.0, 0.0], scope="s")])
    details = caught.value.details
    assert (details["stored_dimension"], details["offered_dimension"]) == (2, 3)


def test_many_callers_share_one_server(chroma: ChromaServer, collection: str) -> None:
    """Forty calls at once queue for their places, and each is done."""
    with ThreadPoolExecutor(40) as pool:
        for done in [pool.submit(_put_one, chroma.url, collection, number) for number in range(40)]:
            done.result()
    assert _chroma(chroma.url).count(collection) == 40


def _put_one(url: str, collection: str, number: int) -> None:
    _chroma(url).put(collection, [_row(f"r{number}", scope="s")])


# --- the server ---------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["", "/", "//"])
def test_a_server_is_checked(chroma: ChromaServer, ending: str) -> None:
    """The check answers the server's version, with or without a slash at the end of the address."""
    assert _chroma(chroma.url + ending).check().startswith("1.")


def test_the_scheme_may_be_written_large(chroma: ChromaServer, collection: str) -> None:
    """An address in capitals is the same address."""
    store = _chroma(chroma.url.replace("http", "HTTP"))
    assert store.check().startswith("1.")
    store.put(collection, [_row("a", scope="s")])
    assert store.count(collection) == 1


def test_a_missing_tenant_or_database_is_named(chroma: ChromaServer) -> None:
    """Which of the two is missing is said by the check."""
    with pytest.raises(errors.ChromaTenantMissing):
        _chroma(chroma.url, tenant="nobody").check()
    with pytest.raises(errors.ChromaDatabaseMissing):
        _chroma(chroma.url, database="nowhere").check()


@pytest.mark.parametrize("place", [{"tenant": "nobody"}, {"database": "nowhere"}], ids=str)
def test_a_write_into_a_missing_database_is_the_administrators(
    chroma: ChromaServer, collection: str, place: dict[str, Any]
) -> None:
    """Where tenant or database was deleted meanwhile, trying again does not help, and the error says so."""
    with pytest.raises((errors.ChromaTenantMissing, errors.ChromaDatabaseMissing)):
        _chroma(chroma.url, **place).put(collection, [_row("a", scope="s")])


def test_a_server_that_is_not_there_is_unreachable(collection: str) -> None:
    """Nobody listens: an error of ours, within the time."""
    url = f"http://127.0.0.1:{free_port()}"
    for call in (_chroma(url).check, lambda: _chroma(url).get(collection, ids=["a"])):
        with pytest.raises(errors.ChromaUnreachable):
            call()


def test_building_opens_nothing() -> None:
    """A store for an address where nobody listens can be built; only a call finds out."""
    started = time.monotonic()
    _chroma(f"http://127.0.0.1:{free_port()}")
    assert time.monotonic() - started < 0.5


# --- time ---------------------------------------------------------------------------------------


def test_a_hanging_server_ends_a_call_at_its_deadline(own_server: ChromaServer, collection: str) -> None:
    """Reads, writes and the check all end in time, with the error that says so."""
    _chroma(own_server.url).put(collection, [_row("a", scope="s")])
    own_server.freeze()
    calls: list[Callable[[Chroma], object]] = [
        lambda store: store.get(collection, ids=["a"]),
        lambda store: store.put(collection, [_row("b", scope="s")]),
        lambda store: store.check(),
        lambda store: store.count("cm-never-opened-m0000"),
    ]
    for call in calls:
        _shared(own_server).circuit = Circuit()  # each as if it were the first to meet the server like that
        started = time.monotonic()
        with pytest.raises(errors.ChromaTimeout):
            call(_chroma(own_server.url, seconds=0.5))
        assert 0.4 < time.monotonic() - started < 2.0
    own_server.thaw()
    assert [row.row_id for row in _chroma(own_server.url).get(collection, ids=["a"])] == ["a"]


def test_a_place_in_the_queue_is_waited_for_no_longer_than_allowed(
    own_server: ChromaServer, collection: str
) -> None:
    """With every place taken by calls that hang, one more is told in time that the server is busy."""
    _chroma(own_server.url).put(collection, [_row("a", scope="s")])
    _shared(own_server).circuit = Circuit(lambda: 0.0)
    own_server.freeze()
    asked = threading.Semaphore(0)
    _when_asked(own_server, asked.release)
    with ThreadPoolExecutor(CALLS_IN_FLIGHT) as pool:
        calls = [
            pool.submit(_chroma(own_server.url).get, collection, ids=["a"]) for _ in range(CALLS_IN_FLIGHT)
        ]
        assert all(asked.acquire(timeout=10) for _ in calls)
        started = time.monotonic()
        with pytest.raises(errors.ChromaBusy):
            _chroma(own_server.url, seconds=0.3).get(collection, ids=["a"])
        assert time.monotonic() - started < 2.0
        own_server.thaw()
        assert [[row.row_id for row in call.result()] for call in calls] == [["a"]] * CALLS_IN_FLIGHT


def _when_asked(server: ChromaServer, act: Callable[[], object]) -> None:
    """Do something whenever a request goes to a server."""
    session = _shared(server).api._session
    session.event_hooks = {
        **session.event_hooks,
        "request": [*session.event_hooks["request"], lambda _: act()],
    }


def _shared(server: ChromaServer) -> Connection:
    """The connection that all calls to a server share."""
    return _chroma(server.url)._connection()


def test_no_time_left_is_a_timeout(store: Chroma, collection: str, chroma: ChromaServer) -> None:
    """A call that starts after its deadline sends nothing."""
    with pytest.raises(errors.ChromaTimeout):
        _chroma(chroma.url, seconds=0.0).put(collection, [_row("a", scope="s")])
    assert store.count(collection) == 0


def test_a_server_that_was_restarted_is_used_again(own_server: ChromaServer, collection: str) -> None:
    """Connections that broke with the old server are replaced without an error."""
    store = _chroma(own_server.url)
    store.put(collection, [_row("a", scope="s")])
    own_server.kill()
    own_server.start()
    assert [row.row_id for row in store.get(collection, ids=["a"])] == ["a"]
    store.put(collection, [_row("b", scope="s")])
    assert store.count(collection) == 2


# --- a server that does not answer --------------------------------------------------------------


@pytest.fixture(params=["stopped", "frozen"])
def silent(request: pytest.FixtureRequest) -> Iterator[tuple[ChromaServer, Callable[[], None]]]:
    """A server that has answered before and does not any more, and what brings it back."""
    with ChromaServer() as server:
        _chroma(server.url).put("cm-silent-m0000", [_row("a", scope="s")])
        (server.kill if request.param == "stopped" else server.freeze)()
        yield server, server.start if request.param == "stopped" else server.thaw


def _ending(url: str, number: int) -> type[Exception] | None:
    """How a call ends: a read or a write."""
    try:
        if number % 2:
            _chroma(url, seconds=2.0).get("cm-silent-m0000", ids=["a"])
        else:
            _chroma(url, seconds=2.0).put("cm-silent-m0000", [_row("b", scope="s")])
    except errors.MemoryFault as fault:
        return type(fault)
    return None


def test_a_thousand_calls_do_not_wait_for_a_silent_server_one_after_the_other(
    silent: tuple[ChromaServer, Callable[[], None]],
) -> None:
    """Few of them get as far as the socket; all fail in a way that can be repeated, and then all work."""
    server, bring_back = silent
    now = 0.0
    circuit = _shared(server).circuit = Circuit(lambda: now)
    sent: list[int] = []
    _when_asked(server, lambda: sent.append(1))

    endings = {_ending(server.url, 0)}
    endings |= {_ending(server.url, number) for number in range(1_000)}
    assert endings <= {errors.ChromaUnreachable, errors.ChromaTimeout}
    assert len(sent) <= ATTEMPTS + LOOKS
    first = len(sent)
    with ThreadPoolExecutor(50) as pool:
        endings = set(pool.map(partial(_ending, server.url), range(1_000)))
    assert endings == {errors.ChromaUnreachable}
    assert len(sent) == first

    now += REST_SECONDS
    assert _ending(server.url, 0) is errors.ChromaUnreachable
    assert len(sent) <= first + LOOKS
    bring_back()
    now += REST_SECONDS
    assert [_ending(server.url, number) for number in range(20)] == [None] * 20
    assert not circuit.is_open


def test_calls_at_once_to_a_silent_server_stop_queueing_when_one_has_found_out(
    silent: tuple[ChromaServer, Callable[[], None]],
) -> None:
    """Of three hundred that start together those with a place reach the socket, and not all the others."""
    server, bring_back = silent
    sent: list[int] = []
    _when_asked(server, lambda: sent.append(1))
    with ThreadPoolExecutor(300) as pool:
        endings = set(pool.map(partial(_ending, server.url), range(300)))
    assert endings <= {errors.ChromaUnreachable, errors.ChromaTimeout, errors.ChromaBusy}
    assert len(sent) < 5 * CALLS_IN_FLIGHT
    bring_back()
    wait_until(lambda: _ending(server.url, 1) is None)


@pytest.mark.parametrize("status", [400, 401, 404, 409, 422, 429, 500, 503])
def test_what_a_server_answers_never_opens_the_circuit(collection: str, status: int) -> None:
    """A server that refuses or fails is there: each call is put to it, and told what it says."""
    with serve(fake_servers.failing(status)) as server:
        store = _chroma(server.url)
        for _ in range(5):
            asked = len(server.asked)
            with pytest.raises(errors.MemoryFault) as caught:
                store.get(collection, ids=["a"])
            assert not isinstance(caught.value, errors.ChromaUnreachable)
            assert len(server.asked) > asked
        assert not store._connection().circuit.is_open


@pytest.mark.parametrize(("status", "attempts"), [(500, ATTEMPTS), (429, ATTEMPTS), (401, 1), (403, 1)])
def test_only_what_may_pass_is_tried_again(collection: str, status: int, attempts: int) -> None:
    """A stumble is tried again a few times, a refusal is not."""
    with serve(fake_servers.refusing(status)) as server:
        with pytest.raises(errors.MemoryFault):
            _chroma(server.url).count(collection)
        assert len(server.asked) == attempts


# --- connections --------------------------------------------------------------------------------


@pytest.fixture
def few_connections(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A process that has opened nothing yet and keeps three connections."""
    own = Connections()
    monkeypatch.setattr("memory.chroma_connection.MAX_CONNECTIONS", 3)
    monkeypatch.setattr("memory.chroma.connections", own)
    yield 3
    own.close()


def test_a_connection_is_shared_by_what_identifies_it(chroma: ChromaServer) -> None:
    """Equal address, tenant, database, header and token share one; time limit and namespace do not part."""
    one = _chroma(chroma.url, token="one")._connection()
    assert _chroma(chroma.url, token="one", timeout_seconds=5, namespace="other")._connection() is one
    others = [
        _chroma(chroma.url, token="two"),
        _chroma(chroma.url, token="one", auth_header="X-Chroma-Token"),
        _chroma(chroma.url, token="one", tenant="another"),
        _chroma(chroma.url, token="one", database="another"),
        _chroma(f"{chroma.url}/below", token="one"),
    ]
    assert len({id(one), *(id(other._connection()) for other in others)}) == 6


def test_a_token_goes_with_its_own_connection_only(chroma: ChromaServer) -> None:
    """No caller's token is sent for another."""
    one = _chroma(chroma.url, token="hunter2")._connection()
    other = _chroma(chroma.url, token="hunter3", auth_header="X-Chroma-Token")._connection()
    assert one.api._session.headers["Authorization"] == "Bearer hunter2"
    assert other.api._session.headers["X-Chroma-Token"] == "hunter3"
    assert "Authorization" not in other.api._session.headers


def test_the_connection_unused_for_longest_is_closed(chroma: ChromaServer, few_connections: int) -> None:
    """Beyond the limit one is closed for each that is opened, and one that is used stays open."""
    kept = _chroma(chroma.url, token="kept")._connection().api._session
    unused = _chroma(chroma.url, token="unused")._connection().api._session
    for number in range(few_connections):
        _chroma(chroma.url, token=f"t{number}")._connection()
        assert _chroma(chroma.url, token="kept")._connection().api._session is kept
    assert unused.is_closed
    assert not kept.is_closed


def test_a_call_under_way_survives_the_closing_of_its_connection(
    own_server: ChromaServer, chroma: ChromaServer, collection: str, few_connections: int
) -> None:
    """While one call waits, calls of many other workspaces push its connection out; it is answered still."""
    _chroma(own_server.url).put(collection, [_row("a", scope="s")])
    own_server.freeze()
    asked = threading.Event()
    _when_asked(own_server, asked.set)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(_chroma(own_server.url).get, collection, ids=["a"])
        assert asked.wait(10)
        for number in range(few_connections):
            _chroma(chroma.url, token=f"w{number}")._connection()
        own_server.thaw()
        assert [row.row_id for row in waiting.result()] == ["a"]


PROXIES = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"]


def test_proxies_of_the_environment_are_not_used(
    chroma: ChromaServer, collection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Customers' words do not go through a proxy that somebody set for other purposes."""
    for name in PROXIES:
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    store = _chroma(chroma.url, token=f"proxy-{collection}")
    store.put(collection, [_row("a", scope="s")])
    assert store.count(collection) == 1


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("CHROMA_SERVER_HOST", "elsewhere.example.com"),
        ("CHROMA_SERVER_HTTP_PORT", "1"),
        ("CHROMA_SERVER_HEADERS", '{"X-Evil": "1"}'),
        ("CHROMA_API_IMPL", "chromadb.api.segment.SegmentAPI"),
        ("CHROMA_SERVER_SSL_ENABLED", "true"),
        ("CHROMA_SERVER_SSL_VERIFY", "/nonexistent.pem"),
        ("CHROMA_SERVER_API_DEFAULT_PATH", "/api/v1"),
        ("CHROMA_CLIENT_AUTH_PROVIDER", "chromadb.auth.token_authn.TokenAuthClientProvider"),
        ("CHROMA_SERVER_CORS_ALLOW_ORIGINS", "nonsense"),
        ("CHROMA_HTTP_MAX_CONNECTIONS", "nonsense"),
        ("CHROMA_PRODUCT_TELEMETRY_IMPL", "nonsense.Telemetry"),
        ("IS_PERSISTENT", "nonsense"),
        ("MIGRATIONS", "nonsense"),
        ("ANONYMIZED_TELEMETRY", "true"),
    ],
)
def test_chromas_own_variables_are_not_read(
    chroma: ChromaServer, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    """The daemon's environment may configure another Chroma; ours is configured by the form alone."""
    monkeypatch.setenv(variable, value)
    assert _chroma(chroma.url, token=f"variable-{variable}").check().startswith("1.")


_TRACING = """
import sys
from memory.chroma import Chroma
from memory.clock import Deadline
from memory.settings import ChromaSettings
s = Chroma(ChromaSettings(url=sys.argv[1]), Deadline.after(20.0))._connection().api._settings
print(s.chroma_otel_granularity, s.chroma_otel_collection_endpoint, s.anonymized_telemetry)
"""


def test_traces_are_not_sent_where_the_environment_says(chroma: ChromaServer) -> None:
    """Chroma's tracing and telemetry stay off, whatever is set for another program."""
    elsewhere = f"http://127.0.0.1:{free_port()}"
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", _TRACING, chroma.url],
        cwd=PROJECT,
        env={
            "CHROMA_OTEL_GRANULARITY": "all",
            "CHROMA_OTEL_COLLECTION_ENDPOINT": elsewhere,
            "ANONYMIZED_TELEMETRY": "true",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    granularity, endpoint, telemetry = done.stdout.rstrip("\n").split(" ")
    assert (granularity, telemetry) == ("None", "False")
    assert endpoint != elsewhere


# --- errors -------------------------------------------------------------------------------------

_FAILED, _UNREACHABLE, _TIMEOUT = errors.ChromaFailed, errors.ChromaUnreachable, errors.ChromaTimeout
_NOT_CHROMA = errors.ChromaNotFound
"""What cannot come from a Chroma server, so that the address is looked at again."""
CHROMA: dict[str, type[Exception]] = {
    "AuthorizationError": errors.ChromaRefused,
    "BatchSizeExceededError": _FAILED,
    "ChromaAuthError": errors.ChromaRefused,
    "ChromaError": _FAILED,
    "DuplicateIDError": _FAILED,
    "IDAlreadyExistsError": _FAILED,
    "InternalError": _FAILED,
    "InvalidArgumentError": _FAILED,
    "InvalidDimensionException": _FAILED,
    "InvalidHTTPVersion": errors.ChromaTooOld,
    "InvalidUUIDError": _FAILED,
    "NotFoundError": CollectionGone,
    "QuotaError": errors.ChromaQuotaExceeded,
    "RateLimitError": errors.ChromaBusy,
    "UniqueConstraintError": _FAILED,
    "VersionMismatchError": errors.ChromaTooOld,
}
HTTPX: dict[str, type[Exception]] = {
    "CloseError": _UNREACHABLE,
    "ConnectError": _UNREACHABLE,
    "ConnectTimeout": _UNREACHABLE,
    "CookieConflict": _NOT_CHROMA,
    "DecodingError": _NOT_CHROMA,
    "HTTPError": _NOT_CHROMA,
    "HTTPStatusError": _NOT_CHROMA,
    "InvalidURL": _NOT_CHROMA,
    "LocalProtocolError": _UNREACHABLE,
    "NetworkError": _UNREACHABLE,
    "PoolTimeout": _TIMEOUT,
    "ProtocolError": _UNREACHABLE,
    "ProxyError": _UNREACHABLE,
    "ReadError": _UNREACHABLE,
    "ReadTimeout": _TIMEOUT,
    "RemoteProtocolError": _UNREACHABLE,
    "RequestError": _NOT_CHROMA,
    "RequestNotRead": _NOT_CHROMA,
    "ResponseNotRead": _NOT_CHROMA,
    "StreamClosed": _NOT_CHROMA,
    "StreamConsumed": _NOT_CHROMA,
    "StreamError": _NOT_CHROMA,
    "TimeoutException": _TIMEOUT,
    "TooManyRedirects": _NOT_CHROMA,
    "TransportError": _UNREACHABLE,
    "UnsupportedProtocol": _UNREACHABLE,
    "WriteError": _UNREACHABLE,
    "WriteTimeout": _TIMEOUT,
}


def _exceptions(module: Any) -> dict[str, type[Exception]]:
    return {n: c for n, c in inspect.getmembers(module, inspect.isclass) if issubclass(c, Exception)}


@pytest.mark.parametrize(("module", "table"), [(chromadb.errors, CHROMA), (httpx, HTTPX)])
def test_every_error_of_the_lower_libraries_is_mapped(module: Any, table: dict[str, Any]) -> None:
    """Where a library grows an error we have not thought of, this fails."""
    assert set(_exceptions(module)) == set(table)


def _translated(error: Exception) -> type[Exception]:
    try:
        fault = translate(error)
    except CollectionGone:
        return CollectionGone
    assert "hunter2" not in str(fault)
    return type(fault)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        *((_exceptions(chromadb.errors)[name], ours) for name, ours in CHROMA.items()),
        *((_exceptions(httpx)[name], ours) for name, ours in HTTPX.items()),
    ],
)
def test_an_error_becomes_ours(theirs: type[Exception], ours: type[Exception]) -> None:
    """Each class leads to the error on purpose chosen for it, without a word of its text."""
    assert _translated(theirs.__new__(theirs, "a text with hunter2")) is ours


@pytest.mark.parametrize(
    ("error", "ours"),
    [
        (chromadb.errors.NotFoundError("Tenant [x] not found"), errors.ChromaTenantMissing),
        (chromadb.errors.NotFoundError("Database [x] not found"), errors.ChromaDatabaseMissing),
        (chromadb.errors.NotFoundError("Collection [x] does not exist"), CollectionGone),
        (
            chromadb.errors.InvalidArgumentError("Collection expecting embedding with dimension of 2, got 3"),
            errors.EmbedderDimensionMismatch,
        ),
        (ConnectionResetError("hunter2"), _UNREACHABLE),
        (BrokenPipeError("hunter2"), _UNREACHABLE),
        (ValueError("hunter2"), _NOT_CHROMA),
        (KeyError("hunter2"), _NOT_CHROMA),
        (RuntimeError("hunter2"), _NOT_CHROMA),
    ],
    ids=repr,
)
def test_an_error_is_told_apart_by_what_it_says(error: Exception, ours: type[Exception]) -> None:
    """Where one class stands for several failures, the text decides, and is not passed on."""
    assert _translated(error) is ours


@pytest.mark.parametrize(
    ("status", "ours"),
    [
        (401, errors.ChromaRefused),
        (403, errors.ChromaRefused),
        (407, errors.ChromaRefused),
        (404, errors.ChromaNotFound),
        (405, errors.ChromaNotFound),
        (429, errors.ChromaBusy),
        (500, _FAILED),
        (502, _FAILED),
        (503, _FAILED),
    ],
)
def test_an_answer_of_something_else_is_told_by_its_status(status: int, ours: type[Exception]) -> None:
    """What chromadb cannot read as its own server's error is judged by the HTTP status."""
    request = httpx.Request("GET", "http://chroma.example.com")
    error = Exception("<html>hunter2</html>")  # as chromadb raises it, in the context of httpx's
    error.__context__ = httpx.HTTPStatusError("x", request=request, response=httpx.Response(status))
    assert _translated(error) is ours
