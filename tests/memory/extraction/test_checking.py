"""What a model lists is checked item by item: each reason against one, slots by number, times resolved."""

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.clock import iso
from memory.extraction.checking import MAX_FACTS, check_items
from memory.extraction.model import Fact, KnownSlot, Message, Rejected
from memory.extraction.times import resolve_time
from memory.records import Role

SENT = datetime(2024, 3, 2, 10, 0, tzinfo=UTC).timestamp()
SHANGHAI, NEW_YORK = ZoneInfo("Asia/Shanghai"), ZoneInfo("America/New_York")
MESSAGES = [
    Message("I moved to PostgreSQL", Role.CUSTOMER, SENT),
    Message("You could try the Pro plan", Role.AGENT, SENT + 60),
    Message("Call me before noon", Role.CUSTOMER, SENT + 120),
]
KNOWN = [KnownSlot("", "plan", "Basic"), KnownSlot("order A-17", "status", "Paid")]
GOOD: dict[str, Any] = {
    "text": "The customer uses PostgreSQL.",
    "kind": "semantic",
    "about_customer": True,
    "subject": "",
    "attribute": "database",
    "slot": None,
    "when": None,
    "still_true": True,
    "confidence": 0.9,
    "message": 0,
}


def check(*items: Any, zone: tzinfo = UTC) -> tuple[list[Fact], list[Rejected]]:
    """What is kept of a list of items, and why the others are not."""
    return check_items(items, MESSAGES, KNOWN, min_confidence=0.6, zone=zone)


def fact(**changes: Any) -> Fact:
    """The fact an item becomes that has to hold."""
    facts, rejected = check({**GOOD, **changes})
    assert rejected == []
    return facts[0]


# --- reasons ------------------------------------------------------------------------------------


def test_an_item_that_holds_becomes_a_fact() -> None:
    """Every field is taken over."""
    assert fact() == Fact(
        text="The customer uses PostgreSQL.",
        kind="semantic",
        subject="",
        attribute="database",
        occurred_at=SENT,
        is_still_so=True,
        confidence=0.9,
        message=0,
    )


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"text": ""}, "malformed"),
        ({"text": "  \n"}, "malformed"),
        ({"text": "\x00\x07"}, "malformed"),
        ({"text": None}, "malformed"),
        ({"text": ["a", "b"]}, "malformed"),
        ({"text": "x" * 2_001}, "malformed"),
        ({"text": "half a letter \ud83d"}, "malformed"),
        ({"kind": "fact"}, "malformed"),
        ({"kind": None}, "malformed"),
        ({"confidence": 1.2}, "malformed"),
        ({"confidence": -0.1}, "malformed"),
        ({"confidence": "very"}, "malformed"),
        ({"confidence": None}, "malformed"),
        ({"confidence": float("nan")}, "malformed"),
        ({"confidence": 10**400}, "malformed"),
        ({"message": None}, "malformed"),
        ({"message": "the first"}, "malformed"),
        ({"message": float("inf")}, "malformed"),
        ({"attribute": "x" * 101}, "malformed"),
        ({"subject": {"name": "order"}}, "malformed"),
        ({"when": {"date": "2024-03-01"}}, "malformed"),
        ({"message": 3}, "unknown_message"),
        ({"message": -1}, "unknown_message"),
        ({"message": 10**30}, "unknown_message"),
        ({"slot": 0}, "unknown_slot"),
        ({"slot": 3}, "unknown_slot"),
        ({"slot": -1}, "unknown_slot"),
        ({"about_customer": False}, "about_somebody_else"),
        ({"confidence": 0.59}, "low_confidence"),
        ({"confidence": 0}, "low_confidence"),
        ({"message": 1}, "not_the_customers_words"),
        ({"still_true": False, "attribute": ""}, "no_longer_true"),
        ({"still_true": False, "attribute": " "}, "no_longer_true"),
        ({"still_true": False, "attribute": "_"}, "no_longer_true"),
        ({"still_true": False, "kind": "episodic"}, "no_longer_true"),
        ({"still_true": False, "kind": "procedural"}, "no_longer_true"),
    ],
)
def test_an_item_that_does_not_hold_is_left_out_with_its_reason(changes: dict[str, Any], reason: str) -> None:
    """The others beside it are kept."""
    facts, rejected = check(GOOD, {**GOOD, **changes}, {**GOOD, "text": "Another."})

    assert rejected == [Rejected(1, reason)]
    assert [f.text for f in facts] == ["The customer uses PostgreSQL.", "Another."]


