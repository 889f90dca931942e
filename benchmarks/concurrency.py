"""Eight imports and forty recalls at once through one plugin process: what the imports cost the recalls.

Rounds with and without imports take turns, so that whatever else the machine does meets both.
"""

import argparse
import itertools
import json
import statistics
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from benchmarks.generated_tickets import Round, generate
from development.chroma_server import ChromaServer
from development.daemon import Json, PluginProcess, raw_request

IMPORTS, RECALLS = 8, 40
ROUNDS = 5
KNOWN_TICKETS = 1_000
TICKETS_A_REQUEST = 400
LARGEST_RATIO = 2.0
KEY = "benchmark-key"
HEADERS = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}


def main() -> None:
    """Run it and print what came out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N")
    parser.add_argument("--imports", type=int, default=IMPORTS, metavar="N")
    options = parser.parse_args()
    known = generate(KNOWN_TICKETS)
    alone: list[float] = []
    busy: list[float] = []
    with ChromaServer() as chroma, PluginProcess() as plugin:
        calls = Calls(plugin, {"api_key": KEY, "chroma_url": chroma.url, "namespace": "benchmark"})
        calls.import_all(known)
        calls.recall_at_once(known)  # opens connections and reads the index
        imported = 0
        for number in range(options.rounds):
            alone += calls.recall_at_once(known)
            with calls.importing(options.imports, first=number * 1_000) as done:
                busy += calls.recall_at_once(known)
                meanwhile = sum(done)
            imported += sum(done)
            print(f"round {number + 1}: {meanwhile} tickets imported meanwhile, {sum(done)} in the end")
    print(f"recall alone            {_described(alone)}")
    print(f"recall beside imports   {_described(busy)}")
    ratio = statistics.median(busy) / statistics.median(alone)
    print(f"imports                 {options.imports} at once, {imported:,} tickets, none failed")
    print(f"ratio of the medians    {ratio:.2f} (under {LARGEST_RATIO})")


class Calls:
    """The calls of many people at once.

    Args:
        plugin: the running process.
        settings: of the endpoint.

    """

    def __init__(self, plugin: PluginProcess, settings: Json) -> None:
        self._plugin, self._settings = plugin, settings

    def recall_at_once(self, known: Round) -> list[float]:
        """Forty people recall at the same moment, each of another customer; seconds of each.

        Raises:
            SystemExit: one of them did not find what is known.
        """
        customers = list(known.messages)[:RECALLS]
        together = threading.Barrier(RECALLS)

        def recall(customer: str) -> float:
            body = json.dumps(
                {"customer_id": customer, "query": "Which number?", "limit": 100, "min_score": 0}
            )
            together.wait()
            started = time.perf_counter()
            answer = self._plugin.endpoint(
                "POST", "/recall", settings=self._settings, body=body.encode(), headers=HEADERS
            )
            seconds = time.perf_counter() - started
            found = answer.json()["memories"]
            if len(found) != known.messages[customer]:
                raise SystemExit(f"{customer}: {len(found)} of {known.messages[customer]} recalled")
            return seconds

        with ThreadPoolExecutor(RECALLS) as pool:
            return list(pool.map(recall, customers))

    @contextmanager
    def importing(self, count: int, *, first: int) -> Iterator[list[int]]:
        """So many imports under way, request after request, until the block ends; tickets done of each."""
        done = [0] * count
        is_over = threading.Event()
        under_way = threading.Semaphore(0)

        def work(number: int) -> None:
            for turn in itertools.count():
                before = done[number]
                name = f"source-{first}-{number}-{turn}"
                for count_now in self._import(generate(TICKETS_A_REQUEST, seed=first + number), name):
                    done[number] = before + count_now
                    under_way.release()
                if is_over.is_set():
                    return

        with ThreadPoolExecutor(count) as pool:
            workers = [pool.submit(work, number) for number in range(count)]
            while not all(done) and not any(worker.done() for worker in workers):
                under_way.acquire(timeout=1)
            try:
                yield done
            finally:
                is_over.set()
            for worker in workers:
                worker.result()

    def import_all(self, tickets: Round) -> None:
        """Import tickets to their end."""
        for _ in self._import(tickets, "known"):
            pass

    def _import(self, tickets: Round, source: str) -> Iterator[int]:
        """Import tickets; the number done, each time there is news.

        Raises:
            SystemExit: not all of them were imported.
        """
        body = json.dumps(tickets.tickets).encode()
        cursor, imported = "0", 0
        while cursor:
            path = f"/tickets/import?source={source}&cursor={cursor}"
            raw = raw_request("POST", path, body, HEADERS | {"Accept": "application/x-ndjson"})
            report: Json = {}
            for piece in self._plugin.streamed_endpoint(raw, settings=self._settings):
                if isinstance(piece, bytes):
                    report = json.loads(piece)
                    yield report.get("done", 0)
            if "tickets" not in report:
                raise SystemExit(f"an import failed: {report}")
            imported += report["tickets"]["imported"]
            cursor = report["cursor"]
        if imported != len(tickets.tickets):
            raise SystemExit(f"{imported} of {len(tickets.tickets)} tickets imported")


def _described(seconds: list[float]) -> str:
    ordered = sorted(seconds)
    return (
        f"median {statistics.median(ordered) * 1000:7.0f} ms, "
        f"slowest of twenty {ordered[int(len(ordered) * 0.95)] * 1000:7.0f} ms, of {len(ordered)}"
    )


if __name__ == "__main__":
    main()
