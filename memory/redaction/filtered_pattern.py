"""A pattern with a cheap test in front of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_OTHER_CASES: Final = re.compile("[\u0130\u0131\u017f\u1c80-\u1c88]")
"""What `re.IGNORECASE` takes for a letter that `str.lower` does not make of it: İ and ı for i, ſ for s."""

DIGIT: Final = re.compile("[0-9]")
"""The form of whatever holds a digit."""


class FilteredPattern:
    """A pattern that is tried only in a text that has what every match of it has.

    Labels in many languages, in any case and with a look behind them, leave `re` no first character
    to look for: it tries each alternative at each place. Most texts hold none of the stems, and that
    is told by a search for a few plain strings. The matches are the same as without the test.
    """

    __slots__ = ("_form", "_more_stems", "_stems", "pattern", "stems")

    def __init__(self, pattern: re.Pattern[str], *stems: str, form: re.Pattern[str] | None = None) -> None:
        """Put a test in front of a pattern.

        Args:
            pattern: What is looked for.
            stems: Strings in lower case, one of which is a part of every match, whatever its case;
                default: no such test.
            form: What is found in every match too; default: no such test.
        """
        self.pattern: Final = pattern
        self.stems: Final = stems
        self._stems: Final = tuple(stem for stem in stems if stem.isascii())
        self._more_stems: Final = tuple(stem for stem in stems if not stem.isascii())
        self._form: Final = form

    def may_match(self, text: str) -> bool:
        """Tell whether a text has what every match has.

        Args:
            text: The normalised text.

        Returns:
            False only when the pattern has no match in the text.
        """
        if self._form is not None and self._form.search(text) is None:
            return False
        if not self.stems:
            return True
        lowered = text.lower()
        for stem in self._stems:
            if stem in lowered:
                return True
        if text.isascii():
            return False
        return any(stem in lowered for stem in self._more_stems) or _OTHER_CASES.search(text) is not None

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """Find all matches.

        Args:
            text: The normalised text.

        Returns:
            What the pattern's own `finditer` gives.
        """
        return self.pattern.finditer(text) if self.may_match(text) else iter(())
