"""Listing what is known of one scope, page by page, in an order that deletions do not shift."""

import base64
import binascii
from collections.abc import Iterable
from dataclasses import dataclass

from memory.errors import ParameterInvalid
from memory.records import Kind, Memory
from memory.scope import Scope
from memory.slots import heads, without_stale
from memory.store import MemoryStore

DEFAULT_PAGE = 50
PAGE_RANGE = (1, 500)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Which page of a listing.

    Attributes:
        limit: memories at the most, 1 to 500.
        cursor: where the page before ended, as its answer says; "" for the first.
        kinds: which kinds; empty for all.
        include_superseded: whether history is listed too.
    """

    limit: int = DEFAULT_PAGE
    cursor: str = ""
    kinds: frozenset[Kind] = frozenset()
    include_superseded: bool = False


def page_of(store: MemoryStore, scope: Scope, page: Page, *, now: float) -> tuple[list[Memory], str]:
    """One page of a customer's memories, oldest record first.

    Args:
        store: the memories.
        scope: whose.
        page: which page.
        now: seconds since 1970; what has expired by then is left out.

    Returns:
        The memories, one row a statement, and the cursor of the next page; "" after the last.

    Raises:
        ParameterInvalid: the cursor is none of ours.
    """
    after = _read_cursor(page.cursor)
    rows: Iterable[Memory] = without_stale(store.live(scope))
    if page.include_superseded:
        rows = [*rows, *store.history(scope)]
    wanted = [
        memory
        for memory in sorted(heads(rows), key=_position)
        if _position(memory) > after
        and not memory.is_expired(now)
        and (not page.kinds or memory.kind in page.kinds)
    ]
    listed = wanted[: page.limit]
    is_last = len(wanted) <= page.limit
    return listed, "" if is_last else _cursor(listed[-1])


def _position(memory: Memory) -> tuple[float, str]:
    return memory.recorded_at, memory.memory_id


def _cursor(memory: Memory) -> str:
    recorded_at, memory_id = _position(memory)
    return base64.urlsafe_b64encode(f"{recorded_at!r}|{memory_id}".encode()).decode()


def _read_cursor(cursor: str) -> tuple[float, str]:
    if not cursor:
        return float("-inf"), ""
    try:
        recorded_at, _, memory_id = base64.urlsafe_b64decode(cursor.encode()).decode().partition("|")
        return float(recorded_at), memory_id
    except (ValueError, binascii.Error):
        raise ParameterInvalid(name="cursor", expected="the cursor of an earlier answer") from None
