"""Merging customers: two ids are one person. What is known of one moves to the other, who answers for both.

A merge goes on in steps that may each be repeated; the alias says how far it has come:

1. the old id is claimed, it is made sure that no other merge goes the other way round, and signposts are put
   into both scopes;
2. the old id is an alias: whoever writes under it from here on looks for the alias afterwards;
3. what is going to move is noted;
4. memories are copied under their new ids, ledger entries and links rewritten, the old rows erased.

Cut short after the first, it is finished by the next call that names either customer.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from memory.aliases import Alias, AliasStore, State, in_state, new_alias
from memory.errors import CustomersSame, ErasureUnderWay, MergeConflict
from memory.identity import scope_of_customer
from memory.ledger import Entry, Ledger, renamed
from memory.links import Link, LinkStore
from memory.merge_notes import Merge, contested, listed, told
from memory.moving import arrival, chunks, clear, copy, fold
from memory.namespace import Namespace
from memory.records import Memory
from memory.scope import Scope
from memory.signposts import looking
from memory.store import MemoryStore
from memory.tombstones import Tombstones
from memory.unmerging import move_back, renewed
from memory.withdrawing import forgotten_meanwhile, withdraw

ROUNDS = 3
"""Times the old scope is read again for what was written meanwhile; who writes later brings it himself."""
CLAIM_SECONDS = 600.0
"""How long a merge that was only asked for keeps another one of the same customer away."""

MERGED = "the customer was merged into another one before"
UNDER_WAY = "another merge of one of the two was just asked for"
NOT_LAST = "the customer it went into was merged since, and that merge has to be undone first"


class Merging:
    """The merges of one namespace.

    Args:
        namespace: which one. A merge that a call meets is finished whatever the limits of that call.
        store: the memories; None where nothing was ever stored, and so nothing ever merged.
    """

    def __init__(self, namespace: Namespace, store: MemoryStore | None) -> None:
        self._namespace, self._store = namespace.without_limits(), store
        self._links, self._ledger = LinkStore(self._namespace), Ledger(self._namespace)
        self._aliases = AliasStore(self._namespace)

    # --- who answers for an id -------------------------------------------------------------------

    def owner(self, customer_id: str) -> str:
        """The customer who answers for an id, which is the id itself unless it was merged.

        A merge of it that was cut short, or a write under the old id, is brought to its end.
        """
        return self.owners([customer_id])[customer_id]

    @looking()
    def owners(self, customer_ids: Iterable[str]) -> dict[str, str]:
        """As `owner`, for many ids in one request."""
        ids = set(customer_ids)
        if self._store is None or not ids:
            return {i: i for i in ids}
        merged = self._aliases.find_all(ids)
        return {i: self.settle(i) if i in merged else i for i in ids}

    @looking()
    def settle(self, customer_id: str) -> str:
        """As `owner`; merges into the customer that were cut short are finished too."""
        if self._store is None:
            return customer_id
        trail = self._trail(customer_id)
        for alias in trail:
            self._resume(alias)
        if trail:
            trail = self._trail(customer_id)  # without one that was being undone
        owner = trail[-1].target_id if trail else customer_id
        behind = self._aliases.into(trail[-1].target if trail else scope_of_customer(customer_id))
        self._store.epochs.look([alias.old for alias in behind])
        for alias in behind:
            if alias.state is not State.DONE or self._is_erased(self._store, alias):
                self._resume(alias)
        return owner

    @looking()
    def gather(self, scope: Scope) -> None:
        """Bring home all that still lies under the old ids of a customer, before all of it is erased."""
        for alias in self._aliases.into(scope):
            self._resume(alias, is_thorough=True)

    def old_ids(self, scope: Scope) -> list[str]:
        """The ids that a customer answers for beside the own one, sorted."""
        return sorted(a.customer_id for a in self._aliases.into(scope) if a.state is not State.CLAIMED)

    # --- merging ---------------------------------------------------------------------------------

    @looking()
    def preview(self, old: Scope, new: Scope) -> Merge:
        """What a merge would move; nothing is written.

        Raises:
            CustomersSame: they are one customer already.
            MergeConflict: the old one was merged into a third.
        """
        owner = self.owner(old.customer_id)
        if owner == new.customer_id:
            raise CustomersSame
        if owner != old.customer_id:
            raise MergeConflict(reason=MERGED)
        if self._store is None:
            rows, theirs = [], []
        else:
            rows, theirs = self._store.everything(old), self._store.everything(new)
        links, entries = self._links.of_customer(old), self._ledger.of_customer(old)
        merge = told(listed(old, new, rows, theirs, links, entries), old.customer_id, new.customer_id)
        return replace(merge, contested=contested(rows, theirs))

    @looking()
    def merge(self, old: Scope, new: Scope, *, now: float) -> Merge:
        """Make one customer of two.

        Args:
            old, new: the customer that goes, and the one that stays, who is no alias.
            now: seconds since 1970.

        Raises:
            CustomersSame: they are one customer already.
            MergeConflict: the old one was merged into a third, or another merge of them was just asked for.
        """
        if old == new:
            raise CustomersSame
        there = self._aliases.find(old.customer_id)
        if there is not None and there.state is not State.CLAIMED and self._is_over(there):
            self._resume(there)
            there = None
        if there is None or there.state is State.CLAIMED:
            there = self._claim(old, new, there, now=now)
        elif there.target != new:
            raise MergeConflict(reason=MERGED)
        self._resume(there, is_thorough=True)
        return told(self._aliases.noted(there), there.customer_id, there.target_id, there)

    @looking()
    def undo(self, merge_id: str) -> Merge | None:
        """Move back what a merge moved and is still there; see `memory.unmerging`.

        Returns:
            What the merge had moved; None for an unknown merge, or one that was undone.

        Raises:
            MergeConflict: the customer it went into was merged itself since.
        """
        alias = self._aliases.of_merge(merge_id)
        if alias is None or alias.state is State.CLAIMED:
            return None
        if alias.state is not State.UNDOING:
            if alias.target_id != alias.into_id or self._trail(alias.into_id):
                raise MergeConflict(reason=NOT_LAST)
            self._resume(alias, is_thorough=True)
            self._aliases.put(in_state(alias, State.UNDOING))
        merge = told(self._aliases.noted(alias), alias.customer_id, alias.into_id, alias)
        self._undo(alias)
        return merge

    def _claim(self, old: Scope, new: Scope, there: Alias | None, *, now: float) -> Alias:
        alias = new_alias(old, new, now=now)
        if there is not None and now - there.merged_at > CLAIM_SECONDS:
            self._aliases.put(alias)
        found = self._aliases.claim(alias)
        if found.target != new:
            raise MergeConflict(reason=UNDER_WAY)
        if found.state is State.CLAIMED:
            if old.customer_id in {a.target_id for a in self._trail(new.customer_id, with_claims=True)}:
                self._aliases.erase(found)
                raise MergeConflict(reason=UNDER_WAY)
            if self._store is not None:
                self._store.put_signpost(old)
                self._store.put_signpost(new)
                found = replace(found, epoch=self._store.opened(old))
            found = in_state(found, State.LISTING)
            self._aliases.put(found)
        return found

    # --- its steps -------------------------------------------------------------------------------

    def _trail(self, customer_id: str, *, with_claims: bool = False) -> list[Alias]:
        """The aliases that lead from an id to who answers for it."""
        trail: list[Alias] = []
        seen = {customer_id}
        while True:
            alias = self._aliases.find(customer_id)
            if alias is None or (alias.state is State.CLAIMED and not with_claims):
                return trail
            trail.append(alias)
            customer_id = alias.target_id
            if customer_id in seen:
                return trail
            seen.add(customer_id)

    def _resume(self, alias: Alias, *, is_thorough: bool = False) -> None:
        """Bring a merge, or its undoing, to its end."""
        if self._store is None or alias.state is State.CLAIMED:
            return
        if self._is_over(alias):
            self._undo(alias)
            return
        if alias.state is State.LISTING:
            self._list(self._store, alias)
        if alias.state is not State.DONE or is_thorough or self._store.live(alias.old):
            self._bring(self._store, alias)
            self._flatten(alias)
        if alias.state is not State.DONE:
            self._flush(self._store, alias.old)
            self._advance(alias, State.MOVING, State.DONE)

    def _list(self, store: MemoryStore, alias: Alias) -> None:
        """Note what is going to move."""
        old, new = alias.old, alias.target
        rows = store.everything(old)
        there = store.read(new, [arrival(m, new).memory_id for m in rows])
        links, entries = self._beside(store, old)
        self._aliases.note(alias, listed(old, new, rows, there, links, entries))
        self._advance(alias, State.LISTING, State.MOVING)

    def _advance(self, alias: Alias, before: State, after: State) -> None:
        """Note that a step is done, unless another call has gone further already."""
        now = self._aliases.find(alias.customer_id)
        if now is not None and now.merge_id == alias.merge_id and now.state is before:
            self._aliases.put(in_state(now, after))

    def _bring(self, store: MemoryStore, alias: Alias) -> None:
        old, new = alias.old, alias.target
        for _ in range(ROUNDS):
            rows = store.everything(old)
            links, entries = self._beside(store, old)
            if not rows and not links and not entries:
                return
            arrived: set[str] = set()
            for chunk in chunks(rows):
                self._namespace.chroma.renew()
                fold(store, new, chunk)
                arrived |= copy(store, old, new, chunk)
            # Before the old rows go: only they say which new id an entry's old one has become.
            ids = {m.memory_id: arrival(m, new).memory_id for m in rows if not m.ends_slot or m.ends_one}
            self._enter(store, new, entries, ids)
            self._links.put(*(renewed(store, link, old, new) for link in links))
            if store.epochs.overtaken():
                self._give_up(store, alias, arrived)
                raise ErasureUnderWay
            for chunk in chunks(rows):
                self._namespace.chroma.renew()
                self._withdraw(store, alias, [m for m in chunk if arrival(m, new).memory_id in arrived])
                store.erase(old, chunk)

    def _withdraw(self, store: MemoryStore, alias: Alias, rows: Sequence[Memory]) -> None:
        """Take back what was forgotten of the old customer while this call copied it."""
        tombstones = Tombstones(self._namespace, store.about.salt)
        for at, gone in forgotten_meanwhile(store, tombstones, alias.old, rows).items():
            withdraw(store, tombstones, alias.target, gone, now=at)

    def _enter(self, store: MemoryStore, new: Scope, entries: Sequence[Entry], ids: dict[str, str]) -> None:
        """Rewrite ledger entries for the new customer; also those that came over before their rows did."""
        epoch = store.opened(new)
        early = [entry for entry in self._ledger.of_customer(new) if _heads(entry) & ids.keys()]
        changed = [
            replace(
                entry,
                customer_id=new.customer_id,
                epoch=epoch,
                row_ids=tuple(renamed(row, ids) for row in entry.row_ids),
            )
            for entry in (*entries, *early)
        ]
        self._ledger.put(changed)

    def _beside(self, store: MemoryStore, old: Scope) -> tuple[list[Link], list[Entry]]:
        """Links and entries of a customer, without those that an erasure has overtaken."""
        store.epochs.look([old])
        epoch = store.epochs.epoch(old)
        links, entries = self._links.of_customer(old), self._ledger.of_customer(old)
        return [each for each in links if each.epoch >= epoch], [e for e in entries if e.epoch >= epoch]

    def _flush(self, store: MemoryStore, scope: Scope) -> None:
        """Have the server's files keep no words in the place they were moved from; see `memory.erasing`."""
        self._namespace.chroma.renew()
        self._namespace.chroma.flush(store.collection(scope))

    def _flatten(self, alias: Alias) -> None:
        """Let the aliases of the old id lead straight to who answers now."""
        behind = self._aliases.into(alias.old)
        self._aliases.put(*(replace(each, target_id=alias.target_id) for each in behind))
        beyond = [each for each in self._trail(alias.target_id) if each.customer_id != alias.customer_id]
        if beyond:  # the new customer was merged while this merge went on
            now = self._aliases.find(alias.customer_id)
            if now is not None and now.merge_id == alias.merge_id:
                self._aliases.put(replace(now, target_id=beyond[-1].target_id))
            for each in beyond:
                self._resume(each, is_thorough=True)

    # --- undoing ---------------------------------------------------------------------------------

    @looking()
    def dissolve(self, old: Scope) -> None:
        """Of a customer that is being erased, take away what a merge that began meanwhile has moved.

        The alias stays where another call may still be copying: the next one that meets it looks again.
        """
        alias = None if old.is_provisional else self._aliases.find(old.customer_id)
        if self._store is None or alias is None or alias.state is State.CLAIMED:
            return
        if self._is_erased(self._store, alias):
            self._aliases.put(in_state(alias, State.UNDOING))
            self._undo(alias, is_last=alias.state in {State.DONE, State.UNDOING})

    def _is_over(self, alias: Alias) -> bool:
        """Whether a merge that began is being undone, or has to be since an erasure overtook it."""
        is_erased = self._store is not None and self._is_erased(self._store, alias)
        return is_erased or alias.state is State.UNDOING

    def _is_erased(self, store: MemoryStore, alias: Alias) -> bool:
        """Whether the old customer, as who he was, was erased since the merge began."""
        store.epochs.look([alias.old])
        return store.epochs.epoch(alias.old) > alias.epoch

    def _give_up(self, store: MemoryStore, alias: Alias, arrived: set[str]) -> None:
        """One of the two is erased while this call copies: what it brought of an erased one goes again.

        Brought to a customer who is erased, it is an erased row already.
        """
        if self._is_erased(store, alias):
            clear(store, alias.target, store.read(alias.target, arrived))
            now = self._aliases.find(alias.customer_id)
            if now is not None and now.merge_id == alias.merge_id:
                self._aliases.put(in_state(now, State.UNDOING))
                self._undo(now)

    def _undo(self, alias: Alias, *, is_last: bool = True) -> None:
        if self._store is None:
            return
        old, new = alias.old, alias.target
        is_erased = self._is_erased(self._store, alias)
        self._namespace.chroma.renew()
        around = self._others(alias)
        leads = {a.customer_id: a.into_id for a in around}
        behind = [a for a in around if _leads_to(a.into_id, old.customer_id, leads)]
        self._aliases.put(*(replace(a, target_id=old.customer_id) for a in behind))
        noted = self._aliases.noted(alias)
        move_back(self._store, self._links, self._ledger, alias, noted, is_erased=is_erased)
        # Each has ids again that it had before; until here a signpost told.
        self._store.touch([new] if is_erased else [old, new])
        if not is_last:
            return
        if not behind:
            self._store.erase_signpost(old)
        if len(around) == len(behind):
            self._store.erase_signpost(new)
            if self._others(alias):  # another merge began meanwhile
                self._store.put_signpost(new)
        self._flush(self._store, new)
        self._aliases.erase(alias)

    def _others(self, alias: Alias) -> list[Alias]:
        """The other aliases of who answers for this one."""
        return [a for a in self._aliases.into(alias.target) if a.customer_id != alias.customer_id]


def scope_among(owners: Mapping[str, str], customer_id: object) -> Scope:
    """The scope of who answers for a customer, as `Merging.owners` has told it.

    Raises:
        IdInvalid: it cannot be an id.
        CustomerMissing: there is none.
    """
    named = scope_of_customer(customer_id).customer_id
    return scope_of_customer(owners.get(named, named))


def _heads(entry: Entry) -> set[str]:
    return {row.partition(".")[0] for row in entry.row_ids}


def _leads_to(customer_id: str, wanted: str, leads: dict[str, str]) -> bool:
    seen: set[str] = set()
    while customer_id not in seen:
        if customer_id == wanted:
            return True
        seen.add(customer_id)
        customer_id = leads.get(customer_id, customer_id)
    return False
