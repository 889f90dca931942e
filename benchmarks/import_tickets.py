"""Imports generated tickets twice with the command line, and compares with a bare loop in the same run.

The bare loop embeds the same texts with the same model and upserts the same records, in batches of 500, into
one collection of a fresh server. Wall time depends on what else the machine does, so the CPU time of all
processes involved is compared too.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import chromadb
import requests

from benchmarks.generated_tickets import Round, generate, second_round
from benchmarks.processes import cpu_seconds, peak_megabytes
from development.chroma_server import ChromaServer
from development.daemon import PluginProcess
from development.http_front import HttpFront
from development.places import PROJECT
from memory.embedding.builtin import BuiltinEmbedder
from memory.records import from_row

TICKETS = 10_000
SAMPLED_CUSTOMERS = 200
KEY = "benchmark-key"
NAMESPACE = "benchmark"
BARE_BATCH = 500
LARGEST_PEAK_MEGABYTES = 600
SMALLEST_RATIO = 0.6

type Record = tuple[str, str, dict[str, Any]]
"""Id, text, columns."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What something took: seconds on the clock, and on a core for each process."""

    wall: float
    cores: dict[str, float]

    @property
    def cpu(self) -> float:
        """Seconds on a core, all together."""
        return sum(self.cores.values())

    def line(self, name: str, messages: int) -> str:
        """It in words."""
        cores = ", ".join(f"{process} {seconds:.1f} s" for process, seconds in self.cores.items())
        return f"{name:13} {messages / self.wall:8,.0f} messages/s, {self.wall:7.1f} s; CPU: {cores}"


def main() -> None:
    """Run it and print what came out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tickets", type=int, default=TICKETS, metavar="N")
    count = parser.parse_args().tickets
    first = generate(count)
    second = second_round(first)
    messages = sum(first.messages.values())
    print(f"{count:,} tickets, {messages:,} messages of {len(first.messages):,} customers")
    with TemporaryDirectory() as folder, ChromaServer() as chroma, PluginProcess() as plugin:
        settings = {"api_key": KEY, "chroma_url": chroma.url, "namespace": NAMESPACE}
        with HttpFront(plugin, settings) as front:
            pids = {"Chroma": chroma.pid, "plugin": plugin.pid}
            once = _import("first round", first, Path(folder), front.url, pids)
            _check_counts(front.url, first)
            records = list(_records(chroma.url))
            again = _import("second round", second, Path(folder), front.url, pids)
            _check_counts(front.url, second)
            peak = peak_megabytes(plugin.pid)
    bare = _bare(records)
    print(bare.line("bare loop", messages))
    print(f"second round  {again.wall / once.wall:8.2f} of the first round's time")
    print(f"peak memory   {peak:8,.0f} MB of the plugin (at most {LARGEST_PEAK_MEGABYTES})")
    print(f"import / bare {bare.wall / once.wall:8.2f} by time (at least {SMALLEST_RATIO}),", end=" ")
    print(f"{bare.cpu / once.cpu:.2f} by CPU time")


def _import(name: str, tickets: Round, folder: Path, url: str, pids: dict[str, int]) -> Cost:
    """Import a round with the command line."""
    path = folder / f"{name.replace(' ', '-')}.json"
    tickets.write(path)
    before, started = _cores(pids), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "scripts/import_tickets.py", path, "--url", url],
        cwd=PROJECT,
        env={**os.environ, "CUSTOMER_MEMORY_API_KEY": KEY},
        capture_output=True,
        text=True,
        check=False,
    )
    cost = Cost(time.perf_counter() - started, _since(before, _cores(pids)))
    if done.returncode != (1 if tickets.broken else 0):
        raise SystemExit(f"the {name} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    messages = sum(tickets.messages.values())
    print("\n".join(done.stdout.splitlines()[:3]))
    print(cost.line(name, messages))
    _check_table(done.stdout, tickets)
    return cost


def _check_table(table: str, tickets: Round) -> None:
    """Make sure that the summary says what is so."""
    said = [int(cell.replace(",", "")) for cell in table.splitlines()[1].split()[1:]]
    total, changed, broken = len(tickets.tickets), len(tickets.changed), len(tickets.broken)
    is_first = not (changed or broken)
    expected = [total, 0, 0, 0, 0] if is_first else [0, changed, total - changed - broken, 0, broken]
    if said != expected:
        raise SystemExit(f"the summary says {said}, expected {expected}")


def _check_counts(url: str, tickets: Round) -> None:
    """Make sure that what sampled customers have is there, exactly, and is found."""
    customers = list(tickets.messages)
    step = max(1, len(customers) // SAMPLED_CUSTOMERS)
    sampled = customers[::step]
    with requests.Session() as session:
        session.headers["Authorization"] = f"Bearer {KEY}"
        for customer in sampled:
            query = {"customer_id": customer, "limit": "200"}
            listed = session.get(f"{url}/memories", params=query, timeout=60).json()["memories"]
            asked = {"customer_id": customer, "query": "Number", "limit": 100, "min_score": 0}
            found = session.post(f"{url}/recall", json=asked, timeout=60).json()["memories"]
            expected = tickets.messages[customer]
            if (len(listed), len(found)) != (expected, expected):
                raise SystemExit(
                    f"{customer}: {expected} expected, {len(listed)} listed, {len(found)} recalled"
                )
    print(f"counts        {len(sampled):8,} customers sampled: listed and recalled exactly")


def _records(url: str) -> Iterator[Record]:
    """The memories that lie in the server."""
    client = chromadb.HttpClient(host=url)
    for collection in client.list_collections(limit=10_000):
        if not collection.name.startswith(f"cm-{NAMESPACE}-m"):
            continue
        found = collection.get(include=["documents", "metadatas"])
        for row_id, text, columns in zip(
            found["ids"], found["documents"] or [], found["metadatas"] or [], strict=True
        ):
            yield row_id, text, dict(columns)


def _bare(records: list[Record]) -> Cost:
    """Embed and upsert the same records in the simplest way."""
    embedder = BuiltinEmbedder()
    embedder.embed_documents(["warm"])
    texts = [from_row(*record).index_text for record in records]
    with ChromaServer() as chroma:
        collection = chromadb.HttpClient(host=chroma.url).create_collection(
            "bare", configuration={"hnsw": {"space": "cosine"}}, embedding_function=None
        )
        pids = {"Chroma": chroma.pid, "loop": os.getpid()}
        before, started = _cores(pids), time.perf_counter()
        for start in range(0, len(records), BARE_BATCH):
            batch = records[start : start + BARE_BATCH]
            collection.upsert(
                ids=[row_id for row_id, _, _ in batch],
                documents=[text for _, text, _ in batch],
                metadatas=[columns for _, _, columns in batch],
                embeddings=embedder.embed_documents(texts[start : start + BARE_BATCH]),
            )
        cost = Cost(time.perf_counter() - started, _since(before, _cores(pids)))
        if collection.count() != len(records):
            raise SystemExit("the bare loop lost records")
        return cost


def _cores(pids: dict[str, int]) -> dict[str, float]:
    """Seconds on a core until now: of some processes, and of the commands that have ended."""
    times = os.times()
    command = times.children_user + times.children_system
    return {name: cpu_seconds(pid) for name, pid in pids.items()} | {"command": command}


def _since(before: dict[str, float], now: dict[str, float]) -> dict[str, float]:
    return {name: now[name] - seconds for name, seconds in before.items()}


if __name__ == "__main__":
    main()
