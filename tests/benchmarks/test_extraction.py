"""The benchmark of extraction, run as its users run it, against a scripted service."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from benchmarks.dialogues import Dialogue, ExpectedFact, Material, contains, load
from benchmarks.extraction import assign
from development.places import PROJECT
from memory.extraction.model import Fact
from memory.extraction.prompt import user_prompt
from tests.fake_servers import Answer, Asked, serve

DIALOGUES = {dialogue.id: dialogue for dialogue in load()}
NOTHING_KEPT = "en-shipping-09"
"""Five facts, none of them kept."""
FORBIDDEN_KEPT = "zh-banking-02"
"""Nothing to keep, yet its three forbidden strings are."""
MISPLACED = "en-devices-02"
"""One fact that belongs into a known slot, put into a new one."""
STILL_TRUE = "en-travel-04"
"""One value that was withdrawn, called still true."""
MISDATED = "zh-travel-04"
"""One fact that happened two days before, dated the day before."""
FILTERED = "en-saas-01"
"""One fact; the service holds its answer back."""
NONSENSE = "zh-billing-04"
"""One fact; the model answers prose, twice."""
NEAR = "en-devices-08"
"""One fact, told with 15 mg instead of 5 mg."""
KEY = "key-of-the-benchmark"


def right_item(dialogue: Dialogue, fact: ExpectedFact) -> dict[str, Any]:
    """A fact as a right model writes it; a new slot under a somewhat longer name."""
    return {
        "text": fact.text,
        "kind": fact.kind,
        "subject": fact.subject,
        "attribute": f"{fact.attribute} now" if fact.attribute and not fact.slot else "",
        "slot": fact.slot,
        "when": dialogue.day_of(fact).isoformat(),
        "still_true": fact.still_true,
        "confidence": 0.9,
        "message": fact.message,
    }


def answer_text(dialogue: Dialogue) -> str:
    """What the scripted model says: the right facts, but for the dialogues named above."""
    items = [right_item(dialogue, fact) for fact in dialogue.facts]
    if dialogue.id == NONSENSE:
        return "I would rather talk about something else."
    if dialogue.id == NOTHING_KEPT:
        items = []
    if dialogue.id == FORBIDDEN_KEPT:
        text = "，".join(dialogue.forbidden)
        items = [{"text": text, "kind": "semantic", "confidence": 1, "message": 0}]
    if dialogue.id == MISPLACED:
        items[0] |= {"slot": None, "attribute": "software"}
    if dialogue.id == STILL_TRUE:
        items[0]["still_true"] = True
    if dialogue.id == MISDATED:
        items[0]["when"] = (dialogue.day_of(dialogue.facts[0]) + timedelta(days=1)).isoformat()
    if dialogue.id == NEAR:
        items[0]["text"] = items[0]["text"].replace("5 mg", "15 mg")
    return json.dumps({"facts": items})


def chat_service() -> Callable[[Asked], Answer]:
    """A service that knows each dialogue by its prompt."""
    by_prompt = {}
    for dialogue in DIALOGUES.values():
        material = Material.of(dialogue)
        by_prompt[user_prompt(material.messages, material.known, zone=dialogue.zone)] = dialogue

    def answer(asked: Asked) -> Answer:
        if asked.headers.get("authorization") != f"Bearer {KEY}":
            return Answer(401, b'{"error": {"message": "who are you?"}}')
        body = json.loads(asked.body)
        user = body["messages"][1]["content"].split("\n\nYour last answer")[0]
        dialogue = by_prompt[user]
        is_held_back = dialogue.id == FILTERED
        choice = {
            "index": 0,
            "finish_reason": "content_filter" if is_held_back else "stop",
            "message": {"role": "assistant", "content": "" if is_held_back else answer_text(dialogue)},
        }
        usage = {"prompt_tokens": 80, "completion_tokens": 20, "total_tokens": 100}
        told = {"id": "c", "object": "chat.completion", "created": 1, "model": body["model"]}
        return Answer(body=json.dumps(told | {"choices": [choice], "usage": usage}).encode())

    return answer


@dataclass(frozen=True)
class Run:
    """One run of the benchmark: what it printed, what it wrote, what it asked."""

    printed: str
    written: dict[str, Any]
    asked: list[Asked]


def command(base_url: str, *options: str, key: str = KEY) -> subprocess.CompletedProcess[str]:
    """Run the benchmark as a program."""
    program = [sys.executable, "-m", "benchmarks.extraction", "--base-url", base_url, "--model", "scripted"]
    return subprocess.run(  # noqa: S603 - our own program
        [*program, "--api-key-env", "BENCHMARK_KEY", *options],
        cwd=PROJECT,
        env=os.environ | {"BENCHMARK_KEY": key},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The whole set against the scripted service."""
    path: Path = tmp_path_factory.mktemp("benchmark") / "scores.json"
    with serve(chat_service()) as service:
        done = command(f"{service.url}/v1", "--json", str(path))
    assert done.returncode == 0, done.stderr
    return Run(done.stdout, json.loads(path.read_text("utf-8")), service.asked)


