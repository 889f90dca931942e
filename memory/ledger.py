"""The ledger of imports: which ticket was imported, and as which memories."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from memory.chroma import PAGE
from memory.chroma_rows import Row
from memory.identity import scope_of_customer
from memory.namespace import Namespace, unsearched_vector
from memory.records import Columns
from memory.scope import Scope, hashed

type TicketKey = tuple[str, str]
"""Source and ticket id."""


class Mode(StrEnum):
    """What an import makes of a ticket's messages."""

    AS_IS = "as_is"
    EXTRACT = "extract"
    EXTRACT_FAILED = "extract_failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What was imported from one ticket.

    Attributes:
        source, ticket_id: which ticket.
        content_hash: of what the ticket said; see `tickets.model.content_hash`.
        customer_id, conversation_id: whose memories they are, and of which conversation.
        row_ids: the store's rows that were made of it.
        memories: how many memories these are.
        updated_at: when the ticket last changed, seconds since 1970; None if its source does not say.
        imported_at: seconds since 1970.
        is_complete: whether the import got to its end; otherwise `row_ids` are those that may be there.
        mode: whether the messages were kept as they are, or facts were extracted from them; or that the
            latter was asked for and failed, so that the messages were kept for now.
        epoch: the customer's when it was imported; see `memory.epochs`.
        restored_at: what was forgotten up to then may come from this ticket again; seconds since 1970, 0 for
            nothing.
    """

    source: str
    ticket_id: str
    content_hash: str
    customer_id: str
    conversation_id: str
    row_ids: tuple[str, ...] = ()
    memories: int = 0
    updated_at: float | None = None
    imported_at: float = 0.0
    is_complete: bool = True
    mode: Mode = Mode.AS_IS
    epoch: int = 0
    restored_at: float = 0.0

    @property
    def key(self) -> TicketKey:
        """Source and ticket id."""
        return self.source, self.ticket_id

    @property
    def scope(self) -> Scope:
        """The scope of the customer."""
        return scope_of_customer(self.customer_id)


class Ledger:
    """The imports of one namespace.

    Args:
        namespace: where they are noted.
    """

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace

    def find(self, key: TicketKey) -> Entry | None:
        """What was imported from a ticket; None for nothing.

        Raises:
            Forbidden: its source or its customer is outside the limits of this call.
        """
        limits = self._namespace.limits
        limits.check_source(key[0])
        entry = self.find_all([key]).get(key)
        if entry is not None:
            limits.check_customer(entry.customer_id)
        return entry

    def find_all(self, keys: Iterable[TicketKey]) -> dict[TicketKey, Entry]:
        """What was imported from many tickets; those nothing was imported from are left out."""
        wanted = set(keys)
        ids = sorted(entry_id(key) for key in wanted)
        rows = self._namespace.chroma.get(self._namespace.ledger, ids=ids)
        return {entry.key: entry for entry in map(_from_row, rows) if entry.key in wanted}

    def of_customer(self, scope: Scope) -> list[Entry]:
        """All that was imported for a customer."""
        rows = self._namespace.chroma.get(self._namespace.ledger, where={"customer": scope.key})
        return [entry for entry in map(_from_row, rows) if entry.customer_id == scope.customer_id]

    def pages_of(self, scope: Scope, *, after: str = "") -> Iterator[list[tuple[str, Entry]]]:
        """What was imported for a customer with the ids of the rows, in pages ordered by these."""
        where = {"customer": scope.key}
        ids = [i for i in self._namespace.chroma.ids(self._namespace.ledger, where=where) if i > after]
        for start in range(0, len(ids), PAGE):
            rows = self._namespace.chroma.get(self._namespace.ledger, ids=ids[start : start + PAGE])
            entries = ((row.row_id, _from_row(row)) for row in rows)
            yield sorted(
                ((row_id, entry) for row_id, entry in entries if entry.customer_id == scope.customer_id),
                key=lambda pair: pair[0],
            )

    def held(self, scopes: Iterable[Scope], *, apart_from: Collection[TicketKey]) -> set[str]:
        """Rows that other tickets of these customers stand for too."""
        entries = (entry for scope in scopes for entry in self.of_customer(scope))
        return {row for entry in entries if entry.key not in apart_from for row in entry.row_ids}

    def put(self, entries: Sequence[Entry]) -> None:
        """Write entries over the ones that were there."""
        self._namespace.chroma.put(self._namespace.ledger, [_to_row(entry) for entry in entries])

    def complete(self, entries: Iterable[Entry]) -> None:
        """Note that imports got to their end, of entries that are otherwise written as they are."""
        done = {entry_id(entry.key): {"is_complete": True} for entry in entries}
        self._namespace.chroma.change(self._namespace.ledger, done)

    def erase(self, entries: Iterable[Entry]) -> None:
        """Delete entries, overwritten first."""
        rows = [(entry_id(entry.key), entry.scope.key) for entry in entries]
        self._namespace.wipe(self._namespace.ledger, rows, _COLUMNS)

    def erase_customer(self, scope_key: str, *, before_epoch: int) -> int:
        """Delete the entries of a customer that were made before an epoch.

        Returns:
            How many there were.
        """
        found = self._namespace.chroma.get(self._namespace.ledger, where={"customer": scope_key})
        entries = {row.row_id: _from_row(row) for row in found}
        going = {row_id: entry for row_id, entry in entries.items() if entry.epoch < before_epoch}
        self._namespace.wipe(self._namespace.ledger, [(row_id, scope_key) for row_id in going], _COLUMNS)
        return sum(1 for entry in going.values() if entry.customer_id)


def is_sound(row: Row) -> bool:
    """Whether a row is an entry whose id, customer and customer's key agree.

    Raises:
        ValueError, TypeError, IdInvalid, CustomerMissing: it is no entry at all.
    """
    entry = _from_row(row)
    right = _to_row(entry)
    return row.row_id == right.row_id and row.columns.get("customer") == right.columns["customer"]


def entry_id(key: TicketKey) -> str:
    """The row id of a ticket's entry."""
    return hashed("ticket", *key)


