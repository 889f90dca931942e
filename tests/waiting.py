"""Waiting for what comes about by itself, such as a server that is used again."""

import time
from collections.abc import Callable

_LOOK_SECONDS = 0.01
_HANGING_SECONDS = 120.0
"""Long enough for the slowest machine: it only keeps a fault from hanging the tests."""


def wait_until(is_so: Callable[[], bool]) -> None:
    """Ask until it is so.

    Raises:
        AssertionError: it does not come about.
    """
    ends_at = time.monotonic() + _HANGING_SECONDS
    while not is_so():
        if time.monotonic() > ends_at:
            raise AssertionError("it did not come about")
        time.sleep(_LOOK_SECONDS)
