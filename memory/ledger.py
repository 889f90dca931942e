"""The ledger of imports: which ticket was imported, and as which memories."""

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from memory.chroma import Row
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
        """What was imported from a ticket; None for nothing."""
        return self.find_all([key]).get(key)

    def find_all(self, keys: Iterable[TicketKey]) -> dict[TicketKey, Entry]:
        """What was imported from many tickets; those nothing was imported from are left out."""
        wanted = set(keys)
        ids = sorted(_entry_id(key) for key in wanted)
        rows = self._namespace.chroma.get(self._namespace.ledger, ids=ids)
        return {entry.key: entry for entry in map(_from_row, rows) if entry.key in wanted}

    def of_customer(self, scope: Scope) -> list[Entry]:
        """All that was imported for a customer."""
        rows = self._namespace.chroma.get(self._namespace.ledger, where={"customer": scope.key})
        return [entry for entry in map(_from_row, rows) if entry.customer_id == scope.customer_id]

    def held(self, scopes: Iterable[Scope], *, apart_from: Collection[TicketKey]) -> set[str]:
        """Rows that other tickets of these customers stand for too."""
        entries = (entry for scope in scopes for entry in self.of_customer(scope))
        return {row for entry in entries if entry.key not in apart_from for row in entry.row_ids}

    def put(self, entries: Sequence[Entry]) -> None:
        """Write entries over the ones that were there."""
        self._namespace.chroma.put(self._namespace.ledger, [_to_row(entry) for entry in entries])

    def complete(self, entries: Iterable[Entry]) -> None:
        """Note that imports got to their end, of entries that are otherwise written as they are."""
        done = {_entry_id(entry.key): {"is_complete": True} for entry in entries}
        self._namespace.chroma.change(self._namespace.ledger, done)

    def erase(self, keys: Iterable[TicketKey]) -> None:
        """Delete entries."""
        self._namespace.chroma.delete(self._namespace.ledger, [_entry_id(key) for key in keys])


def _entry_id(key: TicketKey) -> str:
    return hashed("ticket", *key)


def _to_row(entry: Entry) -> Row:
    row_id = _entry_id(entry.key)
    columns: Columns = {
        "source": entry.source,
        "ticket_id": entry.ticket_id,
        "content_hash": entry.content_hash,
        "customer_id": entry.customer_id,
        "customer": entry.scope.key,
        "conversation_id": entry.conversation_id,
        "memories": entry.memories,
        "updated_at": None if entry.updated_at is None else float(entry.updated_at),
        "imported_at": float(entry.imported_at),
        "is_complete": entry.is_complete,
        "mode": str(entry.mode),
    }
    return Row(row_id, json.dumps(entry.row_ids), columns, unsearched_vector(row_id))


def _from_row(row: Row) -> Entry:
    columns = row.columns
    updated_at = columns.get("updated_at")
    return Entry(
        source=str(columns.get("source", "")),
        ticket_id=str(columns.get("ticket_id", "")),
        content_hash=str(columns.get("content_hash", "")),
        customer_id=str(columns.get("customer_id", "")),
        conversation_id=str(columns.get("conversation_id", "")),
        row_ids=tuple(json.loads(row.text)),
        memories=int(columns.get("memories", 0)),
        updated_at=None if updated_at is None else float(updated_at),
        imported_at=float(columns.get("imported_at", 0.0)),
        is_complete=bool(columns.get("is_complete", False)),
        mode=Mode(str(columns.get("mode", Mode.AS_IS))),
    )
