"""One rule from every way of writing a time to UTC."""

import math
import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from tickets.errors import TicketFormatError, TimeFormatError

FIRST_YEAR = 1990
LAST_YEAR = 2100

# 1e11 seconds lie beyond the year 5000, 1e11 milliseconds before 1990: no value fits both units.
_MILLISECONDS_FROM = 1e11
_NUMBER = re.compile(r"[+-]?\d{1,20}(\.\d{1,20})?", re.ASCII)
_COMPACT_DATE = re.compile(r"(\d{4})(\d{2})(\d{2})", re.ASCII)
_ISO = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})"
    r"(?:(?:[Tt]|\s{1,3})(\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,12}))?)?)?"
    r"\s{0,3}(Z|z|UTC|GMT|[+-]\d{2}(?::?\d{2})?)?",
    re.ASCII,
)


def load_zone(name: str) -> ZoneInfo:
    """Find a time zone by its IANA name.

    Args:
        name: Such as `Europe/Berlin`.

    Returns:
        The zone.

    Raises:
        TicketFormatError: `timezone_unknown`.
    """
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise TicketFormatError("timezone_unknown", "timezone") from None


def parse_time(value: object, timezone: str | None) -> datetime:
    """Read a time and give it in UTC.

    Accepted are ISO 8601 (`2024-05-01T10:00:00Z`, `+02:00`, `+0200`, `+02`, a space for the T, a
    fraction, minutes only, the date only), unix seconds and milliseconds as number or as text, and
    `datetime`. A date alone is midnight in its zone.

    Args:
        value: What the export holds.
        timezone: IANA name of the zone for a time that has none; None refuses such a time.

    Returns:
        An aware datetime in UTC with a year from 1990 to 2100.

    Raises:
        TimeFormatError: `time_missing` for None and blank text, `time_without_zone`, else
            `time_invalid`.
        TicketFormatError: `timezone_unknown` when the zone is needed and does not exist.
    """
    if value is None or (isinstance(value, str) and not value.strip()):
        raise TimeFormatError("time_missing")
    try:
        moment = _read(value)
        if moment.tzinfo is None:
            if timezone is None:
                raise TimeFormatError("time_without_zone")
            moment = moment.replace(tzinfo=load_zone(timezone))
        moment = moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise TimeFormatError("time_invalid") from None
    if not FIRST_YEAR <= moment.year <= LAST_YEAR:
        raise TimeFormatError("time_invalid")
    return moment


def _read(value: object) -> datetime:
    """Read a value; the result is naive when the value names no zone."""
    if isinstance(value, datetime):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _from_unix(float(value))
    if not isinstance(value, str):
        raise TimeFormatError("time_invalid")
    text = value.strip()
    compact = _COMPACT_DATE.fullmatch(text)
    if compact:
        year, month, day = (int(part) for part in compact.groups())
        return datetime(year, month, day)
    if _NUMBER.fullmatch(text):
        return _from_unix(float(text))
    match = _ISO.fullmatch(text)
    if not match:
        raise TimeFormatError("time_invalid")
    return _from_iso(match)


def _from_unix(number: float) -> datetime:
    """Read seconds or milliseconds since 1970."""
    if not math.isfinite(number):
        raise TimeFormatError("time_invalid")
    seconds = number / 1000 if abs(number) >= _MILLISECONDS_FROM else number
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)


def _from_iso(match: re.Match[str]) -> datetime:
    """Put the parts of an ISO time together."""
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    return datetime(
        int(year),
        int(month),
        int(day),
        int(hour or 0),
        int(minute or 0),
        int(second or 0),
        int((fraction or "0").ljust(6, "0")[:6]),
        tzinfo=_offset(zone),
    )


def _offset(zone: str | None) -> tzinfo | None:
    """Read `Z`, `+02:00`, `+0200` or `+02`."""
    if not zone:
        return None
    if zone[0] not in "+-":
        return UTC
    digits = zone[1:].replace(":", "").ljust(4, "0")
    hours, minutes = int(digits[:2]), int(digits[2:])
    if minutes > 59:
        raise TimeFormatError("time_invalid")
    offset = timedelta(hours=hours, minutes=minutes)
    return timezone(-offset if zone[0] == "-" else offset)
