"""The words of redaction: what is looked for, how it is marked, and what a caller gets back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

type Json = dict[str, Json] | list[Json] | str | int | float | bool | None
"""A value as `json.loads` gives it."""


class RedactionType(StrEnum):
    """A kind of secret or personal detail that can be taken out of a text."""

    PAYMENT_CARD = "payment_card"
    CARD_SECURITY_CODE = "card_security_code"
    IBAN = "iban"
    PASSWORD = "password"  # noqa: S105 - the name of a kind, no password
    ONE_TIME_CODE = "one_time_code"
    API_KEY = "api_key"
    TOKEN = "token"  # noqa: S105 - the name of a kind, no token
    PRIVATE_KEY = "private_key"
    US_SSN = "us_ssn"
    EMAIL = "email"
    PHONE = "phone"
    POSTAL_ADDRESS = "postal_address"


DEFAULT_TYPES: frozenset[RedactionType] = frozenset(RedactionType) - {
    RedactionType.EMAIL,
    RedactionType.PHONE,
    RedactionType.POSTAL_ADDRESS,
}
"""What is redacted unless the caller says otherwise: all secrets, no contact details."""

MARKS: Mapping[RedactionType, str] = {
    RedactionType.PAYMENT_CARD: "[card ending {}]",
    RedactionType.CARD_SECURITY_CODE: "[security code]",
    RedactionType.IBAN: "[IBAN ending {}]",
    RedactionType.PASSWORD: "[password]",
    RedactionType.ONE_TIME_CODE: "[one-time code]",
    RedactionType.API_KEY: "[API key]",
    RedactionType.TOKEN: "[token]",
    RedactionType.PRIVATE_KEY: "[private key]",
    RedactionType.US_SSN: "[SSN]",
    RedactionType.EMAIL: "[email]",
    RedactionType.PHONE: "[phone]",
    RedactionType.POSTAL_ADDRESS: "[address]",
}
"""What stands in the place of a finding; `{}` takes its last four characters."""


@dataclass(frozen=True, slots=True)
class Redaction:
    """A text without its secrets.

    Attributes:
        text: The text; all that was not replaced is the very same, character by character.
        counts: How many findings of each type were replaced. A type without one is absent.
    """

    text: str
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class RedactedValue:
    """A JSON-like value without its secrets.

    Attributes:
        value: A copy of the value; its shape and its keys are the same.
        counts: How many findings of each type were replaced, over all strings in the value.
    """

    value: Json
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Span:
    """One finding in the normalised text.

    Attributes:
        start: Offset of its first character.
        end: Offset after its last character.
        ending: What may stay readable of it, for the marks that show an ending.
    """

    start: int
    end: int
    ending: str = ""


type Finder = Callable[[str], Iterator[Span]]
"""Gives the findings in a normalised text, from left to right and apart from each other."""
