"""The time a question speaks of: "in March", "on 8 May 2023", "last week", "3月份", "上周"."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

_MONTH_NAMES = (
    "january jan|february feb|march mar|april apr|may|june jun|july jul|august aug|september sept sep|"
    "october oct|november nov|december dec"
)
_MONTHS = {
    name: number for number, names in enumerate(_MONTH_NAMES.split("|"), start=1) for name in names.split()
}
_NAME = "|".join(sorted(_MONTHS, key=len, reverse=True))
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
# "May I", "may", "march" and "sep" are other words too: a month needs a capital or a word that says so.
_ENGLISH_DATES = (
    re.compile(rf"(?i:\b{_DAY}\s+(?:of\s+)?(?P<month>{_NAME})\b\.?(?:,?\s+{_YEAR}\b)?)"),
    re.compile(rf"(?i:\b(?P<month>{_NAME})\b\.?\s+{_DAY}\b(?!\d)(?:,?\s+{_YEAR}\b)?)"),
    re.compile(rf"(?i:\b(?P<month>{_NAME})\b\.?,?\s+(?:of\s+)?{_YEAR}\b)"),
    re.compile(
        rf"(?i:\b(?:in|of|during|since|until|till|last|this|early|mid|late|from|to|and|or)[\s-]+"
        rf"(?P<month>{_NAME})\b)"
    ),
)
_ISO = re.compile(r"\b(?P<year>(?:19|20)\d\d)-(?P<month>0[1-9]|1[0-2])(?:-(?P<day>[0-3]\d))?\b")
_CHINESE = re.compile(
    r"(?:(?P<year>(?:19|20)\d\d)\s*年\s*)?(?P<month>1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九])\s*月"
    r"(?:份|\s*(?P<day>[0-3]?\d)\s*[日号號])?"
)
_CHINESE_NUMBERS = {digit: n for n, digit in enumerate("一二三四五六七八九十", start=1)} | {
    "十一": 11,
    "十二": 12,
    "两": 2,
    "兩": 2,
}
_YEAR_ALONE = re.compile(
    r"(?i:\b(?:in|during|of|since)\s+(?P<year>(?:19|20)\d\d)\b)|(?P<zh>(?:19|20)\d\d)\s*年"
)
_AGO = re.compile(
    r"(?i:\b(?P<number>\d{1,3}|a|an|one|two|three|four|five|six|seven|eight|nine|ten)\s+"
    r"(?P<unit>day|week|month|year)s?\s+ago\b)"
)
_CHINESE_AGO = re.compile(
    r"(?P<number>\d{1,3}|[一二三四五六七八九十两兩])\s*(?P<unit>天|日|周|週|个?星期|個?星期|个?月|個?月|年)\s*(?:以|之)?前"
)
_NUMBER_WORDS = "one two three four five six seven eight nine ten"
_ENGLISH_NUMBERS = {word: n for n, word in enumerate(_NUMBER_WORDS.split(), start=1)} | {"a": 1, "an": 1}
_UNIT_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}
_CHINESE_UNIT_DAYS = {"天": 1, "日": 1, "周": 7, "週": 7, "期": 7, "月": 30, "年": 365}


@dataclass(frozen=True, slots=True)
class Period:
    """A stretch of time: a date whose unnamed parts are open, or everything between two moments.

    Attributes:
        year, month, day: None for any.
        since, until: the bounds where it is no date, aware; None for a date.
    """

    year: int | None = None
    month: int | None = None
    day: int | None = None
    since: datetime | None = None
    until: datetime | None = None

    def holds(self, moment: datetime) -> bool:
        """Whether a moment lies in it."""
        if self.since is not None and self.until is not None:
            return self.since <= moment < self.until
        return (
            self.year in {None, moment.year}
            and self.month in {None, moment.month}
            and self.day in {None, moment.day}
        )


@dataclass(frozen=True, slots=True)
class Mention:
    """A time that a text speaks of, and the words that say so."""

    period: Period
    words: str


def mentions(question: str, *, now: float, zone: tzinfo = UTC) -> list[Mention]:
    """The times a question speaks of, in English or Chinese; usually none or one.

    Args:
        question: any text.
        now: seconds since 1970, for "last week".
        zone: in which a day begins.
    """
    today = datetime.fromtimestamp(now, zone).replace(hour=0, minute=0, second=0, microsecond=0)
    found = [*_dates(question), *_relative(question, today), *_ago(question, today)]
    if not any(mention.period.month or mention.period.since for mention in found):
        years = _YEAR_ALONE.finditer(question)
        found += [Mention(Period(year=int(m["year"] or m["zh"])), m[0]) for m in years]
    return list(dict.fromkeys(found))


def _dates(question: str) -> Iterator[Mention]:
    taken: list[range] = []
    for pattern in (_ISO, _CHINESE, *_ENGLISH_DATES):  # of two that overlap, the one that says more
        for match in pattern.finditer(question):
            if any(match.start() < span.stop and span.start < match.end() for span in taken):
                continue
            taken.append(range(*match.span()))
            parts = match.groupdict()
            month = parts["month"].casefold()
            period = Period(
                int(parts["year"]) if parts.get("year") else None,
                _MONTHS.get(month) or _CHINESE_NUMBERS.get(month) or int(month),
                int(parts["day"]) if parts.get("day") else None,
            )
            yield Mention(period, match[0])


def _relative(question: str, today: datetime) -> Iterator[Mention]:
    for pattern, bounds in _RELATIVE:
        match = pattern.search(question)
        if match:
            since, until = bounds(today)
            yield Mention(Period(since=since, until=until), match[0])


def _ago(question: str, today: datetime) -> Iterator[Mention]:
    for match in _AGO.finditer(question):
        word = match["number"].casefold()
        number = _ENGLISH_NUMBERS.get(word) or int(word)
        yield Mention(_around(today, number * _UNIT_DAYS[match["unit"].casefold()]), match[0])
    for match in _CHINESE_AGO.finditer(question):
        number = _CHINESE_NUMBERS.get(match["number"]) or int(match["number"])
        yield Mention(_around(today, number * _CHINESE_UNIT_DAYS[match["unit"][-1]]), match[0])


def _around(today: datetime, days: int) -> Period:
    """Some days ago, as exact as people mean it: within a fifth."""
    slack = timedelta(days=days // 5)
    day = today - timedelta(days=days)
    return Period(since=day - slack, until=day + timedelta(days=1) + slack)


type _Bounds = Callable[[datetime], tuple[datetime, datetime]]


def _days(first: int, count: int = 1) -> _Bounds:
    return lambda today: (today + timedelta(days=first), today + timedelta(days=first + count))


def _weeks(back: int) -> _Bounds:
    def bounds(today: datetime) -> tuple[datetime, datetime]:
        monday = today - timedelta(days=today.weekday() + 7 * back)
        return monday, monday + timedelta(days=7)

    return bounds


def _months(back: int) -> _Bounds:
    def bounds(today: datetime) -> tuple[datetime, datetime]:
        first = _month(today, -back)
        return first, _month(first, 1)

    return bounds


def _month(day: datetime, further: int) -> datetime:
    months = day.year * 12 + day.month - 1 + further
    return day.replace(year=months // 12, month=months % 12 + 1, day=1)


def _years(back: int) -> _Bounds:
    return lambda today: (
        today.replace(year=today.year - back, month=1, day=1),
        today.replace(year=today.year - back + 1, month=1, day=1),
    )


_RELATIVE: Sequence[tuple[re.Pattern[str], _Bounds]] = (
    (re.compile(r"(?i:\byesterday\b)|昨[天日晚]"), _days(-1)),
    (re.compile(r"(?i:\btoday\b)|今[天日早晚]"), _days(0)),
    (re.compile(r"前天"), _days(-2)),
    (re.compile(r"(?i:\blast week\b)|上(?:个|個)?(?:周|週|星期|礼拜|禮拜)"), _weeks(1)),
    (re.compile(r"(?i:\bthis week\b)|[这這本](?:个|個)?(?:周|週|星期|礼拜|禮拜)"), _weeks(0)),
    (re.compile(r"(?i:\blast month\b)|上(?:个|個)?月"), _months(1)),
    (re.compile(r"(?i:\bthis month\b)|[这這本](?:个|個)?月"), _months(0)),
    (re.compile(r"(?i:\blast year\b)|去年"), _years(1)),
    (re.compile(r"(?i:\bthis year\b)|今年"), _years(0)),
    (re.compile(r"前年"), _years(2)),
)
