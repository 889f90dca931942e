"""Callers of a plugin process: each makes one call after another, and sees whether the answer is right."""

import itertools
import random
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from benchmarks.generated_memories import Customer, Memories
from development.daemon import Json, PluginFailure, PluginProcess

MIX: Mapping[str, int] = {"recall": 70, "remember": 25, "forget": 5}
"""How often each verb is called, in a hundred."""
WRONG = "wrong answer"


@dataclass(frozen=True, slots=True)
class Done:
    """One call that is over.

    Attributes:
        verb: which.
        began: on the clock of `time.perf_counter`.
        seconds: how long it took.
        code: "" for a right answer; else the code of the failure, or `WRONG`.
        is_retryable: whether the failure says that the same call may succeed later.
    """

    verb: str
    began: float
    seconds: float
    code: str = ""
    is_retryable: bool = False


@dataclass
class Caller:
    """Somebody who recalls, remembers and forgets, of all customers.

    Attributes:
        plugin, credentials: where.
        customers, memories: of whom, and what they say and ask.
        number: another one asks and says other things.
        kept: customer id → ids of the memories that were acknowledged and not forgotten since.
    """

    plugin: PluginProcess
    credentials: Json
    customers: Sequence[Customer]
    memories: Memories
    number: int
    kept: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.number)
        self._counter = itertools.count(self.number * 1_000_000)

    def call(self) -> Done:
        """Make the next call, of whatever verb."""
        (verb,) = self._chance.choices(list(MIX), list(MIX.values()))
        if verb == "forget" and not self.kept:
            verb = "recall"  # nothing of this caller's own is there to be forgotten
        return self.make(verb)

    def make(self, verb: str) -> Done:
        """Make a call of a verb; forget only where something is kept."""
        ask: Callable[[], Iterator[bool]] = getattr(self, f"_{verb}")
        asking = ask()
        next(asking)  # what is to be asked is made up outside the time taken
        began = time.perf_counter()
        try:
            is_right = next(asking)
        except PluginFailure as failure:
            may_try_again = "Trying again later may help" in failure.message
            return Done(verb, began, time.perf_counter() - began, failure.code, may_try_again)
        seconds = time.perf_counter() - began
        return Done(verb, began, seconds, "" if is_right else WRONG)

    def _recall(self) -> Iterator[bool]:
        customer = self._chance.choice(self.customers)
        query, _ = self.memories.question(customer, next(self._counter))
        parameters = {"query": query, "customer_id": customer.customer_id, "min_score": 0}
        yield True
        answer = self.plugin.tool("recall", parameters, credentials=self.credentials)
        yield (
            answer["found"] > 0 and answer["degraded"] == "" and answer["customer_id"] == customer.customer_id
        )

    def _remember(self) -> Iterator[bool]:
        customer = self._chance.choice(self.customers)
        memory, _ = self.memories.more(customer, next(self._counter))
        parameters = {"content": memory.text, "customer_id": customer.customer_id}
        yield True
        answer = self.plugin.tool("remember", parameters, credentials=self.credentials)
        self.kept.setdefault(customer.customer_id, []).extend(m["memory_id"] for m in answer["memories"])
        yield answer["stored"] == 1

    def _forget(self) -> Iterator[bool]:
        customer_id = self._chance.choice(list(self.kept))
        memory_ids = [self.kept[customer_id].pop()]
        if not self.kept[customer_id]:
            del self.kept[customer_id]
        parameters = {"memory_ids": memory_ids, "customer_id": customer_id, "action": "delete"}
        yield True
        answer = self.plugin.tool("forget", parameters, credentials=self.credentials)
        yield answer["deleted"] == 1


def call_at_once(callers: Sequence[Callable[[], Done]], calls: int) -> tuple[list[Done], float]:
    """Have all of them call at once, so many times together; what they did, and how long all of it took."""
    left = iter(range(calls))
    lock = threading.Lock()

    def work(call: Callable[[], Done]) -> list[Done]:
        done: list[Done] = []
        while True:
            with lock:
                if next(left, None) is None:
                    return done
            done.append(call())

    started = time.perf_counter()
    with ThreadPoolExecutor(len(callers)) as pool:
        done = [each for part in pool.map(work, callers) for each in part]
    return done, time.perf_counter() - started


def lost(callers: Sequence[Caller]) -> int:
    """How many memories that were acknowledged are not there."""
    missing = 0
    for caller in callers:
        for customer_id, memory_ids in caller.kept.items():
            parameters = {"memory_ids": memory_ids, "customer_id": customer_id}
            answer = caller.plugin.tool("forget", parameters, credentials=caller.credentials)
            missing += len(answer["receipt"]["not_found"])
    return missing


def percentile(seconds: Sequence[float], share: float) -> float:
    """The time that so large a share of the calls did not exceed."""
    ordered = sorted(seconds)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def figures_of(done: Sequence[Done], elapsed: float) -> dict[str, float]:
    """Calls a second, milliseconds of the median and of the slowest in twenty, and failures by code."""
    seconds = [each.seconds for each in done]
    codes = Counter(each.code for each in done if each.code)
    return {
        "calls_per_second": len(done) / elapsed,
        "median_ms": 1_000 * statistics.median(seconds),
        "p95_ms": 1_000 * percentile(seconds, 0.95),
        "errors": codes.total(),
        **{f"error {code}": count for code, count in codes.items()},
    }
