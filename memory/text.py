"""Text as it comes in: cleaned, compared, and split where it is long."""

import hashlib
import re
import unicodedata
from collections.abc import Iterable

PART_LENGTH = 2_000
"""Characters in one part of a long text; about what an embedding model reads of one text."""

_UNWANTED = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_BLANKS = re.compile(r"\s+")
_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？；])|\n+")


def clean(text: str) -> str:
    """The text without control characters and lone surrogates, in NFC, trimmed at both ends."""
    return unicodedata.normalize("NFC", _UNWANTED.sub("", text)).strip()


def digest(text: str) -> str:
    """A fingerprint that is equal for texts equal but for white space and Unicode composition.

    Case, digits and punctuation count: "10 mg" and "5 mg", "US" and "us" are different statements.

    Returns:
        32 hexadecimal digits of SHA-256.
    """
    folded = _BLANKS.sub(" ", unicodedata.normalize("NFC", text)).strip()
    return hashlib.sha256(folded.encode("utf-8", "replace")).hexdigest()[:32]


def one_line(text: str) -> str:
    """The text with every run of white space as one blank."""
    return _BLANKS.sub(" ", text).strip()


def split(text: str, *, length: int = PART_LENGTH) -> list[str]:
    """Cut a long text into parts at sentence ends; joined they hold every word of it.

    Args:
        text: any text.
        length: characters a part has at the most. A sentence longer than that is cut at a blank, or
            where there is none, at the length.

    Returns:
        The parts in order, none of them empty; one part for a short text.
    """
    if len(text) <= length:
        return [text] if text.strip() else []
    parts: list[str] = []
    start = 0
    while len(text) - start > length:
        end = _cut(text, start, start + length)
        parts.append(text[start:end])
        start = end
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


def join(parts: Iterable[str]) -> str:
    """A text again from what `split` made of it; the white space between two parts is one blank."""
    text = ""
    for part in parts:
        is_closed = not text or text[-1] in "。！？；"
        text += part if is_closed else f" {part}"
    return text


def _cut(text: str, start: int, limit: int) -> int:
    """Where to end a part: the last sentence end before the limit, else the last blank, else there."""
    window = text[start:limit]
    ends = [match.end() for match in _SENTENCE_END.finditer(window) if match.end() > 0]
    if ends and ends[-1] > len(window) // 4:
        return start + ends[-1]
    blank = max(window.rfind(" "), window.rfind("\n"))
    return start + blank + 1 if blank > len(window) // 4 else limit
