"""A crash of the Chroma server in the middle of writes, through a real plugin process that stays up."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest

from development.chroma_server import ChromaServer
from development.daemon import PluginFailure, PluginProcess
from tests.conftest import Json, Nodes
from tests.endpoints.conftest import KEY, Api, message, ticket

KILLS = 3
CALLERS = 3
ACKNOWLEDGED_BETWEEN_KILLS = 6
MAY_BE_SAID = {"chroma_unreachable", "chroma_failed", "chroma_timeout", "chroma_busy"}
"""What a call may end with while the server is away; all of them can be tried again."""
WAIT_SECONDS = 120.0
"""After which a test that stands still is given up."""


class Tally:
    """Counts what was acknowledged and what failed, and lets somebody wait for more of either."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._changed = threading.Condition()

    def add(self, kind: str) -> None:
        """One more."""
        with self._changed:
            self._counts[kind] += 1
            self._changed.notify_all()

    def wait_for(self, kind: str, more: int) -> None:
        """Wait until there are that many more."""
        with self._changed:
            wanted = self._counts[kind] + more
            assert self._changed.wait_for(lambda: self._counts[kind] >= wanted, WAIT_SECONDS), kind


@dataclass
class Caller:
    """Writes one small piece of work after another, and notes which were acknowledged.

    Attributes:
        write: writes the piece of that number; gives the code of its failure, "" for an acknowledged one.
        acknowledged, failed: numbers of the pieces.
        codes: of the failures.
    """

    write: Callable[[int], str]
    tally: Tally
    acknowledged: list[int] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)
    codes: Counter[str] = field(default_factory=Counter)

    def run(self, stop: threading.Event, is_up: threading.Event) -> None:
        """Go on until told to stop. A piece that failed is left for later, when the server is up again."""
        for number in range(100_000):
            if stop.is_set():
                return
            code = self.write(number)
            (self.failed if code else self.acknowledged).append(number)
            if code:
                self.codes[code] += 1
            self.tally.add("failed" if code else "acknowledged")
            if code:
                is_up.wait(WAIT_SECONDS)


# --- what is written ----------------------------------------------------------------------------


def said(number: int) -> list[str]:
    """The statements of one remember: two short ones, and a long one that is stored in several rows."""
    long = f"Long story {number}: " + " ".join(f"step {number}-{step}" for step in range(300))
    return [f"Note {number} on parcels", f"Note {number} on lamps", long]


def value(number: int) -> str:
    """The value of the caller's slot that belongs to a number."""
    return f"Plan number {number}"


def asked(number: int) -> list[Json]:
    """The tickets of one import, of two messages each."""
    return [
        ticket(
            f"{number}-{each}",
            f"importer-{each}",
            message(1, f"Question {number}-{each}, first"),
            message(2, f"Question {number}-{each}, second"),
        )
        for each in range(3)
    ]


def remembering(nodes: Nodes, customer_id: str) -> Callable[[int], str]:
    """Writes statements, or every third time the next value of one slot."""

    def write(number: int) -> str:
        try:
            if number % 3:
                messages = [{"role": "user", "content": text} for text in said(number)]
                nodes.remember(messages, customer_id=customer_id, kind="semantic")
            else:
                at = f"2024-01-01T{number // 60:02d}:{number % 60:02d}:00Z"
                nodes.remember(value(number), customer_id=customer_id, attribute="plan", occurred_at=at)
        except PluginFailure as failure:
            may_try_again = "Trying again later may help" in failure.message
            return failure.code if may_try_again else f"for good: {failure.code}"
        return ""

    return write


def importing(api: Api) -> Callable[[int], str]:
    """Imports tickets."""

    def write(number: int) -> str:
        answer = api.send("POST", "/tickets/import", {"tickets": asked(number)})
        body = answer.json()
        if answer.status == 200:
            assert body["problems"] == []
            return ""
        code: str = body["error"]["code"]
        return code if body["error"]["retryable"] else f"for good: {code}"

    return write


# --- what is there ------------------------------------------------------------------------------


def memories(api: Api, customer_id: str) -> list[Json]:
    """Everything known of a customer, texts whole."""
    found: list[Json] = []
    cursor = ""
    while True:
        page = api.get(f"/export?customer_id={customer_id}&cursor={cursor}")
        found += page["memories"]
        cursor = page["cursor"] or ""
        if not cursor:
            return found


