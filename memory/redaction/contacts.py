"""E-mail addresses, phone numbers and postal addresses: looked for only when asked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from memory.redaction.filtered_pattern import DIGIT, FilteredPattern
from memory.redaction.labels import is_labelled_order
from memory.redaction.model import Span

_EMAIL = FilteredPattern(
    re.compile(
        r"(?<![A-Za-z0-9._%+-])(?<![A-Za-z0-9_%+-]')[A-Za-z0-9_%+-]++(?:[.'][A-Za-z0-9_%+-]++)*+@"
        r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,6}(?:[A-Za-z]{2,24}|xn--[A-Za-z0-9-]{2,40})"
        r"(?![A-Za-z0-9-])"
    ),
    "@",
)


def find_emails(text: str) -> Iterator[Span]:
    """Find e-mail addresses.

    Args:
        text: The normalised text.

    Yields:
        One span an address.
    """
    for match in _EMAIL.finditer(text):
        yield Span(*match.span())


# E.164: a country code and at most 15 digits in all.
_INTERNATIONAL: Final = r"(?:\+|(?<![0-9])00(?=[1-9]))\s?[1-9](?:[ ./()-]{0,3}[0-9]){6,14}"
_NATIONAL: Final = (
    r"(?:1[ .-])?\([2-9][0-9]{2}\)[ .-]?[0-9]{3}[ .-][0-9]{4}",  # North America
    r"(?:1[ .-])?[2-9][0-9]{2}(?P<us>[ .-])[2-9][0-9]{2}(?P=us)[0-9]{4}",
    r"1[3-9][0-9](?P<cn>[ -]?)[0-9]{4}(?P=cn)[0-9]{4}",  # China, mobile
    r"\(?0[1-9][0-9]{1,2}\)?[ -][0-9]{7,8}(?:-[0-9]{1,5})?",  # China, landline
    r"[48]00-?[0-9]{3}-?[0-9]{4}",  # China, service
    r"0[1-9](?P<fr>[ .-])[0-9]{2}(?:(?P=fr)[0-9]{2}){3}",  # France
    r"0(?:[0-9]{3} [0-9]{3} [0-9]{4}|[0-9]{2} [0-9]{4} [0-9]{4}|[0-9]{4} [0-9]{6})",  # Britain
    r"0[1-9][0-9]{1,4} ?[/-] ?[0-9]{3,9}(?:[ -][0-9]{1,5}){0,2}",  # Germany
    r"0[1-9][0-9]{2,4} [0-9]{5,8}",
    r"0[0-9]{1,4}-[0-9]{1,4}-[0-9]{3,4}",  # Japan, Korea
    r"\([1-9][0-9]\) ?9?[0-9]{4}-[0-9]{4}",  # Brazil
)
_PHONE = FilteredPattern(
    re.compile(
        rf"(?<![0-9A-Za-z])(?:(?P<international>{_INTERNATIONAL})|(?<![+.-])(?P<national>"
        + "|".join(_NATIONAL)
        + r")|(?<![+.-])(?P<bare>[0-9](?:[ .-]?[0-9]){6,12}))(?![0-9A-Za-z]|[.-][0-9])"
    ),
    form=re.compile("[0-9](?:[^0-9]{0,3}[0-9]){5}"),
)
_PHONE_WORD = re.compile(
    r"(?<![a-z])(?:phone|tel|telephone|call(?:ed)?|mobile|cell|fax|whats\s?app|reach\sme|text\sme|ring"
    r"|tel[eé]fono|m[oó]vil|telefon|handy|t[eé]l[eé]phone|portable|telefone|celular)(?![a-z])"
    r"|电话|電話|手机|手機|联系方式|微信|携帯|전화|휴대폰",
    re.IGNORECASE,
)
_PHONE_WINDOW: Final = 32


def find_phones(text: str) -> Iterator[Span]:
    """Find phone numbers, international or in a common national layout.

    Other runs of 7 to 13 digits need a word for a phone shortly before them.

    Args:
        text: The normalised text.

    Yields:
        One span a number.
    """
    for match in _PHONE.finditer(text):
        before = text[max(0, match.start() - _PHONE_WINDOW) : match.start()]
        if match.lastgroup == "bare" and not _PHONE_WORD.search(before):
            continue
        if not is_labelled_order(text, match.start()):
            yield Span(*match.span())


_STREET: Final = (
    r"(?:Street|St|Avenue|Ave|Road|Rd|Boulevard|Blvd|Lane|Ln|Drive|Dr|Court|Ct|Place|Pl|Square|Sq"
    r"|Terrace|Ter|Way|Parkway|Pkwy|Highway|Hwy|Circle|Cir|Close|Crescent|Cres|Gardens|Grove|Row|Mews)"
)
_WORD: Final = r"[A-Z0-9][A-Za-z0-9'’.-]{0,24}"
_ENGLISH: Final = (
    rf"(?<![A-Za-z0-9.,#-])(?:(?:Apt|Flat|Unit|Suite)\.? [0-9A-Z]{{1,5}}, )?"
    rf"[0-9]{{1,6}}[A-Za-z]?(?:-[0-9]{{1,4}})?,? (?:{_WORD} ){{1,4}}{_STREET}\b\.?"
    r"(?:,? (?:[NSEW]{1,2}\b"
    r"|(?i:apt|apartment|unit|suite|ste|floor|flat|#)\.? ?#?[0-9A-Za-z-]{1,6})){0,2}"
    rf"(?:,\s{_WORD}(?: {_WORD}){{0,2}}){{0,2}}"
    r"(?:,? [A-Z]{2}(?= [0-9]))?(?:,? (?:[0-9]{5}(?:-[0-9]{4})?|[A-Z]{1,2}[0-9][0-9A-Z]? ?[0-9][A-Z]{2}))?"
    r"(?![0-9A-Za-z])"
)
_PO_BOX: Final = r"(?<![A-Za-z])(?i:p\.? ?o\.? ?box) #?[0-9]{1,6}(?![0-9])"
_H: Final = r"[\u3400-\u9fff]"
_CHINESE: Final = (
    rf"(?:{_H}{{2,6}}(?:省|自治区|自治區|特别行政区))?\s?(?:{_H}{{2,6}}?[市州盟])?\s?"
    rf"(?:{_H}{{1,6}}?[区區县縣旗镇鎮乡鄉])?\s?{_H}{{1,8}}?(?:路|街道|大街|街|大道|巷|弄|胡同|段)"
    rf"(?:{_H}{{0,3}})?\s?[0-9]{{1,5}}(?:-[0-9]{{1,4}})?\s?[号號弄]"
    rf"(?:\s?(?:{_H}{{0,8}}?)?[0-9A-Za-z-]{{1,6}}\s?(?:号楼|號樓|栋|棟|幢|单元|單元|室|楼|樓|层|層|座|房)){{0,4}}"
)
_ADDRESS = FilteredPattern(re.compile(f"{_ENGLISH}|{_PO_BOX}|{_CHINESE}"), form=DIGIT)
_CHINESE_LEAD = re.compile(
    r"^(?:我的?|请|請|把|它|包裹|快递|快遞|货|貨|现在|現在|家|公司|新|旧|舊|收货|收貨|寄|送|住|搬|地址|改|发|發"
    r"|是|在|到|于|於|为|為|成|了|去|往|给|給){1,10}"
)


def find_addresses(text: str) -> Iterator[Span]:
    """Find English street lines and PO boxes, and Chinese addresses with a street and a number.

    Args:
        text: The normalised text.

    Yields:
        One span an address, with the town and post code that follow or precede it directly.
    """
    for match in _ADDRESS.finditer(text):
        lead = _CHINESE_LEAD.match(match[0])
        yield Span(match.start() + (lead.end() if lead else 0), match.end())
