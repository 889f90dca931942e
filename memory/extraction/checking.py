"""Checks what a language model listed, item by item: what does not hold is left out, the rest is kept."""

from collections.abc import Callable, Sequence
from datetime import tzinfo
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from memory.extraction.model import Fact, KnownSlot, Message, Rejected
from memory.extraction.times import resolve_time
from memory.records import Role
from memory.text import clean

MAX_FACTS = 50
"""Items of one answer that are looked at."""
_CUSTOMER_NAMES = {
    "",
    "customer",
    "the customer",
    "user",
    "the user",
    "client",
    "me",
    "i",
    "客户",
    "顾客",
    "用户",
    "本人",
}


def _text_or_none(value: Any) -> Any:
    return "" if value is None else value


class _Item(BaseModel):
    """One item as the prompt asks for it."""

    model_config = ConfigDict(extra="ignore", str_strip_whitespace=True)

    text: str = Field(min_length=1, max_length=2_000)
    kind: Literal["semantic", "episodic", "procedural"]
    about_customer: bool = True
    subject: Annotated[str, BeforeValidator(_text_or_none), Field(max_length=100)] = ""
    attribute: Annotated[str, BeforeValidator(_text_or_none), Field(max_length=100)] = ""
    slot: int | None = None
    when: str | None = Field(default=None, max_length=100)
    still_true: bool = True
    confidence: float = Field(ge=0.0, le=1.0)
    message: int


def check_items(
    items: Sequence[Any],
    messages: Sequence[Message],
    known: Sequence[KnownSlot],
    *,
    min_confidence: float,
    zone: tzinfo,
    redact: Callable[[str], str] = str,
) -> tuple[list[Fact], list[Rejected]]:
    """The items that hold, as facts, and why the others do not.

    Args:
        items: what the model listed.
        messages: what it was shown.
        known: the slots it was shown, in the same order.
        min_confidence: least confidence, 0 to 1.
        zone: the customer's time zone.
        redact: goes over the model's own words, before anything else is done with them.
    """
    facts: list[Fact] = []
    rejected: list[Rejected] = []
    for number, raw in enumerate(items[:MAX_FACTS]):
        result = _check(raw, messages, known, min_confidence=min_confidence, zone=zone, redact=redact)
        if isinstance(result, Fact):
            facts.append(result)
        else:
            rejected.append(Rejected(number, result))
    rejected += [Rejected(number, "too_many") for number in range(MAX_FACTS, len(items))]
    return facts, rejected


def _check(
    raw: Any,
    messages: Sequence[Message],
    known: Sequence[KnownSlot],
    *,
    min_confidence: float,
    zone: tzinfo,
    redact: Callable[[str], str],
) -> Fact | str:
    """A fact, or the reason why the item is none."""
    try:
        item = _Item.model_validate(raw)
    except ValidationError:  # its text quotes the item
        return "malformed"
    words = {name: redact(getattr(item, name)) for name in ("text", "subject", "attribute")}
    item = item.model_copy(update=words)
    reason = _reason_against(item, messages, known, min_confidence=min_confidence)
    if reason:
        return reason
    subject, attribute = _slot(item, known)
    if not item.still_true and not attribute:
        return "no_longer_true"
    return Fact(
        text=clean(item.text),
        kind=item.kind,
        subject=subject,
        attribute=attribute,
        occurred_at=resolve_time(item.when, messages[item.message].sent_at, zone=zone),
        is_still_so=item.still_true,
        confidence=item.confidence,
        message=item.message,
    )


def _reason_against(
    item: _Item, messages: Sequence[Message], known: Sequence[KnownSlot], *, min_confidence: float
) -> str:
    """Why an item is not kept; "" if it is."""
    checks = (
        (not clean(item.text), "malformed"),
        (not 0 <= item.message < len(messages), "unknown_message"),
        (item.slot is not None and not 1 <= item.slot <= len(known), "unknown_slot"),
        (not item.about_customer, "about_somebody_else"),
        (item.confidence < min_confidence, "low_confidence"),
    )
    for holds, reason in checks:
        if holds:
            return reason
    if messages[item.message].role is not Role.CUSTOMER:
        return "not_the_customers_words"
    return ""


def _slot(item: _Item, known: Sequence[KnownSlot]) -> tuple[str, str]:
    """Subject and attribute of the slot a fact speaks of; only what holds until it changes has one."""
    if item.kind != "semantic":
        return "", ""
    if item.slot is not None:
        return known[item.slot - 1].subject, known[item.slot - 1].attribute
    attribute = _name(item.attribute.replace("_", " "))
    subject = _name(item.subject)
    if not attribute or subject.casefold() in _CUSTOMER_NAMES:
        subject = ""
    return subject, attribute


def _name(text: str) -> str:
    return " ".join(clean(text).split())
