"""Makes the data files of the support cases from the material.

    python -m benchmarks.support_cases.generate

A file of customers is read line by line; `|` separates columns:

    = en01 | what the support is about | Europe/London | tune
    # 2024-02-12 09:14 | subject of a conversation
    c label: what the customer says; a label, where a question needs one
    a: what the agent says
    >> 2024-02-14 10:00                    when the next message is
    ! 2024-08-08 10:02 | delivery | ref=A-4477-K | item=table runner      a routine conversation
    ? category | labels < lures | extra | the question

Extra is the identifier of an "identifier", the bounds `since..until` of a "time", and "far" for a "none" that
no support would be asked. A "none" has instead of labels the words that would speak of it.

Routines are what every support hears: each message has several wordings, one of which is drawn, the same in
each run. Rules do the rest: ids, minutes between messages, languages of questions. The part is written down,
so that a new question moves no customer from one half to the other.
"""

import json
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from benchmarks.support_cases.cases import CATEGORIES, DATA

MATERIAL = Path(__file__).parent / "material"
ROUTINES = "routines.txt"
NAMES = {"cross": "cross_language", "none": "no_answer"}
"""Short names of categories."""
LANGUAGES = ("en", "zh")
WAITS = {"customer": (1, 45), "agent": (3, 50)}
"""Minutes until a message of theirs, least and most."""
_LINE = re.compile(r"(?P<role>[ca])(?: (?P<label>\w+))?: (?P<text>.+)")
_CJK = re.compile(r"[\u3400-\u9fff]")

Object = dict[str, Any]


@dataclass(slots=True)
class Routine:
    """A conversation every support has: its subject, and its lines with all their wordings."""

    subject: str
    lines: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Draft:
    """A customer while being read.

    Attributes:
        customer_id, domain, part: as in the data.
        zone: the customer's time zone.
        conversations: start → subject and lines.
        questions: the columns of each.
    """

    customer_id: str
    domain: str
    zone: ZoneInfo
    part: str
    conversations: dict[datetime, tuple[str, list[str]]] = field(default_factory=dict)
    questions: list[list[str]] = field(default_factory=list)

    @property
    def language(self) -> str:
        """That of the case."""
        return self.customer_id[:2]

    def moment(self, text: str) -> datetime:
        """A local time of the customer."""
        return datetime.strptime(text, "%Y-%m-%d %H:%M").replace(tzinfo=self.zone)


def generate(material: Path = MATERIAL) -> dict[str, str]:
    """The data files.

    Args:
        material: the folder of what was written.

    Returns:
        Name of a file → its content.

    Raises:
        ValueError: a line or a category that is not known, a label that is missing or given twice.
    """
    routines = read_routines((material / ROUTINES).read_text("utf-8"))
    texts = [path.read_text("utf-8") for path in sorted(material.glob("*.txt")) if path.name != ROUTINES]
    customers = [_customer(draft) for text in texts for draft in read_drafts(text, routines)]
    return {
        f"{language}.json": _written([each for each in customers if each["language"] == language])
        for language in LANGUAGES
    }


def read_routines(text: str) -> dict[str, Routine]:
    """The routines of a file, by name."""
    routines: dict[str, Routine] = {}
    for line in _lines(text):
        if line.startswith("* "):
            name, subject = _columns(line)
            routines[name] = routine = Routine(subject)
        elif not line.startswith("== "):
            routine.lines.append(line)
    return routines


def read_drafts(text: str, routines: dict[str, Routine]) -> list[Draft]:
    """The customers of a file."""
    drafts: list[Draft] = []
    for line in _lines(text):
        columns = _columns(line)
        if line.startswith("= "):
            drafts.append(Draft(columns[0], columns[1], ZoneInfo(columns[2]), columns[3]))
        elif line.startswith("# "):
            lines: list[str] = []
            drafts[-1].conversations[drafts[-1].moment(columns[0])] = (columns[1], lines)
        elif line.startswith("! "):
            start = drafts[-1].moment(columns[0])
            seed = f"{drafts[-1].customer_id} {columns[1]}"
            drafts[-1].conversations[start] = _routine(routines[columns[1]], columns[2:], seed)
        elif line.startswith("? "):
            drafts[-1].questions.append(columns)
        else:
            lines.append(line)
    return drafts


def _lines(text: str) -> Iterator[str]:
    return (line for line in text.splitlines() if line.strip())


def _columns(line: str) -> list[str]:
    return [column.strip() for column in line[2:].split("|")]


def _routine(routine: Routine, slots: Sequence[str], seed: str) -> tuple[str, list[str]]:
    """A routine in one of its wordings."""
    chance = random.Random(seed)
    values = dict(slot.split("=", 1) for slot in slots)
    lines = []
    for line in routine.lines:
        head, blank, wordings = line.partition(": ")
        lines.append(f"{head}{blank}{chance.choice(wordings.split(' || '))}".format(**values))
    return routine.subject.format(**values), lines


