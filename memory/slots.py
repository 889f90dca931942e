"""Which value of a slot is current. Computed from all of the slot's rows, never from the marks alone.

The value stated last holds: the greatest `stated_at`, and among equal ones the one recorded last. The order
in which values arrive does not matter. A mark that ends the slot beats every value up to its time, so that
forgetting a value does not bring the one before it back.
"""

import math
from collections.abc import Iterable, Sequence

from memory.records import Kind, Memory, slot_in, slot_name
from memory.scope import Scope, hashed


def order(memory: Memory) -> tuple[float, float, str]:
    """What decides which of two values of a slot is the newer."""
    return (memory.stated_at, memory.recorded_at, memory.memory_id)


def settle(slot: Iterable[Memory]) -> list[Memory]:
    """What has to change so that the marks of a slot tell the truth.

    Args:
        slot: all rows of one slot: values (every part of each), history and marks.

    Returns:
        The rows whose marks are wrong, with right ones: every value but the newest is superseded by the
        next newer, since the moment that one was stated. The result of settling settled rows is empty.
    """
    rows = list(slot)
    values = sorted(heads(rows), key=order)
    ended_at = max((m.occurred_at for m in rows if m.ends_slot), default=-math.inf)
    right: dict[str, tuple[float | None, str]] = {}
    for i, value in enumerate(values):
        successor = values[i + 1] if i + 1 < len(values) else None
        mark: tuple[float | None, str] = (None, "")
        if successor is not None:
            mark = (successor.stated_at, successor.memory_id)
        if value.stated_at <= ended_at and (successor is None or successor.stated_at > ended_at):
            mark = (ended_at, "")
        right[value.memory_id] = mark
    changed = []
    for row in rows:
        if row.ends_slot:
            continue
        superseded_at, superseded_by = right[row.memory_id]
        if (row.superseded_at, row.superseded_by) != (superseded_at, superseded_by):
            changed.append(row._replace(superseded_at=superseded_at, superseded_by=superseded_by))
    return changed


def heads(rows: Iterable[Memory]) -> list[Memory]:
    """One row a statement: its first part. Marks are left out."""
    first: dict[str, Memory] = {}
    for row in rows:
        if not row.ends_slot and (row.memory_id not in first or row.part == 0):
            first[row.memory_id] = row
    return list(first.values())


def current_of(slot: Sequence[Memory]) -> Memory | None:
    """The value a slot holds; None if it is empty or was ended."""
    values = heads(slot)
    if not values:
        return None
    newest = max(values, key=order)
    ended = any(m.ends_slot and m.occurred_at >= newest.stated_at for m in slot)
    return None if ended else newest


def without_stale(rows: Iterable[Memory]) -> list[Memory]:
    """Live rows without the values of a slot that a newer live one beats.

    Between a write and its marks, or after a crash there, two values of a slot are unmarked; a reader
    meets the newest only.
    """
    listed = list(rows)
    newest: dict[str, Memory] = {}
    for row in listed:
        if row.slot and (row.slot not in newest or order(row) > order(newest[row.slot])):
            newest[row.slot] = row
    return [row for row in listed if not row.slot or row.memory_id == newest[row.slot].memory_id]


def end_mark(value: Memory, *, now: float) -> Memory:
    """The content-free mark that ends a slot with this value.

    Args:
        value: the value that goes.
        now: seconds since 1970.
    """
    return Memory(
        memory_id=_mark_id(value.slot, value.stated_at),
        text="",
        kind=Kind.SEMANTIC,
        customer_id=value.customer_id,
        conversation_id=value.conversation_id,
        occurred_at=value.stated_at,
        recorded_at=now,
        slot=value.slot,
        slot_name=slot_name(value.subject, value.attribute),
        ends_slot=True,
    )


def mark_in(mark: Memory, scope: Scope) -> Memory:
    """The mark for the same slot in another scope: what was forgotten stays so."""
    slot = slot_in(scope, mark.slot_name)
    return mark._replace(
        memory_id=_mark_id(slot, mark.occurred_at),
        slot=slot,
        customer_id=scope.customer_id,
    )


def _mark_id(slot: str, ended_at: float) -> str:
    return hashed("end", slot, f"{ended_at:.6f}")
