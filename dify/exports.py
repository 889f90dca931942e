"""Everything about one customer as an answer: a page of JSON, or lines as they are read."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dify import answers
from memory.clock import iso, system_clock
from memory.export import Item
from memory.identity import Resolved
from memory.ledger import Entry
from memory.links import Link
from memory.records import Memory

PAGE_BYTES = 1_500_000
"""What the items of one page of JSON take, about; what is read of a bigger export comes with a cursor."""

LISTS = {"memory": "memories", "ended": "ended", "link": "links", "ticket": "tickets"}
"""Type of a line → list of a page."""


class Export:
    """One answer with what is known of a customer.

    Args:
        items: what to tell.
        resolved: of whom.
        aliases: ids of customers that were merged into this one.
        seconds: time for the answer.
    """

    def __init__(
        self, items: Iterator[Item], resolved: Resolved, aliases: Sequence[str], seconds: float
    ) -> None:
        self._items = items
        self._now = system_clock()
        self._ends_at = time.monotonic() + seconds
        self._first = {
            "customer_id": resolved.scope.customer_id,
            "aliases": list(aliases),
            "linked": resolved.is_linked,
            "exported_at": iso(self._now),
        }

    def page(self) -> dict[str, Any]:
        """A page: lists of memories, ended values, links and tickets, and the cursor of the next page."""
        page: dict[str, Any] = {**self._first, **{name: [] for name in LISTS.values()}, "cursor": None}
        size, cursor = 0, ""
        for item in self._items:
            if size > PAGE_BYTES or (cursor and time.monotonic() > self._ends_at):
                page["cursor"] = cursor
                break
            kind, shown = self._shown(item)
            size += len(json.dumps(shown))
            cursor = item.cursor
            page[LISTS[kind]].append(shown)
        return page

    def lines(self) -> Iterator[Mapping[str, Any]]:
        """A line for whom it is about, a line an item, and the last one with counts and cursor."""
        yield {"type": "customer", **self._first}
        counts = dict.fromkeys(LISTS.values(), 0)
        cursor, is_complete = "", True
        for item in self._items:
            if cursor and time.monotonic() > self._ends_at:
                is_complete = False
                break
            kind, shown = self._shown(item)
            yield {"type": kind, **shown}
            counts[LISTS[kind]] += 1
            cursor = item.cursor
        yield {
            "type": "end",
            "complete": is_complete,
            "cursor": None if is_complete else cursor,
            "counts": counts,
        }

    def _shown(self, item: Item) -> tuple[str, dict[str, Any]]:
        """An item with the type its line has."""
        match item.value:
            case Memory(ends_slot=True):
                return "ended", answers.ended(item.value)
            case Memory():
                return "memory", answers.exported(item.value, now=self._now)
            case Link():
                return "link", answers.link(item.value)
            case Entry():
                return "ticket", answers.ticket(item.value)
