"""Data sets of recall in one form: who said what when, and which turns answer a question.

LoCoMo (long English dialogues; CC BY-NC 4.0): `data/locomo10.json` of github.com/snap-research/locomo.
MemDaily (Chinese messages): made from github.com/nuster1128/MemSim, see `memdaily` for the form; its
repository states its licence. Neither is part of this project. The third is ours: `benchmarks.support_cases`.
"""

import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

from benchmarks.support_cases.cases import load as load_cases
from development.places import PROJECT

LOCOMO = PROJECT / "../shared/data/locomo_part.json"
MEMDAILY = PROJECT / "../shared/data/memdaily_part.json"
"""Where the files are looked for; options of the benchmark name others."""
MEMDAILY_QUESTIONS = 100
"""Each has a pool of about 310 messages of its own, so all 300 would take three times as long."""
SEED = 7

_LOCOMO_CATEGORIES = {1: "1 multi-hop", 2: "2 temporal", 3: "3 open", 4: "4 single-hop", 5: "5 adversarial"}
_LOCOMO_TURN = re.compile(r"D\d+:\d+")
_LOCOMO_SESSION = re.compile(r"session_\d+")
_LOCOMO_TIME = "%I:%M %p on %d %B, %Y"


@dataclass(frozen=True, slots=True)
class Turn:
    """One message.

    Attributes:
        turn_id: unique within its scope.
        role: as the remember node takes it.
        text: what was said, led by the speaker's name where the set has names.
        at: when, seconds since 1970; None where the set does not say.
    """

    turn_id: str
    role: str
    text: str
    at: float | None


@dataclass(frozen=True, slots=True)
class Session:
    """What is remembered with one call; `conversation_id` is "" where the set has no conversations."""

    conversation_id: str
    turns: tuple[Turn, ...]

    @property
    def at(self) -> float | None:
        """When it began."""
        return self.turns[0].at


