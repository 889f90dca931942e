"""The audit: an append-only list of who did what and when, without content and without a plain id.

Entries lie in a collection of their own, found by the hour or the day they are of, since the store filters by
one equality. They are gone when their time is over: a few at a time beside what is written, all by upkeep.
"""

import base64
import binascii
import json
import math
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from memory.chroma import PAGE
from memory.chroma_rows import Row
from memory.errors import ParameterInvalid
from memory.namespace import Namespace, unsearched_vector
from memory.records import Columns
from memory.scope import keyed_hash
from memory.settings import AuditSettings

MAX_IDS = 100
"""Ids of one sort that an entry lists; its counts are of all."""
MAX_LOOKED_AT = 20_000
"""Entries that one page looks at; where a filter finds few, the page is short and its cursor goes on."""
PAGES_BESIDE_A_WRITE = 3
"""Pages of expired entries that a write deletes at most, once a day and process."""
HOUR_SECONDS = 3_600
DAY_SECONDS = 86_400

type TicketId = tuple[str, str]
"""Source and ticket id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """What somebody did, as it is handed over; none of the ids is stored as it is.

    Attributes:
        who: name of the key, "node" for a tool, "webhook" for a signed delivery.
        verb: what was asked for, such as "remember".
        outcome: "ok", or the code of the failure.
        counts: numbers by name, such as how many were stored.
        customer_id: whom it was about; "" for nobody or unknown.
        merged_id: the customer that was merged into this one, or is no longer; "" for none.
        memory_ids, tickets, conversation_ids: what it touched.
    """

    who: str
    verb: str
    outcome: str
    counts: Mapping[str, int] = field(default_factory=dict)
    customer_id: str = field(default="", repr=False)
    merged_id: str = field(default="", repr=False)
    memory_ids: Sequence[str] = field(default=(), repr=False)
    tickets: Sequence[TicketId] = field(default=(), repr=False)
    conversation_ids: Sequence[str] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry of the audit.

    Attributes:
        entry_id: 32 hexadecimal digits, drawn at random.
        at: when, seconds since 1970.
        who, verb, outcome, counts: see `Act`.
        customer, merged: keyed hashes of their ids; "" for nobody, or without a key in the settings.
        memories, tickets, conversations: keyed hashes of ids, at most 100 each; empty without a key.
    """

    entry_id: str
    at: float
    who: str
    verb: str
    outcome: str
    counts: Mapping[str, int]
    customer: str = ""
    merged: str = ""
    memories: tuple[str, ...] = ()
    tickets: tuple[str, ...] = ()
    conversations: tuple[str, ...] = ()

    @property
    def position(self) -> tuple[float, str]:
        """What entries are ordered by."""
        return self.at, self.entry_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Which page of the audit.

    Attributes:
        limit: entries on it.
        cursor: where the page before it ended; "" for the newest.
        who, verb: only these; "" for all.
    """

    limit: int
    cursor: str = ""
    who: str = ""
    verb: str = ""


class Audit:
    """The audit of one namespace.

    Args:
        namespace: where it lies.
        settings: how long entries are kept, and the key of the hashes.
    """

    def __init__(self, namespace: Namespace, settings: AuditSettings) -> None:
        self._namespace = namespace
        self._settings = settings

    def append(self, act: Act, *, now: float) -> None:
        """Note an act. Of its ids nothing is stored but keyed hashes; without a key, nothing.

        Args:
            act: who did what.
            now: seconds since 1970.

        Raises:
            SetupError, ServiceError: it is not noted.
        """
        entry = self._entry(act, now=now)
        self._namespace.chroma.add(self._namespace.audit, [_to_row(entry)])
        today = _day(now)
        if _swept.is_new((self._namespace.place, today)):
            self._sweep(PAGES_BESIDE_A_WRITE, now=now)

    def page(self, asked: Asked, *, now: float) -> tuple[list[Entry], str]:
        """One page, newest first.

        Args:
            asked: which one.
            now: seconds since 1970; what is older than the retention is left out.

        Returns:
            The entries, and the cursor of the next page; "" after the last. With a filter a page may be short
            though a cursor says that it goes on.

        Raises:
            ParameterInvalid: the cursor is none of ours.
        """
        before = _read_cursor(asked.cursor)
        # A process whose clock is ahead may have noted something in an hour that is still to come.
        newest = min(now + HOUR_SECONDS, before[0])
        listed: list[Entry] = []
        looked_at = 0
        for entries in self._hours(newest, now=now):
            for entry in entries:
                if entry.position >= before or entry.at < self._oldest(now):
                    continue
                if len(listed) == asked.limit or looked_at >= MAX_LOOKED_AT:
                    return listed, _cursor(before)
                before = entry.position
                looked_at += 1
                if asked.who in {"", entry.who} and asked.verb in {"", entry.verb}:
                    listed.append(entry)
        return listed, ""

    def expire(self, *, now: float) -> int:
        """Delete the entries that are older than the retention.

        Args:
            now: seconds since 1970.

        Returns:
            How many are gone.
        """
        return self._sweep(None, now=now)

    # --- plumbing --------------------------------------------------------------------------------

    def _oldest(self, now: float) -> float:
        return now - self._settings.days * DAY_SECONDS

    def _hours(self, newest: float, *, now: float) -> Iterator[list[Entry]]:
        """The entries of each hour that has some, from a moment back to the end of the retention."""
        chroma, collection = self._namespace.chroma, self._namespace.audit
        first_written = chroma.get(collection, limit=1)
        if not first_written:
            return
        # The clocks of two processes may differ a little, so what was written first may not be the oldest.
        oldest = max(self._oldest(now), _from_row(first_written[0]).at - HOUR_SECONDS)
        days = range(math.floor(newest / DAY_SECONDS), math.floor(oldest / DAY_SECONDS) - 1, -1)
        for day in days:
            chroma.renew()
            if not chroma.get(collection, where={"day": _day(day * DAY_SECONDS)}, limit=1):
                continue
            for hour in range(23, -1, -1):
                start = day * DAY_SECONDS + hour * HOUR_SECONDS
                if start > newest:
                    continue
                rows = chroma.get(collection, where={"hour": _hour(start)})
                yield sorted(map(_from_row, rows), key=lambda entry: entry.position, reverse=True)

    def _sweep(self, pages: int | None, *, now: float) -> int:
        """Delete expired entries from the beginning of the list, where the oldest are."""
        chroma, collection = self._namespace.chroma, self._namespace.audit
        gone = 0
        while pages is None or pages > 0:
            rows = chroma.get(collection, limit=PAGE)
            old = [row.row_id for row in rows if _from_row(row).at < self._oldest(now)]
            if old:
                chroma.delete(collection, old)
            gone += len(old)
            if len(old) < PAGE:
                break
            pages = None if pages is None else pages - 1
            chroma.renew()
        return gone

    def _entry(self, act: Act, *, now: float) -> Entry:
        key = self._settings.hash_key

        def hashes(what: str, ids: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
            if not key:
                return ()
            return tuple(keyed_hash(key, what, *each) for each in list(dict.fromkeys(ids))[:MAX_IDS])

        return Entry(
            entry_id=uuid.uuid4().hex,
            at=now,
            who=act.who,
            verb=act.verb,
            outcome=act.outcome,
            counts=dict(act.counts),
            customer="".join(hashes("customer", [(act.customer_id,)] if act.customer_id else [])),
            merged="".join(hashes("customer", [(act.merged_id,)] if act.merged_id else [])),
            memories=hashes("memory", [(each,) for each in act.memory_ids]),
            tickets=hashes("ticket", list(act.tickets)),
            conversations=hashes("conversation", [(each,) for each in act.conversation_ids]),
        )


def _to_row(entry: Entry) -> Row:
    columns: Columns = {
        "day": _day(entry.at),
        "hour": _hour(entry.at),
        "at": float(entry.at),
        "who": entry.who,
        "verb": entry.verb,
        "outcome": entry.outcome,
        "customer": entry.customer or None,
        "merged": entry.merged or None,
    }
    text = json.dumps(
        {
            "counts": dict(entry.counts),
            "memories": entry.memories,
            "tickets": entry.tickets,
            "conversations": entry.conversations,
        }
    )
    return Row(entry.entry_id, text, columns, unsearched_vector(entry.entry_id))


def _from_row(row: Row) -> Entry:
    columns, more = row.columns, json.loads(row.text)
    return Entry(
        entry_id=row.row_id,
        at=float(columns.get("at", 0.0)),
        who=str(columns.get("who", "")),
        verb=str(columns.get("verb", "")),
        outcome=str(columns.get("outcome", "")),
        counts={str(name): int(number) for name, number in more["counts"].items()},
        customer=str(columns.get("customer", "")),
        merged=str(columns.get("merged", "")),
        memories=tuple(more["memories"]),
        tickets=tuple(more["tickets"]),
        conversations=tuple(more["conversations"]),
    )


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")


def _hour(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H")


def _cursor(position: tuple[float, str]) -> str:
    at, entry_id = position
    return base64.urlsafe_b64encode(f"{at!r}|{entry_id}".encode()).decode()


def _read_cursor(cursor: str) -> tuple[float, str]:
    if not cursor:
        return math.inf, ""
    try:
        text, _, entry_id = base64.urlsafe_b64decode(cursor.encode()).decode().partition("|")
        at = float(text)
    except (ValueError, binascii.Error):
        at = math.nan
    if not math.isfinite(at):
        raise ParameterInvalid(name="cursor", expected="the cursor of an earlier answer")
    return at, entry_id


class _Swept:
    """On which days this process has swept which audit already; forgetting it costs one more read."""

    _LIMIT = 1_000

    def __init__(self) -> None:
        self._days: set[tuple[tuple[str, ...], str]] = set()
        self._lock = threading.Lock()

    def is_new(self, day: tuple[tuple[str, ...], str]) -> bool:
        with self._lock:
            if day in self._days:
                return False
            if len(self._days) >= self._LIMIT:
                self._days.clear()
            self._days.add(day)
            return True


_swept = _Swept()
