"""A service that is down costs one call after each rest, whatever the others do meanwhile."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from memory.circuit import REST_SECONDS
from memory.errors import EmbedderFailed, EmbedderTimeout, MemoryFault
from memory.service_circuit import MAX_CIRCUITS, ServiceCircuit, ServiceCircuits


class Service:
    """A service that is there or not, a clock, and how many calls came through to it."""

    def __init__(self) -> None:
        self.fault: type[MemoryFault] | None = None
        self.calls = 0
        self.now = 1_000.0
        self.circuit = ServiceCircuit(lambda: self.now)

    def answers(self) -> str:
        """The code a call ends with; "" for an answer."""
        try:
            with self.circuit.call("model-1") as call:
                self.calls += 1
                call.failed(self.fault) if self.fault else call.answered()
        except MemoryFault as refusal:
            return refusal.code
        return self.fault.code if self.fault else ""


@pytest.fixture
def service() -> Service:
    """A service that is there."""
    return Service()


def test_while_all_is_well_every_call_goes_ahead(service: Service) -> None:
    """However long the pauses are."""
    for _ in range(100):
        assert service.answers() == ""
        service.now += 100.0
    assert service.calls == 100


@pytest.mark.parametrize("fault", [EmbedderFailed, EmbedderTimeout])
def test_while_open_one_call_goes_ahead_after_each_rest(service: Service, fault: type[MemoryFault]) -> None:
    """A thousand calls in ten rests make ten; each of them tells why the circuit is open."""
    service.now += 1.0
    service.fault = fault
    assert {service.answers() for _ in range(100)} == {fault.code}
    assert service.calls == 1
    for _ in range(10):
        service.now += REST_SECONDS
        assert {service.answers() for _ in range(100)} == {fault.code}
    assert service.calls == 11
    service.fault = None
    assert service.answers() == fault.code
    service.now += REST_SECONDS
    assert {service.answers() for _ in range(100)} == {""}
    assert (service.calls, service.circuit.is_open) == (111, False)


def test_a_call_that_fails_among_answered_ones_does_not_open_it(service: Service) -> None:
    """Somebody was answered since it began, so the service is there."""
    with service.circuit.call("model-1") as slow:
        service.now += 30.0
        assert service.answers() == ""
        service.now += 30.0
        slow.failed(EmbedderTimeout)
    assert not service.circuit.is_open


def test_a_call_that_waited_while_nobody_was_answered_opens_it(service: Service) -> None:
    """An answer before it began says nothing of now."""
    assert service.answers() == ""
    service.now += 1.0
    with service.circuit.call("model-1") as call:
        service.now += 30.0
        assert call.may_repeat
        call.failed(EmbedderTimeout)
    assert service.circuit.is_open
    assert not call.may_repeat


def test_an_answer_to_an_earlier_call_closes_it(service: Service) -> None:
    """Whoever is answered shows that the service is there."""
    with service.circuit.call("model-1") as early:
        service.now += 1.0
        service.fault = EmbedderFailed
        service.answers()
        assert service.circuit.is_open
        early.answered()
    assert not service.circuit.is_open


def test_while_one_call_finds_out_the_others_fail_at_once(service: Service) -> None:
    """They do not wait for it, however many rests go by, and it does not try again."""
    service.fault = EmbedderTimeout
    service.answers()
    service.now += REST_SECONDS
    trying, found = threading.Event(), threading.Event()

    def try_it() -> bool:
        with service.circuit.call("model-1") as call:
            trying.set()
            assert found.wait(30)
            may_repeat = call.may_repeat
            call.answered()
        return may_repeat

    with ThreadPoolExecutor(1) as pool:
        trial = pool.submit(try_it)
        assert trying.wait(30)
        for _ in range(100):
            service.now += REST_SECONDS
            assert service.answers() == EmbedderTimeout.code
        found.set()
        assert trial.result(30) is False
    service.fault = None
    assert service.answers() == ""
    assert service.calls == 2


def test_a_trial_that_breaks_leaves_the_next_one_to_find_out(service: Service) -> None:
    """Whatever ends it, the circuit does not stay shut for good."""
    service.fault = EmbedderFailed
    service.answers()
    service.now += REST_SECONDS
    with pytest.raises(KeyboardInterrupt), service.circuit.call("model-1"):
        raise KeyboardInterrupt
    service.fault = None
    assert service.answers() == ""


def test_a_service_keeps_its_circuit_and_only_idle_ones_are_dropped() -> None:
    """An open one is kept however many others come; the closed ones do not pile up."""
    circuits = ServiceCircuits()
    with circuits.of("down").call("model-1") as call:
        call.failed(EmbedderFailed)
    for number in range(10 * MAX_CIRCUITS):
        assert not circuits.of(number).is_open
    assert circuits.of("down").is_open
    assert circuits.of("up") is circuits.of("up")
    states = circuits.states()
    assert (len(states), sum(states)) == (MAX_CIRCUITS, 1)
