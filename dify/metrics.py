"""The figures of this process for Prometheus; the one module that knows its client library.

They are counts and times of all the workspaces the process serves, without anybody's id, name or words: the
labels are verbs, stages and codes of ours, of which there is a fixed number.
"""

from __future__ import annotations

import threading
import time
from collections import Counter as Counts
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from dify.version import VERSION
from memory.call_log import Ended, observers
from memory.chroma_connection import connections
from memory.openai_service import embedding_circuits

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds of the buckets of durations."""
COUNTED = ("found", "stored", "duplicates", "superseded", "skipped", "matched", "deleted", "removed")
"""Facts of a call that are numbers of memories."""
SERVICES = {"chroma": connections.states, "embedder": embedding_circuits.states}

_started = time.monotonic()


def uptime_seconds() -> float:
    """How long the process has been up."""
    return time.monotonic() - _started


def circuits() -> Iterator[tuple[str, bool]]:
    """The circuits of the process: the service, chroma or embedder, and whether it is open; no addresses."""
    for service, states in SERVICES.items():
        yield from ((service, is_open) for is_open in states())


class Metrics:
    """Counts what it observes; see `memory.call_log.Observer`.

    The library is imported with the first call.
    """

    def __init__(self) -> None:
        self._made: _Families | None = None
        self._making = threading.Lock()

    def text(self) -> tuple[str, str]:
        """All figures as they are now, and the media type of that text."""
        from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

        return generate_latest(self._families.registry).decode(), CONTENT_TYPE_PLAIN_0_0_4

    def began(self) -> None:
        """A call began."""
        self._families.in_flight.inc()

    def ended(self, call: Ended) -> None:
        """A call is over."""
        families = self._families
        families.in_flight.dec()
        families.calls.labels(call.verb, call.outcome).inc()
        families.seconds.labels(call.verb).observe(call.seconds)
        for stage, seconds in call.stages.items():
            families.stages.labels(call.verb, stage).observe(seconds)
        for what in COUNTED:
            number = call.facts.get(what)
            if isinstance(number, int):
                families.memories.labels(call.verb, what).inc(number)
        if reason := call.facts.get("degraded"):
            families.degraded.labels(str(reason)).inc()

    def failed_outside(self, verb: str, code: str) -> None:
        """What was asked for failed before it came to a call, or after it."""
        self._families.calls.labels(verb, code).inc()

    def embedder_failed(self, code: str) -> None:
        """An embedding model could not embed."""
        self._families.embedder.labels(code).inc()

    @property
    def _families(self) -> _Families:
        if self._made is None:
            with self._making:
                self._made = self._made or _Families()
        return self._made


metrics = Metrics()
"""Those of this process."""


def count_calls() -> None:
    """Have the metrics of this process count its calls from now on."""
    observers.append(metrics)


class _Families:
    """The metrics, in a registry of their own."""

    def __init__(self) -> None:
        from prometheus_client import (
            CollectorRegistry,
            Counter,
            Gauge,
            Histogram,
            Info,
            ProcessCollector,
            disable_created_metrics,
            values,
        )

        # Both would else be as the environment says, which belongs to Dify's plugin daemon.
        values.ValueClass = values.MutexValue
        disable_created_metrics()  # type: ignore[no-untyped-call]
        registry = self.registry = CollectorRegistry()

        def counter(name: str, about: str, *labels: str) -> Counter:
            return Counter(f"customer_memory_{name}", about, labels, registry=registry)

        def histogram(name: str, about: str, *labels: str) -> Histogram:
            return Histogram(f"customer_memory_{name}", about, labels, registry=registry, buckets=SECONDS)

        self.calls = counter("calls", "Calls by verb and outcome, ok or a code.", "verb", "outcome")
        self.seconds = histogram("call_seconds", "How long calls took.", "verb")
        self.stages = histogram("stage_seconds", "How long the stages of calls took.", "verb", "stage")
        self.memories = counter("memories", "Memories by what calls did with them.", "verb", "what")
        self.degraded = counter("degraded_recalls", "Recalls by words alone, by reason.", "reason")
        self.embedder = counter("embedder_failures", "Failures of embedding models by code.", "code")
        self.in_flight = Gauge("customer_memory_calls_in_flight", "Calls under way.", registry=registry)
        Info("customer_memory_plugin", "The plugin.", registry=registry).info({"version": VERSION})
        registry.register(_Circuits())
        ProcessCollector(registry=registry)


class _Circuits:
    """The circuits as they are when somebody asks."""

    def collect(self) -> Iterable[Metric]:
        from prometheus_client.core import GaugeMetricFamily

        counts = Counts(circuits())
        family = GaugeMetricFamily(
            "customer_memory_circuits",
            "Servers by service and state of their circuit.",
            labels=("service", "state"),
        )
        for service in SERVICES:
            for state, is_open in (("closed", False), ("open", True)):
                family.add_metric((service, state), counts[service, is_open])
        return [family]
