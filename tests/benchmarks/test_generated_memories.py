"""The memories that the benchmark of scale is run on."""

import math
import statistics

import pytest

from benchmarks.generated_memories import EXACT, FEWEST, MOST, Customer, Memories, chunks, customers
from benchmarks.layouts import in_turns


def test_customers_follow_zipfs_law_and_hold_what_was_asked_for() -> None:
    """So many memories in all, most customers small, a few large, and those of exactly 200."""
    sizes = [customer.memories for customer in customers(100_000, exact=40)]
    assert sum(sizes) == 100_000
    assert sizes.count(EXACT) >= 40
    assert min(sizes) >= FEWEST
    assert max(sizes) == MOST
    assert statistics.median(sizes) == pytest.approx(10, abs=2)
    over_50, over_500 = (sum(size > n for size in sizes) for n in (50, 500))
    assert over_50 == pytest.approx(10 * over_500, rel=0.3)


def test_too_few_memories_for_the_customers_asked_for_are_refused() -> None:
    """The largest customer has to have room."""
    with pytest.raises(ValueError, match="too few"):
        customers(3_000, exact=10)


def test_a_seed_gives_the_same_memories_and_another_one_others() -> None:
    """Whatever was generated before."""
    customer = Customer(7, 20)
    once, again, other = Memories(1).of(customer), Memories(1).of(customer), Memories(2).of(customer)
    assert once == again
    assert {memory.text for memory, _ in once}.isdisjoint(memory.text for memory, _ in other)
    assert customers(10_000, exact=10, seed=1) == customers(10_000, exact=10, seed=1)
    assert customers(10_000, exact=10, seed=1) != customers(10_000, exact=10, seed=2)


def test_each_memory_is_one_of_its_own() -> None:
    """Further ones too."""
    memories, customer = Memories(), Customer(7, 200)
    rows = memories.of(customer) + [memories.more(customer, number) for number in range(3)]
    assert len({memory.memory_id for memory, _ in rows}) == len({memory.text for memory, _ in rows}) == 203
    assert {memory.customer_id for memory, _ in rows} == {customer.customer_id}


def test_a_question_is_near_the_memories_of_its_topic_alone() -> None:
    """They are alike, not equal; the rest has nothing to do with it."""
    memories, customer = Memories(), Customer(7, 200)
    text, asked = memories.question(customer, 0)
    near = sorted(math.sumprod(asked, vector) for _, vector in memories.of(customer))
    assert 0.2 < near[-1] < 0.9
    assert statistics.median(near) == pytest.approx(0.0, abs=0.05)
    assert memories.question(customer, 1) != (text, asked)


def test_chunks_hold_all_customers_in_order() -> None:
    """In groups of about the size asked for."""
    every = [Customer(number, 30) for number in range(10)]
    groups = list(chunks(every, 100))
    assert [customer for group in groups for customer in group] == every
    assert [len(group) for group in groups] == [3, 3, 4]


def test_calls_take_turns_in_going_first() -> None:
    """Each is timed once a round."""
    order: list[str] = []
    calls = {name: lambda name=name: order.append(name) for name in "abc"}
    seconds = in_turns([calls] * 3)
    assert "".join(order) == "abcbcacab"
    assert {name: len(times) for name, times in seconds.items()} == {"a": 3, "b": 3, "c": 3}
