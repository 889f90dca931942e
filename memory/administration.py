"""Beside the four verbs: looking around in a namespace, keeping it in order, and taking it elsewhere."""

from collections.abc import Iterable, Iterator

from memory.backup import back_up
from memory.call_log import logged
from memory.clock import Clock
from memory.embedding.remembered import NamespaceEmbedders
from memory.erasing import Erasing
from memory.errors import ConversationMismatch
from memory.export import Item, export
from memory.identity import Caller, Identity, Resolved, scope_of_customer
from memory.ledger import Entry, Ledger
from memory.links import Link, LinkStore
from memory.listing import Page, page_of
from memory.merge_notes import Merge
from memory.merging import Merging
from memory.namespace import Namespace
from memory.pacing import in_foreground
from memory.receipts import Receipt, Receipts
from memory.records import Memory
from memory.restoring import Restore
from memory.signposts import follows_signposts, looking
from memory.store import MemoryStore
from memory.upkeep import Expired, describe, expire


class Administration:
    """Looking around in one namespace, and its upkeep, for one call.

    Args:
        namespace, links, ledger, receipts, erasing: of the engine.
        embedders: which embedding models this call can use.
        clock: gives the time.
    """

    def __init__(
        self,
        namespace: Namespace,
        links: LinkStore,
        ledger: Ledger,
        embedders: NamespaceEmbedders,
        receipts: Receipts,
        erasing: Erasing,
        clock: Clock,
    ) -> None:
        self._namespace, self._links, self._ledger = namespace, links, ledger
        self._embedders, self._receipts, self._erasing = embedders, receipts, erasing
        self._clock = clock

    # --- looking around --------------------------------------------------------------------------

    @in_foreground
    @logged("list_memories")
    @follows_signposts
    def list_memories(self, caller: Caller, page: Page) -> tuple[list[Memory], str, Resolved]:
        """One page of what is known of the caller's customer; see `memory.listing`."""
        with self._erasing.watched(self._store()) as store:
            resolved = self._identity(store).resolve(caller)
            if store is None:
                return [], "", resolved
            listed, cursor = page_of(store, resolved.scope, page, now=self._clock())
        return listed, cursor, resolved

    @in_foreground
    @logged("get_links")
    def find_links(self, caller: Caller) -> list[Link]:
        """The link of the caller's conversation, or without one all links of the customer.

        Raises:
            Forbidden: the customer, given or linked, is outside the limits of this call.
            ConversationMismatch: it is linked to another customer than the one given.
        """
        if caller.customer_id:
            self._links.limits.check_customer(caller.customer_id)
        with self._erasing.watched(self._store()) as store:
            merging = Merging(self._namespace, store)
            given = merging.owner(caller.customer_id) if caller.customer_id else ""
            if not caller.conversation_id:
                return self._links.of_customer(scope_of_customer(given))
            link = self._links.find(caller.conversation_id)
            if link is None:
                return []
            if given not in {"", link.customer_id} and given != merging.owner(link.customer_id):
                raise ConversationMismatch
        return [link]

    @logged("get_ticket")
    def find_import(self, source: str, ticket_id: str) -> Entry | None:
        """What was imported from a ticket, when, and as which memories; None for nothing."""
        self._namespace.about()
        return self._ledger.find((source, ticket_id))

    @logged("list_receipts")
    def find_receipts(self, customer_id: object, *, limit: int, cursor: str) -> tuple[list[Receipt], str]:
        """One page of receipts, newest first; see `Receipts.page`. None for those of all customers."""
        self._namespace.about()
        scope = None if customer_id is None else scope_of_customer(customer_id)
        return self._receipts.page(scope, limit=limit, cursor=cursor)

    @logged("health")
    def describe(self) -> dict[str, str | int | float | None]:
        """The server, the namespace, its embedder, and how much it holds; see `memory.upkeep.describe`."""
        return describe(self._namespace, self._embedders)

    # --- taking it elsewhere ---------------------------------------------------------------------

    @in_foreground
    def export(self, caller: Caller, cursor: str) -> tuple[Iterator[Item], Resolved, list[str]]:
        """Everything about the caller's customer, see `memory.export`; whose it is, and the old ids."""
        store = self._store()
        with looking():
            resolved = self._identity(store).resolve(caller)
        old_ids = Merging(self._namespace, store).old_ids(resolved.scope)
        items = export(store, self._links, self._ledger, resolved.scope, cursor=cursor)
        return self._in_steps(items), resolved, old_ids

    def _in_steps(self, items: Iterable[Item]) -> Iterator[Item]:
        """The same items; the time limit starts anew with each."""
        left = iter(items)
        while True:
            with looking():  # not around the yield, which would have the caller look, too
                item = next(left, None)
            if item is None:
                return
            yield item
            self._namespace.chroma.renew()

    def back_up(self, cursor: str) -> Iterator[list[bytes]]:
        """The whole namespace as the lines of a file; see `memory.backup`."""
        return back_up(self._namespace, cursor=cursor, now=self._clock())

    def restore(self, lines: Iterable[bytes]) -> Restore:
        """The load of a backup, or of a part of one, into an empty namespace; see `memory.restoring`."""
        return Restore(self._namespace, self._embedders, lines)

    # --- merging ---------------------------------------------------------------------------------

    @in_foreground
    @logged("merge_customers")
    def preview_merge(self, old_id: str, into_id: str) -> Merge:
        """What making one customer of two would move; nothing is written.

        Raises:
            CustomersSame, MergeConflict, IdInvalid, CustomerMissing.
        """
        with self._erasing.watched(self._store()) as store:
            merging = Merging(self._namespace, store)
            return merging.preview(scope_of_customer(old_id), scope_of_customer(merging.owner(into_id)))

    @in_foreground
    @logged("merge_customers")
    def merge(self, old_id: str, into_id: str) -> Merge:
        """Make one customer of two: what is known of the old one is the other's, who answers for both ids.

        Doing it again changes nothing. A customer that was merged itself is answered for by its target.

        Returns:
            What moved, and the `merge_id` that undoes it.

        Raises:
            CustomersSame, MergeConflict, IdInvalid, CustomerMissing.
        """
        about = self._namespace.about() or self._embedders.to_write()[1]
        with self._erasing.watched(MemoryStore(self._namespace, about)) as store:
            merging = Merging(self._namespace, store)
            new = scope_of_customer(merging.owner(into_id))
            return merging.merge(scope_of_customer(old_id), new, now=self._clock())

    @in_foreground
    @logged("undo_merge")
    def undo_merge(self, merge_id: str) -> Merge | None:
        """Move back what a merge moved and is still there.

        Returns:
            What it had moved; None for an unknown merge, or one that was undone.

        Raises:
            MergeConflict: a later merge has to be undone first.
        """
        with self._erasing.watched(self._store()) as store:
            return Merging(self._namespace, store).undo(merge_id)

    def _store(self) -> MemoryStore | None:
        about = self._namespace.about()
        return MemoryStore(self._namespace, about) if about is not None else None

    def _identity(self, store: MemoryStore | None) -> Identity:
        return Identity(self._links, store, Merging(self._namespace, store))

    # --- upkeep ----------------------------------------------------------------------------------

    @logged("expire")
    @looking()
    def expire(self) -> Expired:
        """Delete for good what has expired, in the whole namespace; finish erasures that were cut short."""
        about = self._namespace.about()
        if about is None:
            return Expired()
        return expire(self._namespace, about, self._erasing, now=self._clock())
