"""The replay set: support dialogues of ours, and what a careful person would keep of each.

A file of `tests/data/dialogues` is a list of dialogues in one language about one topic. People and addresses
in them are invented.
"""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Literal
from zoneinfo import ZoneInfo

from pydantic import TypeAdapter
from pydantic.dataclasses import dataclass as validated

from development.places import PROJECT
from memory.extraction.model import KnownSlot, Message
from memory.records import Role

DATA = PROJECT / "tests" / "data" / "dialogues"
TRAPS = {
    "agent_suggestion": "the agent offers or guesses something",
    "quoted_mail": "somebody else's mail is quoted",
    "signature": "a signature follows the text",
    "forwarded": "a forwarded text follows",
    "irony": "a joke or irony",
    "hypothetical": "something that would be so if",
    "third_person": "something is said about somebody else",
    "question_about_other": "a question about others",
    "greeting": "greetings and thanks",
    "order_to_model": "words that give the model orders",
    "changed_mind": "the customer changes their mind within the dialogue",
    "negation": "something is not so",
    "close_numbers": "numbers, units or versions that differ slightly",
    "relative_date": "a day without its year, or counted from the day of the message",
    "date_border": "that day lies in another month or year",
    "withdrawn": "a value ends without a successor",
    "correction": "a known value is put right",
    "secret_mark": "a removed secret left its mark",
}
"""What a dialogue may be tagged with, and what that means."""

_TOKENS = re.compile(r"\d+|[^\W\d]+|[^\w\s]|_")


@validated(frozen=True, slots=True)
class Line:
    """One message; `sent_at` has its zone."""

    role: Literal["customer", "agent"]
    sent_at: datetime
    text: str


@validated(frozen=True, slots=True)
class Slot:
    """A value the customer has before the dialogue."""

    subject: str
    attribute: str
    value: str


@validated(frozen=True, slots=True, kw_only=True)
class ExpectedFact:
    """One fact a careful person would keep.

    Attributes:
        kind: "semantic", "episodic" or "procedural".
        subject, attribute: the slot; "" for none.
        slot: number of the known value it changes, from 1; None for another.
        text: how it could be put, in the customer's language.
        value_contains: what the text must contain; of a list, one will do.
        when: the day it was or became so, where the customer says one; else None for that of the message.
        words: the customer's words for that day.
        still_true: False for a value that ends without a successor.
        message: index of the customer's message it comes from.
    """

    kind: Literal["semantic", "episodic", "procedural"]
    subject: str
    attribute: str
    slot: int | None
    text: str
    value_contains: list[str | list[str]]
    when: date | None
    words: str | None
    still_true: bool
    message: int

    def is_told_by(self, text: str) -> bool:
        """Whether a text says what this fact is about."""
        return all(any(contains(text, v) for v in alternatives(value)) for value in self.value_contains)


@validated(frozen=True, slots=True, kw_only=True)
class Dialogue:
    """One dialogue.

    Attributes:
        id: language, topic and number.
        language: "en" or "zh".
        timezone: the customer's, as an IANA name.
        traps: keys of `TRAPS`.
        messages, known: what is given to extraction, in order.
        facts: all that is worth keeping.
        forbidden: strings that no fact may hold.
    """

    id: str
    language: Literal["en", "zh"]
    timezone: str
    traps: list[str]
    messages: list[Line]
    known: list[Slot]
    facts: list[ExpectedFact]
    forbidden: list[str]

    @property
    def zone(self) -> ZoneInfo:
        """The customer's time zone."""
        return ZoneInfo(self.timezone)

    def day_of(self, fact: ExpectedFact) -> date:
        """The day from which a fact is so, in the customer's zone."""
        return fact.when or self.messages[fact.message].sent_at.astimezone(self.zone).date()

    def violated(self, texts: Iterable[str]) -> list[str]:
        """The forbidden strings that the texts hold."""
        told = list(texts)
        return [each for each in self.forbidden if any(contains(text, each) for text in told)]


@dataclass(frozen=True, slots=True)
class Material:
    """A dialogue as `extract` takes it."""

    messages: list[Message]
    known: list[KnownSlot]

    @classmethod
    def of(cls, dialogue: Dialogue) -> "Material":
        """The material of a dialogue, without what is expected of it."""
        return cls(
            [Message(line.text, Role(line.role), line.sent_at.timestamp()) for line in dialogue.messages],
            [KnownSlot(slot.subject, slot.attribute, slot.value) for slot in dialogue.known],
        )


def load(folder: Path = DATA) -> list[Dialogue]:
    """All dialogues; languages and topics alternate, so that the first few are a fair sample."""
    files = sorted(folder.glob("*.json"))
    adapter = TypeAdapter(list[Dialogue])
    dialogues = [dialogue for path in files for dialogue in adapter.validate_json(path.read_bytes())]
    return sorted(dialogues, key=lambda dialogue: (dialogue.id.rpartition("-")[2], dialogue.id))


def alternatives(value: str | list[str]) -> list[str]:
    """The strings of which one will do."""
    return [value] if isinstance(value, str) else value


def contains(text: str, part: str) -> bool:
    """Whether a text holds a part, blanks, case and width aside; a number is held as a whole only.

    "10.5 kg" holds neither "5 kg" nor "10". "5 kg" is held by "5kg".
    """
    tokens = [re.escape(token) for token in _TOKENS.findall(_folded(part))]
    pattern = r"\s*".join(tokens)
    if tokens and tokens[0].isdigit():
        pattern = r"(?<!\d)(?<!\d[.,])" + pattern
    if tokens and tokens[-1].isdigit():
        pattern += r"(?![.,]?\d)"
    return bool(tokens) and re.search(pattern, _folded(text)) is not None


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
