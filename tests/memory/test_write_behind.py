"""Writing behind: in order, one at a time, and nothing after a failure."""

import threading

import pytest

from memory.errors import ChromaFailed
from memory.write_behind import WriteBehind
from tests.waiting import wait_until


def test_writes_are_done_in_order_by_the_end_of_the_block() -> None:
    """Each write sees those before it."""
    done: list[int] = []
    with WriteBehind() as behind:
        for number in range(50):
            behind.put(lambda number=number: done.append(number))  # type: ignore[misc]
    assert done == list(range(50))


def test_the_caller_goes_on_while_a_write_is_under_way() -> None:
    """A write that waits for the caller gets what it waits for."""
    is_prepared = threading.Event()
    with WriteBehind() as behind:
        behind.put(lambda: _require(is_prepared.wait(30)))
        is_prepared.set()


def test_after_a_failure_nothing_more_is_written() -> None:
    """The failure is raised at the end, or at the next write, and the later ones are left out."""
    done: list[str] = []
    behind = WriteBehind()

    def write_three() -> None:
        with behind:
            behind.put(lambda: done.append("first"))
            behind.put(_fail)
            behind.put(lambda: done.append("after"))

    with pytest.raises(ChromaFailed):
        write_three()
    assert done == ["first"]


def test_a_failure_of_the_caller_stops_the_writes() -> None:
    """What the caller raises is what is raised, and writes that have not begun are not done."""
    done: list[str] = []
    behind = WriteBehind()

    def fail_between() -> None:
        with behind:
            behind.put(lambda: _wait_until_failed(behind))
            behind.put(lambda: done.append("late"))
            raise KeyError

    with pytest.raises(KeyError):
        fail_between()
    assert done == []


def _wait_until_failed(behind: WriteBehind) -> None:
    wait_until(lambda: behind.has_failed)


def _require(is_so: bool) -> None:
    if not is_so:
        raise AssertionError


def _fail() -> None:
    raise ChromaFailed
