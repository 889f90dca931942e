"""Many calls at once through a real process, as the benchmark of load makes them: all answers are right."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from benchmarks.callers import MIX, WRONG, Caller, Done, call_at_once, figures_of, lost
from benchmarks.generated_memories import Customer, Memories
from benchmarks.layouts import KnownVectors, OurLayout
from benchmarks.load import outage_figures, verdicts
from development.chroma_server import ChromaServer
from development.daemon import PluginProcess, ToolAnswer
from memory.embedding import BUILTIN
from tests.conftest import Json

AT_ONCE = 64
CUSTOMERS = [Customer(number, 5 + number % 7) for number in range(AT_ONCE)]
MEMORIES = Memories(seed=5)


@pytest.fixture
def filled(chroma: ChromaServer, namespace: str) -> Json:
    """The credentials of a namespace with a few memories of each customer."""
    layout = OurLayout(chroma.url, namespace, KnownVectors(BUILTIN))
    layout.write([(each.scope, stored) for each in CUSTOMERS for stored in MEMORIES.of(each)])
    return {"chroma_url": chroma.url, "namespace": namespace}


def callers(plugin: PluginProcess, credentials: Json) -> Sequence[Caller]:
    """As many as call at once."""
    return [Caller(plugin, credentials, CUSTOMERS, MEMORIES, number) for number in range(AT_ONCE)]


def test_sixty_four_recalls_at_once_find_each_its_own(plugin: PluginProcess, filled: Json) -> None:
    """Everything of the customer it is about, what was asked for first, and nothing of the 63 others."""
    together = threading.Barrier(AT_ONCE)

    def recall(customer: Customer) -> ToolAnswer:
        wanted = MEMORIES.of(customer)[0][0].text
        parameters = {"query": wanted, "customer_id": customer.customer_id, "min_score": 0, "limit": 100}
        together.wait(60)
        return plugin.tool("recall", parameters, credentials=filled)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(recall, CUSTOMERS))
    for customer, answer in zip(CUSTOMERS, answers, strict=True):
        texts = [memory.text for memory, _ in MEMORIES.of(customer)]
        found = [memory["text"] for memory in answer["memories"]]
        assert found[0] == texts[0]
        assert sorted(found) == sorted(texts)
        assert answer["degraded"] == ""


def test_sixty_four_callers_who_read_write_and_forget_get_right_answers(
    plugin: PluginProcess, filled: Json
) -> None:
    """No error, and of what was acknowledged nothing is missing."""
    people = callers(plugin, filled)
    done, _ = call_at_once([each.call for each in people], 4 * AT_ONCE)
    assert len(done) == 4 * AT_ONCE
    assert [each for each in done if each.code] == []
    assert {"recall", "remember"} <= {each.verb for each in done} <= MIX.keys()
    keepers = [each for each in people if each.kept]
    assert len(keepers) > AT_ONCE // 3
    assert lost(people) == 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        forgotten = list(pool.map(Caller.make, keepers, ["forget"] * len(keepers)))
    assert [each for each in forgotten if each.code] == []
    assert lost(people) == 0


def test_what_is_missing_is_noticed(plugin: PluginProcess, filled: Json) -> None:
    """A memory that another one forgot counts as lost, and forgetting it again as a wrong answer."""
    first, second = callers(plugin, filled)[:2]
    assert first.make("remember").code == ""
    ((customer_id, memory_ids),) = first.kept.items()
    parameters = {"memory_ids": list(memory_ids), "customer_id": customer_id, "action": "delete"}
    plugin.tool("forget", parameters, credentials=filled)
    assert (lost([first, second]), lost([second])) == (1, 0)
    assert first.make("forget").code == WRONG


def test_figures_count_failures_and_order_times() -> None:
    """Calls a second are of all calls; the slowest in twenty is one of them."""
    done = [Done("recall", 0.0, n / 1_000, "chroma_busy" if n == 3 else "") for n in range(1, 101)]
    figures = figures_of(done, elapsed=4.0)
    assert figures == {
        "calls_per_second": 25.0,
        "median_ms": 50.5,
        "p95_ms": 96.0,
        "errors": 1,
        "error chroma_busy": 1,
    }


def test_an_outage_is_measured_from_when_the_server_went() -> None:
    """A call under way then is not blamed for its time before; the first answer tells when it was back."""
    done = [
        Done("recall", 0.0, 1.0),
        Done("recall", 5.0, 6.5, "chroma_unreachable", is_retryable=True),
        Done("recall", 12.0, 1.0, "chroma_timeout"),
        Done("recall", 19.5, 0.75, "chroma_unreachable", is_retryable=True),
        Done("recall", 20.25, 0.25),
    ]
    assert outage_figures(done, gone=10.0, back=20.0) == {
        "slowest_failure_seconds": 1.5,
        "seconds_until_back": 0.5,
        "last_failure_after_return_seconds": 0.25,
        "not_retryable": 1,
        "answered_before": 1,
        "slowest_answer_before_seconds": 1.0,
        "answered_after": 1,
        "failed chroma_unreachable": 2,
        "failed chroma_timeout": 1,
    }


def test_what_was_aimed_at_stands_beside_what_came_out() -> None:
    """For the parts that were measured, and only those."""
    fewer = {"calls_per_second": 50.0, "errors": 0.0, "lost": 0.0, "p95_to_median": 2.0}
    text = verdicts({"16 at once": fewer, "64 at once": {**fewer, "calls_per_second": 45.0, "errors": 2.0}})
    assert "2 errors (none)" in text
    assert "0.90 of that at 16" in text
    assert verdicts({"64 at once": fewer}) == ""
