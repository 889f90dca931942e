"""A record survives the store, and its id follows from what it says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.records import (
    Kind,
    Memory,
    Role,
    Scalar,
    belongs_to,
    derive_id,
    from_row,
    row_id,
    slot_key,
    to_columns,
    to_mark_columns,
)
from memory.scope import Scope, conversation_scope, customer_scope
from memory.text import digest

ANNA = customer_scope("anna")
BERT = customer_scope("bert")

_words = st.text(alphabet=st.characters(codec="utf-8"), max_size=20)
_moments = st.floats(min_value=0, max_value=4e9, allow_nan=False)
_scalars: st.SearchStrategy[Scalar] = st.one_of(
    _words, st.integers(-(2**53), 2**53), st.booleans(), st.floats(allow_nan=False, allow_infinity=False)
)
_part_of_parts = st.integers(1, 5).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n - 1)))


@st.composite
def _memories(draw: st.DrawFn, *, customer_id: str = "anna") -> Memory:
    parts, part = draw(_part_of_parts)
    return Memory(
        memory_id=draw(st.text(alphabet="0123456789abcdef", min_size=32, max_size=32)),
        text=draw(_words),
        kind=draw(st.sampled_from(Kind)),
        role=draw(st.sampled_from(Role)),
        subject=draw(_words),
        attribute=draw(_words),
        customer_id=customer_id,
        conversation_id=draw(_words),
        case_id=draw(_words),
        occurred_at=draw(_moments),
        recorded_at=draw(_moments),
        confirmed_at=draw(st.none() | _moments),
        expires_at=draw(st.none() | _moments),
        superseded_at=draw(st.none() | _moments),
        superseded_by=draw(_words),
        basis=draw(_words),
        metadata=draw(st.dictionaries(_words, _scalars, max_size=4)),
        slot=draw(_words),
        digest=draw(_words),
        parts=parts,
        part=part,
        ends_slot=draw(st.booleans()),
    )


def _stored(memory: Memory, scope: Scope) -> dict[str, Scalar]:
    """The columns as the store gives them back: those that are None are absent."""
    return {name: value for name, value in to_columns(memory, scope).items() if value is not None}


@given(_memories())
def test_a_record_comes_back_from_its_columns(memory: Memory) -> None:
    """Every field survives the way into the store's columns and back."""
    row = row_id(memory.memory_id, memory.part)
    assert from_row(row, memory.text, _stored(memory, ANNA)) == memory


@given(_memories(customer_id=""))
def test_a_provisional_record_comes_back_too(memory: Memory) -> None:
    """The record of a conversation that is not linked yet survives as well."""
    scope = conversation_scope("c")
    assert from_row(row_id(memory.memory_id, memory.part), memory.text, _stored(memory, scope)) == memory


@given(_memories())
def test_columns_are_what_chroma_can_hold(memory: Memory) -> None:
    """Columns are flat; times are floats always, since the store compares ints and floats oddly."""
    columns = to_columns(memory, ANNA)
    assert all(value is None or isinstance(value, str | int | float | bool) for value in columns.values())
    times = [value for name, value in columns.items() if name.endswith("_at")]
    assert all(value is None or type(value) is float for value in times)
    assert len(columns) <= 32
    assert all(len(name) <= 36 and name[0] not in "#$" for name in columns)


@given(_memories())
def test_every_record_has_every_column(memory: Memory) -> None:
    """Writing a row over another leaves nothing of the other: what is absent is None, not missing."""
    assert to_columns(memory, ANNA).keys() == to_columns(_FACT, ANNA).keys()


@given(_memories())
def test_marks_are_among_the_columns(memory: Memory) -> None:
    """Changing the marks alone writes what writing the record whole would have written there."""
    assert to_mark_columns(memory, ANNA).items() <= to_columns(memory, ANNA).items()


@given(_memories())
def test_a_search_by_key_meets_current_rows_only(memory: Memory) -> None:
    """What is superseded, or ends a slot, lies under the history key."""
    expected = ANNA.key if memory.is_current else ANNA.history_key
    assert to_columns(memory, ANNA)["scope"] == expected


_FACT = Memory(
    memory_id="0" * 32,
    text="Likes tea",
    kind=Kind.SEMANTIC,
    customer_id="anna",
    occurred_at=1.0,
    recorded_at=2.0,
)


def test_a_row_belongs_to_its_scope_only() -> None:
    """The second lock: a row of another customer is told apart by its own columns."""
    columns = _stored(_FACT, ANNA)
    assert belongs_to(columns, ANNA)
    assert not belongs_to(columns, BERT)
    assert not belongs_to(columns, conversation_scope("anna"))


