"""Lets people go first: bulk work gives way to the calls somebody waits for.

One plugin process serves every call, on one core's worth of Python. A call somebody waits for is marked
`in_foreground`, an import runs inside `background`; long work calls `breathe` between two small pieces.
Among calls that wait for the same server the one that began first goes first, in each of its requests: else
one of six requests would stand in the queue six times while those of one go by.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps

LONGEST_WAIT_SECONDS = 0.25
"""How long one breath waits for the foreground, so that an import goes on even where it is never quiet."""
_NAP_SECONDS = 0.002

_is_background: ContextVar[bool] = ContextVar("is_background", default=False)
_began_at: ContextVar[float | None] = ContextVar("began_at", default=None)


class _Foreground:
    """How many calls somebody waits for are under way in this process."""

    calls = 0


def in_foreground[**P, R](call: Callable[P, R]) -> Callable[P, R]:
    """Mark a function as a call somebody waits for."""

    @wraps(call)
    def marked(*args: P.args, **kwargs: P.kwargs) -> R:
        _Foreground.calls += 1
        try:
            with in_turn():
                return call(*args, **kwargs)
        finally:
            _Foreground.calls -= 1

    return marked


@contextmanager
def in_turn() -> Iterator[None]:
    """Mark everything that one call has to do, so that all of it has the turn of its beginning."""
    began_at = _began_at.get()
    token = _began_at.set(time.monotonic() if began_at is None else began_at)
    try:
        yield
    finally:
        _began_at.reset(token)


def turn() -> float:
    """When the call under way began, in seconds of the monotonic clock; of bulk work, and outside calls, now.

    Who is to go first is told by it: the least one.
    """
    began_at = None if _is_background.get() else _began_at.get()
    return time.monotonic() if began_at is None else began_at


@contextmanager
def background() -> Iterator[None]:
    """Mark bulk work."""
    token = _is_background.set(True)
    try:
        yield
    finally:
        _is_background.reset(token)


def is_background() -> bool:
    """Whether the caller is bulk work."""
    return _is_background.get()


def somebody_waits() -> bool:
    """Whether a call somebody waits for is under way."""
    return _Foreground.calls > 0


def breathe() -> None:
    """Let other calls run; as bulk work, wait while somebody waits, though not for ever."""
    time.sleep(0)
    if not _is_background.get():
        return
    ends_at = time.monotonic() + LONGEST_WAIT_SECONDS
    while somebody_waits() and time.monotonic() < ends_at:
        time.sleep(_NAP_SECONDS)
