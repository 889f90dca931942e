"""One extraction: ask, read, check; ask once more if the answer was no list; fail visibly after that."""

from collections.abc import Callable, Sequence
from datetime import tzinfo

from memory.errors import ExtractionFailed
from memory.extraction.checking import check_items
from memory.extraction.model import Extraction, KnownSlot, LanguageModel, Message
from memory.extraction.prompt import MAX_SLOTS, SYSTEM, user_prompt
from memory.extraction.reading import UnreadableAnswer, read_items
from memory.records import Role

DEFAULT_MIN_CONFIDENCE = 0.6
ATTEMPTS = 2
_AGAIN = '\n\nYour last answer was no JSON list. Answer with {"facts": [...]} only.'


def extract(
    model: LanguageModel,
    messages: Sequence[Message],
    known: Sequence[KnownSlot],
    *,
    min_confidence: float,
    zone: tzinfo,
    redact: Callable[[str], str] = str,
) -> Extraction:
    """Facts worth keeping from the messages of one conversation.

    Args:
        model: the language model.
        messages: in order, redacted.
        known: the customer's slots, most recent first.
        min_confidence: facts below it are left out and told, 0 to 1.
        zone: the customer's time zone.
        redact: goes over the model's own words.

    Returns:
        The facts; none is a normal answer. Without a message of the customer the model is not asked.

    Raises:
        ExtractionFailed: the model answered nonsense twice.
        SetupError, ServiceError: the model cannot be asked.
    """
    if not any(message.role is Role.CUSTOMER for message in messages):
        return Extraction((), (), 0)
    shown = list(known[:MAX_SLOTS])
    user = user_prompt(messages, shown, zone=zone)
    tokens = 0
    for attempt in range(ATTEMPTS):
        answer = model.complete(SYSTEM, user + (_AGAIN if attempt else ""))
        tokens += answer.tokens
        try:
            items = read_items(answer.text)
        except UnreadableAnswer:
            continue
        facts, rejected = check_items(
            items, messages, shown, min_confidence=min_confidence, zone=zone, redact=redact
        )
        return Extraction(tuple(facts), tuple(rejected), tokens)
    raise ExtractionFailed
