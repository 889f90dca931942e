"""Passwords and one-time codes that a text says in words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from memory.redaction.filtered_pattern import DIGIT, FilteredPattern
from memory.redaction.model import Span
from memory.redaction.reading import Evidence, Gap, Value, accepts, read_gap, read_token
from memory.redaction.shadow import ANY_MARK
from memory.redaction.vocabulary import (
    BARE_CODE_LABELS,
    CODE_LABELS,
    CODE_STEMS,
    LINKS,
    LOGIN_WORDS,
    OTHER_CODES,
    OTHER_PASSES,
    PASSWORD_LABELS,
    PASSWORD_STEMS,
    PHRASE_LABELS,
    PIN_LABELS,
    SIGNED_PASSWORD_LABELS,
)

_FLAGS: Final = re.IGNORECASE | re.VERBOSE

_PASSWORD = FilteredPattern(
    re.compile(
        f"(?P<pin>{PIN_LABELS})|(?P<password>{PASSWORD_LABELS})|(?P<signed>{SIGNED_PASSWORD_LABELS})",
        _FLAGS,
    ),
    *PASSWORD_STEMS,
)
_PIN = re.compile(r"[0-9]{4,12}|[0-9]{3}(?=\s{0,2}$)")
_YEAR = re.compile(r"(?:19|20)[0-9]{2}")
_POST_CODE_WORD = re.compile(r"address|deliver|city|area|ship|india|road|street|post", re.IGNORECASE)
# "hunter2 is my password", "log in with hunter2 as the password"
_BEFORE_PASSWORD = re.compile(
    r"(?<!\S)(?P<value>\S{4,64})\s{1,2}(?:is|was|as|ist|war|es|est|é|e)\s{1,2}"
    r"(?:(?:my|the|our|your|his|her|their|a|mein|das|mi|la|mon|le|minha|a)\s{1,2})?"
    r"(?:(?:new|old|current|wifi|login|account)\s{1,2})?$",
    re.IGNORECASE,
)
_LAST_WORD = re.compile(r"s?\s{0,2}(?:$|[.,;!?\n)\"'，。]|(?:for|and|to|of|on|now|but|at)\b)", re.IGNORECASE)
_USER_AND_PASSWORD = FilteredPattern(
    re.compile(
        r"(?<=://)[^\s/:@?#]{0,100}:(?P<address>[^\s/@]{1,200}(?:@[^\s/@]{1,100}(?=@))?)@"
        r"|(?<!\S)(?:-u|--user)[ =][\"']?[^\s:\"']{1,64}:(?P<option>[^\s\"']{1,128}+)"
    ),
    "://",
    "-u",
)
_PHRASE_LABEL = re.compile(PHRASE_LABELS, re.IGNORECASE)
_PHRASE = re.compile(r"[a-z]{2,12}(?:[ ,]{1,2}[a-z]{2,12}){2,23}(?=\s{0,2}(?:[.,;!?\n\"')]|$))")
_REMARK: Final = frozenset(
    [
        "not",
        "too",
        "the",
        "an",
        "to",
        "is",
        "was",
        "no",
        "my",
        "your",
        "very",
        "it",
        "with",
        "for",
        "in",
        "on",
        "of",
        "and",
    ]
)
_OTHER_PASS = re.compile(OTHER_PASSES, re.IGNORECASE)
_AND = re.compile(
    r"[\"'`”]?,?\s{1,2}(?:and|or|then|und|oder|y|o|et|ou|e)\s{1,2}(?:also\s|maybe\s|before\sthat\s|now\s)?"
    r"(?:(?:the\s|my\s)?(?:new|old|other|second|previous)(?:\sone)?\s(?:is\s|was\s)(?:now\s)?)?"
    r"|[\"'`”]?\s?(?:或者?|和|还有|還有|以及|と|または|또는)\s?",
    re.IGNORECASE,
)
_WINDOW_BEFORE: Final = 100


def find_passwords(text: str) -> Iterator[Span]:
    """Find passwords and PINs beside their name, and those in an address (`user:password@host`).

    Each name is read on for a bounded stretch, so the work is linear.

    Args:
        text: The normalised text.

    Yields:
        One span a password, quotes and closing punctuation left out.
    """
    found: dict[int, Span] = {}
    for match in _USER_AND_PASSWORD.finditer(text):
        group = match.lastgroup or 0
        if not re.fullmatch(f"[{ANY_MARK}]+", match[group]):
            found[match.start(group)] = Span(*match.span(group))
    free_from = 0
    for label in _PASSWORD.finditer(text):
        if label.start() < free_from:
            continue
        value = _password_after(text, label) or _password_before(text, label, free_from)
        while value:
            found.setdefault(value.start, value.span)
            free_from = value.end
            value = _next_password(text, free_from)
    yield from _apart(found)


def _apart(found: dict[int, Span]) -> Iterator[Span]:
    end = 0
    for start in sorted(found):
        if start >= end:
            yield found[start]
            end = found[start].end


def _password_after(text: str, label: re.Match[str]) -> Value | None:
    is_pin = label.lastgroup == "pin"
    is_phrase = _PHRASE_LABEL.fullmatch(label[0]) is not None
    if label[0].casefold() == "pass" and _OTHER_PASS.search(text[max(0, label.start() - 16) : label.start()]):
        return None
    for gap in read_gap(text, label.end()):
        if label.lastgroup == "signed" and gap.evidence is Evidence.LOOKS:
            continue
        if is_phrase and gap.evidence is not Evidence.LOOKS:
            phrase = _PHRASE.match(text, gap.end)
            if phrase and not _REMARK.intersection(phrase[0].split()):
                return Value(*phrase.span())
        value = read_token(text, gap.end, is_cjk=gap.is_cjk)
        if value is None:
            continue
        if is_pin:
            if _is_pin(text, label, value, gap):
                return value
        elif _is_password(text, value, gap, needs_looks=label.lastgroup == "signed"):
            return value
    return None


def _next_password(text: str, start: int) -> Value | None:
    """The other one in "hunter2 or hunter3", "…, and the new one is hunter3"."""
    link = _AND.match(text, start)
    value = read_token(text, link.end()) if link else None
    return value if value and accepts(text, value, Evidence.LOOKS) else None


def _is_password(text: str, value: Value, gap: Gap, *, needs_looks: bool) -> bool:
    if needs_looks and gap.evidence is Evidence.SAID:
        return accepts(text, value, Evidence.LOOKS)
    return accepts(text, value, gap.evidence)


def _is_pin(text: str, label: re.Match[str], value: Value, gap: Gap) -> bool:
    pin = text[value.start : value.end]
    if not _PIN.fullmatch(pin) or (gap.evidence is Evidence.LOOKS and _YEAR.fullmatch(pin)):
        return False
    around = text[max(0, label.start() - _WINDOW_BEFORE) : value.end + 40]
    # In India a PIN code is a post code.
    is_post_code = len(pin) == 6 and "code" in label[0].casefold()
    return not (is_post_code and _POST_CODE_WORD.search(around))


def _password_before(text: str, label: re.Match[str], free_from: int) -> Value | None:
    begin = max(free_from, label.start() - _WINDOW_BEFORE)
    match = _BEFORE_PASSWORD.search(text[begin : label.start()])
    if label.lastgroup != "password" or not match or not _LAST_WORD.match(text, label.end()):
        return None
    value = read_token(text, begin + match.start("value"))
    if value and accepts(text, value, Evidence.LOOKS):
        return value
    return None


_CODE: Final = (
    r"(?<![0-9A-Za-z.+\#/-])(?P<code>(?:[A-Za-z]{1,3}-)?(?:[0-9]{3}[ -][0-9]{3,4}"
    r"|[0-9]{2}[ -][0-9]{2}[ -][0-9]{2}|[0-9](?:[ -][0-9]){3,7}|[0-9]{4,10})"
    r"|(?P<mixed>(?-i:(?=[A-Z]{0,9}[0-9])(?=[0-9]{0,9}[A-Z])[A-Z0-9]{5,10})"
    r"|(?=[a-z-]{0,40}[0-9])[a-z0-9]{3,8}(?:-[a-z0-9]{3,8}){1,5}))"
    r"(?![0-9A-Za-z]|[.,:/-][0-9]|\s{0,2}[年月日分秒元%位])"
)
# A code has a digit, but not its label: the text is asked for one before.
_LABEL = FilteredPattern(
    re.compile(f"(?P<certain>{CODE_LABELS})|(?P<bare>{BARE_CODE_LABELS})", _FLAGS), *CODE_STEMS
)
_AFTER_CODE_LABEL = re.compile(rf"(?P<gap>[^0-9.!。！{ANY_MARK}]{{0,64}}?){_CODE}", re.IGNORECASE)
_BEFORE_CODE_LABEL = re.compile(
    rf"{_CODE}[\"'`*\])】]{{0,3}}\s{{0,2}}(?:,|is|as|was|ist|es|est|é|è|是|为|為|=|\(|（|が|は|은|는|이)"
    r"[^0-9\n.!?。]{0,28}$",
    re.IGNORECASE,
)
_LINK_ONLY = re.compile(
    rf"""(?:[^?？\n]{{0,40}}[?？]\s{{0,4}}(?:[\w .]{{1,24}}:)?)?
    (?:[\s:=>("'`\[*\#|【「,-] | (?:{LINKS}|code|codes|number|pin|no\.?|now|today|again|here|just|sms
      |that)(?!\w) | 是 | 为 | 為 | は | が | 、 | 는 | 은 | 码 | 碼 )*+""",
    _FLAGS,
)
_ENDS_LINKED = re.compile(rf"(?:[:=]|(?<!\w)(?:{LINKS})|[是为為は는은])[\s\"'`(\[*]{{0,4}}$", re.IGNORECASE)
_OTHER_NUMBER = re.compile(
    r"(?<![a-z])(?:orders?|invoice|ticket|case|phone|mobile|ending|since|after|within|room|version"
    r"|error|account|than|over|zip|pedido|bestellung|commande)(?![a-z])"
    r"|订单|訂單|手机|手機|电话|電話|单号|尾号|注文|주문",
    re.IGNORECASE,
)
_COUNTED: Final = (
    r"\s{1,2}(?:sec|min|hour|day|week|month|year|user|people|customer|time|digit|character|error|euro"
    r"|dollar|attempt|request|message|sekunden|minuten|segundos|minutos|secondes)"
)
_MORE_CODES = re.compile(rf"(?:\s{{0,2}}[,;/、]\s{{0,2}}|\s{{1,3}}(?:(?:and|or)\s)?){_CODE}", re.IGNORECASE)
_TO_BE_ENTERED = FilteredPattern(
    re.compile(
        rf"(?<![a-z])(?:enter|use|type|submit)\s(?:the\s)?{_CODE}\s(?:to|as)\s"
        r"(?:verify|confirm|log|sign|complete|finish|authenticate)",
        re.IGNORECASE,
    ),
    "verify",
    "confirm",
    "log",
    "sign",
    "complete",
    "finish",
    "authenticate",
)
_UNIT = re.compile(_COUNTED, re.IGNORECASE)
_LOGIN = re.compile(LOGIN_WORDS, re.IGNORECASE)
_OTHER_CODE = re.compile(OTHER_CODES, re.IGNORECASE)
_LOGIN_WINDOW: Final = 80


def find_one_time_codes(text: str) -> Iterator[Span]:
    """Find one-time codes after or before their name.

    A mere "code" counts when words for logging in or verifying stand within 80 characters.

    Args:
        text: The normalised text.

    Yields:
        One span a code.
    """
    if not DIGIT.search(text):
        return
    found = {span.start: span for span in _codes_by_label(text)}
    for match in _TO_BE_ENTERED.finditer(text):
        found.setdefault(match.start("code"), Span(*match.span("code")))
    yield from _apart(found)


def _codes_by_label(text: str) -> Iterator[Span]:
    free_from = 0
    for label in _LABEL.finditer(text):
        if label.start() < free_from or not _names_a_code(text, label):
            continue
        span = _code_after(text, label) or _code_before(text, label, free_from)
        if span is None:
            continue
        yield span
        free_from = max(span.end, label.end())
        # Further codes of the same form: "12345678, 87654321".
        while span.start >= label.end() and (more := _MORE_CODES.match(text, span.end)):
            if len(more["code"]) != span.end - span.start:
                break
            span = Span(*more.span("code"))
            yield span
            free_from = span.end


def _names_a_code(text: str, label: re.Match[str]) -> bool:
    if label.lastgroup == "certain":
        return True
    before = text[max(0, label.start() - _LOGIN_WINDOW) : label.start()]
    after = text[label.end() : label.end() + _LOGIN_WINDOW]
    is_login = _LOGIN.search(before) or _LOGIN.search(after)
    return bool(is_login) and not _OTHER_CODE.search(before)


def _code_after(text: str, label: re.Match[str]) -> Span | None:
    match = _AFTER_CODE_LABEL.match(text, label.end())
    if not match or _UNIT.match(text, match.end()):
        return None
    gap = match["gap"]
    if not _LINK_ONLY.fullmatch(gap):
        digits = sum(character.isdigit() for character in match["code"])
        is_linked = bool(_ENDS_LINKED.search(gap))
        if _OTHER_NUMBER.search(gap) or "\n" in gap or match["mixed"]:
            return None
        if not is_linked and (digits != 6 or len(gap.split()) > 3):
            return None
    elif not gap.strip() and (match["mixed"] or _YEAR.fullmatch(match["code"])):
        return None
    return Span(*match.span("code"))


def _code_before(text: str, label: re.Match[str], free_from: int) -> Span | None:
    begin = max(free_from, label.start() - _LOGIN_WINDOW)
    match = _BEFORE_CODE_LABEL.search(text[begin : label.start()])
    if not match or _OTHER_NUMBER.search(text[max(begin, begin + match.start() - 16) : label.start()]):
        return None
    return Span(begin + match.start("code"), begin + match.end("code"))
