"""Many calls at once: in one process, in two, and beside a server that hangs."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from development.chroma_server import ChromaServer
from development.daemon import PluginFailure, PluginProcess, ToolAnswer
from memory.content import Statement
from memory.embedding.builtin import BuiltinEmbedder
from memory.records import Kind, Memory, Role
from memory.remembering import Writing, remember
from memory.scope import Scope, customer_scope
from memory.slots import heads
from memory.store import MemoryStore
from tests.conftest import Json, Nodes
from tests.scenarios.test_identity import Inside

type Call = Callable[[], ToolAnswer]

ADA, GRACE = "ada@example.com", "grace@example.com"
SLOTS = ("plan", "home", "phone", "language")


@pytest.fixture(scope="module")
def second() -> Iterator[PluginProcess]:
    """A second plugin process."""
    with PluginProcess() as process:
        yield process


def at_once(calls: list[Call]) -> list[ToolAnswer]:
    """Run calls that all start together; their answers in the order of the calls."""
    ready = threading.Barrier(len(calls))

    def run(call: Call) -> ToolAnswer:
        ready.wait(30)
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def everything(nodes: Nodes, **parameters: Any) -> list[Json]:
    """All memories of the customer, history included."""
    answer = nodes.forget(customer_id=ADA, scope="everything", **parameters)
    memories: list[Json] = answer["receipt"]["memories"]
    assert len(memories) == answer["matched"]
    return memories


def test_two_processes_write_for_one_customer_at_once(
    plugin: PluginProcess, second: PluginProcess, credentials: Json
) -> None:
    """Of 200 overlapping writes each none is doubled or lost, and a slot has one current value for both."""
    chance = random.Random(20_260_301)  # noqa: S311

    def writes(who: int) -> list[Json]:
        own = [{"content": f"Note {n} of process {who}"} for n in range(50)]
        shared = [{"content": f"Note {n} of both"} for n in range(50)]
        dated = [
            {
                "content": f"{slot} is {n}",
                "attribute": slot,
                "occurred_at": f"2024-01-{1 + n:02d}",
            }
            for n in range(20)
            for slot in SLOTS[:2]
        ]
        undated = [
            {"content": f"{slot} is {n} of {who if n % 2 else 'both'}", "attribute": slot}
            for n in range(30)
            for slot in SLOTS[2:]
        ]
        listed = own + shared + dated + undated
        chance.shuffle(listed)
        return listed

    both = [Nodes(plugin, credentials), Nodes(second, credentials)]
    ready = threading.Barrier(4)

    def run(nodes: Nodes, listed: list[Json]) -> list[ToolAnswer]:
        ready.wait(60)
        return [nodes.remember(customer_id=ADA, **write) for write in listed]

    lists = [writes(0), writes(1)]
    assert [len(listed) for listed in lists] == [200, 200]
    with ThreadPoolExecutor(4) as pool:  # two calls at once in each process
        halves = [(nodes, w[i::2]) for nodes, w in zip(both, lists, strict=True) for i in (0, 1)]
        answers = [a for part in pool.map(run, *zip(*halves, strict=True)) for a in part]

    assert all(a["stored"] + a["duplicates"] == 1 for a in answers)
    stored = everything(both[0])
    plain = Counter(m["text"] for m in stored if not m["attribute"])
    expected = {w["content"] for listed in lists for w in listed if "attribute" not in w}
    assert plain == Counter(dict.fromkeys(expected, 1))
    for slot in SLOTS[:2]:
        values = Counter(m["text"] for m in stored if m["attribute"] == slot)
        assert values == Counter({f"{slot} is {n}": 1 for n in range(20)})
    told = {w["content"] for listed in lists for w in listed if "attribute" in w}
    assert {m["text"] for m in stored if m["attribute"]} == told
    assert len({m["memory_id"] for m in stored}) == len(stored)

    current = {slot: [m for m in stored if m["attribute"] == slot and m["is_current"]] for slot in SLOTS}
    assert {slot: len(values) for slot, values in current.items()} == dict.fromkeys(SLOTS, 1)
    assert [current[slot][0]["text"] for slot in SLOTS[:2]] == [f"{slot} is 19" for slot in SLOTS[:2]]
    for slot in SLOTS:
        recalled = [
            [m["memory_id"] for m in nodes.recall(f"{slot} is", customer_id=ADA, limit=100)["memories"]]
            for nodes in both
        ]
        assert recalled[0] == recalled[1]
        assert recalled[0].count(current[slot][0]["memory_id"]) == 1


def test_the_same_fact_from_two_processes_at_the_same_moment_is_one_record(
    plugin: PluginProcess, second: PluginProcess, credentials: Json
) -> None:
    """Also for the very first write, when both start the namespace, and for a value of a slot."""
    both = [Nodes(plugin, credentials), Nodes(second, credentials)] * 2
    for attribute in ("", "plan"):
        answers = at_once(
            [partial(nodes.remember, "Likes teal", customer_id=ADA, attribute=attribute) for nodes in both]
        )
        assert len({a["memories"][0]["memory_id"] for a in answers}) == 1

    assert sorted(m["attribute"] for m in everything(both[0])) == ["", "plan"]
    assert all(m["is_current"] for m in everything(both[0]))


def test_two_processes_that_start_a_namespace_at_once_agree_on_its_model(
    plugin: PluginProcess, second: PluginProcess, credentials: Json
) -> None:
    """One of two models wins; the other call is refused, and every later one of its model too."""
    chosen = {"provider": "example/models/models", "model": "embed-1"}
    nodes, other = Nodes(plugin, credentials), Nodes(second, credentials)
    outcomes: list[str] = []

    def write(ours: Nodes, model: Json | None) -> ToolAnswer:
        try:
            answer = ours.remember("Likes teal", customer_id=ADA, embedding_model=model)
        except PluginFailure as failure:
            outcomes.append(failure.code)
            return ToolAnswer()
        outcomes.append("stored")
        return answer

    at_once([lambda: write(nodes, chosen), lambda: write(other, None)])

    assert "stored" in outcomes
    assert set(outcomes) <= {"stored", "embedder_mismatch"}
    assert nodes.texts("Likes teal", customer_id=ADA) == ["Likes teal"]
    assert other.texts("Likes teal", customer_id=ADA) == ["Likes teal"]


def test_one_conversation_claimed_for_two_customers_at_once_goes_to_one(
    plugin: PluginProcess, second: PluginProcess, credentials: Json
) -> None:
    """One claim wins, the other is refused, and what the conversation knew is with the winner, once."""
    names = [ADA, GRACE]
    nodes, other = Nodes(plugin, credentials), Nodes(second, credentials)
    nodes.remember("Likes teal", conversation_id="conv-1")
    refused: list[str] = []

    def claim(ours: Nodes, customer_id: str) -> ToolAnswer:
        try:
            return ours.link(customer_id=customer_id, conversation_id="conv-1")
        except PluginFailure as failure:
            refused.append(failure.code)
            return ToolAnswer()

    at_once([lambda: claim(nodes, names[0]), lambda: claim(other, names[1])])

    assert refused == ["conversation_of_another_customer"]
    winner = nodes.recall("", conversation_id="conv-1")["customer_id"]
    loser = names[1 - names.index(winner)]
    assert nodes.texts("", customer_id=winner) == ["Likes teal"]
    assert nodes.texts("", customer_id=loser) == []


def test_a_conversation_linked_while_it_writes_loses_nothing(
    plugin: PluginProcess, second: PluginProcess, credentials: Json
) -> None:
    """Whatever was remembered before, during and after the link is the customer's in the end."""
    nodes, other = Nodes(plugin, credentials), Nodes(second, credentials)
    nodes.remember("Note first", conversation_id="conv-1")
    calls: list[Call] = [partial(nodes.remember, f"Note {n}", conversation_id="conv-1") for n in range(8)]
    calls.append(lambda: other.link(customer_id=ADA, conversation_id="conv-1"))
    at_once(calls)

    assert sorted(nodes.texts("", customer_id=ADA, limit=100)) == [
        "Note 0",
        *(f"Note {n}" for n in range(1, 8)),
        "Note first",
    ]


