"""Old ids of a customer who is erased: nobody answers for them any more, and nothing is left under them."""

import uuid
from collections.abc import Sequence
from dataclasses import replace

from memory.aliases import Alias, AliasStore, State
from memory.chroma import Chroma
from memory.erasures import Erasure, Stage
from memory.ledger import Ledger
from memory.links import LinkStore
from memory.merging import Merging
from memory.namespace import Namespace
from memory.receipts import Receipts
from memory.records import Memory
from memory.scope import Scope
from memory.store import MemoryStore
from memory.tombstones import Tombstones
from memory.withdrawing import withdraw


class OldIds:
    """The old ids of customers that are erased, in one namespace.

    Args:
        namespace, links, ledger, receipts: of the engine.
    """

    def __init__(self, namespace: Namespace, links: LinkStore, ledger: Ledger, receipts: Receipts) -> None:
        self._namespace, self._links, self._ledger = namespace, links, ledger
        self._receipts, self._aliases = receipts, AliasStore(namespace)

    def bury(self, store: MemoryStore, scope: Scope, erasure: Erasure, statements: Sequence[Memory]) -> None:
        """Bar from imports under an old id, whatever becomes of the merge, what is about to be deleted.

        Args:
            store, scope, erasure: of an erasure of everything, or of a part.
            statements: of a part, one row each.
        """
        for alias in self._merged(scope, erasure):
            Tombstones(self._namespace, store.about.salt).bury(
                alias.old,
                statements=statements,
                is_everything=erasure.is_whole,
                now=erasure.requested_at,
            )

    def erase(self, store: MemoryStore, scope: Scope, erasure: Erasure) -> int:
        """Delete the aliases, what is noted of their merges, and what was left under an old id.

        What a merge of the customer itself has moved meanwhile goes as well.

        Returns:
            How many there were.
        """
        Merging(self._namespace, store).dissolve(scope)
        for alias in self._merged(scope, erasure):
            self._void(store, alias.old, erasure)
        aliases = self._aliases.older(scope, before_epoch=erasure.epoch)
        self._aliases.erase(*aliases)
        return len(aliases)

    def follow(self, store: MemoryStore, scope: Scope, rows: Sequence[Memory], *, now: float) -> None:
        """Delete what a merge that began meanwhile has moved of what was forgotten.

        Args:
            store: the memories.
            scope: of the customer, as who he was when it was asked for.
            rows: what is deleted there.
            now: when that was asked for, seconds since 1970.
        """
        alias = self._aliases.find(scope.customer_id)
        if alias is not None and alias.state not in {State.CLAIMED, State.UNDOING}:
            shared = {each.item_id for each in self._aliases.noted(alias) if each.is_shared}
            tombstones = Tombstones(self._namespace, store.about.salt)
            withdraw(store, tombstones, alias.target, rows, but=shared, now=now)

    def remaining(self, scope: Scope, erasure: Erasure, fresh: Chroma) -> int:
        """How many aliases a fresh connection still finds."""
        return len(self._aliases.older(scope, before_epoch=erasure.epoch, chroma=fresh))

    def _merged(self, scope: Scope, erasure: Erasure) -> list[Alias]:
        """The aliases under which nothing is that is not the customer's own."""
        if erasure.is_whole:
            aliases = self._aliases.older(scope, before_epoch=erasure.epoch)
        else:
            aliases = self._aliases.into(scope)
        return [a for a in aliases if a.state not in {State.CLAIMED, State.UNDOING}]

    def _void(self, store: MemoryStore, old: Scope, erasure: Erasure) -> None:
        """Let a write under an old id that is under way be an erased one, as one under the new id is."""
        store.epochs.look([old])
        if store.epochs.epoch(old) < erasure.epoch:
            void = replace(
                erasure.without_ids(Stage.DONE),
                token=uuid.uuid4().hex,
                scope_key=old.key,
                customer_hash=self._receipts.customer_hash(old),
            )
            store.epochs.put(void)
            store.epochs.note(old, void)
            store.epochs.written.pop(old, None)
        store.erase(old, store.before_epoch(old, erasure.epoch))
        self._links.erase_customer(old.key, before_epoch=erasure.epoch)
        self._ledger.erase_customer(old.key, before_epoch=erasure.epoch)
