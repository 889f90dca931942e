"""A circuit for one server: once it does not answer, calls to it fail at once instead of each waiting.

It opens when a call could not reach the server however often it tried, or when a call was not answered and
a look found nobody. While it is open every call fails at once, but for one after each short rest, which takes
a look; it closes with the first answer of whatever kind. A slow call or a refused one never opens it: that is
only a reason for a look.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from memory.clock import Clock
from memory.errors import ChromaUnreachable

REST_SECONDS = 0.5
"""How long an open circuit lets no call through before one of them takes a look."""
SILENCE_SECONDS = 1.0
"""How long calls may wait, with no answer to any of them, before the next call takes a look first."""


class Circuit:
    """Whether calls to one server make sense now. All calls of the process to the server share one.

    Args:
        clock: monotonic, in seconds; for tests.
    """

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._opened_at: float | None = None
        self._is_in_doubt = False
        self._is_looking = False
        self._waiting = 0
        self._silent_since = 0.0

    @property
    def is_open(self) -> bool:
        """Whether calls fail at once."""
        return self._opened_at is not None

    def admit(self, look: Callable[[], bool], *, seconds: float) -> None:
        """Let a call go ahead, or say at once that there is nobody to talk to.

        Args:
            look: finds out, in a short time, whether the server answers; asked by one call at a time.
            seconds: the call's time, for waiting for another call's look.

        Raises:
            ChromaUnreachable: the server does not answer.
        """
        with self._changed:
            if self._opened_at is not None:
                if self._is_looking or self._clock() < self._opened_at + REST_SECONDS:
                    raise ChromaUnreachable
            elif not self._is_doubtful():
                return
            elif self._is_looking:
                self._changed.wait_for(lambda: not self._is_looking, seconds)
                if self._opened_at is not None:
                    raise ChromaUnreachable
                return
            self._is_looking = True
        is_there = True  # where the look itself goes wrong, the call finds out why
        try:
            is_there = look()
        finally:
            with self._changed:
                self._is_looking = False
                self._settle(None if is_there else self._clock())
        if not is_there:
            raise ChromaUnreachable

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """While a call waits for its answer; calls that all wait for long are a reason for a look."""
        with self._changed:
            if not self._waiting:
                self._silent_since = self._clock()
            self._waiting += 1
        try:
            yield
        finally:
            with self._changed:
                self._waiting -= 1

    def answered(self) -> None:
        """The server answered something."""
        with self._changed:
            self._settle(None)

    def doubt(self) -> None:
        """A call waited in vain or reached nobody: the next one takes a look first."""
        with self._changed:
            self._is_in_doubt = True

    def failed(self) -> None:
        """A call could not reach the server."""
        with self._changed:
            self._settle(self._clock())

    def _is_doubtful(self) -> bool:
        is_silent = self._waiting > 0 and self._clock() > self._silent_since + SILENCE_SECONDS
        return self._is_in_doubt or is_silent

    def _settle(self, opened_at: float | None) -> None:
        self._opened_at = opened_at
        self._is_in_doubt = False
        self._silent_since = self._clock()
        self._changed.notify_all()