def count(language: str | None, facts: Callable[[ExpectedFact], bool] = lambda fact: True) -> int:
    """How many facts the set has, of one language or of both."""
    chosen = [d for d in DIALOGUES.values() if language in (None, d.language)]
    return sum(facts(fact) for dialogue in chosen for fact in dialogue.facts)


def in_slots(fact: ExpectedFact) -> bool:
    return bool(fact.attribute)


def test_overall_scores_are_exact(whole_run: Run) -> None:
    """Each of the eight dialogues gone wrong costs what it should, and nothing else does."""
    facts, slotted = count(None), count(None, in_slots)
    found = facts - 5 - 1 - 1 - 1  # nothing kept, filtered, nonsense, near
    kept = found + 2  # the forbidden one, and the near one
    slots = slotted - 3  # of those not found, one with nothing kept, the filtered one and the near one
    scores = whole_run.written["overall"]

    assert scores["dialogues"] == len(DIALOGUES)
    assert scores["facts"] == facts
    assert scores["precision"] == pytest.approx(found / kept)
    assert scores["recall"] == pytest.approx(found / facts)
    assert scores["slots"] == pytest.approx((slots - 2) / slots)
    assert scores["dates"] == pytest.approx((found - 1) / found)
    assert scores["forbidden"] == 3
    assert scores["failures"] == 2
    assert scores["tokens"] == pytest.approx(100 * (len(DIALOGUES) - 2) / len(DIALOGUES))
    assert 0 < scores["seconds"] < 10


def test_scores_of_each_language_are_exact(whole_run: Run) -> None:
    """What goes wrong in one language leaves the scores of the other alone."""
    english, chinese = whole_run.written["languages"]["en"], whole_run.written["languages"]["zh"]
    in_english, in_chinese = count("en"), count("zh")

    assert english["recall"] == pytest.approx((in_english - 7) / in_english)
    assert english["precision"] == pytest.approx((in_english - 7) / (in_english - 6))
    assert english["dates"] == 1
    assert english["forbidden"] == 0
    assert chinese["recall"] == pytest.approx((in_chinese - 1) / in_chinese)
    assert chinese["precision"] == pytest.approx((in_chinese - 1) / in_chinese)
    assert chinese["dates"] == pytest.approx((in_chinese - 2) / (in_chinese - 1))
    assert chinese["slots"] == 1
    assert english["failures"] == chinese["failures"] == 1


def test_details_name_what_went_wrong_where(whole_run: Run) -> None:
    """The file lists, for each dialogue gone wrong, what to look into; for the others nothing."""
    details = {each["id"]: each for each in whole_run.written["details"]}
    lists = ("missed", "needless", "misplaced", "misdated", "forbidden", "rejected")
    wrong = {name for name, each in details.items() if each["failure"] or any(each[x] for x in lists)}

    assert details.keys() == DIALOGUES.keys()
    assert wrong == {
        *(NOTHING_KEPT, FORBIDDEN_KEPT, MISPLACED, STILL_TRUE),
        *(MISDATED, FILTERED, NONSENSE, NEAR),
    }
    assert details[FILTERED]["failure"] == "language_model_failed"
    assert details[NONSENSE]["failure"] == "extraction_failed"
    assert len(details[NOTHING_KEPT]["missed"]) == 5
    assert details[FORBIDDEN_KEPT]["forbidden"] == DIALOGUES[FORBIDDEN_KEPT].forbidden
    assert len(details[MISPLACED]["misplaced"]) == len(details[STILL_TRUE]["misplaced"]) == 1
    assert len(details[MISDATED]["misdated"]) == 1
    assert len(details[NEAR]["missed"]) == len(details[NEAR]["needless"]) == 1