@dataclass(frozen=True, slots=True)
class Memories:
    """All that is known of one customer, oldest session first."""

    scope: str
    sessions: tuple[Session, ...]

    @property
    def turns(self) -> list[Turn]:
        """The turns of all sessions."""
        return [turn for session in self.sessions for turn in session.turns]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question.

    Attributes:
        scope: whose memory is asked.
        text: the question.
        evidence: ids of the turns that answer it; empty where none does.
        category: as the set has it.
        part: "tune" or "held_out"; "" where the set is not divided.
        since, until: bounds of time, seconds since 1970; None for open.
    """

    scope: str
    text: str
    evidence: frozenset[str]
    category: str
    part: str = ""
    since: float | None = None
    until: float | None = None


@dataclass(frozen=True, slots=True)
class DataSet:
    """One set.

    Attributes:
        name: as the option of the benchmark has it.
        scopes, questions: the set.
        apart: categories that the line for the whole set leaves out.
        whole: name of that line.
    """

    name: str
    scopes: tuple[Memories, ...]
    questions: tuple[Question, ...]
    apart: frozenset[str] = frozenset()
    whole: str = "all"

    @property
    def turns(self) -> int:
        """How many there are in all scopes."""
        return sum(len(memories.turns) for memories in self.scopes)

    @property
    def has_unanswerable(self) -> bool:
        """Whether some questions have no answer in the set."""
        return not all(question.evidence for question in self.questions)

    def first(self, count: int | None) -> "DataSet":
        """The set with only its first scopes, and what is asked of them; None for all."""
        scopes = self.scopes[:count]
        kept = {memories.scope for memories in scopes}
        return replace(self, scopes=scopes, questions=tuple(q for q in self.questions if q.scope in kept))

    def groups(self, question: Question) -> list[str]:
        """The lines of the table that a question counts in."""
        whole = [] if question.category in self.apart else [self.whole]
        return [question.category, *([question.part] if question.part else []), *whole]


def locomo(path: Path = LOCOMO) -> DataSet:
    """LoCoMo, a scope a conversation; ids of evidence that do not exist are dropped, as are questions left
    without any.
    """
    scopes: list[Memories] = []
    questions: list[Question] = []
    for sample in json.loads(path.read_bytes()):
        memories = _locomo_memories(sample["sample_id"], sample["conversation"])
        known = {turn.turn_id for turn in memories.turns}
        scopes.append(memories)
        for asked in sample["qa"]:
            evidence = known.intersection(_LOCOMO_TURN.findall(" ".join(asked.get("evidence", []))))
            if evidence:
                category = _LOCOMO_CATEGORIES[asked["category"]]
                questions.append(
                    Question(
                        scope=memories.scope,
                        text=asked["question"],
                        evidence=frozenset(evidence),
                        category=category,
                    )
                )
    return DataSet(
        "locomo", tuple(scopes), tuple(questions), frozenset({_LOCOMO_CATEGORIES[5]}), "all, 1 to 4"
    )


def _locomo_memories(scope: str, conversation: dict[str, Any]) -> Memories:
    first = conversation["speaker_a"]
    sessions = []
    for name, messages in conversation.items():
        if not (_LOCOMO_SESSION.fullmatch(name) and messages):
            continue
        at = (
            datetime.strptime(conversation[f"{name}_date_time"], _LOCOMO_TIME).replace(tzinfo=UTC).timestamp()
        )
        turns = tuple(
            Turn(
                message["dia_id"],
                "user" if message["speaker"] == first else "assistant",
                f"{message['speaker']}: {message['text']}",
                at,
            )
            for message in messages
        )
        sessions.append(Session(f"{scope}-{name}", turns))
    return Memories(scope, tuple(sorted(sessions, key=lambda session: session.at or 0.0)))


def memdaily(path: Path = MEMDAILY, *, count: int = MEMDAILY_QUESTIONS, seed: int = SEED) -> DataSet:
    """A sample of MemDaily, the same number of each type; each question has a scope of its own.

    The file has `messages`, a list of texts, and `questions` with `type`, `question`, `pool` (positions in
    `messages`) and `evidence` (positions in `pool`). The pools have neither conversations nor times, and a
    message that is twice in one is taken once.

    Args:
        path: the file.
        count: questions in the sample.
        seed: decides which.
    """
    data = json.loads(path.read_bytes())
    scopes: list[Memories] = []
    questions: list[Question] = []
    for number in _sample([question["type"] for question in data["questions"]], count, seed):
        asked = data["questions"][number]
        scope = f"pool-{number}"
        pool = asked["pool"]
        turns = tuple(
            Turn(str(place), "user", data["messages"][place], None) for place in dict.fromkeys(pool)
        )
        scopes.append(Memories(scope, (Session("", turns),)))
        evidence = frozenset(str(pool[position]) for position in asked["evidence"])
        questions.append(
            Question(scope=scope, text=asked["question"], evidence=evidence, category=asked["type"])
        )
    return DataSet("memdaily", tuple(scopes), tuple(questions))


def _sample(types: Sequence[str], count: int, seed: int) -> list[int]:
    """Positions drawn at random; the types take turns."""
    drawn = random.Random(seed)
    by_type: dict[str, list[int]] = {}
    for number, name in enumerate(types):
        by_type.setdefault(name, []).append(number)
    for numbers in by_type.values():
        drawn.shuffle(numbers)
    turns = chain.from_iterable(zip_longest(*(by_type[name] for name in sorted(by_type))))
    return [number for number in turns if number is not None][:count]


def support() -> DataSet:
    """Our own support cases, a scope a customer."""
    scopes: list[Memories] = []
    questions: list[Question] = []
    for case in load_cases():
        sessions = []
        for conversation in case.conversations:
            turns = (Turn(m.message_id, m.role, m.text, m.at.timestamp()) for m in conversation.messages)
            sessions.append(Session(conversation.conversation_id, tuple(turns)))
        scopes.append(Memories(case.customer_id, tuple(sessions)))
        questions += (
            Question(
                scope=case.customer_id,
                text=asked.text,
                evidence=frozenset(asked.evidence),
                category=asked.category,
                part=case.part,
                since=_midnight(asked.since),
                until=_midnight(asked.until),
            )
            for asked in case.questions
        )
    return DataSet("support", tuple(scopes), tuple(questions))


def _midnight(day: date | None) -> float | None:
    """The beginning of a day in UTC: the set keeps a day's distance from its bounds."""
    return None if day is None else datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()
