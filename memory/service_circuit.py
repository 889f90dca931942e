"""A circuit for a service without a heartbeat: while it is down, one call at a time sees if it is back.

It opens when a call failed for good and no other call was answered since that one began. While it is open
every call fails at once with the same kind of failure, but for one after each short rest, which goes ahead;
the circuit closes with the first answer of whatever kind. A slow call among others that are answered, or
one whose text the service cannot digest, does not open it.
"""

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from memory.circuit import REST_SECONDS
from memory.clock import Clock
from memory.errors import MemoryFault

MAX_CIRCUITS = 64
"""Circuits kept; of the closed ones the one unused for longest goes first, since it knows nothing."""


class ServiceCircuit:
    """Whether calls to one service make sense now. All calls of the process to the service share one.

    Args:
        clock: monotonic, in seconds; for tests.
    """

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._fault: type[MemoryFault] | None = None
        self._opened_at = self._answered_at = -math.inf
        self._is_tried = False

    @property
    def is_open(self) -> bool:
        """Whether calls fail at once."""
        return self._fault is not None

    @contextmanager
    def call(self, model: str) -> Iterator["Call"]:
        """Let a call go ahead, or say at once that there is nobody to talk to.

        Args:
            model: the model's name, for the message.

        Raises:
            ServiceError: of the kind that opened the circuit.
        """
        now = self._clock()
        with self._lock:
            is_trial = self._fault is not None
            if self._fault is not None:
                if self._is_tried or now < self._opened_at + REST_SECONDS:
                    raise self._fault(model=model)
                self._is_tried = True
        try:
            yield Call(self, now, is_trial=is_trial)
        finally:
            if is_trial:
                self._is_tried = False

    def settle(self, fault: type[MemoryFault] | None, *, began_at: float) -> None:
        """A call that began then was answered, or failed for good."""
        with self._lock:
            if fault is None:
                self._fault, self._answered_at = None, self._clock()
            elif self._answered_at < began_at:
                self._fault, self._opened_at = fault, self._clock()


class Call:
    """One call that goes ahead; it has to say how it ended.

    Args:
        circuit: of the service.
        began_at: on the circuit's clock.
        is_trial: whether it is the one that sees if the service is back.
    """

    def __init__(self, circuit: ServiceCircuit, began_at: float, *, is_trial: bool) -> None:
        self._circuit, self._began_at, self._is_trial = circuit, began_at, is_trial

    @property
    def may_repeat(self) -> bool:
        """Whether trying again makes sense: not as a trial, nor once others found that it is down."""
        return not (self._is_trial or self._circuit.is_open)

    def answered(self) -> None:
        """The service answered something."""
        self._circuit.settle(None, began_at=self._began_at)

    def failed(self, fault: type[MemoryFault]) -> None:
        """The service could not be reached, did not answer in time, or failed again and again."""
        self._circuit.settle(fault, began_at=self._began_at)


class ServiceCircuits:
    """The circuits of this process.

    Args:
        clock: monotonic, in seconds; for tests.
    """

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._circuits: OrderedDict[Hashable, ServiceCircuit] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, service: Hashable) -> ServiceCircuit:
        """The circuit of a service, whatever stands for it."""
        with self._lock:
            circuit = self._circuits.pop(service, None) or ServiceCircuit(self._clock)
            self._circuits[service] = circuit
            closed = [key for key, each in self._circuits.items() if not each.is_open and each is not circuit]
            for key in closed[: max(0, len(self._circuits) - MAX_CIRCUITS)]:
                del self._circuits[key]
            return circuit

    def states(self) -> list[bool]:
        """Of each circuit, whether it is open."""
        with self._lock:
            return [circuit.is_open for circuit in self._circuits.values()]