def test_a_table_and_the_same_scores_as_json_are_printed(whole_run: Run) -> None:
    """Standard output holds a row a language and one for all, then JSON without the details."""
    table, _, rest = whole_run.printed.partition("\n{")
    rows = [line.split() for line in table.splitlines()]
    written = {name: value for name, value in whole_run.written.items() if name != "details"}

    assert rows[0] == [
        *("dialogues", "precision", "recall", "slots", "dates"),
        *("forbidden", "failures", "tokens", "seconds"),
    ]
    assert [row[0] for row in rows[1:]] == ["en", "zh", "all"]
    assert rows[3][1] == str(len(DIALOGUES))
    assert rows[3][3] == f"{written['overall']['recall']:.1%}"
    assert json.loads("{" + rest) == written


def test_each_dialogue_is_one_request(whole_run: Run) -> None:
    """Only the answer that could not be read is asked for again."""
    assert len(whole_run.asked) == len(DIALOGUES) + 1
    assert {asked.path for asked in whole_run.asked} == {"/v1/chat/completions"}


def test_a_limit_takes_both_languages() -> None:
    """The first dozen is six topics in either language."""
    with serve(chat_service()) as service:
        done = command(f"{service.url}/v1", "--limit", "12")
    scores = json.loads("{" + done.stdout.partition("\n{")[2])

    assert done.returncode == 0
    assert scores["languages"]["en"]["dialogues"] == scores["languages"]["zh"]["dialogues"] == 6
    assert len(service.asked) == 12


def test_a_refused_key_ends_the_run_without_the_key() -> None:
    """A wrong setting is told at once, and the key in no place."""
    with serve(chat_service()) as service:
        done = command(f"{service.url}/v1", key="some-other-key")

    assert done.returncode == 1
    assert "[language_model_refused]" in done.stderr
    assert "some-other-key" not in done.stdout + done.stderr
    assert len(service.asked) == 1


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("a 15 kg bag", "5 kg"),
        ("a 0.5 kg bag", "5 kg"),
        ("version 2.4.11", "2.4.1"),
        ("the limit is 1,500", "500"),
        ("和平街131号", "31号"),
    ],
)
def test_a_number_is_held_as_a_whole_only(text: str, part: str) -> None:
    """Part of another number is not the number."""
    assert not contains(text, part)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("A 5KG bag.", "5 kg"),
        ("It cost 45.00.", "45.00"),
        ("连包9 公斤", "9公斤"),
        ("ＱＸ８８ was late", "QX 88"),
        ("it said: token,]", "token , ]"),
    ],
)
def test_blanks_case_and_width_do_not_matter(text: str, part: str) -> None:
    """The same words written otherwise are the same."""
    assert contains(text, part)


def test_a_fact_that_tells_two_counts_once() -> None:
    """Two expected facts need two facts; one that only one of them can use is left to that one."""
    dialogue = DIALOGUES["en-devices-07"]
    router, camera = dialogue.facts[1].text, dialogue.facts[0].text

    def fact(text: str) -> Fact:
        return Fact(
            text=text,
            kind="semantic",
            subject="",
            attribute="",
            occurred_at=0.0,
            is_still_so=True,
            confidence=1.0,
            message=0,
        )

    assert len(assign(dialogue, [fact(f"{camera} {router}")])) == 1
    assert assign(dialogue, [fact(f"{camera} {router}"), fact(camera)]) == {0: 1, 1: 0}
