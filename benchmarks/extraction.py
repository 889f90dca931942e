"""Scores a language model on the replay set of dialogues, through the extraction the plugin itself uses.

    python -m benchmarks.extraction --base-url http://ollama.example.com:11434/v1 --model qwen3:8b

- precision: of the facts that were kept, those a careful person would keep.
- recall: of the facts a careful person would keep, those that were kept.
- slots: of the facts found that belong into a slot, those in the right one that also say rightly whether it
  still holds.
- dates: of the facts found, those dated to the right day.
- forbidden: strings found in a fact that must be in none; 0 is the aim.
- failures: dialogues for which the model gave no usable answer. Their facts count as not found.

Exit status 0 once all dialogues were tried, whatever the scores.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.dialogues import Dialogue, ExpectedFact, Material, load
from memory.errors import ServiceError, SetupError
from memory.extraction.extracting import DEFAULT_MIN_CONFIDENCE, extract
from memory.extraction.model import Fact, LanguageModel
from memory.extraction.openai_compatible import OpenAICompatibleLanguageModel
from memory.extraction.prompt import VERSION
from memory.settings import OpenAICompatibleSettings

DEFAULT_TIMEOUT_SECONDS = 120.0
COLUMNS = ("precision", "recall", "slots", "dates", "forbidden", "failures", "tokens", "seconds")


@dataclass(kw_only=True)
class Result:
    """What came of one dialogue: counts, and what there is to look into."""

    dialogue: Dialogue
    seconds: float = 0.0
    tokens: int = 0
    failure: str = ""
    kept: int = 0
    found: int = 0
    slots: int = 0
    slots_right: int = 0
    dates_right: int = 0
    missed: list[str] = field(default_factory=list)
    needless: list[str] = field(default_factory=list)
    misplaced: list[str] = field(default_factory=list)
    misdated: list[str] = field(default_factory=list)
    forbidden: list[str] = field(default_factory=list)
    rejected: list[str] = field(default_factory=list)


def run(model: LanguageModel, dialogue: Dialogue, *, min_confidence: float) -> Result:
    """Extract from one dialogue and compare. A service that fails is a result; a wrong setting is raised."""
    material = Material.of(dialogue)
    result = Result(dialogue=dialogue)
    started = time.monotonic()
    try:
        extraction = extract(
            model, material.messages, material.known, min_confidence=min_confidence, zone=dialogue.zone
        )
    except ServiceError as error:
        result.failure = error.code
        result.missed = [fact.text for fact in dialogue.facts]
        return result
    finally:
        result.seconds = time.monotonic() - started
    result.tokens = extraction.tokens
    result.rejected = [each.reason for each in extraction.rejected]
    _compare(result, dialogue, extraction.facts)
    return result


def _compare(result: Result, dialogue: Dialogue, facts: Sequence[Fact]) -> None:
    pairs = assign(dialogue, facts)
    result.kept, result.found = len(facts), len(pairs)
    result.missed = [fact.text for index, fact in enumerate(dialogue.facts) if index not in pairs]
    result.needless = [fact.text for index, fact in enumerate(facts) if index not in pairs.values()]
    result.forbidden = dialogue.violated(f"{fact.subject} {fact.attribute} {fact.text}" for fact in facts)
    for index, position in pairs.items():
        expected, fact = dialogue.facts[index], facts[position]
        if expected.attribute:
            result.slots += 1
            is_right = is_in_slot(expected, fact) and fact.is_still_so == expected.still_true
            result.slots_right += is_right
            if not is_right:
                result.misplaced.append(fact.text)
        if is_dated(dialogue, expected, fact):
            result.dates_right += 1
        else:
            result.misdated.append(fact.text)


def assign(dialogue: Dialogue, facts: Sequence[Fact]) -> dict[int, int]:
    """Which fact tells which expected one, each used once, as many as possible: index to position."""
    candidates = []
    for expected in dialogue.facts:
        telling = [(is_in_slot(expected, f), i) for i, f in enumerate(facts) if expected.is_told_by(f.text)]
        candidates.append([i for fits, i in telling if fits] + [i for fits, i in telling if not fits])
    taken: dict[int, int] = {}

    def place(index: int, tried: set[int]) -> bool:
        for position in candidates[index]:
            if position in tried:
                continue
            tried.add(position)
            if position not in taken or place(taken[position], tried):
                taken[position] = index
                return True
        return False

    for index in range(len(candidates)):
        place(index, set())
    return {index: position for position, index in taken.items()}


def is_in_slot(expected: ExpectedFact, fact: Fact) -> bool:
    """Whether a fact lies in the slot expected; of a new one the names need only be alike."""
    if expected.slot is not None:
        return (fact.subject, fact.attribute) == (expected.subject, expected.attribute)
    return _are_alike(expected.subject, fact.subject) and _are_alike(expected.attribute, fact.attribute)


def _are_alike(ours: str, theirs: str) -> bool:
    """Whether one name holds the other, as "subscription plan" holds "plan"; "" is like itself only."""
    one, other = (set(name.casefold().replace("-", " ").split()) for name in (ours, theirs))
    return bool(one and other and (one <= other or other <= one)) or one == other


def is_dated(dialogue: Dialogue, expected: ExpectedFact, fact: Fact) -> bool:
    """Whether a fact is dated to the day expected, in the customer's zone."""
    return datetime.fromtimestamp(fact.occurred_at, dialogue.zone).date() == dialogue.day_of(expected)


