"""Erasing: noted, barred from imports, overwritten, deleted, read back, flushed, and receipted.

Every step may be repeated. What is to be done is noted in the store before the first deletion, so that an
erasure whose process died is finished by the next call that meets it; see `memory.erasures`.
"""

import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from memory.chroma import Chroma
from memory.clock import Clock
from memory.companions import Companions
from memory.erasures import TICKET, Erasure, Stage, Task
from memory.errors import ErasureUnderWay, ForgetUnverified
from memory.forgetting import Reach, Request, end_slots, select
from memory.identity import Resolved
from memory.ledger import Ledger
from memory.links import LinkStore
from memory.namespace import Namespace
from memory.readback import still_there
from memory.receipts import (
    FLUSHED,
    HISTORY,
    HOSTED,
    LINKS,
    MARKS,
    NOT_COVERED,
    TICKETS,
    VERIFIED,
    Receipt,
    Receipts,
)
from memory.records import Memory
from memory.scope import Scope, shard_of
from memory.signposts import looking
from memory.slots import heads
from memory.store import MemoryStore

ROUNDS = 3
"""Times the store is read again and what is left deleted, before giving up."""

ROWS_A_STEP = 200
"""Rows overwritten and deleted within one time limit: the index takes 10 to 20 ms to overwrite a vector."""

_running: set[str] = set()
"""Erasures this process is at."""


