"""Every way of writing a time leads to the same moment in UTC."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from tickets.errors import TicketFormatError, TimeFormatError
from tickets.times import parse_time

TEN = datetime(2024, 5, 1, 10, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    "value",
    [
        "2024-05-01T10:00:00Z",
        "2024-05-01t10:00:00z",
        "2024-05-01T12:00:00+02:00",
        "2024-05-01T10:00:00.000+0000",
        "2024-05-01 10:00:00 UTC",
        "2024-05-01T05:00:00-0500",
        "2024-05-01T12:00+02",
        "  2024-05-01T10:00:00,0Z ",
        1714557600,
        1714557600.0,
        1714557600000,
        "1714557600",
        "1714557600.0",
        "1714557600000",
        TEN,
        TEN.astimezone(timezone(timedelta(hours=9))),
    ],
)
@pytest.mark.parametrize("zone", [None, "Asia/Tokyo"])
def test_times_with_a_zone_become_the_same_moment(value: object, zone: str | None) -> None:
    """All spellings of one moment agree, and the zone of the request changes nothing."""
    moment = parse_time(value, zone)
    assert moment == TEN
    assert moment.tzinfo is UTC


def test_fraction_is_kept_to_microseconds() -> None:
    """Digits beyond a microsecond are dropped, those before kept."""
    assert parse_time("2024-05-01T10:00:00.1234567Z", None).microsecond == 123456
    assert parse_time("2024-05-01T10:00:00.5Z", None).microsecond == 500000


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2024-07-01T12:00:00", "2024-07-01T10:00:00+00:00"),
        ("2024-12-01 12:00", "2024-12-01T11:00:00+00:00"),
        ("2024-07-01", "2024-06-30T22:00:00+00:00"),
        ("20240701", "2024-06-30T22:00:00+00:00"),
        (datetime(2024, 7, 1, 12), "2024-07-01T10:00:00+00:00"),
    ],
)
def test_time_without_zone_takes_the_one_of_the_request(value: object, expected: str) -> None:
    """The named zone is applied with its summer time; without one the time is refused."""
    assert parse_time(value, "Europe/Berlin").isoformat() == expected
    with pytest.raises(TimeFormatError) as caught:
        parse_time(value, None)
    assert caught.value.code == "time_without_zone"


@pytest.mark.parametrize(
    "value",
    [
        "soon",
        "2024-13-01T00:00:00Z",
        "2024-02-30T00:00:00Z",
        "2024-05-01T25:00:00Z",
        "2024-05-01T10:00:00+99:99",
        "2024-05-01T10:00:00+02:75",
        "01/05/2024",
        "1989-12-31T23:59:59Z",
        "2101-01-01T00:00:00Z",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
        "２０２４-05-01T10:00:00Z",
        0,
        -1,
        1e300,
        float("nan"),
        float("inf"),
        10**20,
        "99999999999999999999",
        True,
        ["2024-05-01"],
        {"date": "2024-05-01"},
        b"2024-05-01T10:00:00Z",
    ],
)
def test_nonsense_is_refused(value: object) -> None:
    """What is no time, or one outside 1990 to 2100, is refused with one code."""
    with pytest.raises(TimeFormatError) as caught:
        parse_time(value, "Europe/Berlin")
    assert caught.value.code == "time_invalid"


def test_enormous_integer_is_refused() -> None:
    """A number beyond every float is nonsense, not a crash."""
    with pytest.raises(TimeFormatError, match="time_invalid"):
        parse_time(10**400, None)


@pytest.mark.parametrize("value", [None, "", "  "])
def test_absent_time_has_its_own_code(value: object) -> None:
    """Nothing at all is told apart from nonsense."""
    with pytest.raises(TimeFormatError, match="time_missing"):
        parse_time(value, None)


@pytest.mark.parametrize("zone", ["Mars/Olympus", "../etc/passwd", "", "Europe", "\0"])
def test_unknown_zone_is_refused(zone: str) -> None:
    """Only IANA names are zones."""
    with pytest.raises(TicketFormatError, match="timezone_unknown"):
        parse_time("2024-05-01T10:00:00", zone)


def test_errors_hold_nothing_of_the_value() -> None:
    """A value may be a customer's words in the wrong column."""
    with pytest.raises(TimeFormatError) as caught:
        parse_time("my password is hunter2", None)
    assert "hunter2" not in str(caught.value)