def test_twelve_calls_at_once_in_one_process_are_all_right(nodes: Nodes) -> None:
    """Each of twelve customers' calls gets its own answer, of all four nodes mixed."""
    customers = [f"customer-{n}@example.com" for n in range(12)]
    stored = at_once(
        [
            partial(nodes.remember, f"Is called {name}", customer_id=name, conversation_id=name)
            for name in customers
        ]
    )
    assert [(a["stored"], a["customer_id"]) for a in stored] == [(1, name) for name in customers]

    mixed: list[Call] = []
    for n, name in enumerate(customers):
        kinds: list[Call] = [
            partial(nodes.recall, "Is called", customer_id=name),
            partial(nodes.recall, "", conversation_id=name),
            partial(nodes.forget, query="Is called", customer_id=name),
            partial(nodes.link, customer_id=name, conversation_id=name, case_id="case-1"),
        ]
        mixed.append(kinds[n % 4])
    answers = at_once(mixed)

    assert [a["customer_id"] for a in answers] == customers
    for n, (name, answer) in enumerate(zip(customers, answers, strict=True)):
        memories = answer.variables.get("memories") or answer.variables.get("receipt", {}).get("memories")
        assert n % 4 == 3 or [m["text"] for m in memories] == [f"Is called {name}"]


def test_a_call_to_a_server_that_hangs_ends_by_itself_while_the_others_go_on(nodes: Nodes) -> None:
    """Eleven calls to a healthy server are answered before the one to the hanging server gives up."""
    nodes.remember("Likes teal", customer_id=ADA)
    ended: list[str] = []
    with ChromaServer() as server:
        hanging = Nodes(nodes.process, {**nodes.credentials, "chroma_url": server.url, "timeout_seconds": 4})
        hanging.remember("Drives a van", customer_id=ADA)
        server.freeze()
        started = time.monotonic()

        def hang() -> ToolAnswer:
            try:
                return hanging.recall("van", customer_id=ADA)
            except PluginFailure as failure:
                ended.append(failure.code)
                return ToolAnswer()

        def go_on(n: int) -> ToolAnswer:
            answer = (
                nodes.recall("teal", customer_id=ADA)
                if n % 2
                else nodes.remember(f"Note {n}", customer_id=ADA)
            )
            ended.append("answered")
            return answer

        try:
            at_once([hang, *(partial(go_on, n) for n in range(11))])
            elapsed = time.monotonic() - started
        finally:
            server.thaw()

    assert ended == ["answered"] * 11 + ["chroma_timeout"]
    assert elapsed < 4 + 15
    assert sorted(nodes.texts("", customer_id=ADA)) == sorted(
        ["Likes teal", *(f"Note {n}" for n in range(0, 11, 2))]
    )


