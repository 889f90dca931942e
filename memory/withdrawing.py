"""Withdrawing: what is forgotten of a customer while it moves to another goes where it has arrived, too."""

from collections.abc import Collection, Sequence

from memory.forgetting import end_slots
from memory.moving import arrival
from memory.records import Memory
from memory.scope import Scope
from memory.store import MemoryStore
from memory.tombstones import Tombstones


def withdraw(
    store: MemoryStore,
    tombstones: Tombstones,
    new: Scope,
    rows: Sequence[Memory],
    *,
    but: Collection[str] = (),
    now: float,
) -> None:
    """Delete from one scope what was forgotten in another and has been copied here.

    Args:
        store, tombstones: of the namespace.
        new: where it may have arrived.
        rows: what was forgotten, as it was where it came from.
        but: ids of what was here before.
        now: when it was forgotten, seconds since 1970.
    """
    ids = {arrival(m, new).memory_id for m in rows if not m.ends_slot}
    there = store.read(new, ids - set(but))
    if there:
        tombstones.bury(new, statements=[m for m in there if m.part == 0], now=now)
        end_slots(store, new, there, now=now)
        store.erase(new, there, leaves_sign=True)


def forgotten_meanwhile(
    store: MemoryStore, tombstones: Tombstones, old: Scope, rows: Sequence[Memory]
) -> dict[float, list[Memory]]:
    """Which of these rows are not there any more since they were forgotten, by when that was.

    One that another call has moved on is not there either, but no tombstone says so.
    """
    left = {m.memory_id for m in store.read(old, {m.memory_id for m in rows})}
    gone = [m for m in rows if m.memory_id not in left and not m.ends_slot and m.digest]
    if not gone:
        return {}
    until = tombstones.of_statements({tombstones.statement(old, m.digest) for m in gone})
    found: dict[float, list[Memory]] = {}
    for memory in gone:
        at = until.get(tombstones.statement(old, memory.digest))
        if at is not None and at >= memory.recorded_at:
            found.setdefault(at, []).append(memory)
    return found
