"""Places are given to the earliest turn, and none is lost."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import pytest

from memory.places import Places


def test_there_are_as_many_as_said() -> None:
    """The next one waits until one is given back."""
    places = Places(2)
    with places.asked_for(0) as first, places.asked_for(0) as second:
        with places.asked_for(0) as third:
            assert (first.is_set(), second.is_set(), third.is_set()) == (True, True, False)
            assert not third.wait(0)
        with places.asked_for(0) as fourth:
            assert not fourth.is_set()
    with places.asked_for(0) as fifth, places.asked_for(0) as sixth:
        assert fifth.is_set()
        assert sixth.is_set()


def test_who_waits_keeps_its_turn_however_often_it_looks_up() -> None:
    """A wait that ended without the place does not put anybody behind those who came later."""
    places = Places(1)
    with ExitStack() as held:
        holder = ExitStack()
        assert holder.enter_context(places.asked_for(0)).is_set()
        waiting = []
        for _ in range(10):
            stack = ExitStack()
            waiting.append((stack, stack.enter_context(places.asked_for(1))))
            held.callback(stack.close)
            assert not any(turn.wait(0) for _, turn in waiting)
        holder.close()
        for number, (stack, _) in enumerate(waiting):
            assert [turn.is_set() for _, turn in waiting] == [True] * (number + 1) + [False] * (9 - number)
            stack.close()


def test_the_earliest_turn_is_next_whoever_asked_before() -> None:
    """Of equal turns whoever asked first."""
    places = Places(1)
    turns = [3.0, 1.0, 2.0, 1.0]
    with ExitStack() as held:
        holder = ExitStack()
        assert holder.enter_context(places.asked_for(9)).is_set()
        stacks = [ExitStack() for _ in turns]
        given = [stack.enter_context(places.asked_for(t)) for stack, t in zip(stacks, turns, strict=True)]
        for stack in stacks:
            held.callback(stack.close)
        order: list[int] = []
        holder.close()
        while len(order) < len(turns):
            (there,) = [i for i, each in enumerate(given) if each.is_set() and i not in order]
            order.append(there)
            stacks[there].close()
    assert order == [1, 3, 2, 0]


def test_who_gives_up_leaves_its_turn_to_the_next() -> None:
    """Whatever made it give up, a place is never lost."""
    places = Places(1)
    with places.asked_for(0):
        with suppress(KeyError), places.asked_for(0):
            raise KeyError
        with places.asked_for(0) as next_one:
            assert not next_one.is_set()
    with places.asked_for(0) as again:
        assert again.is_set()


@pytest.mark.parametrize("count", [1, 3])
def test_many_threads_never_take_more_than_there_are(count: int) -> None:
    """And all of them get theirs."""
    places, lock = Places(count), threading.Lock()
    inside: list[int] = [0, 0]

    def work(_: int) -> bool:
        with places.asked_for(0) as turn:
            assert turn.wait(60)
            with lock:
                inside[0] += 1
                inside[1] = max(inside)
            with lock:
                inside[0] -= 1
        return True

    with ThreadPoolExecutor(30) as pool:
        assert all(pool.map(work, range(3_000)))
    assert 0 < inside[1] <= count
    with ExitStack() as stack:
        assert all(stack.enter_context(places.asked_for(0)).is_set() for _ in range(count))
