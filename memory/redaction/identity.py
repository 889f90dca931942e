"""United States social security numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from memory.redaction.filtered_pattern import FilteredPattern
from memory.redaction.labels import is_labelled_order
from memory.redaction.model import Span

# Social Security Administration: area never 000, 666 or 900-999; group never 00; serial never 0000.
_NUMBER = FilteredPattern(
    re.compile(
        r"(?<![0-9a-z+.])(?<![0-9][ -])"
        r"(?!000|666|9)[0-9]{3}(?P<gap>[ -]?)(?!00)[0-9]{2}(?P=gap)(?!0000)[0-9]{4}"
        r"(?![0-9a-z]|[ .-][0-9])",
        re.IGNORECASE,
    ),
    form=re.compile("[0-9][0-9]{2}[ -]?[0-9]{2}[ -]?[0-9]{4}"),
)
_LABEL = re.compile(r"(?<![a-z])ssn(?![a-z])|social[\s-]{1,2}security|社会安全号|社會安全號", re.I)
_WINDOW: Final = 40


def find_ssns(text: str) -> Iterator[Span]:
    """Find social security numbers in a valid range.

    Without dashes or spaces, nine digits need the name of such a number near.

    Args:
        text: The normalised text.

    Yields:
        One span a number.
    """
    for match in _NUMBER.finditer(text):
        around = text[max(0, match.start() - _WINDOW) : match.end() + _WINDOW]
        if _LABEL.search(around) or (match["gap"] and not is_labelled_order(text, match.start())):
            yield Span(*match.span())
