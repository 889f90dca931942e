"""How fast our engine adds and finds memories beside mem0, on one Chroma server and with one embedder.

Both hold the same generated memories of the same customers, with the same vectors, and are then asked and
told the same by the calls their users make, in turns, so that whatever else the machine does meets both: read
the ratios first. Both get their vectors from one service of OpenAI's protocol with the built-in model behind
it, which keeps none: each pays the same for them, so that ratios are given with and without that share. mem0
stores what it is given (`infer=False`), without a language model; see `benchmarks.peer_mem0`. Filling both
before is not measured.
"""

import argparse
import itertools
import json
import random
import statistics
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from tqdm import tqdm

from benchmarks.generated_memories import EXACT, Customer, Memories, chunks, customers
from benchmarks.layouts import RESULTS, OurLayout, turned
from benchmarks.peer_mem0 import MODEL, REQUIREMENTS, Mem0, Row
from benchmarks.systems import CachedEmbedder
from benchmarks.tables import Figures
from development.chroma_server import ChromaServer
from development.embedding_server import EmbeddingServer
from memory.content import Note, read_content
from memory.embedding import Embedder, EmbedderIdentity, Vector
from memory.embedding.openai_compatible import OpenAICompatibleEmbedder
from memory.identity import Caller
from memory.recalling import Question
from memory.settings import OpenAICompatibleSettings

SIZES = "10000,100000"
CHUNK = 16_000
"""Memories that both are filled with at a time: ours are written a collection at a time."""
QUESTIONS = 6
"""Of each customer with exactly 200 memories; the first finds nothing of the customer known yet."""
DRAWN = 60
"""Customers of any size that are asked one question each."""
ADDS = {1: 60, 6: 20, 100: 4}
"""Messages in one call to add → calls."""
SEARCH_AIM, RATE_AIM = 0.3, 3.0
AIMED_AT = 100_000
"""Memories at which these are aimed at: a search in 0.3 of mem0's time, adding at 3 times its rate."""


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds of one call, and of these the seconds for vectors."""

    seconds: float
    embedding_seconds: float

    @property
    def own_seconds(self) -> float:
        """Without the vectors."""
        return self.seconds - self.embedding_seconds


type Calls = Mapping[str, Callable[[], Took]]
"""The same call by system."""


def main() -> None:
    """Run it and print what came out."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--sizes", default=SIZES, metavar="N,N", help="memories (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all figures here")
    options = parser.parse_args()
    results: dict[str, dict[str, Figures]] = {}
    for size in map(int, options.sizes.split(",")):
        embedder = CachedEmbedder()
        with (
            ChromaServer() as chroma,
            EmbeddingServer((MODEL,), embedder=embedder) as service,
            Mem0(chroma, f"mem0-{uuid.uuid4().hex[:8]}", service) as mem0,
        ):
            timed = ServiceEmbedder(service.url)
            results[str(size)] = Run(chroma, timed, mem0, embedder, size, options.seed).figures()
        print(table(size, results[str(size)]), flush=True)
    if options.json:
        told = {
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "seed": options.seed,
            "peer": REQUIREMENTS.read_text().split(),
            "memories": results,
        }
        options.json.write_text(json.dumps(told, indent=2) + "\n")


class ServiceEmbedder:
    """The embedder of the service, as the settings lead to it, with a clock on it.

    Args:
        url: of the service.

    Attributes:
        seconds: spent waiting for vectors so far.
    """

    def __init__(self, url: str) -> None:
        self.seconds = 0.0
        self._embedder = OpenAICompatibleEmbedder(OpenAICompatibleSettings(base_url=url, model=MODEL))

    @property
    def identity(self) -> EmbedderIdentity:
        """Which model it is."""
        return self._embedder.identity

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """See `memory.embedding.Embedder`."""
        started = time.perf_counter()
        vectors = self._embedder.embed_documents(texts)
        self.seconds += time.perf_counter() - started
        return vectors

    def embed_query(self, text: str) -> Vector:
        """See `memory.embedding.Embedder`."""
        return self.embed_documents([text])[0]

    def chosen(self) -> EmbedderIdentity | None:
        """See `memory.embedding.EmbedderChoice`."""
        return self.identity

    def open(self, identity: EmbedderIdentity) -> Embedder:
        """See `memory.embedding.EmbedderChoice`."""
        return self


