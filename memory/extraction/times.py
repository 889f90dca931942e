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
_CHINESE_NUMBER = re.compile("[一二两三四五六七八九十](?=个?(?:天|日|周|星期|礼拜|月|年|小时|分钟)[前后])")
_CHINESE_DATE = re.compile(r"(?:(\d{4})\s*年\s*)?(\d{1,2})\s*月\s*(\d{1,2})\s*[日号號]")
_CHINESE_WEEKDAY = re.compile("(上|这|這|本|下)?[个個]?(?:周|週|星期|礼拜|禮拜)([一二三四五六日天])")
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
    """Days as Chinese names them, which dateparser does not know: 12月31日, 上周五, 周三."""
    date = _CHINESE_DATE.search(when)
    if date:
        year = int(date[1]) if date[1] else sent.year
        try:
            moment = sent.replace(year=year, month=int(date[2]), day=int(date[3]))
        except ValueError:
            return None
        is_ahead = not date[1] and moment - sent > timedelta(days=_LIKELY_AHEAD_DAYS)
        return moment.replace(year=year - 1) if is_ahead else moment
    weekday = _CHINESE_WEEKDAY.search(when)
    if weekday:
        monday = sent - timedelta(days=sent.weekday())
        weeks = {"上": -1, "下": 1}.get(weekday[1] or "", 0)
        return monday + timedelta(days=7 * weeks + min(6, "一二三四五六日天".index(weekday[2])))
    return None


def _words(when: str, sent: datetime) -> datetime | None:
    import dateparser

    if not any(character.isalpha() for character in when):
        return None
    base = sent.astimezone(UTC).replace(tzinfo=None) + (sent.utcoffset() or sent - sent)
    try:
        moment: datetime | None = dateparser.parse(
            _CHINESE_NUMBER.sub(lambda match: str(_CHINESE_DIGITS[match[0]]), when),
            languages=LANGUAGES,
            settings={"RELATIVE_BASE": base, "PREFER_DATES_FROM": "past"},
        )
    except (ValueError, OverflowError, RecursionError):
        return None
    if moment is None:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=sent.tzinfo)
