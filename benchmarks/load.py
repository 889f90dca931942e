"""How a plugin process stands many calls at once, long use, and a Chroma server that goes away.

The real process, driven over its standard input and output, is called by 1, 4, 16 and 64 callers at once,
who recall, remember and forget among generated memories. A bare plugin of the SDK that only echoes takes
turns with it, as the floor of the transport: read the ratios first.
"""

import argparse
import json
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from benchmarks.callers import Caller, Done, call_at_once, figures_of, lost, percentile
from benchmarks.generated_memories import Customer, Memories, chunks, customers
from benchmarks.layouts import KnownVectors, OurLayout
from benchmarks.processes import resident_megabytes
from benchmarks.start import bare_plugin
from benchmarks.tables import Figures, table
from development.chroma_server import ChromaServer
from development.daemon import Json, PluginProcess
from memory.embedding import BUILTIN

AT_ONCE = "1,4,16,64"
ROUNDS = 3
"""Times each number of callers is tried, ours and the bare plugin in turn."""
CALLS_A_ROUND = 200
MEMORIES = 10_000
LONG_CALLS = 4_000
OUTAGE_SECONDS = 10.0
OUTAGE_CALLERS = 16
PAUSE_SECONDS = 0.25
"""What a caller waits after a failure before the next call, and whoever echoes meanwhile after each."""
LOAD_SECONDS = 4.0
"""How long calls go on before the server stops, and after it is back."""
CHUNK = 16_000


