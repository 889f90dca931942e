"""A server that does not answer costs one look after each rest, not a wait a call."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from development.places import PROJECT
from memory.circuit import REST_SECONDS, SILENCE_SECONDS, Circuit
from memory.errors import ChromaUnreachable


class Server:
    """A server that is there or not, a clock, and how often somebody looked."""

    def __init__(self) -> None:
        self.is_there = True
        self.looks = 0
        self.now = 1_000.0
        self.circuit = Circuit(lambda: self.now)

    def look(self) -> bool:
        """Whether it is there."""
        self.looks += 1
        return self.is_there

    def admits(self) -> bool:
        """Whether a call may go ahead."""
        try:
            self.circuit.admit(self.look, seconds=30.0)
        except ChromaUnreachable:
            return False
        return True


@pytest.fixture
def server() -> Server:
    """A server that is there."""
    return Server()


def test_while_all_is_well_nobody_looks(server: Server) -> None:
    """Calls that are answered cost no look, however long the pause between them."""
    for _ in range(100):
        assert server.admits()
        with server.circuit.waiting():
            server.circuit.answered()
        server.now += 10 * SILENCE_SECONDS
    assert server.looks == 0


def test_while_open_calls_fail_at_once_and_one_looks_after_each_rest(server: Server) -> None:
    """A thousand calls in ten rests make ten looks; the first look that finds the server lets all through."""
    server.is_there = False
    server.circuit.failed()
    assert not any(server.admits() for _ in range(1_000))
    assert server.looks == 0
    for _ in range(10):
        server.now += REST_SECONDS
        assert not any(server.admits() for _ in range(100))
    assert server.looks == 10
    server.is_there = True
    assert not server.admits()
    server.now += REST_SECONDS
    assert all(server.admits() for _ in range(100))
    assert (server.looks, server.circuit.is_open) == (11, False)


def test_an_answer_to_an_earlier_call_closes_it(server: Server) -> None:
    """Whoever is answered shows that the server is there."""
    server.circuit.failed()
    assert not server.admits()
    server.circuit.answered()
    assert server.admits()
    assert server.looks == 0


def test_a_slow_call_does_not_open_it(server: Server) -> None:
    """Silence and a time-out are each a reason for one look; a server that is found lets all go ahead."""
    with server.circuit.waiting():
        server.now += 2 * SILENCE_SECONDS
        assert all(server.admits() for _ in range(100))
        assert server.looks == 1
        server.now += 2 * SILENCE_SECONDS
        assert all(server.admits() for _ in range(100))
        assert server.looks == 2
    server.circuit.doubt()
    assert all(server.admits() for _ in range(100))
    assert server.looks == 3


@pytest.mark.parametrize("is_silent", [True, False])
def test_a_server_that_hangs_opens_it(server: Server, is_silent: bool) -> None:
    """Where the look finds nobody, all others fail without one, though calls wait still."""
    server.is_there = False
    with server.circuit.waiting():
        if is_silent:
            server.now += 2 * SILENCE_SECONDS
        else:
            server.circuit.doubt()
        assert not any(server.admits() for _ in range(1_000))
    assert server.looks == 1


def test_a_look_that_breaks_leaves_it_closed(server: Server) -> None:
    """Whatever is wrong with the call itself is the call's own."""
    server.circuit.doubt()

    def look() -> bool:
        raise KeyError

    with pytest.raises(KeyError):
        server.circuit.admit(look, seconds=30.0)
    assert not server.circuit.is_open
    assert server.admits()


@pytest.mark.parametrize("is_there", [True, False])
def test_calls_in_doubt_wait_for_one_look_and_take_its_word(server: Server, is_there: bool) -> None:
    """Of many at once one looks, and what it found holds for all."""
    server.is_there = is_there
    server.circuit.doubt()
    looking, found = threading.Event(), threading.Event()

    def look() -> bool:
        looking.set()
        assert found.wait(30)
        return server.look()

    def admitted() -> bool:
        try:
            server.circuit.admit(look, seconds=30.0)
        except ChromaUnreachable:
            return False
        return True

    with ThreadPoolExecutor(20) as pool:
        calls = [pool.submit(admitted) for _ in range(20)]
        assert looking.wait(30)
        found.set()
        assert {call.result(30) for call in calls} == {is_there}
    assert server.looks == 1


def test_while_one_looks_at_an_open_one_the_others_fail_at_once(server: Server) -> None:
    """They do not wait for what the look finds."""
    server.circuit.failed()
    server.now += REST_SECONDS
    looking, found = threading.Event(), threading.Event()

    def look() -> bool:
        looking.set()
        return found.wait(30)

    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(server.circuit.admit, look, seconds=30.0)
        assert looking.wait(30)
        assert not any(server.admits() for _ in range(100))
        found.set()
        call.result(30)
    assert server.admits()
    assert server.looks == 0


_GREENLETS = """
from gevent import monkey
monkey.patch_all()
import gevent
from development.places import PROJECT
from memory.circuit import Circuit
from memory.errors import ChromaUnreachable
circuit, looks = Circuit(lambda: 1_000.0), []
circuit.doubt()
def look():
    looks.append(1)
    gevent.sleep(0.01)
    return False
def call():
    try:
        circuit.admit(look, seconds=30.0)
    except ChromaUnreachable:
        return "unreachable"
calls = [gevent.spawn(call) for _ in range(1000)]
gevent.joinall(calls)
print(len(looks), {each.value for each in calls})
"""


def test_greenlets_share_a_look_as_threads_do() -> None:
    """In a patched process, as the plugin is, a thousand greenlets take one look."""
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", _GREENLETS], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split(maxsplit=1) == ["1", "{'unreachable'}\n"]
