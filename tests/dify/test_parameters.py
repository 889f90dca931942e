"""What Dify hands over: absent, None and "" are the same, numbers and switches come as text too."""

from collections.abc import Callable
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dify.parameters import Parameters
from memory.errors import MemoryFault, ParameterInvalid

NOTHING: list[dict[str, Any]] = [{}, {"x": None}, {"x": ""}, {"x": "  \n"}]


class Colour(StrEnum):
    """A fixed set of words."""

    RED = "red"
    GREEN = "green"


@pytest.mark.parametrize("values", NOTHING, ids=repr)
def test_nothing_is_the_default(values: dict[str, Any]) -> None:
    """Absent, None, empty and blank all mean that nothing was set."""
    read = Parameters(values)
    assert read.raw("x") is None
    assert read.text("x", "default") == "default"
    assert read.number("x", 2.5, low=0, high=9) == 2.5
    assert read.whole_number("x", 7, low=0, high=9) == 7
    assert read.boolean("x", True) is True
    assert read.boolean("x") is False
    assert read.choice("x", Colour, Colour.RED) is Colour.RED
    assert read.choices("x", Colour) == frozenset()
    assert read.texts("x") == []
    assert read.moment("x") is None
    assert read.model("x") is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [(" tea ", "tea"), (5, "5"), (5.5, "5.5"), (0, "0"), ("0", "0"), ("你好", "你好"), ("a\nb", "a\nb")],
)
def test_text_is_trimmed_and_a_number_is_its_digits(value: object, expected: str) -> None:
    """A variable bound to a number is read as text too."""
    assert Parameters({"x": value}).text("x") == expected


@pytest.mark.parametrize("value", [True, False, [], ["a"], {}, {"a": 1}, b"a"], ids=repr)
def test_what_is_no_text_is_refused(value: object) -> None:
    """The error names the parameter and what it must be."""
    with pytest.raises(ParameterInvalid) as caught:
        Parameters({"x": value}).text("x")
    assert caught.value.message == "x must be text."


@pytest.mark.parametrize(
    ("value", "expected"),
    [(5, 5.0), ("5", 5.0), (" 5.5 ", 5.5), (0, 0.0), ("0", 0.0), (9, 9.0), ("9.0", 9.0), ("1e0", 1.0)],
)
def test_a_number_may_come_as_text(value: object, expected: float) -> None:
    """Within its bounds, both included."""
    assert Parameters({"x": value}).number("x", 1.0, low=0, high=9) == expected


@pytest.mark.parametrize(
    "value",
    [
        *[
            -1,
            9.1,
            "10",
            "five",
            "5,5",
            "5 5",
            "nan",
            "inf",
            float("nan"),
            float("inf"),
            10**400,
            "1" * 5_000,
        ],
        *[True, False, "true", [], [5], {}, b"5"],
    ],
    ids=lambda value: repr(value)[:20],
)
def test_what_is_no_number_in_range_is_refused(value: object) -> None:
    """The error names the range."""
    read = Parameters({"x": value})
    with pytest.raises(ParameterInvalid) as caught:
        read.number("x", 1.0, low=0, high=9)
    assert caught.value.message == "x must be a number from 0 to 9."


@pytest.mark.parametrize(("value", "expected"), [(5, 5), ("5", 5), (5.0, 5), ("5.0", 5), (0, 0)])
def test_a_whole_number_is_whole(value: object, expected: int) -> None:
    """Dify sends 5.0 for 5."""
    number = Parameters({"x": value}).whole_number("x", 1, low=0, high=9)
    assert number == expected
    assert type(number) is int


@pytest.mark.parametrize("value", [5.5, "5.5", "10", "x", True], ids=repr)
def test_half_a_number_is_refused(value: object) -> None:
    """A count is not rounded."""
    with pytest.raises(ParameterInvalid):
        Parameters({"x": value}).whole_number("x", 1, low=0, high=9)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, True),
        (False, False),
        ("true", True),
        ("True", True),
        (" TRUE ", True),
        ("false", False),
        ("1", True),
        ("0", False),
        (1, True),
        (0, False),
        ("yes", True),
        ("no", False),
        ("on", True),
        ("off", False),
    ],
)
def test_a_switch_may_come_as_text(value: object, expected: bool) -> None:
    """In particular "false" is off."""
    assert Parameters({"x": value}).boolean("x", not expected) is expected


