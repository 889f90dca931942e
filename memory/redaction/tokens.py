"""Tokens and private keys: JWT, bearer and other credentials of a request, PEM blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from memory.redaction.filtered_pattern import FilteredPattern
from memory.redaction.model import Span
from memory.redaction.reading import Evidence, accepts, read_gap, read_token

_PEM_START = FilteredPattern(
    re.compile(
        r"-----BEGIN (?P<kind>[A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?)-----"
        r"|PuTTY-User-Key-File-[0-9]{1,2}:"
    ),
    "private key",
    "putty",
)
# The body is taken line by line, and so is a block that has lost its end, or its line breaks.
_PEM_BODY = re.compile(
    r"(?:[ \t>|]{0,4}(?:(?:Version|Comment|Proc-Type|DEK-Info|Hash|Encryption|Key-Derivation"
    r"|Argon2-[A-Za-z]{3,12}|P[a-z]{5,6}-(?:Lines|MAC)): [^\n]{0,200}"
    r"|(?=[A-Za-z]{0,40}[0-9+/=])[A-Za-z0-9+/=]{8,}+|[A-Za-z0-9+/=]{40,}+"
    r"|[A-Za-z0-9+/=]{1,8}(?=\s{0,2}-----)|=[A-Za-z0-9+/]{4}(?=\s))"
    r"(?:\\r)?(?:\\n|[ \t\r\n])?[ \t\r\n]{0,3}|(?:\\n|[\r\n \t]){1,4})*+"
    r"(?:-----END [A-Z0-9 ]{0,36}-----)?"
)
_JWT = FilteredPattern(
    re.compile(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{6,}+\.[A-Za-z0-9_-]{6,}+(?:\.[A-Za-z0-9_-]*+){0,3}"),
    "eyj",
)
_HEADER = FilteredPattern(
    re.compile(
        r"(?:proxy-)?authorization[\"']?\s{0,2}[:=]\s{0,2}[\"']?"
        r"(?:(?:bearer|basic|token|apikey|api-key|digest)\s{1,3})?"
        r"(?P<value>[A-Za-z0-9._~+/=:-]{6,}+)",
        re.IGNORECASE,
    ),
    "authorization",
)
_BEARER = FilteredPattern(
    re.compile(
        r"(?<![a-z])bearer[\s:]{1,3}(?P<value>(?=[a-z._~+/=-]{0,60}[0-9])[A-Za-z0-9._~+/=-]{10,}+)",
        re.IGNORECASE,
    ),
    "bearer",
)
_NAME = FilteredPattern(
    re.compile(
        r"(?:(?:access|auth|refresh|bearer|session|id|api|bot|security|secret|personal\saccess|csrf"
        r"|oauth|push)[\s_-]?|(?<![a-z]))token(?![a-z])|令牌|トークン|토큰",
        re.IGNORECASE,
    ),
    "token",
    "令牌",
    "トークン",
    "토큰",
)
_SHORTEST_NAMED: Final = 8


def find_private_keys(text: str) -> Iterator[Span]:
    """Find private keys in PEM, OpenSSH, PGP and PuTTY form, also without their last line.

    Args:
        text: The normalised text.

    Yields:
        One span a key, from its first dash to the end of what was there of it.
    """
    end = 0
    for start in _PEM_START.finditer(text):
        if start.start() < end:
            continue
        body = _PEM_BODY.match(text, start.end())
        end = body.end() if body else start.end()
        yield Span(start.start(), start.start() + len(text[start.start() : end].rstrip()))


def find_tokens(text: str) -> Iterator[Span]:
    """Find JSON web tokens, bearer tokens and the value of an Authorization header.

    Args:
        text: The normalised text.

    Yields:
        One span a token, the word before it left out.
    """
    found: dict[int, Span] = {m.start(): Span(*m.span()) for m in _JWT.finditer(text)}
    for pattern in (_HEADER, _BEARER):
        for match in pattern.finditer(text):
            value = match["value"].rstrip(".:")
            start = match.start("value")
            if value.lower() not in ("bearer", "basic", "token", "required", "failed"):
                found.setdefault(start, Span(start, start + len(value)))
    end = 0
    for start in sorted(found):
        if start >= end:
            yield found[start]
            end = found[start].end


def find_named_tokens(text: str) -> Iterator[Span]:
    """Find what a text calls a token: `access_token=…`, "the token is …", "令牌：…".

    Args:
        text: The normalised text.

    Yields:
        One span a token, its name left out.
    """
    return find_named(text, _NAME)


def find_named(text: str, name: FilteredPattern) -> Iterator[Span]:
    """Find values that look like keys and follow a name.

    Args:
        text: The normalised text.
        name: The names that are looked for.

    Yields:
        One span a value of at least eight characters.
    """
    free_from = 0
    for match in name.finditer(text):
        if match.start() < free_from:
            continue
        for gap in read_gap(text, match.end()):
            value = read_token(text, gap.end, is_cjk=gap.is_cjk)
            if value is None or value.end - value.start < _SHORTEST_NAMED:
                continue
            # A key has digits; with "=" or ":" before it, letters will do unless they are a word.
            if accepts(text, value, Evidence.LOOKS) or (
                gap.evidence is Evidence.SIGN
                and value.end - value.start >= 2 * _SHORTEST_NAMED
                and accepts(text, value, Evidence.SIGN)
            ):
                yield value.span
                free_from = value.end
                break
