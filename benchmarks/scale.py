"""How the cost of the engine's calls grows with the memories of other customers.

Generated memories lie in our namespace and, the same ones, in one collection filtered by customer, each on a
Chroma server of its own. Calls through the engine and bare calls of the client take turns in one run, so that
whatever else the machine does meets both: read the ratios first. Embedding is left out.
"""

import argparse
import functools
import itertools
import json
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.generated_memories import EXACT, Customer, Memories, chunks, customers
from benchmarks.layouts import (
    RESULTS,
    KnownVectors,
    OtherProcess,
    OurLayout,
    SharedLayout,
    in_turns,
    rate,
    turned,
)
from benchmarks.processes import resident_megabytes
from benchmarks.tables import Figures, table
from development.chroma_server import ChromaServer
from memory.content import Note, Statement
from memory.forgetting import Phase, Reach, Request
from memory.identity import Caller
from memory.recalling import Question
from memory.records import Kind, Role
from memory.settings import DEFAULT_SHARDS
from memory.store import Stored

SIZES = "10000,100000"
WARM_QUESTIONS = 5
"""Further questions to each customer."""
CHUNK = 16_000
"""Memories written at a time, a collection's together."""
CALLERS = 16
"""Who ask at once."""
ASKED_AT_ONCE = {"engine": 400, "bare_ours": 400, "bare_shared": 80}
"""Questions in a round of those, by way; the last is slow among many memories."""
ROUNDS_AT_ONCE = 2
ALONE = 10
"""Calls of those that nothing is compared with."""

type Call = Callable[[], object]


