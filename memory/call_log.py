"""What each call did: verb, outcome, times by stage, counts. No words, and nobody's ids.

It is one line in the log, and the same is told to whoever observes the process.
"""

import json
import logging
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

from memory.errors import InternalError, MemoryFault

LOGGER = "customer_memory"
"""Name of the logger; whoever runs the engine says where its lines go."""
OK = "ok"
CLOSED = "closed"
"""Whoever was being answered went away before the end."""

type Fact = str | int | float | Sequence[str] | Sequence[float]

_log = logging.getLogger(LOGGER)


@dataclass(frozen=True, slots=True)
class Ended:
    """A call that is over.

    Attributes:
        verb: what kind of call.
        outcome: "ok", "closed", or the code of its failure.
        seconds: how long it took.
        stages: seconds by stage.
        facts: counts, ids of memories and scores.
    """

    verb: str
    outcome: str
    seconds: float
    stages: Mapping[str, float]
    facts: Mapping[str, Fact]


class Observer(Protocol):
    """Is told of every call of the process, from any thread."""

    def began(self) -> None:
        """A call began."""

    def ended(self, call: Ended) -> None:
        """A call is over."""

    def failed_outside(self, verb: str, code: str) -> None:
        """What was asked for failed before it came to a call, or after it."""

    def embedder_failed(self, code: str) -> None:
        """An embedding model could not embed."""


observers: list[Observer] = []
"""Those of this process."""


class CallLog:
    """What one call did so far.

    Args:
        verb: what kind of call.
    """

    def __init__(self, verb: str) -> None:
        self._verb = verb
        self._started = self._lapped = time.perf_counter()
        self._stages: dict[str, float] = {}
        self._facts: dict[str, Fact] = {}

    def lap(self, stage: str) -> None:
        """The stage that ends now took the time since the one before it."""
        now = time.perf_counter()
        self._stages[stage] = self._stages.get(stage, 0.0) + now - self._lapped
        self._lapped = now

    def spend(self, stage: str, seconds: float) -> None:
        """A stage within another one took so long, which does not count for the other one."""
        self._stages[stage] = self._stages.get(stage, 0.0) + seconds
        self._lapped += seconds

    def note(self, **facts: Fact) -> None:
        """Counts, ids of memories and scores; never what a customer wrote, nor who it is."""
        self._facts |= facts

    def end(self, outcome: str) -> Ended:
        """What it did, now that it is over."""
        seconds = time.perf_counter() - self._started
        return Ended(self._verb, outcome, seconds, self._stages, self._facts)


_current: ContextVar[CallLog | None] = ContextVar("call_log", default=None)


@contextmanager
def logged(verb: str) -> Iterator[CallLog]:
    """Log a call when it ends, with the code of its failure if it failed."""
    log = _begun(verb)
    outcome = OK
    token = _current.set(log)
    try:
        yield log
    except Exception as error:
        outcome = _told(error)
        raise
    finally:
        _current.reset(token)
        _over(log, outcome)


def streamed[T](verb: str, parts: Iterable[T]) -> Generator[T]:
    """Hand on what is answered part by part, and log it as one call when the last part is gone."""
    log = _begun(verb)
    outcome = OK
    try:
        yield from parts
    except GeneratorExit:
        outcome = CLOSED
        raise
    except Exception as error:
        outcome = _told(error)
        raise
    finally:
        _over(log, outcome)


def _begun(verb: str) -> CallLog:
    for observer in observers:
        observer.began()
    return CallLog(verb)


def _told(error: Exception) -> str:
    """The code of a failure that is about to be logged."""
    error.__dict__[_IS_TOLD] = True
    return error.code if isinstance(error, MemoryFault) else InternalError.code


def _over(log: CallLog, outcome: str) -> None:
    call = log.end(outcome)
    for observer in observers:
        observer.ended(call)
    _write(call)


_IS_TOLD = "is_told"
"""Set on a failure that was logged, so that it is not told again on its way out."""


def counted[E: Exception](error: E) -> E:
    """A failure to answer with after a call that ended well and was logged as such: it found nothing."""
    error.__dict__[_IS_TOLD] = True
    return error


def tell_failure(verb: str, error: Exception, code: str) -> None:
    """Log a failure on its way out, unless the call it came from did.

    Args:
        verb: what was asked for.
        error: the failure.
        code: its stable code.
    """
    if error.__dict__.get(_IS_TOLD):
        return
    error.__dict__[_IS_TOLD] = True
    for observer in observers:
        observer.failed_outside(verb, code)
    _write(Ended(verb, code, 0.0, {}, {}))


def lap(stage: str) -> None:
    """`CallLog.lap` of the call that is under way here; nothing where there is none."""
    log = _current.get()
    if log is not None:
        log.lap(stage)


def note(**facts: Fact) -> None:
    """`CallLog.note` of the call that is under way here; nothing where there is none."""
    log = _current.get()
    if log is not None:
        log.note(**facts)


@contextmanager
def embedding() -> Iterator[None]:
    """While an embedding model works: its time is the stage "embed", and a failure of it is told."""
    started = time.perf_counter()
    try:
        yield
    except MemoryFault as fault:
        for observer in observers:
            observer.embedder_failed(fault.code)
        raise
    finally:
        log = _current.get()
        if log is not None:
            log.spend("embed", time.perf_counter() - started)


def _write(call: Ended) -> None:
    """The line of a call, as JSON; times are milliseconds."""
    if not _log.isEnabledFor(logging.INFO):
        return
    line = {
        "verb": call.verb,
        "outcome": call.outcome,
        "ms": _milliseconds(call.seconds),
        "stages": {stage: _milliseconds(seconds) for stage, seconds in call.stages.items()},
        **call.facts,
    }
    _log.info("%s", json.dumps(line))


def _milliseconds(seconds: float) -> float:
    return round(1000.0 * seconds, 1)
