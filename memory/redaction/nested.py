"""Redaction of a JSON-like value: metadata, messages, an imported record."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from memory.redaction.engine import redact
from memory.redaction.model import (
    DEFAULT_TYPES,
    MARKS,
    Json,
    RedactedValue,
    Redaction,
    RedactionType,
)
from memory.redaction.vocabulary import SECRET_KEYS, STATES

_SIGNS = re.compile(r"[\W_]+")
_MARK = re.compile(r"\s*\[[A-Za-z -]{3,20}(?: [0-9A-Z]{4})?\]\s*")


def redact_value(value: Json, *, types: frozenset[RedactionType] = DEFAULT_TYPES) -> RedactedValue:
    """Replace the secrets in all strings of a JSON-like value.

    Keys stay as they are, but say what their value is: a string under "password" or "api_key" is
    replaced whole. A number that is a secret, such as a card written as a number, becomes the
    string of its mark.

    Args:
        value: Dicts with string keys, lists, strings, numbers, booleans and None, nested as deep
            as Python's recursion allows.
        types: What to look for; default: all secrets, no contact details.

    Returns:
        A copy with marks, and the number of marks put in by type over the whole value.
    """
    counts: Counter[str] = Counter()
    return RedactedValue(_walk(value, "", types, counts), dict(counts))


def _walk(value: Json, key: str, types: frozenset[RedactionType], counts: Counter[str]) -> Json:
    if isinstance(value, Mapping):
        return {name: _walk(inner, str(name), types, counts) for name, inner in value.items()}
    if isinstance(value, list):
        return [_walk(inner, key, types, counts) for inner in value]
    if isinstance(value, str):
        return _under_key(value, key, types, counts)
    if isinstance(value, int) and not isinstance(value, bool):
        written = str(value)
        redacted = _under_key(written, key, types, counts)
        return value if redacted == written else redacted
    return value


def _under_key(text: str, key: str, types: frozenset[RedactionType], counts: Counter[str]) -> str:
    kind = SECRET_KEYS.get(_SIGNS.sub("", key).casefold())
    if kind in types and kind is not None and _is_secret(text):
        counts[kind.value] += 1
        return MARKS[kind]
    result = _redact_labelled(text, key, types)
    counts.update(result.counts)
    return result.text


def _redact_labelled(text: str, key: str, types: frozenset[RedactionType]) -> Redaction:
    """Redact with the key before the text, for it may tell: "otp_code", "ssn", "order_number"."""
    prefix = f"{key}: "
    labelled = redact(prefix + text, types=types) if key else redact(text, types=types)
    if not key:
        return labelled
    if labelled.text.startswith(prefix):
        return Redaction(labelled.text[len(prefix) :], labelled.counts)
    return redact(text, types=types)


def _is_secret(text: str) -> bool:
    stripped = text.strip()
    return bool(stripped) and stripped.casefold() not in STATES and not _MARK.fullmatch(stripped)