@pytest.mark.parametrize("missing", ["text", "kind", "confidence", "message"])
def test_an_item_that_lacks_a_field_is_malformed(missing: str) -> None:
    """Nothing that matters is guessed."""
    item = {name: value for name, value in GOOD.items() if name != missing}

    assert check(item) == ([], [Rejected(0, "malformed")])


@pytest.mark.parametrize("item", [None, 1, "Likes teal", [], [GOOD], {}, {"facts": [GOOD]}])
def test_what_is_no_item_is_malformed(item: Any) -> None:
    """Any JSON value may stand where an item should."""
    assert check(item) == ([], [Rejected(0, "malformed")])


def test_fields_that_may_be_left_out_have_the_usual_value() -> None:
    """A short item about the customer is enough, and unknown fields do no harm."""
    facts, rejected = check(
        {"text": "Likes teal.", "kind": "semantic", "confidence": 0.7, "message": 2, "mood": "calm"}
    )

    assert rejected == []
    assert (facts[0].subject, facts[0].attribute, facts[0].is_still_so) == ("", "", True)
    assert facts[0].occurred_at == SENT + 120


def test_confidence_at_the_bound_is_enough() -> None:
    """Only what is below it is left out."""
    assert fact(confidence=0.6).confidence == 0.6


def test_items_over_the_limit_are_told() -> None:
    """Of an endless list the first ones are looked at, and each further one is reported."""
    facts, rejected = check(*[GOOD] * (MAX_FACTS + 2))

    assert len(facts) == MAX_FACTS
    assert rejected == [Rejected(MAX_FACTS, "too_many"), Rejected(MAX_FACTS + 1, "too_many")]


# --- slots --------------------------------------------------------------------------------------


def test_a_slot_number_stands_for_the_known_slot() -> None:
    """The first known value is number 1, and its name beats the one the model made up."""
    assert (fact(slot=1).subject, fact(slot=1).attribute) == ("", "plan")
    named = fact(slot=2, subject="something", attribute="state of the order")
    assert (named.subject, named.attribute) == ("order A-17", "status")


def test_a_value_that_ended_keeps_its_slot() -> None:
    """It needs the slot's number, or its name."""
    assert (fact(slot=1, still_true=False).attribute, fact(slot=1, still_true=False).is_still_so) == (
        "plan",
        False,
    )
    assert fact(still_true=False).attribute == "database"


@pytest.mark.parametrize("kind", ["episodic", "procedural"])
def test_only_what_holds_until_it_changes_has_a_slot(kind: str) -> None:
    """An attribute of an event or a rule is no slot."""
    assert (fact(kind=kind, subject="order A-17").attribute, fact(kind=kind).subject) == ("", "")


@pytest.mark.parametrize("subject", ["customer", "The Customer", "user", "I", "客户", None, " "])
def test_the_customer_by_any_name_is_the_customer(subject: Any) -> None:
    """A model that names the customer as subject means the same slot as one that does not."""
    assert fact(subject=subject).subject == ""


@pytest.mark.parametrize(
    "attribute", ["delivery_address", " delivery  address ", "delivery\naddress", "delivery address\x00"]
)
def test_an_attribute_is_one_name_however_it_is_written(attribute: str) -> None:
    """Underscores, white space and control characters make no other slot."""
    assert fact(attribute=attribute).attribute == "delivery address"


