"""Payment card numbers and their security codes.

A run of digits is a card when its length and first digits belong to a known scheme and its check
digit is right. Next to a word for a card, any first digits will do.

An order number can pass these checks by chance (about one in forty of 16 digits). It is kept only
when it is written without gaps and the words right before it name it ("order number", "tracking
no", "订单号"), with no word for a card near. A mere "order 4…" is in doubt, and so is redacted.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate, pairwise
from typing import Final

from memory.redaction.filtered_pattern import DIGIT, FilteredPattern
from memory.redaction.labels import CardWords, is_labelled_order
from memory.redaction.model import Span

# First and last prefix of a range, and the lengths issued in it. The numbering is ISO/IEC 7812;
# ranges and lengths as the schemes publish them. UATP (any number that starts with 1) is left out.
_RANGES: Final[tuple[tuple[str, str, frozenset[int]], ...]] = (
    ("4", "4", frozenset({13, 16, 19})),  # Visa
    ("51", "55", frozenset({16})),  # Mastercard
    ("2221", "2720", frozenset({16})),  # Mastercard
    ("34", "34", frozenset({15})),  # American Express
    ("37", "37", frozenset({15})),  # American Express
    ("300", "305", frozenset({14, 16})),  # Diners Club
    ("3095", "3095", frozenset({14, 16})),  # Diners Club
    ("36", "36", frozenset({14, 16})),  # Diners Club
    ("38", "39", frozenset({14, 16})),  # Diners Club
    ("6011", "6011", frozenset({16, 19})),  # Discover
    ("644", "649", frozenset({16, 19})),  # Discover
    ("65", "65", frozenset({16, 18, 19})),  # Discover, RuPay, Elo, Verve
    ("3528", "3589", frozenset({16, 17, 18, 19})),  # JCB
    ("62", "62", frozenset({16, 17, 18, 19})),  # UnionPay
    ("8100", "8171", frozenset({16, 17, 18, 19})),  # UnionPay
    ("2200", "2204", frozenset({16, 17, 18, 19})),  # Mir
    ("5018", "5018", frozenset(range(13, 20))),  # Maestro
    ("5019", "5019", frozenset({16})),  # Dankort
    ("5020", "5020", frozenset(range(13, 20))),  # Maestro
    ("5038", "5038", frozenset(range(13, 20))),  # Maestro
    ("5893", "5893", frozenset(range(13, 20))),  # Maestro
    ("6304", "6304", frozenset(range(13, 20))),  # Maestro
    ("6759", "6759", frozenset(range(13, 20))),  # Maestro
    ("6761", "6763", frozenset(range(13, 20))),  # Maestro
    ("6767", "6767", frozenset({16, 18, 19})),  # Solo
    ("506099", "506198", frozenset({16, 18, 19})),  # Verve
    ("506699", "506778", frozenset({16})),  # Elo
    ("508", "508", frozenset({16})),  # RuPay
    ("509", "509", frozenset({16})),  # Elo
    ("606", "608", frozenset({16})),  # RuPay, Hipercard
    ("636", "639", frozenset({16})),  # InterPayment, InstaPayment
    ("8600", "8600", frozenset({16})),  # UzCard
    ("9704", "9704", frozenset({16, 19})),  # Napas
    ("9792", "9792", frozenset({16})),  # Troy
    ("9860", "9860", frozenset({16})),  # Humo
)
_LENGTHS: Final = (16, 15, 14, 19, 18, 17, 13)  # the commoner ones are tried first
_DOUBLED: Final = {str(digit): sum(divmod(2 * digit, 10)) for digit in range(10)}

_GAP: Final = r"(?:[ \t._·-]{1,3}|[ \t.-]{0,2}\r?\n[ \t>|]{0,4}|(?:&nbsp;){1,2})"
_DIGITS = re.compile(rf"[0-9](?:{_GAP}?[0-9]){{12,}}+")
# Identifiers and one shop's order layout, in which no card is ever written.
_NO_CARD = re.compile(
    r"(?<![0-9a-z])(?:[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9]{3}-[0-9]{7}-[0-9]{7})"
    r"(?![0-9a-z])"
    r"|(?<![0-9a-z])(?=[0-9]{0,31}[a-f])[0-9a-f]{32,128}(?![0-9a-z])",
    re.IGNORECASE,
)


def has_issuer_prefix(digits: str) -> bool:
    """Tell whether a card scheme issues numbers of this length with these first digits.

    Args:
        digits: ASCII digits.

    Returns:
        True when one does.
    """
    return any(low <= digits[: len(low)] <= high and len(digits) in lengths for low, high, lengths in _RANGES)


def find_cards(text: str) -> Iterator[Span]:
    """Find payment card numbers: prefix, length and check digit (ISO/IEC 7812-1, annex B) right.

    Each start within a run of digits is tried with seven lengths, so the work is linear.

    Args:
        text: The normalised text.

    Yields:
        One span a card, with its last four digits.
    """
    if not _DIGITS.search(text):
        return
    text = _NO_CARD.sub(lambda match: "\ufffd" * len(match[0]), text)
    words = CardWords(text)
    for run in _DIGITS.finditer(text):
        yield from _cards_in(text, run.start(), run.end(), words)


def _cards_in(text: str, start: int, end: int, words: CardWords) -> Iterator[Span]:
    places = [place for place in range(start, end) if "0" <= text[place] <= "9"]
    digits = "".join(text[place] for place in places)
    breaks = [0, *(i for i in range(1, len(places)) if places[i] > places[i - 1] + 1), len(places)]
    is_break = set(breaks)
    sums = _luhn_sums(digits)
    free_from = 0
    for first in breaks[:-1]:
        if first < free_from or digits[first] == "0":  # no issuer starts with 0
            continue
        rest = len(places) - first
        # All that is left of the run comes first, so that no digit of a longer card stays behind.
        for length in (rest, *_LENGTHS) if rest in _LENGTHS else _LENGTHS:
            last = first + length
            if last not in is_break or (sums[last % 2][last] - sums[last % 2][first]) % 10:
                continue
            span = Span(places[first], places[last - 1] + 1, digits[last - 4 : last])
            groups = _groups(breaks, first, last)
            is_whole = first == 0 and last == len(places)
            if _is_card(text, span, digits[first:last], groups, words, is_whole=is_whole):
                yield span
                free_from = last
                break


def _luhn_sums(digits: str) -> tuple[list[int], list[int]]:
    """Running Luhn sums, with the digits at even and at odd places doubled.

    The digit next to the last of a card is doubled: the sum of a stretch is a mere difference.
    """
    return (
        [0, *accumulate(int(d) if i % 2 else _DOUBLED[d] for i, d in enumerate(digits))],
        [0, *accumulate(_DOUBLED[d] if i % 2 else int(d) for i, d in enumerate(digits))],
    )


def _groups(breaks: list[int], first: int, last: int) -> list[int]:
    bounds = breaks[bisect_left(breaks, first) : bisect_left(breaks, last) + 1]
    return [after - before for before, after in pairwise(bounds)]


def _is_card(
    text: str, span: Span, digits: str, groups: list[int], words: CardWords, *, is_whole: bool
) -> bool:
    before = text[max(0, span.start - 2) : span.start]
    if before.endswith("+") and len(digits) <= 15:  # E.164: a phone number has at most 15 digits
        return False
    is_fraction = len(groups) == 1 and re.fullmatch(r"[0-9]\.", before) is not None
    if is_fraction or (len(groups) == 2 and text[span.start + groups[0]] == "."):
        return False
    if words.are_near(span.start, span.end):
        return True
    if not has_issuer_prefix(digits):
        return False
    if len(groups) == 1:
        return not is_labelled_order(text, span.start)
    # Inside a longer list of numbers, only groups as cards have them.
    return is_whole or all(size >= 3 for size in groups[:-1])


_CODE_LABEL: Final = r"""(?:
    (?<![a-z])(?:cvv2?|cvc2?|cvn2?|csc|cid|card\sverification(?:\s(?:code|value|number))?
        |(?:card\s)?security\s?(?:code|number)|c[oó]d(?:igo|\.)?\sde\s(?:seguridad|seguran[cç]a)
        |code\sde\ss[eé]curit[eé]|cryptogramme(?:\svisuel)?|sicherheitscode
        |(?:karten)?pr[uü]f(?:nummer|ziffer)|codice\sdi\ssicurezza)(?![a-z])
    | 安全码 | 安全碼 | 校验码 | (?:卡背面?|背面|卡片?)的?(?:后|後|末|三|3)[三3]?[位码碼]数?字?
    | セキュリティコード | 보안\s?코드
)"""
_LINK: Final = r"""(?:
    \s{0,2}(?:[:=\#(-]|码|碼|号|是|为|為|は|는|은
    |(?:is|was|are|code|number|num|no\.?|nr\.?|the|my|on|at|back|of|card|it|it's|says|would|be|de|la|du|ma|mi|da|do|meu|der|tarjeta|carte|karte|cart[aã]o
        |es|ist|lautet|est|é|è)(?![a-z]))
){0,7}[\s"'`*]{0,3}"""
_CODE_STEMS: Final = (
    *("cvv", "cvc", "cvn", "csc", "cid", "verif", "curit", "segur", "cryptogramme", "sicherheitscode"),
    *("fnummer", "fziffer", "sicurezza", "码", "碼", "位", "セキュリティコード", "보안"),
)
_LABELLED = FilteredPattern(
    re.compile(
        rf"(?P<label>{_CODE_LABEL})[\"'`)]{{0,2}}(?:{_LINK}|[^?？\n]{{0,24}}[?？]\s{{0,3}}"
        rf"(?:[\w .]{{1,24}}:\s?)?)(?<![0-9.,+])(?P<code>[0-9]{{3,4}})(?![0-9a-z]|[.,:/-][0-9])",
        re.IGNORECASE | re.VERBOSE,
    ),
    *_CODE_STEMS,
)
_CODE_FIRST = FilteredPattern(
    re.compile(
        rf"(?<![0-9a-z.,+/-])(?P<code>[0-9]{{3,4}})\s{{1,2}}(?:is|as|was|es|ist|est|=|\(|是|)\s{{0,2}}"
        rf"(?:(?:the|my|its|our|el|mi|der|die|mein|le|mon|我的)\s{{0,2}})?(?P<label>{_CODE_LABEL})",
        re.IGNORECASE | re.VERBOSE,
    ),
    *_CODE_STEMS,
)
_AFTER_CARD = FilteredPattern(
    re.compile(
        r"\ue000[\s,;|/]{1,3}(?:exp(?:iry|ires|\.)?:?\s{0,2})?[0-9]{1,2}\s?[/|-]\s?[0-9]{2,4}"
        r"[\s,;|/]{1,3}(?P<code>[0-9]{3,4})(?![0-9a-z]|[.,:/-][0-9])",
        re.IGNORECASE,
    ),
    "\ue000",
)
_PLAIN_LABEL = re.compile(r"cv[vcn]2?|csc|card|crypto|pr[uü]f|卡|背面|安全[码碼]", re.IGNORECASE)


def find_security_codes(text: str) -> Iterator[Span]:
    """Find card security codes: three or four digits beside their name, or after card and expiry.

    A label that means other things too ("security code", "CID") needs a word for a card near,
    unless exactly three digits follow it.

    Args:
        text: The normalised text, in which cards are marks already.

    Yields:
        One span a code.
    """
    if not DIGIT.search(text):
        return
    words: CardWords | None = None
    found: dict[int, Span] = {}
    for pattern in (_LABELLED, _CODE_FIRST):
        for match in pattern.finditer(text):
            label = match["label"]
            is_certain = _PLAIN_LABEL.search(label) or (
                len(match["code"]) == 3 and not re.fullmatch("cid|校验码", label, re.IGNORECASE)
            )
            words = words or CardWords(text)
            if is_certain or words.are_near(match.start(), match.end()):
                found[match.start("code")] = Span(*match.span("code"))
    for match in _AFTER_CARD.finditer(text):
        found[match.start("code")] = Span(*match.span("code"))
    yield from (found[start] for start in sorted(found))