def check_remembered(api: Api, customer_id: str, caller: Caller) -> None:
    """What was acknowledged is there once; of what was not, each is there whole and once, or not at all."""
    found = memories(api, customer_id)
    count = Counter(memory["text"] for memory in found)
    expected = {text for n in caller.acknowledged for text in ([value(n)] if n % 3 == 0 else said(n))}
    assert {text: count[text] for text in expected} == dict.fromkeys(expected, 1)
    for number in (n for n in caller.failed if n % 3):
        assert sorted(count[text] for text in said(number)) in ([0, 0, 0], [1, 1, 1]), number
    values = {memory["text"]: memory["is_current"] for memory in found if memory["attribute"] == "plan"}
    assert {count[text] for text in values} == {1}
    newest = max(values, key=lambda text: int(text.rpartition(" ")[2]))
    assert [text for text, is_current in values.items() if is_current] == [newest]
    assert set(count) <= {t for n in [*caller.acknowledged, *caller.failed] for t in [value(n), *said(n)]}


def check_imported(api: Api, caller: Caller) -> None:
    """The same for tickets: each message once, a ticket wholly or not at all, its entry beside it."""
    count = Counter(m["text"] for each in range(3) for m in memories(api, f"importer-{each}"))
    for number in [*caller.acknowledged, *caller.failed]:
        for each in asked(number):
            there = [count.pop(m["text"], 0) for m in each["messages"]]
            assert there in ([1, 1],) if number in caller.acknowledged else ([1, 1], [0, 0]), each[
                "ticket_id"
            ]
            if number in caller.acknowledged:
                entry = api.get(f"/tickets?source=shop&ticket_id={each['ticket_id']}")
                assert (entry["complete"], entry["memories"]) == (True, 2)
    assert not count


@pytest.fixture
def server() -> Iterator[ChromaServer]:
    """A server that may crash."""
    with ChromaServer() as running:
        yield running


def test_a_server_killed_during_writes_loses_nothing_and_is_used_again(
    plugin: PluginProcess, server: ChromaServer, namespace: str
) -> None:
    """Killed three times under three callers and an import: what was acknowledged is there, whole and once.

    What failed said that it may be tried again, is there whole or not at all, and is done by trying again,
    in the same plugin process and with the server at the same address.
    """
    form = {"chroma_url": server.url, "namespace": namespace}
    nodes, api = Nodes(plugin, form), Api(plugin, {**form, "api_key": KEY})
    tally, pid = Tally(), plugin.pid
    stop, is_up = threading.Event(), threading.Event()
    is_up.set()
    nodes.remember("Here from the start", customer_id="somebody else")
    writers = {f"caller-{n}": Caller(remembering(nodes, f"caller-{n}"), tally) for n in range(CALLERS)}
    importer = Caller(importing(api), tally)
    with ThreadPoolExecutor(CALLERS + 1) as pool:
        running = [pool.submit(caller.run, stop, is_up) for caller in [*writers.values(), importer]]
        try:
            for _ in range(KILLS):
                tally.wait_for("acknowledged", ACKNOWLEDGED_BETWEEN_KILLS)
                is_up.clear()
                server.kill()
                tally.wait_for("failed", CALLERS)
                server.start()
                is_up.set()
            tally.wait_for("acknowledged", ACKNOWLEDGED_BETWEEN_KILLS)
        finally:
            stop.set()
            is_up.set()
        for each in running:
            each.result(WAIT_SECONDS)

    codes = sum((caller.codes for caller in [*writers.values(), importer]), Counter[str]())
    assert codes["chroma_unreachable"]
    assert set(codes) <= MAY_BE_SAID
    for customer_id, caller in writers.items():
        check_remembered(api, customer_id, caller)
    check_imported(api, importer)

    for customer_id, caller in [*writers.items(), ("", importer)]:
        assert {caller.write(number) for number in caller.failed} <= {""}
        caller.acknowledged += caller.failed
        caller.failed = []
        if customer_id:
            check_remembered(api, customer_id, caller)
    check_imported(api, importer)
    assert nodes.texts("", customer_id="somebody else") == ["Here from the start"]
    assert plugin.pid == pid
