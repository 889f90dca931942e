"""Recall on data sets of questions: how much of the evidence it finds, and how fast, beside mem0.

Everything is remembered conversation by conversation and recalled with ten memories, through the engine and
on a real Chroma server, with the built-in embedder. mem0 gets the same on the same server with the same
embedder; the systems take turns with each question, so that whatever else the machine does meets both. Each
embeds a text once, whichever scopes it is in. Where each set can be had is told by `benchmarks.data_sets`.

R@k is the share of a question's evidence among the first k, nDCG@10 has binary gains, "first" is the share
of questions whose first memory is evidence; all are means over questions. Times are medians of a call in ms,
with and without the embedding of the question. Where a set has questions without an answer, they and the
others are asked once more with the usual threshold.
"""

import argparse
import json
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tqdm import tqdm

from benchmarks.changed_facts import Shown, changed_facts
from benchmarks.data_sets import (
    LOCOMO,
    MEMDAILY,
    MEMDAILY_QUESTIONS,
    SEED,
    DataSet,
    Memories,
    Question,
    Session,
    Turn,
    locomo,
    memdaily,
    support,
)
from benchmarks.metrics import Result, as_json, by_group, restraint
from benchmarks.peer_mem0 import MODEL, REQUIREMENTS, Mem0
from benchmarks.support_cases.cases import load as load_cases
from benchmarks.systems import CachedEmbedder, OurEngine, Stored, System
from development.chroma_server import ChromaServer
from development.embedding_server import EmbeddingServer

NAMES = ("locomo", "memdaily", "support")
_WARM = Memories("warm", (Session("warm", (Turn("warm", "user", "Warm.", None),)),))
_WARM_QUESTION = Question(scope="warm", text="Warm?", evidence=frozenset(), category="")
COLUMNS = ("questions", "R@5", "R@10", "nDCG@10", "first", "ms", "ms w/o emb.")


@dataclass
class Run:
    """What one system did on one set.

    Attributes:
        name: of the system.
        stored: how fast it took them in.
        results: one a question.
    """

    name: str
    stored: Stored = field(default_factory=Stored)
    results: list[Result] = field(default_factory=list)


def main() -> None:
    """Run it and print what came out."""
    options = _options()
    told: dict[str, Any] = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "peer": REQUIREMENTS.read_text().split() if options.peer else [],
        "data": {},
    }
    for data in options.sets:
        with ChromaServer() as chroma, _systems(chroma, data, with_peer=bool(options.peer)) as systems:
            runs = run(systems, data)
            print(table(data, runs), flush=True)
            told["data"][data.name] = report(data, runs)
            if data.name == "support":
                shown = changed_facts(
                    chroma.url, f"facts-{uuid.uuid4().hex[:8]}", CachedEmbedder(), load_cases()
                )
                print(_changed(shown))
                told["data"][data.name]["changed_facts"] = asdict(shown)
    if options.json:
        options.json.write_text(json.dumps(told, indent=2, ensure_ascii=False) + "\n", "utf-8")


def run(systems: Sequence[System], data: DataSet) -> list[Run]:
    """Store a set in each system and ask each question of each."""
    runs = [Run(system.name) for system in systems]
    for system in systems:  # what the first call loads is charged to none
        system.remember(_WARM)
        system.recall(_WARM_QUESTION, is_usual=False)
    for memories in tqdm(data.scopes, desc=f"{data.name}: remember", file=sys.stderr, disable=None):
        for system, its in zip(systems, runs, strict=True):
            its.stored += system.remember(memories)
    for question in tqdm(data.questions, desc=f"{data.name}: recall", file=sys.stderr, disable=None):
        for system, its in zip(systems, runs, strict=True):
            nearest = system.recall(question, is_usual=False)
            usual = system.recall(question, is_usual=True) if data.has_unanswerable else None
            its.results.append(Result(question, nearest, usual))
    return runs