def _customer(draft: Draft) -> Object:
    labels: dict[str, str] = {}
    conversations = [
        _conversation(draft, number, start, labels)
        for number, start in enumerate(sorted(draft.conversations), start=1)
    ]
    questions = [_question(draft, n, columns, labels) for n, columns in enumerate(draft.questions, start=1)]
    return {
        "customer_id": draft.customer_id,
        "language": draft.language,
        "domain": draft.domain,
        "part": draft.part,
        "conversations": conversations,
        "questions": questions,
    }


def _conversation(draft: Draft, number: int, start: datetime, labels: dict[str, str]) -> Object:
    """One conversation; what its messages are called is added to `labels`."""
    conversation_id = f"{draft.customer_id}-c{number}"
    chance = random.Random(conversation_id)
    subject, lines = draft.conversations[start]
    messages: list[Object] = []
    now, is_set = start, True
    for line in lines:
        if line.startswith(">> "):
            now, is_set = _later(draft, now, line[3:].strip(), chance), True
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise ValueError(f"{conversation_id}: {line}")
        role = "customer" if match["role"] == "c" else "agent"
        if not is_set:
            now += timedelta(minutes=chance.randint(*WAITS[role]))
        message_id = f"{conversation_id}-m{len(messages) + 1:02}"
        if match["label"] and labels.setdefault(match["label"], message_id) != message_id:
            raise ValueError(f"{conversation_id}: the label {match['label']} is there twice")
        messages.append(
            {"message_id": message_id, "role": role, "at": now.isoformat(), "text": match["text"]}
        )
        is_set = False
    return {"conversation_id": conversation_id, "subject": subject, "messages": messages}


def _later(draft: Draft, now: datetime, when: str, chance: random.Random) -> datetime:
    """A moment given as such, or as days after the last message."""
    if when.startswith("+"):
        return now + timedelta(days=int(when), minutes=chance.randint(-120, 120))
    return draft.moment(when)


def _question(draft: Draft, number: int, columns: Sequence[str], labels: dict[str, str]) -> Object:
    name, about, extra, text = columns if len(columns) == 4 else (*columns[:2], "", columns[-1])
    category = NAMES.get(name, name)
    if category not in CATEGORIES:
        raise ValueError(f"{draft.customer_id}: there is no category {category}")
    told, _, lures = about.partition("<")
    question: Object = {
        "question_id": f"{draft.customer_id}-q{number:02}",
        "customer_id": draft.customer_id,
        "text": text,
        "language": _language(text.replace(extra, "") if extra else text, draft.language),
        "category": category,
        "evidence": [] if category == "no_answer" else _found(told, labels),
    }
    if lures:
        question["lures"] = _found(lures, labels)
    if category == "no_answer":
        question["absent"] = _list(told)
        question |= {"is_far": True} if extra == "far" else {}
    elif category == "identifier":
        question["identifier"] = extra
    elif extra:
        question["since"], question["until"] = extra.split("..")
    return question


def _found(names: str, labels: dict[str, str]) -> list[str]:
    missing = [name for name in _list(names) if name not in labels]
    if missing:
        raise ValueError(f"there is no label {', '.join(missing)}")
    return [labels[name] for name in _list(names)]


def _list(text: str) -> list[str]:
    return [each.strip() for each in text.split(",")]


def _language(text: str, otherwise: str) -> str:
    if _CJK.search(text):
        return "zh"
    return "en" if re.search(r"[a-z]{2}", text) else otherwise


def _written(customers: Iterable[Object]) -> str:
    """JSON with a line a message and a line a question, so that changes are easy to see."""

    def plain(value: object) -> str:
        return json.dumps(value, ensure_ascii=False)

    blocks = []
    for customer in customers:
        head = {name: value for name, value in customer.items() if not isinstance(value, list)}
        conversations = ",\n".join(
            f'{plain({n: v for n, v in each.items() if n != "messages"})[:-1]}, "messages": [\n'
            + ",\n".join(f" {plain(message)}" for message in each["messages"])
            + "]}"
            for each in customer["conversations"]
        )
        questions = ",\n".join(f" {plain(question)}" for question in customer["questions"])
        blocks.append(
            f'{plain(head)[:-1]},\n"conversations": [\n{conversations}],\n"questions": [\n{questions}]}}'
        )
    return "[\n" + ",\n\n".join(blocks) + "\n]\n"


def main() -> None:
    """Write the data files."""
    DATA.mkdir(exist_ok=True)
    for name, content in generate().items():
        (DATA / name).write_text(content, "utf-8")
        print(f"{DATA / name}: {len(content.encode())} bytes")


if __name__ == "__main__":
    main()
