"""The time a question speaks of, in English and Chinese words."""

from datetime import UTC, datetime

import pytest

from memory.periods import mentions

NOW = datetime(2024, 7, 17, 12, tzinfo=UTC)  # a Wednesday


def _holds(question: str, day: str) -> bool:
    found = mentions(question, now=NOW.timestamp())
    assert len(found) == 1, found
    return found[0].period.holds(datetime.fromisoformat(f"{day}T15:00:00+00:00"))


@pytest.mark.parametrize(
    ("question", "inside", "outside"),
    [
        ("What did I complain about in March?", "2023-03-31", "2024-04-01"),
        ("what happened in may", "2024-05-02", "2024-06-02"),
        ("What did I order on 8 May 2023?", "2023-05-08", "2023-05-09"),
        ("What did I order on May 8th, 2023?", "2023-05-08", "2024-05-08"),
        ("the outage of January 2024", "2024-01-05", "2023-01-05"),
        ("Who called on the 3rd of Sept?", "2022-09-03", "2022-09-04"),
        ("what was broken on 2024-03-02", "2024-03-02", "2024-03-03"),
        ("tickets of 2024-03", "2024-03-30", "2024-04-01"),
        ("What did I buy in 2023?", "2023-12-31", "2024-01-01"),
        ("what did I say yesterday", "2024-07-16", "2024-07-17"),
        ("what did I say today", "2024-07-17", "2024-07-16"),
        ("and last week?", "2024-07-08", "2024-07-15"),
        ("and this week?", "2024-07-15", "2024-07-14"),
        ("Last month's trouble", "2024-06-30", "2024-07-01"),
        ("anything this month", "2024-07-01", "2024-06-30"),
        ("what was it last year", "2023-01-01", "2024-01-01"),
        ("what did I ask two weeks ago", "2024-07-03", "2024-07-10"),
        ("what did I ask 3 days ago", "2024-07-14", "2024-07-15"),
        ("三月份我投诉了什么", "2024-03-15", "2024-04-15"),
        ("我3月投诉了什么", "2024-03-15", "2024-04-15"),
        ("十二月的订单", "2023-12-15", "2024-02-15"),
        ("2023年5月8日我买了什么", "2023-05-08", "2023-05-09"),
        ("2023年我买了什么", "2023-05-08", "2024-05-08"),
        ("上个月怎么了", "2024-06-30", "2024-07-01"),
        ("上周我说了什么", "2024-07-08", "2024-07-15"),
        ("昨天我说了什么", "2024-07-16", "2024-07-15"),
        ("去年的问题", "2023-03-01", "2024-03-01"),
        ("三天前我问了什么", "2024-07-14", "2024-07-15"),
        ("两个月前我问了什么", "2024-05-18", "2024-07-01"),
    ],
)
def test_a_time_in_words_is_understood(question: str, inside: str, outside: str) -> None:
    """A day within it, and one just outside."""
    assert _holds(question, inside)
    assert not _holds(question, outside)


@pytest.mark.parametrize(
    "question",
    [
        "May I return it?",
        "you may keep it",
        "We march on",
        "Is Mark March the agent?",
        "order 2024",
        "my 3 devices",
        "Which plan am I on?",
        "我的订单在哪里",
        "v1.6",
        "error 0x80070057",
        "",
    ],
)
def test_other_words_name_no_time(question: str) -> None:
    """Words that look like one."""
    assert mentions(question, now=NOW.timestamp()) == []


def test_two_times_are_two() -> None:
    """Each with its own words."""
    found = mentions("in March and in April", now=NOW.timestamp())
    assert [mention.period.month for mention in found] == [3, 4]
    assert [mention.words for mention in found] == ["in March", "in April"]


@pytest.mark.parametrize("question", ["on 31 February", "2024-02-31", "13月的订单", "99 years ago"])
def test_days_that_do_not_exist_break_nothing(question: str) -> None:
    """They hold nothing, or are not taken for a time."""
    for mention in mentions(question, now=NOW.timestamp()):
        assert mention.period.holds(NOW) in {True, False}
