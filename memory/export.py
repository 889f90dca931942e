"""Everything about one customer, item by item, for the customer to read and take along."""

import base64
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from memory.errors import ParameterInvalid
from memory.ledger import Entry, Ledger
from memory.links import Link, LinkStore
from memory.records import Memory
from memory.scope import Scope
from memory.store import MemoryStore
from memory.text import join


class Section(StrEnum):
    """What an export holds, in its order."""

    MEMORIES = "memories"
    HISTORY = "history"
    """What is superseded, and the marks that end a value."""
    LINKS = "links"
    TICKETS = "tickets"


_ORDER = tuple(Section)


@dataclass(frozen=True, slots=True)
class Item:
    """One item of an export.

    Attributes:
        value: a memory with its whole text, a link, or the entry of an imported ticket.
        cursor: where to go on behind it.
    """

    value: Memory | Link | Entry
    cursor: str


def export(
    store: MemoryStore | None, links: LinkStore, ledger: Ledger, scope: Scope, *, cursor: str
) -> Iterator[Item]:
    """Everything a namespace holds of one scope, expired memories included until they are deleted.

    It is read page by page, in an order that later writes do not shift.

    Args:
        store: the memories; None where nothing was ever stored.
        links, ledger: of the namespace.
        scope: whose.
        cursor: of the last item that is known; "" to begin with the first.

    Raises:
        ParameterInvalid: the cursor is none of ours.
        SetupError, ServiceError: what was given until then can be gone on from.
    """
    section, row_id = _read_cursor(cursor)
    return _export(store, links, ledger, scope, section, row_id)


def _export(
    store: MemoryStore | None,
    links: LinkStore,
    ledger: Ledger,
    scope: Scope,
    section: Section,
    row_id: str,
) -> Iterator[Item]:
    for each in _ORDER[_ORDER.index(section) :]:
        after = row_id if each is section else ""
        for last, value in _items(each, store, links, ledger, scope, after):
            yield Item(value, _cursor(each, last))


def _items(
    section: Section,
    store: MemoryStore | None,
    links: LinkStore,
    ledger: Ledger,
    scope: Scope,
    after: str,
) -> Iterator[tuple[str, Memory | Link | Entry]]:
    """The items of one section behind an id, each with its id."""
    if section is Section.LINKS:
        for page in links.pages_of(scope, after=after):
            yield from page
    elif section is Section.TICKETS:
        for entries in ledger.pages_of(scope, after=after):
            yield from entries
    elif store is not None:
        for rows in store.pages(scope, is_history=section is Section.HISTORY, after=after):
            for memory in _whole(rows):
                yield memory.memory_id, memory


def _whole(rows: Iterable[Memory]) -> Iterator[Memory]:
    """The statements and marks these rows hold, each with its whole text, in the order of their ids."""
    parts: dict[str, list[Memory]] = defaultdict(list)
    for row in rows:
        if row.ends_one or not row.ends_slot:  # other rows without content say nothing of the customer
            parts[row.memory_id].append(row)
    for memory_id in sorted(parts):
        statement = sorted(parts[memory_id], key=lambda row: row.part)
        yield statement[0]._replace(text=join(row.text for row in statement))


def _cursor(section: Section, row_id: str) -> str:
    return base64.urlsafe_b64encode(json.dumps([section, row_id]).encode()).decode()


def _read_cursor(cursor: str) -> tuple[Section, str]:
    if not cursor:
        return _ORDER[0], ""
    try:
        section, row_id = json.loads(base64.urlsafe_b64decode(cursor.encode()))
        return Section(section), str(row_id)
    except (ValueError, TypeError, RecursionError):
        raise ParameterInvalid(name="cursor", expected="the cursor of an earlier answer") from None