@contextmanager
def _systems(chroma: ChromaServer, data: DataSet, *, with_peer: bool) -> Iterator[list[System]]:
    """The systems to compare, empty."""
    fresh = f"recall-{uuid.uuid4().hex[:8]}"
    with ExitStack() as stack:
        systems: list[System] = [OurEngine(chroma.url, fresh)]
        if with_peer:
            service = stack.enter_context(EmbeddingServer((MODEL,), embedder=CachedEmbedder()))
            systems.append(stack.enter_context(Mem0(chroma, f"mem0-{fresh}", service)))
        yield systems


def report(data: DataSet, runs: Sequence[Run]) -> dict[str, Any]:
    """All figures of a set, by system."""
    systems: dict[str, Any] = {}
    for its in runs:
        held = restraint(its.results)
        systems[its.name] = {
            "turns_per_second": its.stored.rate,
            "scores": {name: as_json(scored) for name, scored in by_group(data, its.results).items()},
            "restraint": as_json(held) if held else None,
        }
    return {"scopes": len(data.scopes), "turns": data.turns, "systems": systems}


def table(data: DataSet, runs: Sequence[Run]) -> str:
    """The same as text."""
    scored = {its.name: by_group(data, its.results) for its in runs}
    lines = [
        f"\n{data.name}: {data.turns:,} turns in {len(data.scopes)} scopes, "
        f"{len(data.questions):,} questions",
        _line("", "", COLUMNS),
    ]
    for group in scored[runs[0].name]:
        for name, groups in scored.items():
            s = groups[group]
            quality = [f"{value:.3f}" for value in (s.recall_5, s.recall_10, s.ndcg_10, s.first)]
            times = [f"{value:.1f}" for value in (s.milliseconds, s.milliseconds_without_embedding)]
            lines.append(_line(group, name, [str(s.questions), *quality, *times]))
    for its in runs:
        rate = its.stored.rate
        if rate is not None:
            lines.append(f"{its.name} stored {rate:,.0f} turns a second")
        held = restraint(its.results)
        if held:
            lines.append(
                f"{its.name} by its usual threshold: nothing for {held.silent:.1%} of {held.unanswerable} "
                f"questions without an answer, evidence for {held.kept:.1%} of {held.answerable} with one"
            )
    return "\n".join(lines)


def _changed(shown: Shown) -> str:
    return (
        f"facts that changed, remembered as attributes in any order: of {shown.questions}, the current value "
        f"is told for {shown.current}, a superseded one for {shown.superseded}"
    )


def _line(group: str, name: str, cells: Sequence[str]) -> str:
    return f"{group:16}{name:6}" + "".join(f"{cell:>12}" for cell in cells)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recall_quality", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "--data", action="append", choices=NAMES, help="a set to run; all there are by default"
    )
    parser.add_argument("--locomo", type=Path, default=LOCOMO, metavar="FILE")
    parser.add_argument("--memdaily", type=Path, default=MEMDAILY, metavar="FILE")
    parser.add_argument("--memdaily-questions", type=int, default=MEMDAILY_QUESTIONS, metavar="N")
    parser.add_argument("--seed", type=int, default=SEED, metavar="N", help="draws MemDaily's questions")
    parser.add_argument(
        "--limit-conversations", type=int, metavar="N", help="only the first N scopes of a set"
    )
    parser.add_argument("--peer", choices=("mem0",), default="mem0", help="what to compare with")
    parser.add_argument("--no-peer", dest="peer", action="store_const", const="", help="run without it")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all figures here")
    options = parser.parse_args()
    for name in ("memdaily_questions", "limit_conversations"):
        if getattr(options, name) is not None and getattr(options, name) < 1:
            parser.error(f"--{name.replace('_', '-')} is at least 1")
    options.sets = []
    for name in options.data or NAMES:
        try:
            options.sets.append(_loaded(name, options).first(options.limit_conversations))
        except (FileNotFoundError, ImportError) as error:
            if options.data:
                parser.error(f"{name} is not there: {error}")
            print(f"{name} is left out: {error}", file=sys.stderr)
    return options


def _loaded(name: str, options: argparse.Namespace) -> DataSet:
    if name == "locomo":
        return locomo(options.locomo)
    if name == "memdaily":
        return memdaily(options.memdaily, count=options.memdaily_questions, seed=options.seed)
    return support()


if __name__ == "__main__":
    main()