def main() -> None:
    """Run it and print what came out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default=SIZES, metavar="N,N", help="memories (default %(default)s)")
    parser.add_argument(
        "--shards", type=int, default=DEFAULT_SHARDS, metavar="N", help="of ours (default %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write the figures")
    options = parser.parse_args()
    results: dict[str, dict[str, Figures]] = {}
    for size in map(int, options.sizes.split(",")):
        with ChromaServer() as ours, ChromaServer() as shared:
            results[str(size)] = Run(ours, shared, size, options.shards, options.seed).figures()
        print(f"\n{size:,} memories\n{table(results[str(size)], width=36)}", flush=True)
    print(f"\n{verdicts(results)}")
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


class Run:
    """One size on two empty servers.

    Args:
        ours, shared: the servers.
        size: memories of all customers together.
        shards: collections of our namespace.
        seed: of what is generated.
    """

    def __init__(self, ours: ChromaServer, shared: ChromaServer, size: int, shards: int, seed: int) -> None:
        self._servers = {"ours": ours, "shared": shared}
        self._empty = {name: resident_megabytes(server.pid) for name, server in self._servers.items()}
        self._embedder = KnownVectors()
        self._ours = OurLayout(ours.url, "benchmark", self._embedder, shards=shards)
        self._shared = SharedLayout(shared.url, "benchmark")
        self._memories, self._seed, self._size = Memories(seed), seed, size
        self._customers = customers(size, exact=max(10, min(40, size // 500)), seed=seed)
        self._asked = [customer for customer in self._customers if customer.memories == EXACT]

    def figures(self) -> dict[str, Figures]:
        """Everything that is measured, by name."""
        figures = {"write in bulk": self._load(), "server": self._server_figures()}
        self._warm_up()
        figures["recall, first"] = _compared(self._recalls(0))
        warm = [self._recalls(number) for number in range(1, 1 + WARM_QUESTIONS)]
        figures["recall, repeated"] = _compared([calls for some in warm for calls in some])
        other = OtherProcess(self._ours.settings, self._seed)
        figures["recall, after another process wrote"] = _compared(self._recalls(100, other))
        other.close()
        figures[f"recalls, {CALLERS} at once"] = self._at_once()
        figures["remember"] = _compared(self._remembers())
        figures["forget"] = _alone(self._forgets())
        figures["link"] = _alone(self._links())
        first, *others = self._restarted()
        figures["recall, first after a restart"] = _compared([first])
        figures["recall, next after a restart"] = _compared(others)
        figures["server, after a restart and these"] = self._server_figures()
        return figures

    def _load(self) -> Figures:
        """Write everything into both; rows a second."""
        seconds = {"engine": 0.0, "shared": 0.0}
        for number, together in enumerate(chunks(self._customers, CHUNK)):
            rows: list[tuple[Customer, Stored]] = [
                (customer, stored) for customer in together for stored in self._memories.of(customer)
            ]
            scoped = [(customer.scope, stored) for customer, stored in rows]
            writes: dict[str, Call] = {
                "engine": functools.partial(self._ours.write, scoped),
                "shared": functools.partial(self._shared.write, scoped),
            }
            for name in sorted(writes, reverse=number % 2 == 1):
                started = time.perf_counter()
                writes[name]()
                seconds[name] += time.perf_counter() - started
        return {
            "engine_rows_per_second": self._size / seconds["engine"],
            "bare_shared_rows_per_second": self._size / seconds["shared"],
            "rate_to_bare_shared": seconds["shared"] / seconds["engine"],
        }

    def _server_figures(self) -> Figures:
        """Memory and disk in use, and what a memory adds to those of an empty server."""
        figures: Figures = {}
        for name, server in self._servers.items():
            files = [file for file in (server.folder / "data").rglob("*") if file.is_file()]
            memory, disk = resident_megabytes(server.pid), sum(file.stat().st_size for file in files) / 1e6
            figures[f"{name}_memory_megabytes"] = memory
            figures[f"{name}_memory_kilobytes_each"] = (memory - self._empty[name]) * 1_000 / self._size
            figures[f"{name}_disk_megabytes"] = disk
            figures[f"{name}_disk_kilobytes_each"] = disk * 1_000 / self._size
        return figures

    def _warm_up(self) -> None:
        """Have the servers read their indexes, and this process all modules, before anything is compared."""
        for customer in self._asked:
            _, vector = self._memories.question(customer, 1_000)
            self._ours.query(customer, vector)
            self._shared.query(customer, vector)
        other = next(customer for customer in self._customers if RESULTS < customer.memories != EXACT)
        text, vector = self._memories.question(other, 0)
        self._embedder.vectors[text] = vector
        self._recall(other, text)

    def _recalls(self, number: int, other: OtherProcess | None = None) -> Iterator[dict[str, Call]]:
        """One question to each customer, three ways; another process writes before it where one is given."""
        for customer in self._asked:
            if other is not None:
                other.write_one(customer)
            text, vector = self._memories.question(customer, number)
            self._embedder.vectors[text] = vector
            yield {
                "engine": functools.partial(self._recall, customer, text),
                "bare_ours": functools.partial(_found, self._ours.query, customer, vector),
                "bare_shared": functools.partial(_found, self._shared.query, customer, vector),
            }

    def _at_once(self) -> Figures:
        """Questions a second of many callers, each way in turn, to customers who were asked before."""
        rates: dict[str, list[float]] = {name: [] for name in ASKED_AT_ONCE}
        for number in range(ROUNDS_AT_ONCE):
            for name in turned(list(rates), number):
                rounds = (calls for more in itertools.count(1_000) for calls in self._recalls(more))
                calls = [each[name] for each in itertools.islice(rounds, ASKED_AT_ONCE[name])]
                rates[name].append(rate(calls, at_once=CALLERS))
        means = {name: statistics.mean(each) for name, each in rates.items()}
        return {
            "rate_to_bare_ours": means["engine"] / means["bare_ours"],
            "rate_to_bare_shared": means["engine"] / means["bare_shared"],
            **{f"{name}_per_second": mean for name, mean in means.items()},
        }

    def _recall(self, customer: Customer, text: str) -> None:
        question = Question(query=text, limit=RESULTS, min_score=0.0)
        recalled = self._ours.engine().recall(Caller.checked(customer.customer_id), question)
        if len(recalled.hits) != RESULTS:
            raise SystemExit(f"{len(recalled.hits)} of {RESULTS} memories recalled")

    def _remembers(self) -> Iterator[dict[str, Call]]:
        for customer, number in itertools.product(self._asked, (1, 2)):
            memory, vector = self._memories.more(customer, number)
            self._embedder.vectors[memory.text] = vector
            row_id = memory.memory_id[::-1]
            ours = functools.partial(self._ours.upsert_and_get, customer.scope, row_id, memory.text, vector)
            yield {
                "engine": functools.partial(
                    self._remember, Caller.checked(customer.customer_id), memory.text
                ),
                "bare_ours": ours,
                "bare_shared": functools.partial(self._shared.upsert_and_get, memory, vector),
            }

    def _remember(self, caller: Caller, text: str) -> str:
        statement = Statement(text, Role.CUSTOMER, Kind.EPISODIC, 0)
        outcomes = self._ours.engine().remember(caller, [statement], Note()).outcomes
        return outcomes[0].memory.memory_id

    def _forgets(self) -> Iterator[Call]:
        for customer in self._asked[:ALONE]:
            caller = Caller.checked(customer.customer_id)
            text = self._known_text(customer, 3)
            known = (self._remember(caller, text),)
            request = Request(reach=Reach.MATCHING, phase=Phase.DELETE, memory_ids=known)
            yield functools.partial(self._ours.engine().forget, caller, request)

    def _links(self) -> Iterator[Call]:
        """Conversations of one memory each, linked to customers."""
        for customer in self._asked[:ALONE]:
            conversation = f"conversation-{customer.number}"
            self._remember(Caller.checked("", conversation), self._known_text(customer, 4))
            caller = Caller.checked(customer.customer_id, conversation)
            yield functools.partial(self._ours.engine().link, caller)

    def _known_text(self, customer: Customer, number: int) -> str:
        memory, vector = self._memories.more(customer, number)
        self._embedder.vectors[memory.text] = vector
        return memory.text

    def _restarted(self) -> Iterator[dict[str, Call]]:
        """Calls on servers that have just started; most find a collection that was not read yet."""
        for server in self._servers.values():
            server.stop()
            server.start()
        yield from self._recalls(200)


def _found(query: Callable[..., Sequence[str]], *arguments: object) -> None:
    found = query(*arguments)
    if len(found) != RESULTS:
        raise SystemExit(f"{len(found)} of {RESULTS} memories found by a bare query")


def _compared(rounds: Iterator[Mapping[str, Call]] | Sequence[Mapping[str, Call]]) -> Figures:
    """Milliseconds of calls that take turns, and the ratios of the engine's median to the others'."""
    times = in_turns(rounds)
    figures: Figures = {}
    engine = statistics.median(times["engine"])
    for name, seconds in times.items():
        if name != "engine":
            figures[f"ratio_to_{name}"] = engine / statistics.median(seconds)
    for name, seconds in sorted(times.items(), reverse=True):
        figures |= _milliseconds(name, seconds)
    return figures


def _alone(calls: Iterator[Call]) -> Figures:
    return _milliseconds("engine", in_turns({"engine": call} for call in calls)["engine"])


def _milliseconds(name: str, seconds: Sequence[float]) -> Figures:
    ordered = sorted(seconds)
    slow = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
    return {
        f"{name}_median_ms": statistics.median(ordered) * 1_000,
        f"{name}_p95_ms": slow * 1_000,
    }


def verdicts(results: Mapping[str, Mapping[str, Figures]]) -> str:
    """What was aimed at, beside what came out, as far as the sizes allow."""
    lines = []
    for size, figures in results.items():
        for name in ("recall, first", "recall, repeated", "recall, after another process wrote"):
            ours, shared = figures[name]["ratio_to_bare_ours"], figures[name]["ratio_to_bare_shared"]
            lines.append(f"{name} at {int(size):,}: {ours:.2f} of the bare query (at 100,000 up to 2.5)")
            lines.append(f"  {shared:.2f} of the bare query in one collection (at 500,000 up to 0.2)")
        many = figures[f"recalls, {CALLERS} at once"]
        ours, shared = many["rate_to_bare_ours"], many["rate_to_bare_shared"]
        lines += [
            f"recalls a second of {CALLERS} callers, {int(size):,}: {ours:.2f} of bare queries (0.4 or more)",
            f"  {shared:.1f} times the bare queries in one collection (at 500,000: 20 or more)",
        ]
    smallest, largest = min(results, key=int), max(results, key=int)
    if smallest != largest:
        for name in ("recall, first", "recall, repeated"):
            less = results[smallest][name]["engine_median_ms"]
            growth = results[largest][name]["engine_median_ms"] / less
            lines.append(
                f"{name} at {int(largest):,}: {growth:.2f} of its time at {int(smallest):,} "
                "(from 10,000 to 500,000 up to 1.5)"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