@pytest.mark.parametrize("subject", ["order  A-17", "order\nA-17", "order A-17\x00"])
def test_a_subject_is_one_name_however_it_is_written(subject: str) -> None:
    """White space and control characters make no other slot."""
    assert fact(subject=subject).subject == "order A-17"


# --- times --------------------------------------------------------------------------------------


def day(when: str | None, *, sent_at: float = SENT, zone: tzinfo = UTC) -> str:
    """The date, in the customer's zone, a text comes to."""
    return datetime.fromtimestamp(resolve_time(when, sent_at, zone=zone), zone).date().isoformat()


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        ("2024-03-01", "2024-03-01T10:00:00Z"),
        ("2023-12-24", "2023-12-24T10:00:00Z"),
        ("2024-03-01T08:30:00Z", "2024-03-01T08:30:00Z"),
        ("2024-03-01 08:30", "2024-03-01T08:30:00Z"),
        ("2024-03-01T08:30:00.250Z", "2024-03-01T08:30:00Z"),
        ("2024-03-01T08:30:00+02:00", "2024-03-01T06:30:00Z"),
        ("2024-03-01T08:30:00+0200", "2024-03-01T06:30:00Z"),
        (" 2024-03-01 ", "2024-03-01T10:00:00Z"),
        ("2024-03-20", "2024-03-20T10:00:00Z"),
    ],
)
def test_a_date_is_taken_as_it_stands(when: str, expected: str) -> None:
    """A date without a time has the message's time of that day; a zone that is given counts."""
    assert iso(resolve_time(when, SENT, zone=UTC)) == expected


def test_a_time_without_a_zone_is_the_customers() -> None:
    """Half past eight in Shanghai is half past midnight in UTC."""
    assert iso(resolve_time("2024-03-01T08:30", SENT, zone=SHANGHAI)) == "2024-03-01T00:30:00Z"


@pytest.mark.parametrize(
    "when",
    [
        "yesterday",
        "Yesterday",
        "昨天",
        "gestern",
        "hier",
        "ayer",
        "ieri",
        "昨日",
        "어제",
        "вчера",
        "1 day ago",
    ],
)
def test_yesterday_is_the_day_before_the_message(when: str) -> None:
    """In a message of 2024-03-02 it is 2024-03-01, in any of the usual languages."""
    assert day(when) == "2024-03-01"


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        ("3 days ago", "2024-02-28"),
        ("3天前", "2024-02-28"),
        ("三天前", "2024-02-28"),
        ("vor 3 Tagen", "2024-02-28"),
        ("hace 3 días", "2024-02-28"),
        ("the day before yesterday", "2024-02-29"),
        ("前天", "2024-02-29"),
        ("two weeks ago", "2024-02-17"),
        ("today", "2024-03-02"),
        ("今天", "2024-03-02"),
        ("tomorrow", "2024-03-03"),
        ("明天", "2024-03-03"),
        ("March 1", "2024-03-01"),
        ("1 March 2024", "2024-03-01"),
        ("2024年3月1日", "2024-03-01"),
        ("December 24", "2023-12-24"),
    ],
)
def test_words_for_a_day_are_taken_against_the_message(when: str, expected: str) -> None:
    """Relative words start from the message, and a day without a year is the last one."""
    assert day(when) == expected


@pytest.mark.parametrize(
    ("sent", "zone", "expected"),
    [
        ("2024-03-02T20:00:00+00:00", SHANGHAI, "2024-03-02"),
        ("2024-03-02T01:00:00+00:00", NEW_YORK, "2024-02-29"),
        ("2024-03-02T01:00:00+00:00", UTC, "2024-03-01"),
        ("2024-03-10T17:00:00+00:00", NEW_YORK, "2024-03-09"),
    ],
    ids=["later there", "earlier there", "no zone", "over the change to summer time"],
)
def test_yesterday_is_counted_in_the_customers_zone(sent: str, zone: tzinfo, expected: str) -> None:
    """The day of a message is the one the customer's calendar shows."""
    sent_at = datetime.fromisoformat(sent).timestamp()

    assert day("yesterday", sent_at=sent_at, zone=zone) == expected
    assert day("昨天", sent_at=sent_at, zone=zone) == expected


