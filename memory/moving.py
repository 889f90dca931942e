"""Moving what was remembered in one conversation from one scope to another."""

from collections.abc import Sequence
from dataclasses import replace

from memory.records import Memory, in_scope, row_id, slot_key
from memory.scope import Scope
from memory.store import MemoryStore, Stored

ROUNDS = 3
"""Times the old scope is read again for rows that were written, or changed sides, while it was read."""


def move(store: MemoryStore, old: Scope, new: Scope, *, conversation_id: str, case_id: str) -> int:
    """Move a conversation's memories, with their history, to another scope.

    The rows are written under the ids that follow from the new scope and then removed from the old one;
    run again after a crash, it goes on where it stopped. A statement the new scope holds already stays
    as it is. With the same scope twice, only the case is set.

    Args:
        store: the memories.
        old, new: from where to where.
        conversation_id: whose rows move; of a provisional scope all do.
        case_id: the case they are filed under from now on; "" leaves the one they have.

    Returns:
        How many statements arrived that the new scope did not hold.
    """
    moved: set[str] = set()
    for _ in range(ROUNDS):
        rows = [
            m for m in store.everything(old) if old.is_provisional or m.conversation_id == conversation_id
        ]
        if old == new:
            values = [m for m in rows if not m.ends_slot and m.case_id != case_id]
            store.file(old, [replace(m, case_id=case_id) for m in values])
            return 0
        if not rows:
            break
        moved |= _move_rows(store, old, new, rows, case_id=case_id)
    return len(moved)


def _move_rows(
    store: MemoryStore, old: Scope, new: Scope, rows: Sequence[Memory], *, case_id: str
) -> set[str]:
    """Move these rows; the ids of the statements that are new to the new scope."""
    values = [m for m in rows if not m.ends_slot]
    moved: set[str] = set()
    for page in store.with_vectors(old, values):
        arrivals = [(_rewritten(m, new, case_id), vector) for m, vector in page]
        there = store.read(new, [m.memory_id for m, _ in arrivals])
        known = {row_id(m.memory_id, m.part) for m in there}
        fresh: list[Stored] = [
            (m, vector) for m, vector in arrivals if row_id(m.memory_id, m.part) not in known
        ]
        store.write(new, fresh)
        moved.update(m.memory_id for m, _ in fresh)
    by_slot = {m.slot: m for m in values if m.slot}
    marks = [m for m in rows if m.ends_slot and m.slot in by_slot]
    store.write_marks(new, [_mark_in(new, mark, by_slot[mark.slot]) for mark in marks])
    for value in by_slot.values():
        store.settle(new, slot_key(new, value.subject, value.attribute))
    store.erase(old, rows)
    for slot in by_slot:
        store.settle(old, slot)
    return moved


def _rewritten(memory: Memory, scope: Scope, case_id: str) -> Memory:
    """The statement as it is in another scope: current until its slot is settled there."""
    return replace(in_scope(memory, scope), case_id=case_id or memory.case_id)


def _mark_in(scope: Scope, mark: Memory, value: Memory) -> Memory:
    """A mark that ends a slot, for the same slot in another scope: what was forgotten stays so.

    Only the conversation's own marks move with it: what a customer forgot elsewhere is nothing to another.
    """
    slot = slot_key(scope, value.subject, value.attribute)
    return replace(
        mark,
        memory_id=f"{mark.memory_id[:16]}{slot[:16]}",
        slot=slot,
        customer_id=scope.customer_id,
    )
