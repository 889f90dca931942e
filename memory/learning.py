"""Learning: in extract mode, what a customer said becomes a few facts instead of every message."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo

from memory.content import Skipped, Statement
from memory.extraction.extracting import extract
from memory.extraction.model import Extraction, KnownSlot, LanguageModel, Message
from memory.policy import Redactor
from memory.records import Kind, Memory, Role

_STEP = 1e-6


@dataclass(frozen=True, slots=True)
class Said:
    """What was said, and when.

    Attributes:
        statements: messages in order, redacted.
        times: when each was said, seconds since 1970; None where that is only "now".
        zone: the customer's time zone, for words such as "yesterday".
    """

    statements: Sequence[Statement]
    times: Sequence[float | None]
    zone: tzinfo = UTC


@dataclass(frozen=True, slots=True)
class Learned:
    """The facts of what was said, as statements; `origins` gives the index of the message of each."""

    statements: tuple[Statement, ...]
    origins: tuple[int, ...]
    skipped: tuple[Skipped, ...]
    tokens: int


def learn(
    model: LanguageModel,
    said: Said,
    standing: Sequence[Memory],
    redactor: Redactor,
    *,
    min_confidence: float,
    now: float,
) -> Learned:
    """Ask the language model for facts, and make statements of those that hold.

    Args:
        model: the language model.
        said: what was said.
        standing: the customer's current values of slots, most recent first.
        redactor: goes over the model's words too.
        min_confidence: least confidence of a fact that is kept.
        now: seconds since 1970, for what has no time of its own.

    Raises:
        SetupError, ServiceError: the model failed; nothing is to be stored then.
    """
    messages = [
        Message(s.text, s.role, now + i * _STEP if when is None else when)
        for i, (s, when) in enumerate(zip(said.statements, said.times, strict=True))
    ]
    known = [KnownSlot(m.subject, m.attribute, m.text) for m in standing if m.attribute]
    extraction = extract(
        model,
        messages,
        known,
        min_confidence=min_confidence,
        zone=said.zone,
        redact=redactor.text,
    )
    return _learned(extraction, said, messages)


def _learned(extraction: Extraction, said: Said, messages: Sequence[Message]) -> Learned:
    statements = []
    # In the order of what was said, whatever the model's: of two values the later one holds.
    facts = sorted(extraction.facts, key=lambda fact: fact.message)
    for index, fact in enumerate(facts):
        is_now = said.times[fact.message] is None
        sent_at = messages[fact.message].sent_at
        statements.append(
            Statement(
                fact.text,
                Role.CUSTOMER,
                Kind(fact.kind),
                index,
                subject=fact.subject,
                attribute=fact.attribute,
                occurred_at=None if is_now and fact.occurred_at == sent_at else fact.occurred_at,
                is_still_so=fact.is_still_so,
                origin=said.statements[fact.message].origin,
            )
        )
    rejected = tuple(Skipped(item.item, item.reason) for item in extraction.rejected)
    origins = tuple(fact.message for fact in facts)
    return Learned(tuple(statements), origins, rejected, extraction.tokens)
