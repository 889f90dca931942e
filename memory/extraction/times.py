"""When something was so: what a language model noted of it, against the message's own time."""

import math
import re
from datetime import UTC, datetime, timedelta, tzinfo

LANGUAGES = ["en", "zh", "zh-Hant", "es", "de", "fr", "pt", "it", "nl", "ja", "ko"]
LANGUAGES += ["ru", "ar", "tr", "pl", "th"]
"""In which words for a time are understood: those of the built-in embedder."""
_LATEST_AHEAD_SECONDS = 366 * 86_400.0
"""How far after its message a fact may lie; a date further off is a misreading."""
_FIRST_YEAR = 1900
_LIKELY_AHEAD_DAYS = 60
"""A day without a year that lies further ahead is taken for last year's."""
_CHINESE_DIGITS = {digit: n for n, digit in enumerate("一二三四五六七八九十", start=1)} | {"两": 2}
_CHINESE_NUMBER = re.compile(
    "[一二三四五六七八九十两]{1,3}(?=个?(?:天|日|周|星期|礼拜|月|年|小时|分钟|号|號))"
)
_CHINESE_DATE = re.compile(
    r"(?:(今年|去年|前年|明年|\d{4}\s*年|\d{2}\s*年)\s*)?(\d{1,2})\s*月\s*(\d{1,2})\s*[日号號]"
)
_CHINESE_YEARS = {"今年": 0, "去年": -1, "前年": -2, "明年": 1}
_CHINESE_WEEKDAY = re.compile("(上+|这|這|本|下+)?[个個]?(?:周|週|星期|礼拜|禮拜)([一二三四五六日天])")
_CHINESE_DAY = re.compile("(前天|昨天|昨日|昨晚|今天|今日|今早|今晚|明天|后天|後天)")
_CHINESE_DAYS = {"前天": -2, "昨天": -1, "昨日": -1, "昨晚": -1, "明天": 1, "后天": 2, "後天": 2}
_LEADING = re.compile(r"^(?:since|on|from|by|as of|seit|ab|am|vom|desde|el|depuis|le)\s+", re.IGNORECASE)
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?")


def resolve_time(when: str | None, sent_at: float, *, zone: tzinfo) -> float:
    """When something was so: a date as it stands, words such as "yesterday" against the message's own time.

    Args:
        when: ISO date or time, or words in any of the usual languages; None for the message's time.
        sent_at: when the message was sent, seconds since 1970.
        zone: the customer's time zone, for dates and words without one.

    Returns:
        Seconds since 1970. What cannot be read, or lies over a year after the message, gives the message's
        own time. A date without a time is the message's time of that day.
    """
    if not when or not when.strip():
        return sent_at
    sent = datetime.fromtimestamp(sent_at, zone)
    moment = _iso(when.strip(), sent) or _chinese(when.strip(), sent) or _words(when.strip(), sent)
    if moment is None:
        return sent_at
    seconds = moment.timestamp() if moment.year >= _FIRST_YEAR else math.inf
    return seconds if seconds <= sent_at + _LATEST_AHEAD_SECONDS else sent_at


def _iso(when: str, sent: datetime) -> datetime | None:
    if not _ISO_DATE.fullmatch(when):
        return None
    try:
        moment = datetime.fromisoformat(when)
    except ValueError:
        return None
    if len(when) == len("2024-03-01"):
        return moment.replace(hour=sent.hour, minute=sent.minute, second=sent.second, tzinfo=sent.tzinfo)
    return moment if moment.tzinfo else moment.replace(tzinfo=sent.tzinfo)


def _chinese(when: str, sent: datetime) -> datetime | None:
    """Days as Chinese names them, which dateparser does not know well: 去年12月31日, 上上周五, 昨晚."""
    when = _CHINESE_NUMBER.sub(lambda match: str(_chinese_number(match[0])), when)
    date = _CHINESE_DATE.search(when)
    if date:
        return _chinese_date(date[1] or "", int(date[2]), int(date[3]), sent)
    weekday = _CHINESE_WEEKDAY.search(when)
    if weekday:
        which = weekday[1] or ""
        weeks = which.count("下") - which.count("上")
        day = min(6, "一二三四五六日天".index(weekday[2]))
        moment = sent + timedelta(days=7 * weeks + day - sent.weekday())
        # Without a word for the week, a day is the last one of that name, as in other languages.
        return moment if which or moment <= sent else moment - timedelta(days=7)
    named = _CHINESE_DAY.search(when)
    return sent + timedelta(days=_CHINESE_DAYS.get(named[1], 0)) if named else None


def _chinese_date(year_word: str, month: int, day: int, sent: datetime) -> datetime | None:
    year = sent.year + _CHINESE_YEARS.get(year_word, 0)
    if year_word[:1].isdigit():
        number = int(re.sub(r"\D", "", year_word))
        year = number if number >= 100 else 2000 + number
    try:
        moment = sent.replace(year=year, month=month, day=day)
        is_ahead = not year_word and moment - sent > timedelta(days=_LIKELY_AHEAD_DAYS)
        return moment.replace(year=year - 1) if is_ahead else moment
    except ValueError:
        return None


def _chinese_number(digits: str) -> int:
    """A number up to 99 as Chinese writes it: 三, 十二, 二十八."""
    tens, ten, ones = digits.partition("十")
    if not ten:
        return _CHINESE_DIGITS[digits[-1]]
    return 10 * (_CHINESE_DIGITS[tens] if tens else 1) + (_CHINESE_DIGITS[ones] if ones else 0)


def _words(when: str, sent: datetime) -> datetime | None:
    import dateparser

    if not any(character.isalpha() for character in when):
        return None
    base = sent.astimezone(UTC).replace(tzinfo=None) + (sent.utcoffset() or sent - sent)
    try:
        moment: datetime | None = dateparser.parse(
            _CHINESE_NUMBER.sub(lambda match: str(_chinese_number(match[0])), _LEADING.sub("", when)),
            languages=LANGUAGES,
            settings={"RELATIVE_BASE": base, "PREFER_DATES_FROM": "past"},
        )
    except (ValueError, OverflowError, RecursionError):
        return None
    if moment is None:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=sent.tzinfo)
