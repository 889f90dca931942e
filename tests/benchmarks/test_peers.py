"""What the benchmark beside mem0 makes of the times it took."""

from functools import partial

import pytest

from benchmarks.peers import Took, in_turns, rates_of, table, times_of

TOOK = {
    "ours": [Took(0.030, 0.010), Took(0.020, 0.010), Took(0.040, 0.010)],
    "mem0": [Took(0.110, 0.010), Took(0.120, 0.010), Took(0.130, 0.010)],
}


def test_ratios_are_of_medians_with_and_without_the_vectors() -> None:
    """Both pay for them, which hides part of the difference."""
    figures = times_of(TOOK)
    assert figures["time_to_mem0"] == pytest.approx(0.030 / 0.120)
    assert figures["time_to_mem0_without_embedding"] == pytest.approx(0.020 / 0.110)
    assert figures["ours_median_ms"] == pytest.approx(30.0)
    assert figures["mem0_p95_ms"] == pytest.approx(130.0)
    assert figures["ours_embedding_share"] == pytest.approx(0.030 / 0.090)


def test_rates_are_memories_a_second() -> None:
    """Of all calls together, each with so many memories."""
    figures = rates_of(TOOK, 6)
    assert figures["ours_memories_per_second"] == pytest.approx(18 / 0.090)
    assert figures["rate_to_mem0"] == pytest.approx(0.360 / 0.090)
    assert figures["rate_to_mem0_without_embedding"] == pytest.approx(0.330 / 0.060)


def test_each_goes_first_as_often() -> None:
    """What the machine does in between meets both."""
    order: list[str] = []

    def call(name: str) -> Took:
        order.append(name)
        return Took(1.0, 0.0)

    took = in_turns({name: partial(call, name) for name in ("ours", "mem0")} for _ in range(4))
    assert order == ["ours", "mem0", "mem0", "ours"] * 2
    assert {name: len(calls) for name, calls in took.items()} == {"ours": 4, "mem0": 4}


def test_the_table_says_what_was_met_and_what_was_missed() -> None:
    """By the ratios with the vectors in them, which are what a user has."""
    shown = table(100_000, {"search": times_of(TOOK), "add": times_of(TOOK) | rates_of(TOOK, 6)})
    assert "search: 0.25, without embedding 0.18; aim: at most 0.3 of the time: met" in shown
    assert "add: 4.00, without embedding 5.50; aim: at least 3 times the rate: met" in shown
    slow = {"ours": TOOK["mem0"], "mem0": TOOK["ours"]}
    assert "search: 4.00, without embedding 5.50; aim: at most 0.3 of the time (at 100,000): missed" in table(
        10_000, {"search": times_of(slow)}
    )
