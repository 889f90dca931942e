"""The support cases as values."""

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Literal

from pydantic import AwareDatetime, TypeAdapter
from pydantic.dataclasses import dataclass

DATA = Path(__file__).parent / "data"
CATEGORIES: Mapping[str, str] = {
    "fact": "something said once, asked in similar words",
    "changed": "something that was so and is otherwise now; the evidence is the newest statement",
    "identifier": "an exact number, code or version; the same customer wrote of one nearly the same",
    "paraphrase": "no content word in common with the evidence",
    "cross_language": "asked in another language than the evidence is written in",
    "time": "something of a certain time, which bounds or only words give",
    "context": "the evidence is understood only together with the agent's message before it",
    "no_answer": "the customer never said anything about it",
}
"""What a question is there for."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message.

    Attributes:
        message_id: unique among all cases.
        role: who wrote it.
        text: as it was written.
        at: when; aware, in the customer's zone.
    """

    message_id: str
    role: Literal["customer", "agent"]
    text: str
    at: AwareDatetime


@dataclass(frozen=True, slots=True)
class Conversation:
    """One ticket or chat, its messages in the order of time."""

    conversation_id: str
    subject: str
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question about one customer.

    Attributes:
        question_id: unique among all cases.
        customer_id: whom it is about.
        text: the question.
        language: "en" or "zh"; that of the case where the text is nothing but an identifier.
        category: a key of `CATEGORIES`.
        evidence: ids of the messages that answer it; none for "no_answer".
        since, until: days that a caller would pass as bounds, both inclusive. Evidence and lures keep a day's
            distance from them, so that a bound may be read as its day's beginning or end, in any zone.
        identifier: what is asked for, in "identifier"; no message but the evidence holds it.
        lures: ids of messages that look like the answer and are not: what was so before, in "changed", the
            same matter at another time, in "time".
        absent: words, in "no_answer", one of which a message about the subject would hold. None does.
        is_far: whether, in "no_answer", no support would be asked it.
    """

    question_id: str
    customer_id: str
    text: str
    language: Literal["en", "zh"]
    category: str
    evidence: tuple[str, ...]
    since: date | None = None
    until: date | None = None
    identifier: str | None = None
    lures: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    is_far: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One customer.

    Attributes:
        customer_id: unique.
        language: that of most of the messages.
        domain: what the support is about, in a few words.
        part: "tune" for tuning constants, "held_out" for showing what they are worth.
        conversations: in the order of their beginnings; one may go on while the next has begun.
        questions: what is asked about the customer.
    """

    customer_id: str
    language: Literal["en", "zh"]
    domain: str
    part: Literal["tune", "held_out"]
    conversations: tuple[Conversation, ...]
    questions: tuple[Question, ...]

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages of all conversations, in the order of time."""
        every = (message for each in self.conversations for message in each.messages)
        return tuple(sorted(every, key=lambda message: message.at))


def load(folder: Path = DATA, *, part: Literal["tune", "held_out"] | None = None) -> tuple[Case, ...]:
    """The cases, in the order of the files and in them.

    Args:
        folder: where the data files are.
        part: only this half of the customers; None for all.
    """
    adapter = TypeAdapter(tuple[Case, ...])
    files = (adapter.validate_json(path.read_bytes()) for path in sorted(folder.glob("*.json")))
    return tuple(case for cases in files for case in cases if part in (None, case.part))