def main() -> None:
    """Run it and print what came out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=MEMORIES, metavar="N", help="(default %(default)s)")
    parser.add_argument("--at-once", default=AT_ONCE, metavar="N,N", help="callers (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N", help="(default %(default)s)")
    parser.add_argument(
        "--calls",
        type=int,
        default=LONG_CALLS,
        metavar="N",
        help="of long use (default %(default)s; 0: none)",
    )
    parser.add_argument(
        "--outage", type=float, default=OUTAGE_SECONDS, metavar="S", help="(default %(default)s s; 0: none)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write the figures")
    options = parser.parse_args()
    results: dict[str, Figures] = {}
    with tempfile.TemporaryDirectory(prefix="customer-memory-load-") as name, ChromaServer() as chroma:
        load = Load(chroma, options.memories, options.seed)
        with PluginProcess() as plugin, PluginProcess(bare_plugin(Path(name))) as bare:
            for callers in map(int, filter(None, options.at_once.split(","))):
                results[f"{callers} at once"] = load.compared(plugin, bare, callers, options.rounds)
            if options.outage:
                results["outage"] = load.outage(plugin, bare, options.outage)
        if options.calls:
            with PluginProcess() as plugin:
                results["long use"] = load.long_use(plugin, options.calls)
    print(table(results, width=11))
    print(f"\n{verdicts(results)}")
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


class Load:
    """One namespace full of memories, and those who call for it.

    Args:
        chroma: an empty server.
        size: memories of all customers together.
        seed: of what is generated.
    """

    def __init__(self, chroma: ChromaServer, size: int, seed: int) -> None:
        self._chroma = chroma
        self._credentials: Json = {"chroma_url": chroma.url, "namespace": "load"}
        self._memories = Memories(seed)
        self._customers: Sequence[Customer] = customers(size, exact=max(10, min(40, size // 500)), seed=seed)
        self._callers = 0
        layout = OurLayout(chroma.url, "load", KnownVectors(BUILTIN))
        for together in chunks(self._customers, CHUNK):
            layout.write([(each.scope, stored) for each in together for stored in self._memories.of(each)])

    def _new_callers(self, plugin: PluginProcess, count: int) -> list[Caller]:
        first, self._callers = self._callers, self._callers + count
        numbers = range(first, first + count)
        return [Caller(plugin, self._credentials, self._customers, self._memories, n) for n in numbers]

    def compared(self, plugin: PluginProcess, bare: PluginProcess, at_once: int, rounds: int) -> Figures:
        """So many callers at once, of the plugin and of the bare one in turn."""
        callers = self._new_callers(plugin, at_once)
        calls = [caller.call for caller in callers]
        echoes = [partial(echo, bare) for _ in range(at_once)]
        call_at_once(calls, max(2 * at_once, 20))  # opens connections and reads the index
        call_at_once(echoes, at_once)
        ours: list[Done] = []
        floor: list[Done] = []
        elapsed = {"ours": 0.0, "bare": 0.0}
        for number in range(rounds):
            for name in ("ours", "bare") if number % 2 == 0 else ("bare", "ours"):
                done, seconds = call_at_once(calls if name == "ours" else echoes, CALLS_A_ROUND)
                (ours if name == "ours" else floor).extend(done)
                elapsed[name] += seconds
        found, bare_found = figures_of(ours, elapsed["ours"]), figures_of(floor, elapsed["bare"])
        figures: Figures = {
            "p95_to_median": found["p95_ms"] / found["median_ms"],
            "rate_to_bare": found["calls_per_second"] / bare_found["calls_per_second"],
            **found,
            "lost": lost(callers),
            "bare_calls_per_second": bare_found["calls_per_second"],
        }
        for verb in ("recall", "remember", "forget"):
            taken = [done.seconds for done in ours if done.verb == verb]
            if taken:
                figures[f"{verb}_median_ms"] = 1_000 * percentile(taken, 0.5)
                figures[f"{verb}_p95_ms"] = 1_000 * percentile(taken, 0.95)
        return figures

    def outage(self, plugin: PluginProcess, bare: PluginProcess, seconds: float) -> Figures:
        """The server is killed under load and started again after a while; somebody echoes all the time."""
        callers = self._new_callers(plugin, OUTAGE_CALLERS)
        call_at_once([caller.call for caller in callers], 4 * OUTAGE_CALLERS)  # opens connections
        done: list[Done] = []
        echoes: list[Done] = []
        is_over = threading.Event()

        def work(call: Callable[[], Done], into: list[Done], *, is_patient: bool) -> None:
            while not is_over.is_set():
                each = call()
                into.append(each)
                if each.code or is_patient:
                    time.sleep(PAUSE_SECONDS)

        with ThreadPoolExecutor(len(callers) + 1) as pool:
            working = [pool.submit(work, caller.call, done, is_patient=False) for caller in callers]
            working.append(pool.submit(work, partial(echo, bare), echoes, is_patient=True))
            try:
                time.sleep(LOAD_SECONDS)
                self._chroma.kill()
                gone = time.perf_counter()
                time.sleep(seconds)
                self._chroma.start()
                back = time.perf_counter()
                time.sleep(LOAD_SECONDS)
            finally:
                is_over.set()
            for each in working:
                each.result()
        return {
            **outage_figures(done, gone, back),
            "slowest_bare_echo_seconds": max(echo.seconds for echo in echoes),
            "away_seconds": back - gone,
            "lost": lost(callers),
        }

    def long_use(self, plugin: PluginProcess, calls: int) -> Figures:
        """The memory of a process after a tenth of so many calls, and after all of them."""
        callers = self._new_callers(plugin, OUTAGE_CALLERS)
        work = [caller.call for caller in callers]
        done, _ = call_at_once(work, calls // 10)
        early = resident_megabytes(plugin.pid)
        more, seconds = call_at_once(work, calls - len(done))
        late = resident_megabytes(plugin.pid)
        return {
            "memory_to_a_tenth": late / early,
            "calls": calls,
            "megabytes_after_a_tenth": early,
            "megabytes": late,
            **figures_of(more, seconds),
        }


def outage_figures(done: Sequence[Done], gone: float, back: float) -> Figures:
    """How calls ended around an outage.

    Args:
        done: the calls.
        gone, back: when the server went away, and when it answered again.
    """
    ended = [each.began + each.seconds for each in done]
    right = [at for each, at in zip(done, ended, strict=True) if not each.code]
    failed = [(each, at) for each, at in zip(done, ended, strict=True) if each.code]
    figures: Figures = {
        "slowest_failure_seconds": max(at - max(each.began, gone) for each, at in failed),
        "seconds_until_back": min(at for at in right if at > back) - back,
        "last_failure_after_return_seconds": max((at - back for _, at in failed if at > back), default=0.0),
        "not_retryable": sum(1 for each, _ in failed if not each.is_retryable),
        "answered_before": sum(1 for at in right if at < gone),
        "slowest_answer_before_seconds": max(
            d.seconds for d, at in zip(done, ended, strict=True) if at < gone
        ),
        "answered_after": sum(1 for at in right if at > back),
    }
    for code, count in Counter(each.code for each, _ in failed).items():
        figures[f"failed {code}"] = count
    return figures


def echo(bare: PluginProcess) -> Done:
    """One call of the bare plugin."""
    data = {
        "type": "tool",
        "action": "invoke_tool",
        "user_id": "",
        "provider": "bare",
        "tool": "echo",
        "credentials": {},
        "credential_type": "api-key",
        "tool_parameters": {"text": "What did they say about the parcel?"},
    }
    began = time.perf_counter()
    messages = list(bare.call(data))
    return Done("echo", began, time.perf_counter() - began, "" if len(messages) == 1 else "wrong answer")


def verdicts(results: Mapping[str, Figures]) -> str:
    """What was aimed at, beside what came out."""
    lines = []
    most, fewer = results.get("64 at once"), results.get("16 at once")
    if most and fewer:
        rate = most["calls_per_second"] / fewer["calls_per_second"]
        lines += [
            f"64 at once: {most['errors']:.0f} errors (none), {most['lost']:.0f} lost (none)",
            f"throughput at 64: {rate:.2f} of that at 16 (0.8 or more)",
            f"p95 at 64: {most['p95_to_median']:.2f} times the median (under 5)",
        ]
    if outage := results.get("outage"):
        lines += [
            f"slowest failure, server away: {outage['slowest_failure_seconds']:.2f} s (2 or less)",
            f"failures that cannot be retried: {outage['not_retryable']:.0f} (none)",
            f"in use again after {outage['seconds_until_back']:.2f} s (2 or less), "
            f"acknowledged and lost: {outage['lost']:.0f} (none)",
        ]
    if long_use := results.get("long use"):
        calls = int(long_use["calls"])
        lines.append(
            f"memory after {calls:,} calls: {long_use['memory_to_a_tenth']:.3f} of that after "
            f"{calls // 10:,} (1.1 or less)"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
