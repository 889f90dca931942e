"""What lies beside a customer's memories and goes with them: links, the ledger's entries, old ids, marks.

A record of customers that is added one day is erased and read back here.
"""

from collections import Counter
from collections.abc import Sequence

from memory.chroma import Chroma
from memory.erasures import TICKET, Erasure, Task
from memory.forgetting import Reach
from memory.ledger import Entry, Ledger
from memory.links import LinkStore
from memory.namespace import Namespace
from memory.old_ids import OldIds
from memory.receipts import ALIASES, LINKS, TICKETS, Receipts
from memory.records import Memory
from memory.scope import Scope
from memory.store import MemoryStore
from memory.tombstones import Tombstones


class Companions:
    """These records in one namespace, for one call.

    Args:
        namespace, links, ledger, receipts: of the engine.

    Attributes:
        old_ids: of customers that were merged.
    """

    def __init__(self, namespace: Namespace, links: LinkStore, ledger: Ledger, receipts: Receipts) -> None:
        self._namespace, self._links, self._ledger = namespace, links, ledger
        self.old_ids = OldIds(namespace, links, ledger, receipts)

    def count(self, scope: Scope) -> Counter[str]:
        """How many a customer has, by type."""
        tickets = 0 if scope.is_provisional else len(self._ledger.of_customer(scope))
        return Counter({LINKS: len(self._links.of_customer(scope)), TICKETS: tickets})

    def entries(self, scope: Scope, erasure: Erasure, rows: Sequence[Memory]) -> list[Entry]:
        """The ledger's entries of tickets that go along, so that the ledger tells the truth."""
        task = erasure.task
        if scope.is_provisional or task.reach == Reach.MATCHING:
            return []
        tickets = {(m.source, m.ticket_id) for m in rows if m.ticket_id}
        is_unbounded = task.before is None and not task.kinds
        return [
            entry
            for entry in self._ledger.of_customer(scope)
            if (erasure.is_whole and entry.epoch < erasure.epoch)
            or (not erasure.is_whole and entry.key in tickets and task.reach != TICKET)
            or (task.reach == TICKET and entry.key == (task.source, task.ticket_id))
            or (is_unbounded and self._is_of_conversation(task, entry))
        ]

    def _is_of_conversation(self, task: Task, entry: Entry) -> bool:
        is_conversation = task.reach == Reach.CONVERSATION and bool(task.conversation_id)
        return is_conversation and entry.conversation_id == task.conversation_id

    def bury(
        self,
        store: MemoryStore,
        scope: Scope,
        erasure: Erasure,
        rows: Sequence[Memory],
        entries: Sequence[Entry],
    ) -> None:
        """Note, without content, what is not to be imported again."""
        task = erasure.task
        whole = [
            entry.key
            for entry in entries
            if erasure.is_whole or task.reach == TICKET or self._is_of_conversation(task, entry)
        ]
        if task.reach == TICKET:
            whole.append((task.source, task.ticket_id))
        statements = [] if erasure.is_whole else [m for m in rows if m.part == 0 and not m.ends_slot]
        Tombstones(self._namespace, store.about.salt).bury(
            scope,
            tickets=whole,
            statements=statements,
            is_everything=erasure.is_whole,
            now=erasure.requested_at,
        )
        if erasure.is_whole or scope in store.signed:
            self.old_ids.bury(store, scope, erasure, statements)

    def erase(
        self, store: MemoryStore, scope: Scope, erasure: Erasure, entries: Sequence[Entry]
    ) -> Counter[str]:
        """Delete what lies beside the memories; how many of each type."""
        if not erasure.is_whole:
            self._ledger.erase(entries)
            return Counter({TICKETS: len(entries)})
        return Counter(
            {
                LINKS: self._links.erase_customer(scope.key, before_epoch=erasure.epoch),
                TICKETS: self._ledger.erase_customer(scope.key, before_epoch=erasure.epoch),
                ALIASES: self.old_ids.erase(store, scope, erasure),
            }
        )

    def erase_older(self, scope_key: str, epoch: int) -> None:
        """Delete links and entries that were written in an older epoch of a customer."""
        self._links.erase_customer(scope_key, before_epoch=epoch)
        self._ledger.erase_customer(scope_key, before_epoch=epoch)

    def remaining(self, fresh: Chroma, scope: Scope, erasure: Erasure) -> int:
        """How many a fresh connection still finds after an erasure of everything."""
        found = self.old_ids.remaining(scope, erasure, fresh)
        for collection in (self._namespace.links, self._namespace.ledger):
            rows = fresh.get(collection, where={"customer": scope.key})
            found += sum(1 for row in rows if int(row.columns.get("epoch", 0)) < erasure.epoch)
        return found