@pytest.mark.parametrize("value", ["maybe", "tru", 2, -1, [], [True], {}], ids=repr)
def test_what_is_no_switch_is_refused(value: object) -> None:
    """Neither on nor off is not taken for either."""
    with pytest.raises(ParameterInvalid):
        Parameters({"x": value}).boolean("x")


@pytest.mark.parametrize("value", ["red", " Red ", "RED"])
def test_a_choice_is_one_of_its_words(value: str) -> None:
    """In any case, with blanks around."""
    assert Parameters({"x": value}).choice("x", Colour, None) is Colour.RED


@pytest.mark.parametrize("value", ["blue", "red,green", "redd", True, ["red"], 1], ids=repr)
def test_another_word_is_refused_with_those_there_are(value: object) -> None:
    """The error lists the words, and does not repeat the one given."""
    with pytest.raises(ParameterInvalid) as caught:
        Parameters({"x": value}).choice("x", Colour, None)
    assert "blue" not in str(caught.value)


def test_the_words_of_a_choice_are_told() -> None:
    """A builder sees what there is to choose from."""
    with pytest.raises(ParameterInvalid) as caught:
        Parameters({"x": "blue"}).choice("x", Colour, None)
    assert caught.value.message == "x must be one of red, green."


LISTS: list[tuple[object, list[str]]] = [
    ("red", ["red"]),
    ("red,green", ["red", "green"]),
    (" red , green ,", ["red", "green"]),
    ("red\ngreen\r\n", ["red", "green"]),
    (["red", "green"], ["red", "green"]),
    (("red", " green "), ["red", "green"]),
    ('["red", "green"]', ["red", "green"]),
    (' ["red"] ', ["red"]),
    (["red", ""], ["red"]),
    ([], []),
    ("[]", []),
    (" [ ] ", []),
    ("[red", ["[red"]),
]


@pytest.mark.parametrize(("value", "expected"), LISTS, ids=repr)
def test_texts_come_in_many_shapes(value: object, expected: list[str]) -> None:
    """A list, a list as JSON, or one text with commas or line breaks between; an empty one is empty."""
    assert Parameters({"x": value}).texts("x") == expected


@pytest.mark.parametrize("value", [5, True, {}, {"a": 1}, [5], ["red", None], '["red", 5]', "[5]"], ids=repr)
def test_what_is_no_list_of_texts_is_refused(value: object) -> None:
    """A number in a list of ids is a mistake of the flow."""
    with pytest.raises(ParameterInvalid):
        Parameters({"x": value}).texts("x")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("red", {Colour.RED}),
        ("Red, GREEN", {Colour.RED, Colour.GREEN}),
        (["red"], {Colour.RED}),
        ('["red", "green"]', {Colour.RED, Colour.GREEN}),
        ("all", set()),
        ("All", set()),
        ([], set()),
        ("[]", set()),
    ],
)
def test_choices_are_a_set_of_words(value: object, expected: set[Colour]) -> None:
    """Nothing, or "all", is no restriction."""
    assert Parameters({"x": value}).choices("x", Colour) == expected


@pytest.mark.parametrize("value", ["blue", "red,blue", ["blue"], "all,red", 5], ids=repr)
def test_choices_of_other_words_are_refused(value: object) -> None:
    """One wrong word among right ones is not passed over."""
    with pytest.raises(ParameterInvalid):
        Parameters({"x": value}).choices("x", Colour)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2026-03-01", 1_772_323_200.0),
        ("2026-03-01T12:00:00Z", 1_772_366_400.0),
        ("2026-03-01T12:00:00+02:00", 1_772_359_200.0),
        ("2026-03-01 12:00", 1_772_366_400.0),
        (1_772_366_400, 1_772_366_400.0),
        ("1772366400", 1_772_366_400.0),
        (1_772_366_400_000, 1_772_366_400.0),
    ],
)
def test_a_moment_is_read_by_one_rule(value: object, expected: float) -> None:
    """ISO 8601, seconds and milliseconds; without a zone it is UTC."""
    assert Parameters({"x": value}).moment("x") == expected


