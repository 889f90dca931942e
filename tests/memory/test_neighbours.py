"""Neighbours are the two messages before and after, in the same conversation only."""

import numpy as np

from memory.neighbours import Neighbours
from memory.records import Kind, Memory


def _row(conversation_id: str, at: float, *, name: str = "", part: int = 0) -> Memory:
    return Memory(
        memory_id=name or f"{conversation_id}{at}",
        text="",
        kind=Kind.EPISODIC,
        conversation_id=conversation_id,
        occurred_at=at,
        recorded_at=at,
        part=part,
    )


def test_a_row_counts_two_neighbours_on_each_side() -> None:
    """By their time, whatever the order they come in."""
    rows = [_row("a", at) for at in (5.0, 1.0, 4.0, 2.0, 3.0)]
    values = np.array([row.occurred_at for row in rows])
    assert Neighbours(rows).total(values).tolist() == [12.0, 6.0, 14.0, 10.0, 15.0]
    assert Neighbours(rows).mean(values).tolist() == [4.0, 2.0, 3.5, 2.5, 3.0]


def test_another_conversation_is_no_neighbour() -> None:
    """Even where its messages lie between."""
    rows = [_row("a", 1.0), _row("b", 2.0), _row("a", 3.0)]
    assert Neighbours(rows).total(np.array([1.0, 10.0, 100.0])).tolist() == [101.0, 10.0, 101.0]


def test_rows_of_no_conversation_stand_alone() -> None:
    """A fact that was noted outside a conversation has only its own words."""
    rows = [_row("", 1.0, name="x"), _row("", 1.0, name="y")]
    assert Neighbours(rows).total(np.array([1.0, 10.0])).tolist() == [1.0, 10.0]


def test_parts_of_a_long_text_stand_in_order() -> None:
    """They are each other's neighbours, also those of one moment."""
    rows = [_row("a", 1.0, name="long", part=part) for part in range(4)]
    total = Neighbours(rows).total(np.array([1.0, 10.0, 100.0, 1000.0]))
    assert total.tolist() == [111.0, 1111.0, 1111.0, 1110.0]


def test_each_line_of_a_table_is_summed() -> None:
    """Rows lie in the last axis."""
    rows = [_row("a", 1.0), _row("a", 2.0)]
    assert Neighbours(rows).total(np.array([[1.0, 2.0], [3.0, 4.0]])).tolist() == [[3.0, 3.0], [7.0, 7.0]]


def test_nothing_has_no_neighbours() -> None:
    """No rows, no values."""
    assert Neighbours([]).total(np.zeros((3, 0))).shape == (3, 0)