class Run:
    """One size in both.

    Args:
        chroma: the server, with nothing of ours on it.
        timed: the service as our engine has it.
        mem0: empty, on the same server and with the same service.
        cached: what the service has behind it.
        size: memories of all customers together.
        seed: of what is generated and drawn.
    """

    def __init__(
        self,
        chroma: ChromaServer,
        timed: ServiceEmbedder,
        mem0: Mem0,
        cached: CachedEmbedder,
        size: int,
        seed: int,
    ) -> None:
        self._ours = OurLayout(chroma.url, "benchmark", timed)
        self._timed, self._mem0, self._cached = timed, mem0, cached
        self._memories = Memories(seed)
        self._customers = customers(size, exact=max(10, min(40, size // 500)), seed=seed)
        self._exact = [customer for customer in self._customers if customer.memories == EXACT]
        others = [customer for customer in self._customers if customer.memories != EXACT]
        self._drawn = random.Random(seed).sample(others, min(DRAWN, len(others)))

    def figures(self) -> dict[str, Figures]:
        """Everything that is measured, by name."""
        self._fill()
        self._warm_up()
        first, *more = [self._searches(self._exact, number) for number in range(QUESTIONS)]
        figures = {
            f"search, {EXACT} memories, first": times_of(in_turns(first)),
            f"search, {EXACT} memories, again": times_of(in_turns(itertools.chain(*more))),
            "search, any customer, first": times_of(in_turns(self._searches(self._drawn, 0))),
        }
        numbers = itertools.count(1)
        for messages, calls in ADDS.items():
            took = in_turns(self._adds(messages, calls, numbers))
            figures[f"add, {messages} a call"] = times_of(took) | rates_of(took, messages)
        return figures

    def _fill(self) -> None:
        """Write the same texts with the same vectors into both, in batches."""
        self._cached.keeps = True
        for together in tqdm(list(chunks(self._customers, CHUNK)), desc="fill", disable=None):
            rows = [(customer, memory) for customer in together for memory, _ in self._memories.of(customer)]
            vectors = self._cached.embed_documents([memory.index_text for _, memory in rows])
            self._ours.write(
                [
                    (customer.scope, (memory, vector))
                    for (customer, memory), vector in zip(rows, vectors, strict=True)
                ]
            )
            self._mem0.write([Row(customer.customer_id, "user", memory.text) for customer, memory in rows])
            self._cached.clear()
        self._cached.keeps = False

    def _warm_up(self) -> None:
        """Have the server read its indexes and all load their modules, before anything is compared.

        It asks other customers, so that nothing is known of those that are asked and told something then.
        """
        asked = {customer.number for customer in (*self._exact, *self._drawn)}
        others = [c for c in self._customers if c.number not in asked and c.memories >= RESULTS]
        for customer in random.Random(1).sample(others, min(200, len(others))):
            self._recall(customer, "Is there anything to warm up?")
            self._mem0.search(customer.customer_id, "Is there anything to warm up?")
        for number in range(3):
            text = self._memories.more(others[number], 0)[0].text
            self._remember(others[number], [text])
            self._mem0.add([Row(others[number].customer_id, "user", text)])

    def _searches(self, asked: Sequence[Customer], number: int) -> Iterator[Calls]:
        """One question to each customer."""
        for customer in asked:
            text, _ = self._memories.question(customer, number)
            yield {
                "ours": partial(self._recall, customer, text),
                "mem0": partial(self._search, customer, text),
            }

    def _adds(self, messages: int, calls: int, numbers: Iterator[int]) -> Iterator[Calls]:
        """Calls with so many new messages of one conversation of a customer each."""
        for customer in itertools.islice(itertools.cycle((*self._exact, *self._drawn)), calls):
            texts = [self._memories.more(customer, next(numbers))[0].text for _ in range(messages)]
            rows = [Row(customer.customer_id, "user", text) for text in texts]
            yield {
                "ours": partial(self._remember, customer, texts),
                "mem0": partial(self._add, rows),
            }

    def _recall(self, customer: Customer, text: str) -> Took:
        question = Question(query=text, limit=RESULTS, min_score=0.0)
        return self._took(
            lambda: len(self._ours.engine().recall(Caller.checked(customer.customer_id), question).hits),
            min(RESULTS, customer.memories),
        )

    def _remember(self, customer: Customer, texts: Sequence[str]) -> Took:
        """One call of the engine's, as the node makes it."""
        content = texts[0]
        if len(texts) > 1:
            content = json.dumps([{"role": "user", "content": text} for text in texts])

        def call() -> int:
            statements, skipped = read_content(content, kind=None)
            caller = Caller.checked(customer.customer_id)
            return len(self._ours.engine().remember(caller, statements, Note(), skipped=skipped).outcomes)

        return self._took(call, len(texts))

    def _took(self, call: Callable[[], int], expected: int) -> Took:
        started, embedding = time.perf_counter(), self._timed.seconds
        count = call()
        took = Took(time.perf_counter() - started, self._timed.seconds - embedding)
        _check(count, expected)
        return took

    def _search(self, customer: Customer, text: str) -> Took:
        told = self._mem0.search(customer.customer_id, text)
        _check(len(told.ids), min(RESULTS, customer.memories))
        return Took(told.seconds, told.embedding_seconds)

    def _add(self, rows: Sequence[Row]) -> Took:
        told = self._mem0.add(rows)
        _check(len(told.ids), len(rows))
        return Took(told.seconds, told.embedding_seconds)


def _check(count: int, expected: int) -> None:
    if count != expected:
        raise SystemExit(f"{count} memories of {expected}")


def in_turns(rounds: Iterator[Calls]) -> dict[str, list[Took]]:
    """What calls took by system, who goes first changing from round to round."""
    took: dict[str, list[Took]] = {}
    for number, calls in enumerate(rounds):
        for name in turned(list(calls), number):
            took.setdefault(name, []).append(calls[name]())
    return took


def times_of(took: Mapping[str, Sequence[Took]]) -> Figures:
    """Ratios of the medians, then milliseconds by system, and which part of them vectors are."""
    medians = {name: statistics.median(each.seconds for each in calls) for name, calls in took.items()}
    own = {name: statistics.median(each.own_seconds for each in calls) for name, calls in took.items()}
    figures = {
        "time_to_mem0": medians["ours"] / medians["mem0"],
        "time_to_mem0_without_embedding": own["ours"] / own["mem0"],
    }
    for name, calls in took.items():
        seconds = sorted(each.seconds for each in calls)
        figures[f"{name}_median_ms"] = medians[name] * 1_000
        figures[f"{name}_p95_ms"] = seconds[int(len(seconds) * 0.95)] * 1_000
        figures[f"{name}_embedding_share"] = sum(each.embedding_seconds for each in calls) / sum(seconds)
    return figures


def rates_of(took: Mapping[str, Sequence[Took]], messages: int) -> Figures:
    """Memories a second, and the ratios of ours to mem0's."""
    rates = {name: messages * len(calls) / sum(c.seconds for c in calls) for name, calls in took.items()}
    own = {name: messages * len(calls) / sum(c.own_seconds for c in calls) for name, calls in took.items()}
    return {
        "rate_to_mem0": rates["ours"] / rates["mem0"],
        "rate_to_mem0_without_embedding": own["ours"] / own["mem0"],
        **{f"{name}_memories_per_second": rate for name, rate in rates.items()},
    }


def table(size: int, figures: Mapping[str, Figures]) -> str:
    """The figures of one size, ratios first."""
    lines = [
        f"\n{size:,} memories in both; ms are medians (p95), in brackets after them the share of embedding",
        f"{'':28}{'of mem0':>9}{'w/o emb.':>10}{'ours':>24}{'mem0':>24}",
    ]
    for name, values in figures.items():
        ratios = f"{values['time_to_mem0']:9.2f}{values['time_to_mem0_without_embedding']:10.2f}"
        lines.append(f"{name:28}{ratios}" + "".join(_milliseconds(values, who) for who in ("ours", "mem0")))
        if "rate_to_mem0" in values:
            ratios = f"{values['rate_to_mem0']:9.2f}{values['rate_to_mem0_without_embedding']:10.2f}"
            rates = "".join(f"{values[f'{who}_memories_per_second']:22,.0f}/s" for who in ("ours", "mem0"))
            lines.append(f"{'  rate':28}{ratios}{rates}")
    return "\n".join([*lines, *_verdicts(size, figures)])


def _milliseconds(values: Figures, who: str) -> str:
    share = values[f"{who}_embedding_share"]
    told = f"{values[f'{who}_median_ms']:.1f} ({values[f'{who}_p95_ms']:.1f}) [{share:.0%}]"
    return f"{told:>24}"


def _verdicts(size: int, figures: Mapping[str, Figures]) -> Iterator[str]:
    """What is aimed at, beside what came out."""
    where = "" if size == AIMED_AT else f" (at {AIMED_AT:,})"
    for name, values in figures.items():
        if "rate_to_mem0" in values:
            got, own = values["rate_to_mem0"], values["rate_to_mem0_without_embedding"]
            met, aim = got >= RATE_AIM, f"at least {RATE_AIM:g} times the rate"
        else:
            got, own = values["time_to_mem0"], values["time_to_mem0_without_embedding"]
            met, aim = got <= SEARCH_AIM, f"at most {SEARCH_AIM:g} of the time"
        word = "met" if met else "missed"
        yield f"{name}: {got:.2f}, without embedding {own:.2f}; aim: {aim}{where}: {word}"


if __name__ == "__main__":
    main()