def summary(results: Sequence[Result]) -> dict[str, float | int | None]:
    """The scores of some dialogues together; None where there is nothing to score."""
    found = sum(result.found for result in results)
    expected = sum(len(result.dialogue.facts) for result in results)
    return {
        "dialogues": len(results),
        "facts": expected,
        "precision": _share(found, sum(result.kept for result in results)),
        "recall": _share(found, expected),
        "slots": _share(sum(r.slots_right for r in results), sum(r.slots for r in results)),
        "dates": _share(sum(r.dates_right for r in results), found),
        "forbidden": sum(len(result.forbidden) for result in results),
        "failures": sum(bool(result.failure) for result in results),
        "tokens": _share(sum(result.tokens for result in results), len(results)),
        "seconds": _share(sum(result.seconds for result in results), len(results)),
    }


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def report(results: Sequence[Result], model: str) -> dict[str, Any]:
    """All scores, per language and overall; `tokens` and `seconds` are for one dialogue."""
    languages = sorted({result.dialogue.language for result in results})
    return {
        "model": model,
        "prompt_version": VERSION,
        "overall": summary(results),
        "languages": {
            language: summary([r for r in results if r.dialogue.language == language])
            for language in languages
        },
    }


def details(results: Iterable[Result]) -> list[dict[str, Any]]:
    """Each dialogue's own result, for looking into."""
    names = ("failure", "missed", "needless", "misplaced", "misdated", "forbidden", "rejected")
    return [
        {"id": result.dialogue.id, "traps": result.dialogue.traps}
        | {name: getattr(result, name) for name in names}
        | {"tokens": result.tokens, "seconds": round(result.seconds, 3)}
        for result in results
    ]


def table(told: dict[str, Any]) -> str:
    """The scores as a table."""
    rows = [*told["languages"].items(), ("all", told["overall"])]
    lines = ["".join(f"{name:>11}" for name in ("", "dialogues", *COLUMNS))]
    for name, scores in rows:
        cells = [name, str(scores["dialogues"]), *(_cell(column, scores[column]) for column in COLUMNS)]
        lines.append("".join(f"{cell:>11}" for cell in cells))
    return "\n".join(lines)


def _cell(column: str, value: float | int | None) -> str:
    if value is None:
        return "-"
    if isinstance(value, int):
        return str(value)
    return {"tokens": f"{value:.0f}", "seconds": f"{value:.2f}"}.get(column, f"{value:.1%}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.extraction", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--base-url", required=True, help="of a service that speaks OpenAI's chat API")
    parser.add_argument("--model", required=True, help="name the service knows the model by")
    parser.add_argument("--api-key-env", metavar="NAME", help="environment variable that holds the key")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N dialogues; they are mixed")
    parser.add_argument("--min-confidence", type=float, default=DEFAULT_MIN_CONFIDENCE, metavar="C")
    parser.add_argument("--timeout", type=float, default=DEFAULT_TIMEOUT_SECONDS, metavar="SECONDS")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all, each dialogue too, here")
    arguments = parser.parse_args()
    if arguments.limit is not None and arguments.limit < 1:
        parser.error("--limit is at least 1")
    if arguments.api_key_env and not os.environ.get(arguments.api_key_env):
        parser.error(f"the environment has no {arguments.api_key_env}")
    return arguments


def main() -> None:
    """Run the set and print the scores."""
    arguments = _arguments()
    dialogues = load()[: arguments.limit]
    results: list[Result] = []
    try:
        model = OpenAICompatibleLanguageModel(
            OpenAICompatibleSettings(
                base_url=arguments.base_url,
                model=arguments.model,
                api_key=os.environ[arguments.api_key_env] if arguments.api_key_env else "",
                timeout_seconds=arguments.timeout,
                purpose="llm",
            )
        )
        for dialogue in dialogues:
            results.append(run(model, dialogue, min_confidence=arguments.min_confidence))
            print(f"{len(results)}/{len(dialogues)} {dialogue.id}", results[-1].failure, file=sys.stderr)
    except SetupError as error:
        sys.exit(str(error))
    told = report(results, arguments.model)
    print(table(told))
    print(json.dumps(told, indent=2, ensure_ascii=False))
    if arguments.json:
        text = json.dumps(told | {"details": details(results)}, indent=2, ensure_ascii=False)
        arguments.json.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
