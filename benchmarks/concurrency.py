"""Eight imports and forty recalls at once through one plugin process: what the imports cost the recalls.

Rounds with and without imports take turns, so that whatever else the machine does meets both.
"""

import argparse
import gzip
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
BURSTS = 4
"""Times the forty recall one after another in a round."""
IMPORT_SECONDS = 20
"""Time limit of an import request, so that the end of a round does not take long."""
LARGEST_RATIO = 2.0
KEY = "benchmark-key"
HEADERS = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
IMPORT_HEADERS = {"Accept": "application/x-ndjson", "Content-Type": "application/gzip"}


def main() -> None:
    """Run it and print what came out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N")
    parser.add_argument("--imports", type=int, default=IMPORTS, metavar="N")
    parser.add_argument("--tickets", type=int, default=TICKETS_A_REQUEST, metavar="N", help="of one request")
    options = parser.parse_args()
    known = generate(KNOWN_TICKETS)
    alone: list[float] = []
    busy: list[float] = []
    with ChromaServer() as chroma, PluginProcess() as plugin:
        settings: Json = {"api_key": KEY, "chroma_url": chroma.url, "namespace": "benchmark"}
        calls = Calls(plugin, {**settings, "import_seconds": str(IMPORT_SECONDS)}, options.tickets)
        calls.import_all(known)
        calls.recall_at_once(known)  # opens connections and reads the index
        imported = 0
        for number in range(options.rounds):
            alone += [seconds for _ in range(BURSTS) for seconds in calls.recall_at_once(known)]
            with calls.importing(options.imports, first=number * 1_000) as done:
                bursts = [calls.recall_at_once(known) for _ in range(BURSTS)]
            busy += [seconds for burst in bursts for seconds in burst]
            imported += sum(done)
            shown = ", ".join(f"{statistics.median(burst) * 1000:.0f}" for burst in bursts)
            print(f"round {number + 1}: burst after burst beside imports, medians {shown} ms")
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
        tickets: of one request to import.
    """

    def __init__(self, plugin: PluginProcess, settings: Json, tickets: int) -> None:
        self._plugin, self._settings, self._tickets = plugin, settings, tickets

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
        """So many imports at once, request after request, until the block ends; tickets done of each."""
        done = [0] * count
        is_over = threading.Event()
        together = threading.Barrier(count + 1)

        def work(number: int) -> None:
            for turn in itertools.count():
                before = done[number]
                name = f"source-{first}-{number}-{turn}"
                tickets = generate(self._tickets, seed=first + number, customers=name)
                if turn == 0:
                    together.wait()
                for count_now in self._import(tickets, name):
                    done[number] = before + count_now
                    if is_over.is_set():
                        break
                if is_over.is_set():
                    return

        with ThreadPoolExecutor(count) as pool:
            workers = [pool.submit(work, number) for number in range(count)]
            together.wait()
            try:
                yield done
            finally:
                is_over.set()
            for worker in workers:
                worker.result()

    def import_all(self, tickets: Round) -> None:
        """Import tickets to their end."""
        for done in self._import(tickets, "known"):
            total = done
        if total != len(tickets.tickets):
            raise SystemExit(f"{total} of {len(tickets.tickets)} tickets imported")

    def _import(self, tickets: Round, source: str) -> Iterator[int]:
        """Import tickets; the number done after each request.

        Raises:
            SystemExit: one of them was not imported.
        """
        body = gzip.compress(json.dumps(tickets.tickets).encode())  # as the command line does
        cursor, imported = "0", 0
        while cursor:
            path = f"/tickets/import?source={source}&cursor={cursor}"
            raw = raw_request("POST", path, body, HEADERS | IMPORT_HEADERS)
            report: Json = {}
            for piece in self._plugin.streamed_endpoint(raw, settings=self._settings):
                if isinstance(piece, bytes):
                    report = json.loads(piece)
            if "tickets" not in report:
                raise SystemExit(f"an import failed: {report}")
            imported += report["tickets"]["imported"]
            cursor = report["cursor"]
            if imported != report["done"]:
                raise SystemExit(f"{imported} of {report['done']} tickets imported")
            yield imported


def _described(seconds: list[float]) -> str:
    ordered = sorted(seconds)
    return (
        f"median {statistics.median(ordered) * 1000:7.0f} ms, "
        f"slowest of twenty {ordered[int(len(ordered) * 0.95)] * 1000:7.0f} ms, of {len(ordered)}"
    )


if __name__ == "__main__":
    main()
