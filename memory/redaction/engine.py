"""The order in which a text is searched, and the search."""

from __future__ import annotations

from typing import Final

from memory.redaction.bank import find_ibans
from memory.redaction.cards import find_cards, find_security_codes
from memory.redaction.contacts import find_addresses, find_emails, find_phones
from memory.redaction.identity import find_ssns
from memory.redaction.keys import find_issued_keys, find_named_keys
from memory.redaction.model import DEFAULT_TYPES, Finder, Redaction, RedactionType
from memory.redaction.shadow import Shadow
from memory.redaction.tokens import find_named_tokens, find_private_keys, find_tokens
from memory.redaction.words import find_one_time_codes, find_passwords

FINDERS: Final[tuple[tuple[RedactionType, Finder], ...]] = (
    # What is told by its form goes first: it is certain, and keeps its more telling mark.
    (RedactionType.PRIVATE_KEY, find_private_keys),
    (RedactionType.API_KEY, find_issued_keys),
    (RedactionType.TOKEN, find_tokens),
    (RedactionType.IBAN, find_ibans),
    (RedactionType.PAYMENT_CARD, find_cards),
    # Then what is told by the words around it; a card's mark is one of these words.
    (RedactionType.CARD_SECURITY_CODE, find_security_codes),
    (RedactionType.US_SSN, find_ssns),
    (RedactionType.API_KEY, find_named_keys),
    (RedactionType.TOKEN, find_named_tokens),
    (RedactionType.ONE_TIME_CODE, find_one_time_codes),
    (RedactionType.PASSWORD, find_passwords),
    # Contact details last, so that they never take a part of a secret.
    (RedactionType.EMAIL, find_emails),
    (RedactionType.PHONE, find_phones),
    (RedactionType.POSTAL_ADDRESS, find_addresses),
)
"""Every finder, in the order in which they run; each sees the marks of those before it."""

_MOST_ROUNDS: Final = 8


def redact(text: str, *, types: frozenset[RedactionType] = DEFAULT_TYPES) -> Redaction:
    """Replace the secrets in a text by marks that say what stood there.

    Redacting the result again changes nothing. What is not replaced stays as it was, character by
    character. The text is never logged and never part of an error.

    Args:
        text: Any text, of any length and script.
        types: What to look for; default: all secrets, no contact details.

    Returns:
        The text with its marks, and the number of marks put in by type.
    """
    shadow = Shadow(text)
    # A mark can bring to light what its place hid before, so it goes on until nothing is found:
    # nearly always twice. The bound is there for a text that was made to need many rounds.
    for _ in range(_MOST_ROUNDS):
        is_done = True
        for kind, find in FINDERS:
            spans = list(find(shadow.text)) if kind in types else []
            if spans:
                shadow.replace(kind, spans)
                is_done = False
        if is_done:
            break
    redacted, counts = shadow.render()
    return Redaction(redacted, counts)