@pytest.mark.parametrize(
    "when",
    [
        None,
        "",
        "  ",
        "nonsense",
        "when I was young",
        "not said",
        "5",
        "?",
        "2024-13-45",
        "2024-02-30T99:00",
        "²",
        "99999999999 days ago",
        "{{when}}",
    ],
)
def test_what_is_no_time_gives_the_messages_time(when: str | None) -> None:
    """Nothing is guessed."""
    assert resolve_time(when, SENT, zone=UTC) == SENT


@pytest.mark.parametrize("when", ["2099-01-01", "2025-03-20", "9999-12-31T23:59:59Z", "in 5 years"])
def test_a_time_over_a_year_after_the_message_is_refused(when: str) -> None:
    """A misread date must not win every contest of a slot for years."""
    assert resolve_time(when, SENT, zone=UTC) == SENT


def test_a_time_within_a_year_after_the_message_is_kept() -> None:
    """A contract that starts next month is a fact of next month."""
    assert day("2024-04-01") == "2024-04-01"


@pytest.mark.parametrize("when", ["0001-01-01", "0001-01-01T00:00:00Z", "1 January 0001", "0000-00-00"])
@pytest.mark.parametrize("zone", [UTC, SHANGHAI, NEW_YORK], ids=["UTC", "Shanghai", "New York"])
def test_a_time_no_calendar_can_show_is_refused(when: str, zone: tzinfo) -> None:
    """Whatever a model says, the time can be shown as a date afterwards and lies in living memory."""
    seconds = resolve_time(when, SENT, zone=zone)

    assert str(iso(seconds))[:2] in {"19", "20"}


# --- anything -----------------------------------------------------------------------------------

_scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=12)
    | st.sampled_from(["semantic", "2024-03-01", "yesterday", 10**400, -1, "\ud800"])
)
_values = (
    _scalars | st.lists(_scalars, max_size=2) | st.dictionaries(st.text(max_size=4), _scalars, max_size=2)
)
_items = st.dictionaries(st.sampled_from(sorted(GOOD)), _values).map(lambda changes: {**GOOD, **changes})


@given(st.lists(_items | _values, max_size=6))
def test_any_list_gives_facts_and_reasons(items: list[Any]) -> None:
    """Each item is one or the other, every fact is sound, and nothing is raised."""
    facts, rejected = check(*items, zone=SHANGHAI)

    assert len(facts) + len(rejected) == len(items)
    assert len({r.item for r in rejected}) == len(rejected)
    for kept in facts:
        assert kept.text.strip()
        assert MESSAGES[kept.message].role is Role.CUSTOMER
        assert 0.6 <= kept.confidence <= 1.0
        assert kept.attribute or kept.is_still_so
        assert iso(kept.occurred_at)


@given(
    st.text(max_size=100)
    | st.text("0123456789-:TZ+. ", max_size=30)
    | st.builds(
        "{} {} {}".format,
        st.integers(-(10**9), 10**9),
        st.sampled_from(["days", "weeks", "years", "Tage", "天", "hours"]),
        st.sampled_from(["ago", "前", "", "later"]),
    ),
    st.sampled_from([UTC, SHANGHAI, NEW_YORK]),
)
def test_any_words_give_a_time_that_can_be_shown(when: str, zone: tzinfo) -> None:
    """Never an error, never over a year after the message."""
    seconds = resolve_time(when, SENT, zone=zone)

    assert iso(seconds)
    assert seconds <= SENT + timedelta(days=366).total_seconds()
