"""Tombstones: hashes of what was forgotten, so that no import brings it back. Nothing can be read from them.

Each is a row found by its id alone, a hash with the namespace's salt: of a customer, a ticket, a message of
a ticket, a slot of a ticket's facts, or what a customer said. What they bar is what was said up to the moment
it was forgotten; what is said later is new.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from memory.chroma_rows import Row
from memory.ledger import TicketKey
from memory.namespace import Namespace, unsearched_vector
from memory.records import Columns, Memory
from memory.scope import Scope, hashed

_EVER = float("-inf")


@dataclass(frozen=True, slots=True)
class Bar:
    """What was forgotten of one ticket.

    Attributes:
        until: everything up to then; seconds since 1970, minus infinity for nothing.
        parts: hash of a message or of a slot → until when it is barred.
        has_statements: whether single statements of the customer were forgotten, too.
    """

    until: float = _EVER
    parts: dict[str, float] = field(default_factory=dict)
    has_statements: bool = False

    def is_later_than(self, moment: float) -> bool:
        """Whether anything was forgotten after that moment."""
        return self.has_statements or max((self.until, *self.parts.values())) > moment


NOTHING = Bar()


class Tombstones:
    """The tombstones of one namespace.

    Args:
        namespace: where they lie.
        salt: of the namespace.
    """

    def __init__(self, namespace: Namespace, salt: str) -> None:
        self._namespace, self._salt = namespace, salt

    # --- writing ---------------------------------------------------------------------------------

    def bury(
        self,
        scope: Scope,
        *,
        tickets: Iterable[TicketKey] = (),
        statements: Iterable[Memory] = (),
        is_everything: bool = False,
        now: float,
    ) -> None:
        """Bar from imports what is about to be deleted.

        Args:
            scope: whose.
            tickets: barred as a whole, as they are now.
            statements: barred one by one, with the messages they come from.
            is_everything: whether all that was said by the customer up to now is barred.
            now: seconds since 1970.
        """
        columns: dict[str, Columns] = {}
        for key in tickets:
            columns.setdefault(self._ticket(key), {})["at"] = now
        for memory in statements:
            ticket = (memory.source, memory.ticket_id)
            parts = [self.statement(scope, memory.digest)] if memory.digest else []
            if parts and not scope.is_provisional:
                columns.setdefault(self._customer(scope), {})["has_statements"] = True
            if memory.ticket_id:
                of_ticket = [
                    *(self.message(ticket, m) for m in (memory.message_id, memory.origin) if m),
                    *([self.slot(ticket, memory.subject, memory.attribute)] if memory.attribute else []),
                ]
                columns.setdefault(self._ticket(ticket), {})["has_parts"] = True
                columns |= {part: {"at": now, "ticket": self._ticket(ticket)} for part in of_ticket}
            columns |= {part: {"at": now} for part in parts}
        if is_everything and not scope.is_provisional:
            columns.setdefault(self._customer(scope), {})["at"] = now
        rows = [Row(id_, "", column, unsearched_vector(id_)) for id_, column in columns.items()]
        self._namespace.chroma.put(self._namespace.tombstones, rows)

    # --- reading ---------------------------------------------------------------------------------

    def of_tickets(self, tickets: Sequence[tuple[Sequence[Scope], TicketKey]]) -> dict[TicketKey, Bar]:
        """What was forgotten of these tickets; one read for 500 of them, and one more for each of which
        only parts were forgotten. Tickets nothing was forgotten of are left out. Each is given with all
        scopes its customer has.
        """
        ids = [id_ for scopes, key in tickets for id_ in (*map(self._customer, scopes), self._ticket(key))]
        found = {row.row_id: row.columns for row in self._get(ids)}
        bars: dict[TicketKey, Bar] = {}
        for scopes, key in tickets if found else ():
            customers = [found.get(self._customer(scope), {}) for scope in scopes]
            ticket = found.get(self._ticket(key), {})
            if not any(customers) and not ticket:
                continue
            parts = {}
            if ticket.get("has_parts"):
                where = {"ticket": self._ticket(key)}
                rows = self._namespace.chroma.get(self._namespace.tombstones, where=where)
                parts = {row.row_id: float(row.columns["at"]) for row in rows}
            until = max(float(columns.get("at", _EVER)) for columns in (*customers, ticket))
            bars[key] = Bar(until, parts, any(columns.get("has_statements") for columns in customers))
        return bars

    def of_statements(self, hashes: Iterable[str]) -> dict[str, float]:
        """Until when each of these statements is barred; those that are not are left out."""
        return {row.row_id: float(row.columns["at"]) for row in self._get(list(hashes))}

    # --- hashes ----------------------------------------------------------------------------------

    def message(self, key: TicketKey, message_id: str) -> str:
        """What stands for a message of a ticket."""
        return self._hash("message", *key, message_id)

    def slot(self, key: TicketKey, subject: str, attribute: str) -> str:
        """What stands for the values a ticket names for a slot."""
        return self._hash("slot", *key, subject.strip().casefold(), attribute.strip().casefold())

    def statement(self, scope: Scope, text_digest: str) -> str:
        """What stands for something a customer said, wherever it was."""
        return self._hash("statement", scope.key, text_digest)

    def _ticket(self, key: TicketKey) -> str:
        return self._hash("ticket", *key)

    def _customer(self, scope: Scope) -> str:
        return self._hash("customer", scope.key)

    def _hash(self, *parts: str) -> str:
        return hashed("tombstone", self._salt, *parts)

    def _get(self, ids: Sequence[str]) -> list[Row]:
        return self._namespace.chroma.get(self._namespace.tombstones, ids=ids)
