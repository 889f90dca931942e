"""The loaders, on small files in the form of the published ones; people in them are invented."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from benchmarks.data_sets import DataSet, Memories, Question, Session, Turn, locomo, memdaily

DIALOGUE: dict[str, Any] = {
    "speaker_a": "Ines",
    "speaker_b": "Omar",
    "session_10_date_time": "12:05 am on 1 June, 2023",
    "session_10": [{"speaker": "Omar", "dia_id": "D10:1", "text": "The kiln broke."}],
    "session_2_date_time": "1:56 pm on 8 May, 2023",
    "session_2": [
        {"speaker": "Ines", "dia_id": "D2:1", "text": "Hello!", "blip_caption": "a photo of a kiln"},
        {"speaker": "Omar", "dia_id": "D2:2", "text": "I bought a kiln."},
    ],
    "session_3": [],
    "session_4_date_time": "1:56 pm on 9 May, 2023",
}
MAY = datetime(2023, 5, 8, 13, 56, tzinfo=UTC).timestamp()
JUNE = datetime(2023, 6, 1, 0, 5, tzinfo=UTC).timestamp()


def written(folder: Path, content: object) -> Path:
    """A file that holds content as JSON."""
    path = folder / "data.json"
    path.write_text(json.dumps(content), "utf-8")
    return path


def asked(text: str, category: int, *evidence: str) -> dict[str, Any]:
    """A question in LoCoMo's form."""
    return {"question": text, "answer": "-", "evidence": list(evidence), "category": category}


def test_locomo_has_a_scope_a_dialogue_in_the_order_of_time(tmp_path: Path) -> None:
    """Text is led by the speaker, time is the session's, and what a picture shows is left out."""
    data = locomo(written(tmp_path, [{"sample_id": "c1", "conversation": DIALOGUE, "qa": []}]))
    first = Session(
        "c1-session_2",
        (
            Turn("D2:1", "user", "Ines: Hello!", MAY),
            Turn("D2:2", "assistant", "Omar: I bought a kiln.", MAY),
        ),
    )
    last = Session("c1-session_10", (Turn("D10:1", "assistant", "Omar: The kiln broke.", JUNE),))
    assert data.scopes == (Memories("c1", (first, last)),)


def test_locomo_splits_and_drops_malformed_evidence(tmp_path: Path) -> None:
    """Ids in one string are taken apart, ids that do not exist dropped, questions left with none skipped."""
    questions = [
        asked("both", 1, "D2:2; D10:1"),
        asked("blank between", 5, "D2:1 D2:2"),
        asked("partly there", 4, "D2:2", "D4:36"),
        asked("malformed", 2, "D:2:1"),
        asked("none", 3),
        {"question": "no field", "answer": "-", "category": 3},
    ]
    data = locomo(written(tmp_path, [{"sample_id": "c1", "conversation": DIALOGUE, "qa": questions}]))
    assert [(q.text, set(q.evidence)) for q in data.questions] == [
        ("both", {"D2:2", "D10:1"}),
        ("blank between", {"D2:1", "D2:2"}),
        ("partly there", {"D2:2"}),
    ]
    assert [data.groups(q) for q in data.questions] == [
        ["1 multi-hop", "all, 1 to 4"],
        ["5 adversarial"],
        ["4 single-hop", "all, 1 to 4"],
    ]


@pytest.fixture
def daily(tmp_path: Path) -> Path:
    """Two types with three questions each; a pool holds a message twice."""
    questions = [
        {"type": name, "question": f"{name} {number}", "pool": [3, 1, 3, number], "evidence": [2, 3]}
        for name in ("simple", "noisy")
        for number in range(3)
    ]
    return written(tmp_path, {"messages": ["甲", "乙", "丙", "丁"], "questions": questions})


def test_memdaily_has_a_scope_a_question(daily: Path) -> None:
    """Evidence is a position in the pool; a message is stored once; there are no times or conversations."""
    data = memdaily(daily, count=6, seed=1)
    question = next(q for q in data.questions if q.text == "noisy 2")
    memories = next(m for m in data.scopes if m.scope == question.scope)
    turns = (Turn("3", "user", "丁", None), Turn("1", "user", "乙", None), Turn("2", "user", "丙", None))
    assert memories.sessions == (Session("", turns),)
    assert question.evidence == {"3", "2"}
    assert question.category == "noisy"


def test_memdaily_draws_the_same_number_of_each_type_by_its_seed(daily: Path) -> None:
    """The same seed draws the same questions, and a larger sample holds the smaller one."""
    two, four = memdaily(daily, count=2, seed=1), memdaily(daily, count=4, seed=1)
    assert sorted(q.category for q in four.questions) == ["noisy", "noisy", "simple", "simple"]
    assert two.questions == four.questions[:2]
    assert memdaily(daily, count=4, seed=1) == four
    assert any(memdaily(daily, count=4, seed=seed) != four for seed in range(2, 9))


def test_the_first_scopes_keep_only_their_questions() -> None:
    """A quick run asks nothing of whom it did not store."""
    scopes = (Memories("a", ()), Memories("b", ()))
    questions = tuple(
        Question(scope=scope, text="?", evidence=frozenset({"x"}), category="c") for scope in "abab"
    )
    data = DataSet("d", scopes, questions)
    assert data.first(1) == DataSet("d", scopes[:1], (questions[0], questions[2]))
    assert data.first(None) == data
    assert not data.has_unanswerable
