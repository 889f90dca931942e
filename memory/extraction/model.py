"""The language model as extraction sees it, and what goes in and comes out."""

from dataclasses import dataclass
from typing import Protocol

from memory.records import Role


@dataclass(frozen=True, slots=True)
class Completion:
    """What a language model answered.

    Attributes:
        text: as it came.
        tokens: prompt and answer together, as the service counted; 0 where it does not say.
    """

    text: str
    tokens: int


class LanguageModel(Protocol):
    """Answers one prompt. Building one opens no connection."""

    def complete(self, system: str, user: str) -> Completion:
        """The answer to a prompt, whole.

        Args:
            system: the rules.
            user: the material.

        Raises:
            SetupError, ServiceError: the model cannot or will not answer. Never an empty answer instead.
        """
        ...


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation to extract from.

    Attributes:
        text: redacted.
        role: whose words; only the customer's give facts, the agent's are context.
        sent_at: seconds since 1970.
    """

    text: str
    role: Role
    sent_at: float


@dataclass(frozen=True, slots=True)
class KnownSlot:
    """A slot the customer has already, shown to the model by its number in the list."""

    subject: str
    attribute: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One fact that passed every check.

    Attributes:
        text: in the customer's language.
        kind: "semantic", "episodic" or "procedural".
        subject, attribute: the slot; "" for none.
        occurred_at: when it was so, seconds since 1970.
        is_still_so: False for a value that was withdrawn and has no successor.
        confidence: 0 to 1.
        message: index of the message it comes from.
    """

    text: str
    kind: str
    subject: str
    attribute: str
    occurred_at: float
    is_still_so: bool
    confidence: float
    message: int


@dataclass(frozen=True, slots=True)
class Rejected:
    """One item of the model's answer that is not kept: its position and why."""

    item: int
    reason: str


@dataclass(frozen=True, slots=True)
class Extraction:
    """What came of one extraction. No facts is a normal answer.

    Attributes:
        facts: in the model's order.
        rejected: items that are not kept, and why.
        tokens: what the calls took together.
    """

    facts: tuple[Fact, ...]
    rejected: tuple[Rejected, ...]
    tokens: int