@pytest.mark.parametrize(
    "changed",
    [
        {"customer_id": "bert"},
        {"customer_id": None},
        {"scope": BERT.key},
        {"scope": None},
        {"scope": BERT.history_key},
    ],
)
def test_a_row_that_contradicts_itself_belongs_to_nobody(changed: dict[str, object]) -> None:
    """Key and customer have to agree with the scope, both of them."""
    columns = {**_stored(_FACT, ANNA), **changed}
    assert not belongs_to(columns, ANNA)


def test_a_provisional_scope_takes_no_customers_row() -> None:
    """A row that names a customer is not the conversation's, even under its key."""
    scope = conversation_scope("c")
    assert belongs_to(_stored(_FACT._replace(customer_id=""), scope), scope)
    assert not belongs_to({**_stored(_FACT, scope), "customer_id": "anna"}, scope)


@pytest.mark.parametrize("broken", ["{", "[1]", "null", '"text"', 7, None])
def test_unreadable_user_metadata_is_no_metadata(broken: object) -> None:
    """A row written by somebody else does not break the answer."""
    columns = {**_stored(_FACT, ANNA), "metadata": broken}
    assert from_row(_FACT.memory_id, "Likes tea", columns).metadata == {}  # type: ignore[arg-type]


_PLAN = slot_key(ANNA, "", "plan")
_SAME = {"scope": ANNA, "kind": Kind.SEMANTIC, "slot": "", "text_digest": digest("Likes tea"), "basis": ""}


def _id(**changed: object) -> str:
    arguments = {**_SAME, **changed}
    return derive_id(arguments.pop("scope"), **arguments)  # type: ignore[arg-type]


def test_the_same_statement_gets_the_same_id() -> None:
    """Whoever writes it, and however often, it is one record."""
    assert _id() == _id()
    assert _id() == _id(scope=customer_scope("anna"), text_digest=digest(" Likes  tea\n"))
    assert len(_id()) == 32


@pytest.mark.parametrize(
    "changed",
    [
        {"scope": BERT},
        {"scope": conversation_scope("anna")},
        {"kind": Kind.EPISODIC},
        {"kind": Kind.PROCEDURAL},
        {"slot": _PLAN},
        {"text_digest": digest("Likes coffee")},
        {"text_digest": ""},
        {"basis": "at:1.000000"},
    ],
)
def test_anything_that_counts_gives_another_id(changed: dict[str, object]) -> None:
    """Customer, kind, slot, text and basis each tell statements apart."""
    assert _id(**changed) != _id()


def test_a_slot_is_named_without_regard_to_case() -> None:
    """`Plan` and ` plan ` are one slot; another name, subject or customer is another."""
    assert slot_key(ANNA, "", "Plan") == _PLAN == slot_key(ANNA, " ", " plan ")
    others = [slot_key(ANNA, "", "plans"), slot_key(ANNA, "plan", ""), slot_key(BERT, "", "plan")]
    assert len({_PLAN, *others}) == 4


def test_the_parts_of_a_text_have_ids_of_their_own() -> None:
    """The first part has the statement's id; each row leads back to the statement."""
    memory = _FACT._replace(parts=3)
    assert memory.row_ids == ["0" * 32, "0" * 32 + ".1", "0" * 32 + ".2"]
    assert {from_row(row, "", {}).memory_id for row in memory.row_ids} == {_FACT.memory_id}


@pytest.mark.parametrize(
    ("subject", "attribute", "expected"),
    [("", "", "Likes tea"), ("", "plan", "plan: Likes tea"), ("Acme", "CEO", "Acme CEO: Likes tea")],
)
def test_the_name_of_a_slot_is_searched_too(subject: str, attribute: str, expected: str) -> None:
    """A value such as "Pro" is found by the name of what it is the value of."""
    assert _FACT._replace(subject=subject, attribute=attribute).index_text == expected


@pytest.mark.parametrize(
    ("expires_at", "now", "expected"), [(None, 1e12, False), (10.0, 9.9, False), (10.0, 10.0, True)]
)
def test_a_memory_expires_at_its_moment(expires_at: float | None, now: float, expected: bool) -> None:
    """From that moment on it is over, and never where none is set."""
    assert _FACT._replace(expires_at=expires_at).is_expired(now) is expected


def test_confirming_counts_as_stating_it_again() -> None:
    """The later of the two moments decides, and a confirmation never makes a statement older."""
    assert _FACT._replace(confirmed_at=5.0).stated_at == 5.0
    assert _FACT._replace(confirmed_at=0.5).stated_at == 1.0
    assert _FACT.stated_at == 1.0
