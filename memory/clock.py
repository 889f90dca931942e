"""Time, handed in from outside so that tests can fix it."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

type Clock = Callable[[], float]
"""Gives the present moment in seconds since 1970, UTC."""


def system_clock() -> float:
    """The machine's time in seconds since 1970, UTC."""
    return time.time()


def iso(seconds: float | None) -> str | None:
    """Seconds since 1970 as ISO 8601 in UTC with a Z, to the second; None stays None."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, slots=True)
class Deadline:
    """The moment by which a call has to be over, on the monotonic clock."""

    at: float

    @classmethod
    def after(cls, seconds: float) -> "Deadline":
        """A deadline that many seconds from now."""
        return cls(time.monotonic() + seconds)

    def remaining(self) -> float:
        """Seconds left; never less than zero."""
        return max(0.0, self.at - time.monotonic())
