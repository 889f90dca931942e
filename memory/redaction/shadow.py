"""A normalised double of a text that remembers where each of its characters came from.

Finders read the double: digits of every script are ASCII, full-width forms are narrow, spaces and
dashes are plain, invisible characters are gone. Replacing happens in the original, so whatever is
not replaced stays as it was, byte for byte.

A mark, whether it was in the text or has just been put there, is one single character of the
double. Hence a text and its redacted form have the same double, and redacting again finds nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

from memory.redaction.model import MARKS, RedactionType, Span

_FIRST_MARK: Final = 0xE000
MARK_CHARACTER: Final = {kind: chr(_FIRST_MARK + i) for i, kind in enumerate(RedactionType)}
"""The character that a mark of a type is in the double (Unicode private use area)."""

ANY_MARK: Final = "\ue000-\ue01f"
"""All mark characters, to be put inside a character class."""

_ENDINGS: Final = {
    RedactionType.PAYMENT_CARD: "[0-9]{4}",
    RedactionType.IBAN: "[0-9A-Z]{4}",
}
_MARK = re.compile(
    "|".join(
        "(?P<{}>{})".format(kind.value, re.escape(mark).replace(r"\{\}", _ENDINGS.get(kind, "")).strip())
        for kind, mark in MARKS.items()
    )
)
_PLAIN = re.compile(r"[\t\n\r -~]*+")
# Chinese and Japanese sentence punctuation ends a value where its ASCII twin may belong to it.
_KEPT: Final = frozenset("，。；、！？（）【】《》…")
_DASHES: Final = frozenset("\u2212\u2043\u02d7")
_INVISIBLE: Final = frozenset("\u034f\u115f\u1160\u3164\uffa0\u2800")


class _Folding(dict[str, str]):
    """The normal form of each character, worked out at first sight; "" for an invisible one."""

    def __missing__(self, character: str) -> str:
        folded = self[character] = _fold(character)
        return folded


def _fold(character: str) -> str:
    if _FIRST_MARK <= ord(character) < _FIRST_MARK + 0x20:
        return "\ufffd"
    if character in _KEPT or character in "\t\n\r":
        return character
    category = unicodedata.category(character)
    if category in ("Cf", "Cc") or character in _INVISIBLE or "\ufe00" <= character <= "\ufe0f":
        return "\n" if character in "\v\f\x85" else ""
    if category == "Zs":
        return " "
    if category in ("Zl", "Zp"):
        return "\n"
    if category == "Pd" or character in _DASHES:
        return "-"
    decimal = unicodedata.decimal(character, None)
    if decimal is not None:
        return str(decimal)
    compatible = unicodedata.normalize("NFKC", character)
    return compatible if len(compatible) == 1 else character


_FOLDING: Final = _Folding()


class Shadow:
    """The double of one text, and what has been replaced in it so far."""

    __slots__ = ("_ends", "_original", "_replaced", "_starts", "text")

    def __init__(self, original: str) -> None:
        """Normalise a text.

        Args:
            original: The text; any string, lone surrogates and NUL included.
        """
        self._original = original
        self._replaced: dict[int, tuple[int, RedactionType, str]] = {}
        self._starts: Sequence[int] = range(len(original))
        self._ends: Sequence[int] = range(1, len(original) + 1)
        folded = original if _PLAIN.fullmatch(original) else "".join(map(_FOLDING.__getitem__, original))
        # Each character becomes one or none: of the same length, each stands where it stood.
        if len(folded) == len(original) and not ("[" in original and _MARK.search(original)):
            self.text = folded
        else:
            self._fold_marks()

    def _fold_marks(self) -> None:
        """Normalise a text that has marks, or characters that are dropped."""
        original = self._original
        pieces: list[str] = []
        starts: list[int] = []
        ends: list[int] = []

        def fold(start: int, end: int) -> None:
            piece = original[start:end]
            if _PLAIN.fullmatch(piece):
                pieces.append(piece)
                starts.extend(range(start, end))
                ends.extend(range(start + 1, end + 1))
                return
            for offset, character in enumerate(piece, start):
                folded = _FOLDING[character]
                if folded:
                    pieces.append(folded)
                    starts.append(offset)
                    ends.append(offset + 1)

        position = 0
        for mark in _MARK.finditer(original):
            fold(position, mark.start())
            pieces.append(MARK_CHARACTER[RedactionType(str(mark.lastgroup))])
            starts.append(mark.start())
            ends.append(mark.end())
            position = mark.end()
        fold(position, len(original))
        self.text, self._starts, self._ends = "".join(pieces), starts, ends

    def replace(self, kind: RedactionType, spans: Sequence[Span]) -> None:
        """Put a mark in the place of each finding.

        Args:
            kind: What was found.
            spans: Where in `text`; from left to right and apart from each other.
        """
        text: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        position = 0
        for span in (*spans, None):
            until = len(self.text) if span is None else span.start
            text.append(self.text[position:until])
            starts += self._starts[position:until]
            ends += self._ends[position:until]
            if span is None:
                break
            start, end = self._starts[span.start], self._ends[span.end - 1]
            for inner in self._starts[span.start : span.end]:
                self._replaced.pop(inner, None)  # a wider finding takes over
            self._replaced[start] = (end, kind, MARKS[kind].format(span.ending))
            text.append(MARK_CHARACTER[kind])
            starts.append(start)
            ends.append(end)
            position = span.end
        self.text, self._starts, self._ends = "".join(text), starts, ends

    def render(self) -> tuple[str, dict[str, int]]:
        """Give the original with its marks, and the number of marks put in by type."""
        pieces: list[str] = []
        counts: dict[str, int] = {}
        position = 0
        for start in sorted(self._replaced):
            end, kind, mark = self._replaced[start]
            pieces += (self._original[position:start], mark)
            counts[kind.value] = counts.get(kind.value, 0) + 1
            position = end
        pieces.append(self._original[position:])
        return "".join(pieces), counts
