"""Moving what was remembered in one conversation from one scope to another."""

from collections.abc import Sequence
from dataclasses import replace

from memory.records import Memory, in_scope, row_id, slot_key
from memory.scope import Scope
from memory.slots import settle
from memory.store import MemoryStore, Stored


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
    rows = [m for m in store.everything(old) if old.is_provisional or m.conversation_id == conversation_id]
    values = [m for m in rows if not m.ends_slot]
    if old == new:
        store.file(old, [replace(m, case_id=case_id) for m in values if m.case_id != case_id])
        return 0
    moved: set[str] = set()
    slots: set[str] = set()
    for page in store.with_vectors(old, values):
        arrivals = [(_rewritten(m, new, case_id), vector) for m, vector in page]
        known = {row_id(m.memory_id, m.part) for m in store.read(new, [m.memory_id for m, _ in arrivals])}
        fresh: list[Stored] = [
            (m, vector) for m, vector in arrivals if row_id(m.memory_id, m.part) not in known
        ]
        store.write(new, fresh)
        moved.update(m.memory_id for m, _ in fresh)
        slots.update(m.slot for m, _ in arrivals if m.slot)
    store.write_marks(new, _marks(store, old, new, values))
    for slot in sorted(slots):
        store.restate(new, settle(store.slot(new, slot)))
    store.erase(old, rows)
    if not old.is_provisional:
        for slot in sorted({m.slot for m in values if m.slot}):
            store.restate(old, settle(store.slot(old, slot)))
    return len(moved)


def _rewritten(memory: Memory, scope: Scope, case_id: str) -> Memory:
    """The statement as it is in another scope: current until its slot is settled there."""
    return replace(in_scope(memory, scope), case_id=case_id or memory.case_id)


def _marks(store: MemoryStore, old: Scope, new: Scope, values: Sequence[Memory]) -> list[Memory]:
    """The marks that end the slots of these values, for the new scope: what was forgotten stays so."""
    named = {m.slot: m for m in values if m.slot}
    marks: list[Memory] = []
    for slot, value in named.items():
        new_slot = slot_key(new, value.subject, value.attribute)
        marks.extend(
            replace(mark, slot=new_slot, memory_id=f"{mark.memory_id[:16]}{new_slot[:16]}")
            for mark in store.slot(old, slot)
            if mark.ends_slot
        )
    return [replace(mark, customer_id=new.customer_id) for mark in marks]