def renamed(row: str, ids: Mapping[str, str]) -> str:
    """A row's id with another statement's id in it; one that is not known stays."""
    head, dot, part = row.partition(".")
    return f"{ids.get(head, head)}{dot}{part}"


def _to_row(entry: Entry) -> Row:
    row_id = entry_id(entry.key)
    columns: Columns = {
        "customer_id": entry.customer_id,
        "customer": entry.scope.key,
        "is_complete": entry.is_complete,
        "epoch": entry.epoch or None,
    }
    told = {
        "source": entry.source,
        "ticket_id": entry.ticket_id,
        "content_hash": entry.content_hash,
        "conversation_id": entry.conversation_id,
        "row_ids": entry.row_ids,
        "memories": entry.memories,
        "updated_at": None if entry.updated_at is None else float(entry.updated_at),
        "imported_at": float(entry.imported_at),
        "mode": str(entry.mode),
        "restored_at": entry.restored_at,
    }
    columns["told"] = json.dumps(told, ensure_ascii=False, separators=(",", ":"))
    return Row(row_id, "", columns, unsearched_vector(row_id))


def _from_row(row: Row) -> Entry:
    told = json.loads(row.columns.get("told") or "{}")
    return Entry(
        source=told.get("source", ""),
        ticket_id=told.get("ticket_id", ""),
        content_hash=told.get("content_hash", ""),
        customer_id=str(row.columns.get("customer_id", "")),
        conversation_id=told.get("conversation_id", ""),
        row_ids=tuple(told.get("row_ids", ())),
        memories=told.get("memories", 0),
        updated_at=told.get("updated_at"),
        imported_at=told.get("imported_at", 0.0),
        is_complete=bool(row.columns.get("is_complete", False)),
        mode=Mode(told.get("mode", Mode.AS_IS)),
        epoch=int(row.columns.get("epoch", 0)),
        restored_at=told.get("restored_at", 0.0),
    )


_COLUMNS = tuple(
    _to_row(Entry(source="", ticket_id="", content_hash="", customer_id="-", conversation_id="")).columns
)
