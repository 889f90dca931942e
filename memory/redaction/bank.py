"""International bank account numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from memory.redaction.filtered_pattern import FilteredPattern
from memory.redaction.model import Span

# Length by country: ISO 13616-1, as in the IBAN registry that SWIFT keeps for ISO.
_LENGTHS: Final[dict[str, int]] = {
    country: length
    for length, countries in {
        15: "NO",
        16: "BE",
        18: "DK FI FK FO GL NL SD",
        19: "MK SI",
        20: "AT BA EE KZ LT LU MN XK",
        21: "CH CR HR LI LV",
        22: "BG BH DE GB GE IE ME RS VA",
        23: "AE GI IL IQ OM SO TL",
        24: "AD CZ ES MD PK RO SA SE SK TN VG",
        25: "LY PT ST",
        26: "IS TR",
        27: "BI DJ FR GR IT MC MR SM",
        28: "AL AZ BY CY DO GT HN HU LB NI PL SV",
        29: "BR EG PS QA UA",
        30: "JO KW MU YE",
        31: "LC MT SC",
        33: "RU",
    }.items()
    for country in countries.split()
}
_START = FilteredPattern(
    re.compile(
        r"(?:(?<![0-9a-z])|(?<=iban))(?P<country>[a-z]{2})[ -]?[0-9]{2}(?=[ \t\r\n.-]{0,3}[0-9a-z])",
        re.IGNORECASE,
    ),
    # Digits are rarer than letters, so they are looked for first.
    form=re.compile(r"[0-9][0-9](?:(?<=[^\W0-9_]{2}[0-9]{2})|(?<=[^\W0-9_]{2}[ -][0-9]{2}))"),
)
_GAP: Final = frozenset(" \t\r\n.-")
_WIDEST_GAP: Final = 3


def has_iban_check(iban: str) -> bool:
    """Tell whether an account number has the right check digits (ISO/IEC 7064, MOD 97-10).

    Args:
        iban: Upper-case letters and digits without spaces.

    Returns:
        True when it has.
    """
    moved = iban[4:] + iban[:4]
    return int("".join(str(int(character, 36)) for character in moved)) % 97 == 1


def find_ibans(text: str) -> Iterator[Span]:
    """Find account numbers of the right length for their country and with right check digits.

    Each start reads at most 34 characters and their gaps, so the work is linear.

    Args:
        text: The normalised text.

    Yields:
        One span a number, with its last four characters.
    """
    free_from = 0
    for start in _START.finditer(text):
        length = _LENGTHS.get(start["country"].upper())
        if length is None or start.start() < free_from:
            continue
        iban, end = _read(text, start.start(), length)
        if len(iban) == length and has_iban_check(iban):
            yield Span(start.start(), end, iban[-4:])
            free_from = end


def _read(text: str, start: int, length: int) -> tuple[str, int]:
    """Read so many letters and digits, over gaps; a longer word at the end spoils it."""
    characters: list[str] = []
    end, gap = start, 0
    for place in range(start, len(text)):
        character = text[place]
        if character.isascii() and character.isalnum():
            characters.append(character.upper())
            end, gap = place + 1, 0
            if len(characters) == length:
                break
        elif character in _GAP and gap < _WIDEST_GAP:
            gap += 1
        else:
            break
    following = text[end : end + 1]
    if following.isascii() and following.isalnum():
        return "", end
    return "".join(characters), end
