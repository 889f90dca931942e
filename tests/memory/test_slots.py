"""What is current in a slot is computed from its rows, whatever the order in which they arrived."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from memory.records import Kind, Memory
from memory.slots import current_of, end_mark, heads, order, settle, without_stale

_few_moments = st.integers(0, 5).map(float)


@st.composite
def _values(draw: st.DrawFn, memory_id: str = "", slot: str = "s") -> Memory:
    return Memory(
        memory_id=memory_id,
        text="value",
        kind=Kind.SEMANTIC,
        occurred_at=draw(_few_moments),
        recorded_at=draw(_few_moments),
        confirmed_at=draw(st.none() | _few_moments),
        superseded_at=draw(st.none() | _few_moments),
        superseded_by=draw(st.sampled_from(["", "m0", "m1", "gone"])),
        slot=slot,
        parts=draw(st.integers(1, 3)),
    )


def _rows_of(values: list[Memory]) -> list[Memory]:
    return [value._replace(part=part) for value in values for part in range(value.parts)]


@st.composite
def _slots(draw: st.DrawFn, *, marks: bool = True) -> list[Memory]:
    """Rows of one slot, in any order, with any marks of being history, right or wrong."""
    values = [draw(_values(f"m{number}")) for number in range(draw(st.integers(1, 5)))]
    ends = draw(st.lists(_few_moments, max_size=2)) if marks else []
    rows = _rows_of(values) + [
        end_mark(values[0]._replace(occurred_at=moment, confirmed_at=None), now=9.0) for moment in ends
    ]
    return draw(st.permutations(rows))


def _after(rows: list[Memory], changes: list[Memory]) -> list[Memory]:
    """The rows as they lie in the store once the changes are written."""
    changed = {(row.memory_id, row.part): row for row in changes}
    return [changed.get((row.memory_id, row.part), row) for row in rows]


def _settled(rows: list[Memory]) -> list[Memory]:
    return _after(rows, settle(rows))


def _current(rows: list[Memory]) -> list[Memory]:
    return [row for row in heads(rows) if row.is_current]


def _newest(rows: list[Memory]) -> Memory:
    return max(heads(rows), key=lambda m: (m.stated_at, m.recorded_at, m.memory_id))


@given(_slots(marks=False))
def test_the_newest_value_and_no_other_is_current(rows: list[Memory]) -> None:
    """By when it was stated, then by when it was recorded, then by id."""
    assert [m.memory_id for m in _current(_settled(rows))] == [_newest(rows).memory_id]


@given(_slots())
def test_at_most_one_value_is_current(rows: list[Memory]) -> None:
    """With marks that end the slot it is the newest value or none, as `current_of` says."""
    held = current_of(rows)
    expected = [] if held is None else [held.memory_id]
    assert [m.memory_id for m in _current(_settled(rows))] == expected


@given(_slots(), st.randoms(use_true_random=False))
def test_the_order_of_arrival_does_not_matter(rows: list[Memory], chance: object) -> None:
    """Another order of the same rows settles to the same rows."""
    other = list(rows)
    chance.shuffle(other)  # type: ignore[attr-defined]

    def told(settled: list[Memory]) -> set[tuple[str, int, float | None, str]]:
        return {(m.memory_id, m.part, m.superseded_at, m.superseded_by) for m in settled}

    assert told(_settled(rows)) == told(_settled(other))


@given(_slots())
def test_one_value_after_another_settles_to_the_same(rows: list[Memory]) -> None:
    """Settling after each arrival ends where settling once at the end does."""
    stored: list[Memory] = []
    for row in rows:
        stored = _settled([*stored, row])
    at_once = _settled(rows)
    assert [(m.superseded_at, m.superseded_by) for m in stored] == [
        (m.superseded_at, m.superseded_by) for m in at_once
    ]


@given(_slots())
def test_settling_again_changes_nothing(rows: list[Memory]) -> None:
    """What is settled stays as it is."""
    assert settle(_settled(rows)) == []


@given(_slots())
def test_settling_changes_nothing_but_the_marks(rows: list[Memory]) -> None:
    """Texts, times and ids stay, and no row appears or goes."""

    def bare(row: Memory) -> Memory:
        return row._replace(superseded_at=None, superseded_by="")

    assert [bare(row) for row in _settled(rows)] == [bare(row) for row in rows]


@given(_slots())
def test_all_parts_of_a_statement_agree(rows: list[Memory]) -> None:
    """The parts of one text are current or history together."""
    marks: dict[str, set[tuple[float | None, str]]] = {}
    for row in _settled(rows):
        if not row.ends_slot:
            marks.setdefault(row.memory_id, set()).add((row.superseded_at, row.superseded_by))
    assert all(len(different) == 1 for different in marks.values())


@given(_slots(marks=False))
def test_history_is_a_chain(rows: list[Memory]) -> None:
    """Each value ends where and with what the next newer one began."""
    for older, newer in pairwise(sorted(heads(_settled(rows)), key=order)):
        assert (older.superseded_at, older.superseded_by) == (newer.stated_at, newer.memory_id)


@given(_slots(marks=False))
def test_forgetting_the_current_value_brings_no_older_one_back(rows: list[Memory]) -> None:
    """With the mark in place of the newest value, none of the others becomes current."""
    newest = _newest(rows)
    left = [row for row in rows if row.memory_id != newest.memory_id]
    assert _current(_settled([*left, end_mark(newest, now=9.0)])) == []


@given(_slots(marks=False))
def test_a_value_stated_after_the_end_is_current(rows: list[Memory]) -> None:
    """A slot that was ended can be filled anew."""
    newest = _newest(rows)
    new = newest._replace(
        memory_id="new", occurred_at=newest.stated_at + 1, confirmed_at=None, parts=1, part=0
    )
    settled = _settled([*rows, end_mark(newest, now=9.0), new])
    assert [m.memory_id for m in _current(settled)] == ["new"]


@given(_values("m0"))
def test_an_end_mark_holds_no_content(value: Memory) -> None:
    """What stays after forgetting says that something ended, and nothing of what it was."""
    value = value._replace(text="secret", attribute="plan", subject="Acme", metadata={"a": "secret"})
    mark = end_mark(value, now=9.0)
    assert (mark.text, mark.attribute, mark.subject, mark.metadata, mark.digest) == ("", "", "", {}, "")
    assert mark.ends_slot
    assert mark.is_current is False
    assert end_mark(value, now=10.0).memory_id == mark.memory_id


@given(_slots(marks=False), _slots(marks=False))
def test_a_reader_meets_the_newest_of_each_slot(one: list[Memory], other: list[Memory]) -> None:
    """Before the marks are written, a slot's older live values are passed over, and nothing else is."""
    other = [row._replace(slot="t", memory_id=f"t{row.memory_id}") for row in other]
    plain = [row._replace(slot="", memory_id=f"p{row.memory_id}") for row in one]
    read = without_stale([*one, *plain, *other])
    ids = {row.memory_id for row in read if row.slot}
    assert ids == {_newest(one).memory_id, _newest(other).memory_id}
    assert [row for row in read if not row.slot] == plain
    assert len([row for row in read if row.slot == "s"]) == _newest(one).parts


def test_nothing_is_current_in_an_empty_slot() -> None:
    """A slot without rows holds no value and needs no change."""
    assert current_of([]) is None
    assert settle([]) == []
    assert without_stale([]) == []


def test_a_statement_is_listed_by_its_first_part() -> None:
    """Of several parts in any order the first one stands for the statement."""
    value = Memory(memory_id="m", text="", kind=Kind.SEMANTIC, occurred_at=1.0, recorded_at=1.0, parts=2)
    last, first = value._replace(part=1), value._replace(part=0)
    assert heads([last, first, end_mark(value, now=2.0)]) == [first]