def test_an_erasure_beside_writes_of_another_customer_touches_only_its_own(nodes: Nodes) -> None:
    """While one customer is erased, another's memories of the same texts are written and stay."""
    texts = [f"Note {n}" for n in range(10)]
    messages = [{"role": "user", "content": text} for text in texts]
    nodes.remember(messages, customer_id=ADA, kind="semantic")

    answers = at_once(
        [
            lambda: nodes.forget(customer_id=ADA, scope="everything", action="delete"),
            *(partial(nodes.remember, text, customer_id=GRACE) for text in texts),
        ]
    )

    assert answers[0]["deleted"] == 10
    assert nodes.texts("", customer_id=ADA) == []
    assert sorted(nodes.texts("", customer_id=GRACE, limit=100)) == sorted(texts)


class HaltingStore(MemoryStore):
    """The real store, in a process that the machine halts for a while just before some of its steps."""

    before_confirm: Callable[[], object] | None = None
    before_restate: Callable[[], object] | None = None

    def confirm(self, scope: Scope, memories: Sequence[Memory]) -> None:
        """As the real one, after the halt."""
        if memories and self.before_confirm is not None:
            self.before_confirm()
        super().confirm(scope, memories)

    def restate(self, scope: Scope, memories: Sequence[Memory]) -> None:
        """As the real one, after the halt."""
        halt, self.before_restate = self.before_restate, None
        if memories and halt is not None:
            halt()
        super().restate(scope, memories)


def test_a_slot_keeps_a_current_value_when_one_process_marks_what_another_confirms(
    nodes: Nodes, credentials: Json
) -> None:
    """A value said again while another process writes a newer one leaves one of the two current, not none."""
    nodes.remember("Plan is Basic", customer_id=ADA, attribute="plan")
    inside, scope, now = Inside(credentials), customer_scope(ADA), time.time()
    changing = HaltingStore(inside.namespace, inside.about)
    confirming = HaltingStore(inside.namespace, inside.about)
    has_decided, has_confirmed = threading.Event(), threading.Event()

    def write(store: MemoryStore, text: str, *, at: float) -> None:
        statement = Statement(text, Role.CUSTOMER, Kind.SEMANTIC, 0, attribute="plan")
        remember(store, BuiltinEmbedder(), Writing(scope=scope), [statement], now=at)

    def halt_before_marking() -> None:
        has_decided.set()
        assert has_confirmed.wait(30)

    changing.before_restate = halt_before_marking
    with ThreadPoolExecutor(1) as pool:

        def let_the_other_decide() -> None:
            others.append(pool.submit(write, changing, "Plan is Pro", at=now + 1))
            assert has_decided.wait(30)

        others: list[Future[None]] = []
        confirming.before_confirm = let_the_other_decide
        write(confirming, "Plan is Basic", at=now + 2)
        has_confirmed.set()
        others[0].result(30)

    assert [memory.text for memory in heads(inside.store.live(scope))] == ["Plan is Basic"]
    assert nodes.texts("", customer_id=ADA) == ["Plan is Basic"]
