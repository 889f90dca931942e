"""Ids are opaque text or refused, and nothing but identity resolution makes a scope."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.errors import CustomerMissing, IdInvalid
from memory.identity import Caller
from memory.scope import (
    MAX_ID_LENGTH,
    Scope,
    checked_id,
    conversation_scope,
    customer_scope,
    hashed,
)

OPAQUE = [
    "test_user",
    "test_user1",
    "a",
    "a%",
    "%a",
    "a*",
    "*a",
    "A",
    "a&b",
    "a=b",
    "a/b",
    "a:b",
    "a@example.com",
    "a+b",
    "a?b",
    "a#b",
    "% & = / : @ + ? #",
    "Anna Maria Schmidt",
    "anna  maria",
    "🙂",
    "👩\u200d👧",
    "客户一",
    "x" * 300,
    "42",
    "0",
    "-1",
    '{"$ne": ""}',
    "' OR 1=1 --",
    "none of them",
    "{{a}} b",
    "../../etc",
    "$in",
]


@pytest.mark.parametrize("value", OPAQUE)
def test_an_id_is_kept_as_it_is(value: str) -> None:
    """Nothing inside an id has a meaning, so nothing is changed."""
    assert checked_id("customer_id", value) == value


def test_two_ids_never_share_a_scope() -> None:
    """However alike two ids look, their scopes have no key in common."""
    scopes = [customer_scope(checked_id("customer_id", value)) for value in OPAQUE]
    keys = [key for scope in scopes for key in (scope.key, scope.history_key)]
    assert len(set(keys)) == 2 * len(OPAQUE)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(42, "42"), (0, "0"), ("  anna ", "anna"), ("anna\n", "anna"), (None, ""), ("", "")],
)
def test_an_id_is_read_as_its_text(value: object, expected: str) -> None:
    """A whole number is its digits, blanks around are a template's, and nothing is no id."""
    assert checked_id("customer_id", value) == expected


@pytest.mark.parametrize(
    "value",
    [
        " ",
        "\t\n",
        "\u3000",
        "\u00a0",
        "\u200b",
        "\ufeff",
        "\u2060\u200b ",
        "*",
        " * ",
        "%",
        "null",
        "None",
        "NULL",
        "undefined",
        "nan",
        "nil",
        "{{customer}}",
        "{{#start.customer_id#}}",
        "{#context#}",
        "${customer}",
        "{{\n}}",
        "x" * (MAX_ID_LENGTH + 1),
        10**MAX_ID_LENGTH,
        "a\x00b",
        "a\nb",
        "a\x7f",
        "a\x9f",
        "\ud800",
        True,
        False,
        4.2,
        float("nan"),
        {"id": "a"},
        {},
        ["a"],
        [],
        ("a",),
        b"a",
        Ellipsis,
    ],
    ids=lambda value: ascii(value)[:24],
)
def test_what_names_nobody_is_refused(value: object) -> None:
    """Blank, wildcard, unfilled, too long, unprintable or no text at all: an error, never a wider scope."""
    with pytest.raises(IdInvalid) as caught:
        checked_id("customer_id", value)
    assert caught.value.details["name"] == "customer_id"


@given(
    st.one_of(st.none(), st.text(alphabet=st.characters(exclude_categories=())), st.integers(), st.floats())
)
def test_an_id_is_usable_text_or_refused(value: object) -> None:
    """Whatever comes in, what comes out can be stored and sent, or is an error of ours."""
    try:
        checked = checked_id("customer_id", value)
    except IdInvalid:
        return
    assert checked.encode("utf-8").decode("utf-8") == checked
    assert checked == checked.strip()
    assert len(checked) <= MAX_ID_LENGTH
    assert bool(checked) == (value not in (None, ""))


@pytest.mark.parametrize("nothing", [None, ""])
def test_neither_customer_nor_conversation_is_an_error(nothing: str | None) -> None:
    """No id at all never means everybody; a case alone names nobody either."""
    with pytest.raises(CustomerMissing):
        Caller.checked(nothing, nothing, "case-1")


@pytest.mark.parametrize("position", [0, 1, 2])
def test_every_id_of_a_call_is_checked(position: int) -> None:
    """A blank one among good ones is noticed, whichever it is."""
    ids: list[object] = ["anna", "conversation-1", "case-1"]
    ids[position] = "  "
    with pytest.raises(IdInvalid):
        Caller.checked(*ids)


def test_a_conversation_is_not_a_customer_of_the_same_name() -> None:
    """A customer and a conversation with equal ids have separate memories."""
    customer, conversation = customer_scope("42"), conversation_scope("42")
    assert customer.is_provisional is False
    assert conversation.is_provisional is True
    keys = {customer.key, customer.history_key, conversation.key, conversation.history_key}
    assert len(keys) == 4


def test_a_scope_cannot_be_built_from_outside() -> None:
    """Naming a customer to the store takes identity resolution."""
    real = customer_scope("anna")
    with pytest.raises(TypeError, match="identity resolution"):
        Scope("bert", "", real.key, real.history_key, object())
    with pytest.raises(TypeError):
        Scope("bert", "", real.key, real.history_key)  # type: ignore[call-arg]


def test_a_scope_cannot_be_changed() -> None:
    """Nobody turns one customer's scope into another's."""
    scope = customer_scope("anna")
    with pytest.raises(AttributeError):
        scope.customer_id = "bert"  # type: ignore[misc]


def test_a_scope_does_not_show_its_keys() -> None:
    """What a log or a traceback prints holds no key to the store."""
    scope = customer_scope("anna")
    assert scope.key not in repr(scope)
    assert scope.history_key not in repr(scope)


@given(st.text(min_size=1), st.integers(min_value=1, max_value=1_024))
def test_a_customer_lies_in_one_shard(customer_id: str, shards: int) -> None:
    """The shard follows from the id and is one of those there are."""
    assert 0 <= customer_scope(customer_id).shard(shards) < shards
    assert customer_scope(customer_id).shard(shards) == customer_scope(customer_id).shard(shards)


def test_customers_are_spread_evenly() -> None:
    """Of 64 shards none gets more than twice its share of 10,000 customers."""
    counts = [0] * 64
    for number in range(10_000):
        counts[customer_scope(f"customer-{number}").shard(64)] += 1
    assert max(counts) < 2 * 10_000 / 64
    assert min(counts) > 0


@given(
    st.lists(st.text(max_size=4), max_size=4),
    st.lists(st.text(max_size=4), max_size=4),
)
def test_hashed_parts_never_run_together(one: list[str], other: list[str]) -> None:
    """Two lists of parts have one hash only if they are the same list."""
    assert (hashed(*one) == hashed(*other)) == (one == other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("ab", "c"), ("a", "bc")),
        (("a", ""), ("a",)),
        (("", "a"), ("a", "")),
        (("1:a",), ("a",)),
        (("a1:b",), ("a", "b")),
        (("a", "b"), ("b", "a")),
    ],
)
def test_the_border_between_parts_counts(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    """Moving a letter over a border gives another hash."""
    assert hashed(*one) != hashed(*other)