@pytest.mark.parametrize(
    "value", ["yesterday", "2026-13-01", "01/02/2026", True, [], {}, "nan", -1], ids=repr
)
def test_what_is_no_moment_is_refused(value: object) -> None:
    """A time that cannot be read is never taken for now."""
    with pytest.raises(ParameterInvalid):
        Parameters({"x": value}).moment("x")


MODEL = {
    "provider": "langgenius/openai/openai",
    "model": "text-embedding-3-small",
    "model_type": "text-embedding",
}


@pytest.mark.parametrize("value", [MODEL, '{"provider": "langgenius/openai/openai", "model": "m"}'], ids=str)
def test_a_model_is_what_its_selector_holds(value: object) -> None:
    """As an object, or as JSON text of one."""
    model = Parameters({"x": value}).model("x")
    assert model is not None
    assert model["provider"] == "langgenius/openai/openai"


@pytest.mark.parametrize("value", [{}, "{}"], ids=repr)
def test_an_empty_selector_selects_nothing(value: object) -> None:
    """A selector that was never touched is no model."""
    assert Parameters({"x": value}).model("x") is None


@pytest.mark.parametrize(
    "value",
    [
        *[
            "gpt",
            5,
            True,
            [],
            [MODEL],
            {"provider": "p"},
            {"model": "m"},
            {"provider": "", "model": "m"},
            "[]",
        ],
        *[{"provider": 5, "model": {"a": 1}}, {"provider": ["p"], "model": "m"}],
    ],
    ids=repr,
)
def test_what_is_no_model_is_refused(value: object) -> None:
    """Provider and model are both needed, as text."""
    with pytest.raises(ParameterInvalid):
        Parameters({"x": value}).model("x")


@pytest.mark.parametrize("value", [None, ""])
def test_no_id_is_no_id(value: object) -> None:
    """Only absent, None and "" are none."""
    assert Parameters({"x": value}).identifier("x") is None
    assert Parameters({}).identifier("x") is None


@pytest.mark.parametrize("value", [" ", "anna", 42, 0, [], {}, False], ids=repr)
def test_an_id_comes_as_it_is(value: object) -> None:
    """A blank one, or one that is no text, is left for the check of ids to refuse."""
    assert Parameters({"x": value}).identifier("x") == value


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@settings(
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(_json)
def test_any_value_is_read_or_refused_by_an_error_of_ours(value: Any) -> None:
    """Whatever a flow binds, no reader fails in a way of its own, and none repeats the value."""
    read = Parameters({"x": value})
    readers: list[Callable[[], object]] = [
        lambda: read.text("x"),
        lambda: read.number("x", 1.0, low=0, high=9),
        lambda: read.whole_number("x", 1, low=0, high=9),
        lambda: read.boolean("x"),
        lambda: read.choice("x", Colour, None),
        lambda: read.choices("x", Colour),
        lambda: read.texts("x"),
        lambda: read.moment("x"),
        lambda: read.model("x"),
    ]
    refused = [fault for fault in map(_refusal, readers) if fault is not None]
    assert all(type(fault) is ParameterInvalid and fault.details["name"] == "x" for fault in refused)


def _refusal(reader: Callable[[], object]) -> MemoryFault | None:
    try:
        reader()
    except MemoryFault as fault:
        return fault
    return None


def test_reading_changes_nothing() -> None:
    """What Dify handed over stays what it was."""
    values: dict[str, Any] = {"x": [" a ", ""], "y": " b "}
    read = Parameters(values)
    read.texts("x")
    read.text("y")
    assert values == {"x": [" a ", ""], "y": " b "}
