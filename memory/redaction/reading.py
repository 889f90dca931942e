"""Reading what follows a word such as "password": the gap, the value, and whether it is one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from memory.redaction.model import Span
from memory.redaction.shadow import ANY_MARK
from memory.redaction.vocabulary import (
    ADVERBS,
    CJK_LINKS,
    LINKS,
    PREPOSITIONS,
    STATE_ENDINGS,
    STATES,
)


class Evidence(IntEnum):
    """What makes a word a secret, from strong to weak; each asks more of the word itself."""

    SIGN = 1
    """A colon, an equals sign or an arrow stands before it: anything but a state."""
    SAID = 2
    """A verb stands before it ("is", "是"): anything but a state or a word for one."""
    LOOKS = 3
    """It merely follows: it must look like a secret."""


@dataclass(frozen=True, slots=True)
class Gap:
    """What stands between a label and its value.

    Attributes:
        end: Where the value would start.
        evidence: How sure the gap makes it that a value follows.
        is_cjk: The gap is of a script without spaces, so the value ends with ASCII.
    """

    end: int
    evidence: Evidence
    is_cjk: bool = False


@dataclass(frozen=True, slots=True)
class Value:
    """A candidate for a secret.

    Attributes:
        start: Its first character, quotes left out.
        end: After its last character, closing punctuation left out.
        is_quoted: It stood in quotes.
    """

    start: int
    end: int
    is_quoted: bool = False

    @property
    def span(self) -> Span:
        """The value as a finding."""
        return Span(self.start, self.end)


_AFTER_LABEL = re.compile(r"""(?:\\?["'`\]*_]){0,3}(?:\s{0,2}\([^()\n]{0,30}\))?(?:\\?["'`*]){0,2}""")
_MIDDLE: Final = (
    rf"(?:[ \t]{{1,2}}(?:{PREPOSITIONS})(?:[ \t]{{1,2}}(?!(?:and|but|or|so|error|und|pero|mais|mas)\b)"
    rf"(?:[^\s:=,.;?!{ANY_MARK}]|[.](?=\S)){{1,40}}){{1,5}}?)"
)
_SIGN: Final = r"\s{0,3}(?::=|=>|->|→|⇒|[:=])[*_]{0,2}[ \t]{0,3}(?:\r?\n[ \t>|]{0,4})?"
_SAID: Final = (
    rf"(?:,?\s{{1,3}}|(?<=[\"'`*)])\s{{0,2}})(?:{LINKS})(?:,?\s{{1,2}}(?:{ADVERBS}),?){{0,3}}"
    r"(?:\s{0,2}[:=-])?\s{1,3}"
)
_GAPS: Final[tuple[tuple[re.Pattern[str], Evidence, bool], ...]] = tuple(
    (re.compile(pattern, re.IGNORECASE), evidence, is_cjk)
    for pattern, evidence, is_cjk in (
        (_SIGN, Evidence.SIGN, False),
        (rf"(?:{_MIDDLE})?{_SAID}", Evidence.SAID, False),
        (_MIDDLE + _SIGN, Evidence.LOOKS, False),
        (rf"\s{{0,2}}(?:(?:{CJK_LINKS})\s{{0,2}}){{1,4}}(?:[:=]\s{{0,2}})?", Evidence.SAID, True),
        (r"['’]s\s{1,2}", Evidence.LOOKS, False),
        (
            r"(?:\s(?:wurde|habe?\sich|was|has\sbeen))?\s{1,2}(?:to|as|into|auf|zu|in|a|por|en|à|para|como|with|of)\s{1,2}",
            Evidence.LOOKS,
            False,
        ),
        (r"\s{0,2}[(（\[]", Evidence.LOOKS, False),
        (r"(?:\s{0,3}[>|–/-]\s{0,3}|[ \t]{1,3})", Evidence.LOOKS, False),
        # A question, and the answer alone on the rest of its line or the next.
        (
            rf"[^?？\n{ANY_MARK}]{{0,30}}[?？]\s{{1,3}}[ \t>]{{0,3}}(?:[\w .]{{1,24}}:[ \t]?)?"
            r"(?=\S{3,64}[ \t]{0,2}(?:\r?\n|$))",
            Evidence.LOOKS,
            False,
        ),
    )
)

_FIRST_CJK: Final = "\u2e80"
_QUOTES: Final = {
    '"': '"',
    "'": "'",
    "`": "`",
    "“": "”",
    "”": "”",
    "„": "“”",
    "‘": "’",
    "«": "»",
    "‹": "›",
    "「": "」",
    "『": "』",
}
_QUOTED: Final = {
    opening: re.compile(rf"[^\n{closing}]{{1,200}}(?=[{closing}])") for opening, closing in _QUOTES.items()
}
_TOKEN = re.compile(rf"[^\s{ANY_MARK}\"“”„«»「」『』，。；、！？（）【】《》…]{{1,256}}+")
_ASCII_TOKEN = re.compile(r"[!#-~]{1,256}+")
_CUT = re.compile(r"</|[;&,](?=\s?[A-Za-z_][\w ]{0,30}=)|\\n|\\$|\\?\",")
_TRAILING: Final = ".,;:?)]}>'’`*\\"


def read_gap(text: str, start: int) -> Iterator[Gap]:
    """Read, in each way that fits, what may stand between a label and its value.

    Args:
        text: The normalised text.
        start: Where the label ends.

    Yields:
        The readings, the surest first. Each is of bounded length.
    """
    after = _AFTER_LABEL.match(text, start)
    places = dict.fromkeys((after.end() if after else start, start))
    is_cjk_label = start > 0 and text[start - 1] >= _FIRST_CJK
    for pattern, evidence, is_cjk in _GAPS:
        for place in places:
            match = pattern.match(text, place)
            if match:
                yield Gap(match.end(), evidence, is_cjk or is_cjk_label)
                break
    if is_cjk_label:  # "密码abc123": nothing at all between them
        yield Gap(start, Evidence.LOOKS, is_cjk=True)


def read_token(text: str, start: int, *, is_cjk: bool = False) -> Value | None:
    """Read a quoted text whole, or a word up to the next space.

    Args:
        text: The normalised text.
        start: Where the value starts.
        is_cjk: Whether the word ends where ASCII does.

    Returns:
        The value; None when there is nothing or only punctuation.
    """
    if text[start : start + 1] == "\\" and text[start + 1 : start + 2] in ('"', "'"):
        start += 1
    quoted = _QUOTED.get(text[start : start + 1])
    match = quoted.match(text, start + 1) if quoted else None
    if match:
        end = match.end() - (text[match.end() - 1] == "\\")
        return Value(start + 1, end, is_quoted=True) if end > start + 1 else None
    match = (_ASCII_TOKEN if is_cjk else _TOKEN).match(text, start)
    if not match:
        return None
    token = match[0]
    cut = _CUT.search(token)
    if cut:
        token = token[: cut.start()]
    elif len(token) == 256:  # always taken for a secret, so nothing of it is read twice
        token += _rest(text, match.end(), is_cjk=is_cjk)
    token = _without_closing(token)
    start += len(token) - len(token.lstrip("*<[({'`"))
    token = token.lstrip("*<[({'`")
    return Value(start, start + len(token)) if token else None


def _without_closing(token: str) -> str:
    """Drop punctuation that closes the sentence around a value, not a bracket of its own."""
    stripped = token.rstrip(_TRAILING)
    own = token[len(stripped) : len(stripped) + 1]
    return stripped + own if own == ")" and "(" in stripped[1:] else stripped


def _rest(text: str, start: int, *, is_cjk: bool) -> str:
    end = start
    pattern = _ASCII_TOKEN if is_cjk else _TOKEN
    while match := pattern.match(text, end):
        end = match.end()
    return text[start:end]


_MASKED = re.compile(
    r"[*•·xX.●#_?-]+|<[^>]*>?|\{\{.*|\$\{?\w+\}?|%\w+%?"
    r"|[A-Za-z_][\w.]*\(.*|(?:os|env|process|config|settings)\..*"  # code, not a value
)
_ADDRESS = re.compile(r"(?:https?://|www\.)\S+", re.IGNORECASE)
_EMAIL = re.compile(r"[\w.+%-]{1,64}@[\w-]{1,63}(?:\.[\w-]{2,63}){1,4}")
_NO_SECRET = re.compile(
    r"""(?:
    [0-9]{4}[-/.][0-9]{1,2}[-/.][0-9]{1,2} | [0-9]{1,2}[-/.][0-9]{1,2}[-/.][0-9]{2,4}
  | [0-9]{1,2}:[0-9]{2}\S{0,6} | v?[0-9]{1,3}(?:\.[0-9]{1,4}){1,3}
  | [0-9]{1,3}(?:st|nd|rd|th|h|hrs?|m|min|mins|s|sec|x|d|days?|fa|k|gb|mb|er|te|ten|e|º|ª)
  | [0-9]{1,3}-[0-9]{1,3} | 1password | [a-z]{1,3}365 | [0-9]{1,3} | (?:19|20)[0-9]{2} | \#[0-9]+
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_UNITS = re.compile(r"\s{0,2}[位个個次天年月日分秒小条條文字桁자개회번시분초日]")


def accepts(text: str, value: Value, evidence: Evidence) -> bool:
    """Tell whether a value is taken for a secret.

    Args:
        text: The normalised text.
        value: The candidate.
        evidence: What speaks for it.

    Returns:
        False for states ("wrong", "expired", "忘了"), masks, dates, links and the like.
    """
    secret = text[value.start : value.end]
    if value.end - value.start > 256:
        return True
    words = secret.casefold().split()
    if not words or re.fullmatch(f"[{ANY_MARK}\\s]*", secret):
        return False
    if _MASKED.fullmatch(secret) or _ADDRESS.match(secret):
        return False
    if value.is_quoted and evidence < Evidence.LOOKS:
        return len(words) > 1 or words[0] not in STATES
    if value.is_quoted and len(words) > 1:
        return not any(word in STATES for word in words)
    word = words[0].strip("!'’")
    if word in STATES or re.split("['’/]", word)[0] in STATES:
        return False
    if evidence is Evidence.SIGN:
        return len(secret) >= 2
    if _UNITS.match(text, value.end):
        return False
    if evidence is Evidence.SAID:
        is_state = word.isalpha() and secret.islower() and word.endswith(STATE_ENDINGS)
        return len(secret) >= 3 and not (is_state and len(word) > 4)
    return _looks_secret(secret)


def _looks_secret(secret: str) -> bool:
    if len(secret) < 4 or _NO_SECRET.fullmatch(secret) or _EMAIL.fullmatch(secret):
        return False
    has_digit = any(character.isdigit() for character in secret)
    has_letter = any(character.isalpha() for character in secret)
    has_sign = any(character in "!@#$%^&*+=~" for character in secret[:-1])
    return has_digit or (has_letter and has_sign)
