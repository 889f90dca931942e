"""What a merge is going to move: listed for a preview, and noted so that it can be undone."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memory.aliases import Alias, Details, Moved, What
from memory.ledger import Entry, entry_id
from memory.links import Link, link_id
from memory.moving import arrival
from memory.records import Memory, slot_name
from memory.scope import Scope
from memory.slots import current_of, heads, order


@dataclass(frozen=True, slots=True)
class Contested:
    """A slot in which both customers have a current value.

    Attributes:
        subject, attribute: which one.
        old_wins: whether the value of the customer that goes is the newer one.
    """

    subject: str
    attribute: str
    old_wins: bool


@dataclass(frozen=True, slots=True)
class Merge:
    """What a merge would move, or moved.

    Attributes:
        customer_id: the old id.
        into_id: the customer who answers for it.
        kinds: statements that move, by kind; history included.
        shared: statements that both have.
        links, tickets: conversations and imported tickets that move.
        contested: slots with two current values; told by a preview only.
        memory_ids: the statements with the new customer, those that both have included; of a preview none.
        merge_id: for undoing it; "" for a preview.
    """

    customer_id: str
    into_id: str
    kinds: Mapping[str, int]
    shared: int
    links: int
    tickets: int
    contested: tuple[Contested, ...] = ()
    memory_ids: tuple[str, ...] = ()
    merge_id: str = ""


def listed(
    old: Scope,
    new: Scope,
    rows: Sequence[Memory],
    there: Sequence[Memory],
    links: Sequence[Link],
    entries: Sequence[Entry],
) -> list[Moved]:
    """What moves.

    Args:
        old, new: from where to where.
        rows: everything the old scope holds.
        there: what the new scope holds of it already.
        links, entries: the old customer's.
    """
    known = {memory.memory_id for memory in there}
    moved = []
    for memory in [*heads(rows), *(m for m in rows if m.ends_one)]:
        item = arrival(memory, new).memory_id
        is_shared = item in known
        moved.append(
            Moved(
                what=What.MARK if memory.ends_slot else What.MEMORY,
                item_id=item,
                old_id=memory.memory_id,
                kind="" if memory.ends_slot else str(memory.kind),
                is_shared=is_shared,
                details=_details(memory) if is_shared and not memory.ends_slot else None,
            )
        )
    moved += [Moved(what=What.LINK, item_id=link_id(link.conversation_id)) for link in links]
    moved += [Moved(what=What.TICKET, item_id=entry_id(entry.key)) for entry in entries]
    return moved


def told(moved: Sequence[Moved], old_id: str, into_id: str, alias: Alias | None = None) -> Merge:
    """What is listed as an answer: of a merge, or without an alias of a preview."""
    memories = [each for each in moved if each.what is What.MEMORY]
    counts = Counter(each.what for each in moved)
    return Merge(
        customer_id=old_id,
        into_id=into_id,
        kinds=dict(sorted(Counter(m.kind for m in memories if not m.is_shared).items())),
        shared=sum(1 for m in memories if m.is_shared),
        links=counts[What.LINK],
        tickets=counts[What.TICKET],
        memory_ids=tuple(sorted(m.item_id for m in memories)) if alias else (),
        merge_id=alias.merge_id if alias else "",
    )


def contested(old_rows: Sequence[Memory], new_rows: Sequence[Memory]) -> tuple[Contested, ...]:
    """The slots in which both have a current value, in order of their names."""
    olds, news = _by_slot(old_rows), _by_slot(new_rows)
    found = []
    for name in olds.keys() & news.keys():
        one, other = current_of(olds[name]), current_of(news[name])
        if one is not None and other is not None:
            found.append(Contested(other.subject, other.attribute, order(one)[:2] > order(other)[:2]))
    return tuple(sorted(found, key=lambda slot: (slot.subject, slot.attribute)))


def _by_slot(rows: Sequence[Memory]) -> dict[str, list[Memory]]:
    slots: dict[str, list[Memory]] = {}
    for row in rows:
        if row.slot:
            name = row.slot_name if row.ends_slot else slot_name(row.subject, row.attribute)
            slots.setdefault(name, []).append(row)
    return slots


def _details(memory: Memory) -> Details:
    """What of a statement may differ between two customers who share it."""
    return {
        "conversation_id": memory.conversation_id,
        "case_id": memory.case_id,
        "source": memory.source,
        "ticket_id": memory.ticket_id,
        "occurred_at": memory.occurred_at,
        "recorded_at": memory.recorded_at,
        "confirmed_at": memory.confirmed_at,
        "expires_at": memory.expires_at,
    }
