"""Moving what was remembered from one scope to another: a conversation's, or all of a customer's."""

from collections.abc import Callable, Sequence

from memory.records import Memory, in_scope, row_id
from memory.scope import Scope
from memory.slots import mark_in
from memory.store import MemoryStore, Stored

CHUNK = 500
"""Rows in one step."""
ROUNDS = 3
"""Times the old scope is read again for rows that were written, or changed sides, while it was read."""


def move(store: MemoryStore, old: Scope, new: Scope, *, conversation_id: str, case_id: str) -> int:
    """Move a conversation's memories, with their history, to another scope.

    The rows are written under the ids that follow from the new scope and then removed from the old one;
    run again after a crash, it goes on where it stopped. A statement the new scope holds already stays
    as it is. With the same scope twice, only the case is set.

    Only the conversation's own marks move with it: what a customer forgot elsewhere is nothing to another.

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
            m
            for m in store.everything(old)
            if old.is_provisional or m.conversation_id == conversation_id or m.is_blank
        ]
        if old == new:
            values = [m for m in rows if not m.ends_slot and m.case_id != case_id]
            store.file(old, [m._replace(case_id=case_id) for m in values])
            return 0
        if not rows:
            break
        moved |= copy(store, old, new, rows, change=lambda m: m._replace(case_id=case_id or m.case_id))
        clear(store, old, rows)
    return len(moved)


def copy(
    store: MemoryStore,
    old: Scope,
    new: Scope,
    rows: Sequence[Memory],
    *,
    change: Callable[[Memory], Memory] = lambda memory: memory,
) -> set[str]:
    """Write rows of one scope into another, with the vectors they have, and settle the slots there.

    Args:
        store: the memories.
        old, new: from where to where.
        rows: statements, every row of each, and marks.
        change: what else becomes of a statement on its way; never its id.

    Returns:
        The ids of the statements that the new scope did not hold.
    """
    fresh: set[str] = set()
    for page in store.with_vectors(old, [m for m in rows if not m.ends_slot]):
        arrivals = [(change(arrival(m, new)), vector) for m, vector in page]
        there = store.read(new, [m.memory_id for m, _ in arrivals])
        known = {row_id(m.memory_id, m.part) for m in there}
        missing: list[Stored] = [
            (m, vector) for m, vector in arrivals if row_id(m.memory_id, m.part) not in known
        ]
        store.write(new, missing)
        fresh.update(m.memory_id for m, _ in missing)
    store.write_marks(new, [arrival(m, new) for m in rows if m.ends_one])
    for slot in sorted({arrival(m, new).slot for m in rows if m.slot}):
        store.settle(new, slot)
    return fresh


def clear(store: MemoryStore, scope: Scope, rows: Sequence[Memory]) -> None:
    """Erase rows that have arrived elsewhere, and settle the slots they leave."""
    slots = sorted({m.slot for m in rows if m.slot})
    going = {m.memory_id for m in rows}
    for slot in slots:  # first, since nothing leads back to a slot once the rows are gone
        store.settle(scope, slot, without=going)
    # Nobody reads a conversation's own memory again once it is linked.
    store.erase(scope, rows, leaves_sign=not scope.is_provisional)
    for slot in slots:
        store.settle(scope, slot)


def arrival(memory: Memory, scope: Scope) -> Memory:
    """The statement or mark as it is in another scope: current until its slot is settled there."""
    return mark_in(memory, scope) if memory.ends_slot else in_scope(memory, scope)


def fold(store: MemoryStore, scope: Scope, rows: Sequence[Memory]) -> None:
    """Let statements that both have be confirmed as late, and last as long, as the longer of the two."""
    arriving = {arrival(m, scope).memory_id: m for m in rows if not m.ends_slot}
    there = [m for m in store.read(scope, arriving) if not m.ends_slot]
    longer, known_elsewhere = [], []
    for own in there:
        other = arriving[own.memory_id]
        confirmed = max(own.confirmed_at or 0.0, other.confirmed_at or 0.0) or None
        lasts = (own.expires_at, other.expires_at)
        expires = None if None in lasts else max(each for each in lasts if each is not None)
        if (own.confirmed_at, own.expires_at) != (confirmed, expires):
            longer.append(own._replace(confirmed_at=confirmed, expires_at=expires))
        if bool(own.source) != bool(other.source):
            known_elsewhere.append(own)
    store.confirm(scope, longer)
    store.adopt(scope, known_elsewhere)


def chunks(rows: Sequence[Memory]) -> list[list[Memory]]:
    """The rows in steps, those of one statement together."""
    steps: list[list[Memory]] = []
    for row in sorted(rows, key=lambda m: (m.memory_id, m.part)):
        is_next = bool(steps) and len(steps[-1]) >= CHUNK and steps[-1][-1].memory_id != row.memory_id
        if not steps or is_next:
            steps.append([])
        steps[-1].append(row)
    return steps
