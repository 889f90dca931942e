"""A call keeps the turn of its beginning; bulk work has none."""

import threading
import time
from contextvars import copy_context

from memory.pacing import background, in_foreground, in_turn, turn


@in_foreground
def _inner() -> float:
    return turn()


def test_all_that_a_call_does_has_the_turn_of_its_beginning() -> None:
    """Whatever it calls, and in whichever of its threads."""
    before = time.monotonic()
    with in_turn():
        began = turn()
        assert before <= began <= time.monotonic()
        assert _inner() == turn() == began
        context, found = copy_context(), []
        thread = threading.Thread(target=lambda: found.append(context.run(turn)))
        thread.start()
        thread.join()
        assert found == [began]


def test_the_next_call_comes_later() -> None:
    """Of two calls in one thread, too."""
    first = _inner()
    between = time.monotonic()
    assert first <= between <= _inner()


def test_bulk_work_asks_anew_each_time() -> None:
    """An import that began an hour ago does not go before everybody who came since."""
    with in_turn():
        began = turn()
        with background():
            while time.monotonic() == began:
                pass
            assert turn() > began
        assert turn() == began


def test_outside_of_calls_it_is_now() -> None:
    """Nothing is left of the call before."""
    began = _inner()
    while time.monotonic() == began:
        pass
    assert turn() > began
