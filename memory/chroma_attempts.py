"""One request to a Chroma server: in its time, with the circuit, and again where that is safe."""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from memory.chroma_connection import CollectionGone, Connection, limit, translate
from memory.clock import Deadline
from memory.errors import (
    ChromaBusy,
    ChromaFailed,
    ChromaNotFound,
    ChromaTimeout,
    ChromaUnreachable,
    MemoryFault,
)

ATTEMPTS = 3
FIRST_PAUSE_SECONDS = 0.1
"""At most, before the second attempt; three times as much before the next one."""


def run[T](connection: Connection, deadline: Deadline, work: Callable[[], T]) -> T:
    """Run one request, again if the connection broke or the server stumbled, all within the deadline.

    Repeating has to be safe: reads are, and so is every write of `memory.chroma`, since ids are given and
    values are whole. What timed out is not repeated, for the server has it still to do.

    Args:
        connection: to the server.
        deadline: when the whole call has to be over.
        work: the request.

    Raises:
        MemoryFault: why it could not be done; `ChromaUnreachable` at once while the circuit is open.
        CollectionGone: there is no such collection.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with connection.place(deadline), limit(deadline), _noting_silence(connection):
                return work()
        except (MemoryFault, CollectionGone):
            raise
        except Exception as error:  # the lower libraries' errors have no common base
            fault = translate(error)
        if isinstance(fault, ChromaNotFound):
            fault = _what_answers(connection, deadline)
        may_pass = isinstance(fault, ChromaUnreachable | ChromaFailed | ChromaBusy)
        pause = FIRST_PAUSE_SECONDS * 3.0 ** (attempt - 1) * random.uniform(0.1, 1.0)  # noqa: S311 - jitter
        if not may_pass or attempt == ATTEMPTS or pause >= deadline.remaining():
            break
        time.sleep(pause)
    if isinstance(fault, ChromaUnreachable):
        connection.circuit.failed()
    raise fault from None


@contextmanager
def _noting_silence(connection: Connection) -> Iterator[None]:
    """A request that reached nobody makes the server doubtful before its place goes to the next one."""
    try:
        yield
    except (MemoryFault, CollectionGone):
        raise
    except Exception as error:
        if isinstance(translate(error), ChromaTimeout | ChromaUnreachable):
            connection.circuit.doubt()
        raise


def _what_answers(connection: Connection, deadline: Deadline) -> MemoryFault:
    """What is wrong with a server whose answer was not Chroma's: another one, or an old one."""
    try:
        with limit(deadline):
            connection.version()
    except MemoryFault as fault:
        return fault
    except Exception as error:
        return translate(error)
    return ChromaFailed()
