"""Undoing a merge: what it moved and is still there goes back to the customer it came from.

A statement that both had stays with both. What was said, imported or linked under either id after the merge
stays with the customer it went into.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from memory.aliases import Alias, Moved, What
from memory.ledger import Entry, Ledger, entry_id, renamed
from memory.links import Link, LinkStore, link_id
from memory.moving import clear, copy
from memory.records import Memory
from memory.scope import Scope
from memory.store import MemoryStore

CHUNK = 500
"""Statements in one step."""


def move_back(
    store: MemoryStore,
    links: LinkStore,
    ledger: Ledger,
    alias: Alias,
    noted: Sequence[Moved],
    *,
    is_erased: bool,
) -> None:
    """Move back what is noted of a merge; run again after a crash, it goes on where it stopped.

    Args:
        store, links, ledger: of the namespace.
        alias: the merge's.
        noted: what it moved.
        is_erased: whether the old customer was erased since: then what would move back is deleted.
    """
    old, new = alias.old, alias.target
    items = {(each.what, each.item_id): each for each in noted}
    entries = ledger.of_customer(new)
    going = [e for e in entries if (What.TICKET, entry_id(e.key)) in items and _is_from_before(e, alias)]
    kept = {row for entry in entries if entry not in going for row in entry.row_ids}
    statements = [each for each in noted if each.what in {What.MEMORY, What.MARK}]
    names = {each.item_id: each.old_id for each in statements}
    leaving: list[Memory] = []
    for start in range(0, len(statements), CHUNK):
        chunk = {each.item_id: each for each in statements[start : start + CHUNK]}
        rows = [
            m
            for m in store.read(new, chunk)
            if m.recorded_at <= alias.merged_at and (m.memory_id not in kept or chunk[m.memory_id].is_shared)
        ]
        if not is_erased:
            copy(store, new, old, rows, change=_as_noted({names[i]: each for i, each in chunk.items()}))
        leaving += [m for m in rows if not chunk[m.memory_id].is_shared and not _is_said_again(m, alias)]
    staying = {entry.conversation_id for entry in entries if entry not in going}
    leading = [
        link
        for link in links.of_customer(new)
        if (What.LINK, link_id(link.conversation_id)) in items
        and link.linked_at <= alias.merged_at
        and link.conversation_id not in staying
    ]
    if is_erased:
        ledger.erase(going)
        links.erase(leading)
    else:
        epoch = store.opened(old)
        ledger.put([replace(_renamed(entry, alias.customer_id, names), epoch=epoch) for entry in going])
        links.put(*(renewed(store, link, new, old) for link in leading))
    blanks = [m for m in store.history(new) if m.is_blank]  # of an undoing that was cut short
    clear(store, new, [*leaving, *blanks])


def renewed(store: MemoryStore, link: Link, old: Scope, new: Scope) -> Link:
    """A link that moves from one customer to another."""
    trail = tuple(sorted({*link.trail, store.shard(old)}))
    return replace(link, customer_id=new.customer_id, epoch=store.opened(new), trail=trail)


def _as_noted(noted: Mapping[str, Moved]) -> Callable[[Memory], Memory]:
    """Gives a statement that both have the times and places it had with the old customer."""

    def change(memory: Memory) -> Memory:
        details = noted[memory.memory_id].details
        return memory._replace(**details) if details else memory  # type: ignore[arg-type]

    return change


def _renamed(entry: Entry, customer_id: str, names: Mapping[str, str]) -> Entry:
    return replace(entry, customer_id=customer_id, row_ids=tuple(renamed(r, names) for r in entry.row_ids))


def _is_from_before(entry: Entry, alias: Alias) -> bool:
    return entry.imported_at <= alias.merged_at


def _is_said_again(memory: Memory, alias: Alias) -> bool:
    """Whether it was confirmed after the merge, and so belongs to the new customer too."""
    return memory.confirmed_at is not None and memory.confirmed_at > alias.merged_at
