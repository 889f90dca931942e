"""Checks what a language model listed, item by item: what does not hold is left out, the rest is kept."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from memory.extraction.model import Fact, KnownSlot, Message, Rejected
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
LANGUAGES = ["en", "zh", "zh-Hant", "es", "de", "fr", "pt", "it", "nl", "ja", "ko"]
LANGUAGES += ["ru", "ar", "tr", "pl", "th"]
"""In which words for a time are understood: those of the built-in embedder."""
_LATEST_AHEAD_SECONDS = 366 * 86_400.0
"""How far after its message a fact may lie; a date further off is a misreading."""
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?")


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
) -> tuple[list[Fact], list[Rejected]]:
    """The items that hold, as facts, and why the others do not.

    Args:
        items: what the model listed.
        messages: what it was shown.
        known: the slots it was shown, in the same order.
        min_confidence: least confidence, 0 to 1.
        zone: the customer's time zone.
    """
    facts: list[Fact] = []
    rejected: list[Rejected] = []
    for number, raw in enumerate(items[:MAX_FACTS]):
        result = _check(raw, messages, known, min_confidence=min_confidence, zone=zone)
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
) -> Fact | str:
    """A fact, or the reason why the item is none."""
    try:
        item = _Item.model_validate(raw)
    except ValidationError:  # its text quotes the item
        return "malformed"
    reason = _reason_against(item, messages, known, min_confidence=min_confidence)
    if reason:
        return reason
    subject, attribute = item.subject, item.attribute
    if item.slot is not None:
        subject, attribute = known[item.slot - 1].subject, known[item.slot - 1].attribute
    if item.kind != "semantic":
        attribute = ""
    return Fact(
        text=clean(item.text),
        kind=item.kind,
        subject=_subject(subject) if attribute else "",
        attribute=" ".join(attribute.replace("_", " ").split()),
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
    if not item.still_true and not item.attribute and item.slot is None:
        return "no_longer_true"
    return ""


def _subject(subject: str) -> str:
    return "" if subject.casefold() in _CUSTOMER_NAMES else subject


def resolve_time(when: str | None, sent_at: float, *, zone: tzinfo) -> float:
    """When something was so: a date as it stands, words such as "yesterday" against the message's own time.

    Args:
        when: ISO date or time, or words in any of the usual languages; None for the message's time.
        sent_at: when the message was sent, seconds since 1970.
        zone: the customer's time zone, for dates and words without one.

    Returns:
        Seconds since 1970. What cannot be read, or lies over a year after the message, gives the message's
        own time. A date without a time is the message's time of that day.
    """
    if not when or not when.strip():
        return sent_at
    sent = datetime.fromtimestamp(sent_at, zone)
    moment = _iso(when.strip(), sent) or _words(when.strip(), sent)
    if moment is None:
        return sent_at
    seconds = moment.timestamp()
    return seconds if seconds <= sent_at + _LATEST_AHEAD_SECONDS else sent_at


def _iso(when: str, sent: datetime) -> datetime | None:
    if not _ISO_DATE.fullmatch(when):
        return None
    try:
        moment = datetime.fromisoformat(when)
    except ValueError:
        return None
    if len(when) == len("2024-03-01"):
        return moment.replace(hour=sent.hour, minute=sent.minute, second=sent.second, tzinfo=sent.tzinfo)
    return moment if moment.tzinfo else moment.replace(tzinfo=sent.tzinfo)


def _words(when: str, sent: datetime) -> datetime | None:
    import dateparser

    if not any(character.isalpha() for character in when):
        return None
    base = sent.astimezone(UTC).replace(tzinfo=None) + (sent.utcoffset() or sent - sent)
    try:
        moment: datetime | None = dateparser.parse(
            when,
            languages=LANGUAGES,
            settings={"RELATIVE_BASE": base, "PREFER_DATES_FROM": "past"},
        )
    except (ValueError, OverflowError, RecursionError):
        return None
    if moment is None:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=sent.tzinfo)