class Erasing:
    """Takes away what is to be forgotten, in one namespace, for one call.

    Args:
        namespace, links, ledger: of the engine.
        receipts: where the proof goes.
        clock: gives the time.
    """

    def __init__(
        self, namespace: Namespace, links: LinkStore, ledger: Ledger, receipts: Receipts, clock: Clock
    ) -> None:
        self._namespace, self._links, self._ledger = namespace, links, ledger
        self._companions = Companions(namespace, links, ledger, receipts)
        self._receipts, self._clock = receipts, clock
        self._finished: set[str] = set()

    # --- what calls use --------------------------------------------------------------------------

    def erase(self, store: MemoryStore, scope: Scope, task: Task, *, requested_at: float) -> Receipt:
        """Erase what a task means.

        Args:
            store, scope: whose memories.
            task: what.
            requested_at: seconds since 1970.

        Raises:
            ForgetUnverified: some could still be read afterwards; the next call goes on.
            ServiceError: cut short; the next call goes on.
        """
        store.epochs.look([scope])
        earlier = store.epochs.last(scope)
        if earlier is not None and earlier.stage is not Stage.DONE:
            self.before_write(store, scope, earlier)
        epoch = max(int(requested_at * 1_000), store.epochs.epoch(scope) + 1) if task.is_whole else 0
        rows = store.everything(scope) if task.is_whole else self._meant(store, scope, task)
        if task.memory_ids:
            task = replace(task, memory_ids=tuple(m.memory_id for m in heads(rows)))
        erasure = Erasure(
            token=uuid.uuid4().hex,
            scope_key=scope.key,
            customer_hash=self._receipts.customer_hash(scope),
            epoch=epoch,
            requested_at=requested_at,
            task=task,
            counts=self._counts(scope, task, rows),
            customer_id=scope.customer_id,
            conversation_id=scope.conversation_id,
            shards=self._shards(store, scope, rows, is_whole=task.is_whole),
        )
        with _under_way(erasure):
            store.epochs.put(erasure)
            if task.is_whole:
                store.epochs.note(scope, erasure)
                store.epochs.written.pop(scope, None)  # what this call itself brought home before goes too
            return self._complete(store, scope, erasure, () if task.is_whole else rows)

    def finish(self, store: MemoryStore, scope: Scope, erasure: Erasure) -> None:
        """Finish what another call began, unless that is still at it in this process."""
        if erasure.token in _running or erasure.token in self._finished:
            return
        with _under_way(erasure):
            if not erasure.is_whole and self._receipts.has(erasure.token):
                self._conclude_part(store, erasure)  # its rows are gone; what was said anew since stays
                return
            if erasure.stage is not Stage.DONE:
                self._complete(store, scope, erasure)
                return
            # Written by a call that began before the erasure, and was cut off before it took this back.
            self._erase_older(store, scope, erasure.epoch)
            self._flush(store, [store.shard(scope)], is_with_companions=True)
            self._finished.add(erasure.token)

    def is_at(self, erasure: Erasure) -> bool:
        """Whether this process is at an erasure right now."""
        return erasure.token in _running

    def before_write(self, store: MemoryStore, scope: Scope, erasure: Erasure) -> None:
        """Finish an erasure that a write has met.

        Raises:
            ErasureUnderWay: it is under way in this process, so the write comes too early.
        """
        if erasure.token in _running:
            raise ErasureUnderWay
        self.finish(store, scope, erasure)

    def settle(self, store: MemoryStore) -> list[Scope]:
        """At the end of a call: take back what an erasure has overtaken, and finish what was met.

        Returns:
            The scopes whose writes were taken back.
        """
        overtaken = store.epochs.overtaken() if store.epochs.written else []
        for scope in overtaken:
            self._erase_older(store, scope, store.epochs.epoch(scope))
            self._flush(store, [store.shard(scope)], is_with_companions=True)
        for scope, erasure in list(store.epochs.met.values()):
            if scope not in overtaken or erasure.stage is not Stage.DONE:
                self.finish(store, scope, erasure)
        return overtaken

    @contextmanager
    def watched[S: MemoryStore | None](self, store: S) -> Iterator[S]:
        """A call's work on the store: nothing it writes survives an erasure that came in between.

        Raises:
            ErasureUnderWay: one did.
        """
        if store is not None:
            store.before_write = partial(self.before_write, store)
        yield store
        if store is not None and self.settle(store):
            raise ErasureUnderWay

    def erase_older_companions(self, scope_key: str, epoch: int) -> None:
        """See `Companions.erase_older`."""
        self._companions.erase_older(scope_key, epoch)

    # --- the steps -------------------------------------------------------------------------------

    @looking()
    def _complete(
        self, store: MemoryStore, scope: Scope, erasure: Erasure, rows: Sequence[Memory] = ()
    ) -> Receipt:
        """Go on from the stage an erasure is at, with the rows it means where they were just read."""
        if erasure.stage is Stage.ERASING:
            found = self._take_away(store, scope, erasure, rows)
            # Counted when it began; what came in between is added.
            counts = {
                name: max(erasure.counts.get(name, 0), found[name]) for name in {*erasure.counts, *found}
            }
            shards = tuple(sorted({*erasure.shards, *store.wiped}))
            erasure = replace(erasure, counts=counts, shards=shards)
            if not erasure.is_whole:
                return self._conclude_part(store, erasure)
            erasure = erasure.without_ids(Stage.FLUSHING)
            store.epochs.put(erasure)
            store.epochs.note(scope, erasure)
        return self.conclude(store, erasure)

    def _conclude_part(self, store: MemoryStore, erasure: Erasure) -> Receipt:
        """The last steps of an erasure of a part whose rows are gone; the last of all takes its own row."""
        self._namespace.chroma.renew()
        own = shard_of(erasure.scope_key, store.about.shards)
        receipt = self._keep_receipt(erasure, is_flushed=store.epochs.is_flushable(erasure))
        others = [shard for shard in erasure.shards if shard != own]
        self._flush(store, others, is_with_companions=self._has_companions(erasure))
        store.epochs.drop_and_flush(erasure)
        self._finished.add(erasure.token)
        return receipt

    def conclude(self, store: MemoryStore, erasure: Erasure) -> Receipt:
        """The last steps of an erasure of everything whose rows are gone: the server's files, the receipt."""
        self._namespace.chroma.renew()
        is_flushed = self._flush(store, erasure.shards, is_with_companions=True)
        receipt = self._keep_receipt(erasure, is_flushed=is_flushed)
        store.epochs.put(erasure.without_ids(Stage.DONE))
        self._finished.add(erasure.token)
        return receipt

    def _keep_receipt(self, erasure: Erasure, *, is_flushed: bool) -> Receipt:
        return self._receipts.add(
            Receipt(
                receipt_id=erasure.token,
                customer_hash=erasure.customer_hash,
                scope=erasure.task.reach,
                requested_at=erasure.requested_at,
                completed_at=self._clock(),
                before=erasure.task.before,
                kinds=tuple(sorted(erasure.task.kinds)),
                counts=erasure.counts,
                verified=VERIFIED,
                not_covered=(FLUSHED if is_flushed else HOSTED, *NOT_COVERED),
            )
        )

    def _take_away(
        self, store: MemoryStore, scope: Scope, erasure: Erasure, rows: Sequence[Memory]
    ) -> Counter[str]:
        """Delete and read back; what was found, by type."""
        gone: dict[tuple[str, int], Memory] = {}
        companions: Counter[str] = Counter()
        remaining = 0
        for _ in range(ROUNDS):
            rows = rows or self._meant_by(store, scope, erasure)
            entries = self._companions.entries(scope, erasure, rows)
            self._companions.bury(store, scope, erasure, rows, entries)
            companions += self._companions.erase(store, scope, erasure, entries)
            if not erasure.is_whole:
                end_slots(store, scope, rows, now=erasure.requested_at)
            for start in range(0, len(rows), ROWS_A_STEP):
                self._namespace.chroma.renew()
                store.erase(scope, rows[start : start + ROWS_A_STEP], leaves_sign=not erasure.is_whole)
            self._namespace.chroma.renew()
            gone |= {(m.memory_id, m.part): m for m in rows}
            with self._namespace.chroma.apart() as fresh:
                remaining = self._remaining(fresh, store, scope, erasure, list(gone))
            rows = ()
            if not remaining:
                if scope in store.signed and not erasure.is_whole:
                    self._companions.old_ids.follow(
                        store, scope, list(gone.values()), now=erasure.requested_at
                    )
                return _by_type(list(gone.values())) + companions
        raise ForgetUnverified(remaining=remaining)

    def _remaining(
        self,
        fresh: Chroma,
        store: MemoryStore,
        scope: Scope,
        erasure: Erasure,
        gone: Sequence[tuple[str, int]],
    ) -> int:
        """What a fresh connection still finds of it: by id, by listing and by search."""
        remaining = still_there(
            fresh,
            store.collection(scope),
            scope,
            [*gone, *((memory_id, 0) for memory_id in erasure.task.memory_ids)],
            before_epoch=erasure.epoch,
            dimension=store.about.dimension,
        )
        if erasure.is_whole:
            remaining += self._companions.remaining(fresh, scope, erasure)
        # Where ids say what goes, they have just been looked for.
        is_by_id = bool(erasure.task.memory_ids)
        return remaining if is_by_id else remaining or len(heads(self._meant_by(store, scope, erasure)))

    def _meant_by(self, store: MemoryStore, scope: Scope, erasure: Erasure) -> list[Memory]:
        if erasure.is_whole:
            return store.before_epoch(scope, erasure.epoch)
        return self._meant(store, scope, erasure.task)

    def _meant(self, store: MemoryStore, scope: Scope, task: Task) -> list[Memory]:
        """The rows of a task that is about a part."""
        if task.reach == TICKET:
            return [memory for memory in store.read(scope, task.memory_ids) if memory.source]
        request = Request(
            reach=Reach(task.reach), memory_ids=task.memory_ids, before=task.before, kinds=task.kinds
        )
        resolved = Resolved(scope, task.conversation_id, task.case_id, None)
        return select(store, resolved, request)[0]

    def _erase_older(self, store: MemoryStore, scope: Scope, epoch: int) -> None:
        """Take back what was written in an older epoch."""
        store.erase(scope, store.before_epoch(scope, epoch))
        self.erase_older_companions(scope.key, epoch)

    # --- figures and files -----------------------------------------------------------------------

    def _counts(self, scope: Scope, task: Task, rows: Sequence[Memory]) -> Counter[str]:
        counts = _by_type(rows)
        if task.is_whole:
            counts.update(self._companions.count(scope))
        return counts

    def _shards(
        self, store: MemoryStore, scope: Scope, rows: Sequence[Memory], *, is_whole: bool
    ) -> tuple[int, ...]:
        """Collections whose files may hold words of these rows: their own, and where they lay before."""
        if scope.is_provisional:
            return (store.shard(scope),)
        if is_whole:
            links = self._links.of_customer(scope)
        else:
            named = {m.conversation_id for m in rows if m.conversation_id}
            links = list(self._links.find_all(named).values())
        trails = (link.trail for link in links if link.customer_id == scope.customer_id)
        return tuple(sorted({store.shard(scope), *(shard for trail in trails for shard in trail)}))

    def _has_companions(self, erasure: Erasure) -> bool:
        return bool(erasure.counts.get(LINKS) or erasure.counts.get(TICKETS))

    def _flush(self, store: MemoryStore, shards: Sequence[int], *, is_with_companions: bool) -> bool:
        """Prepare the server's files for a vacuum; whether they are of a sort that this can be done with."""
        collections = [self._namespace.memories(shard, store.about.generation) for shard in shards]
        if is_with_companions:
            collections += [self._namespace.links, self._namespace.ledger, self._namespace.aliases]
        flushed = [self._namespace.chroma.flush(name) for name in collections]
        return all(flushed)


@contextmanager
def _under_way(erasure: Erasure) -> Iterator[None]:
    _running.add(erasure.token)
    try:
        yield
    finally:
        _running.discard(erasure.token)


def _by_type(rows: Sequence[Memory]) -> Counter[str]:
    """Rows counted as a receipt does: statements by kind or as history, and marks."""
    counts = Counter(str(m.kind) if m.is_current else HISTORY for m in heads(rows))
    counts[MARKS] = sum(1 for m in rows if m.ends_one)
    return counts
