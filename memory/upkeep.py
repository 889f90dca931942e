"""Upkeep of a whole namespace: how much it holds, and deleting for good what has expired."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from memory.about import About
from memory.chroma_rows import Row
from memory.embedding.remembered import NamespaceEmbedders
from memory.erasing import Erasing
from memory.erasures import KEPT_SECONDS, Stage
from memory.erasures import from_row as from_erasure_row
from memory.identity import scope_of_owner
from memory.namespace import Namespace
from memory.records import Memory, from_row
from memory.remembering import sweep
from memory.scope import Scope
from memory.store import MemoryStore


def describe(namespace: Namespace, embedders: NamespaceEmbedders) -> dict[str, str | int | float | None]:
    """The server's version and quickness, the namespace, its embedder, and how much it holds.

    No embedding model is asked for it: what is wrong with the embedder is what the settings tell.
    """
    version = namespace.chroma.check()
    about = namespace.about()
    return {
        "chroma_version": version,
        "chroma_heartbeat_ms": round(1_000.0 * namespace.chroma.heartbeat(), 1),
        "namespace": namespace.name,
        "embedder": None if about is None else str(about.embedder),
        "embedder_fault": None if about is None else embedders.fault_code(about) or None,
        "dimension": None if about is None else about.dimension,
        "shards": 0 if about is None else about.shards,
        "rows": 0 if about is None else sum(namespace.count_rows(about)),
        "links": namespace.chroma.count(namespace.links),
        "tickets": namespace.chroma.count(namespace.ledger),
    }


@dataclass(frozen=True, slots=True)
class Expired:
    """How many memories an upkeep deleted, by kind and by source of the ticket; "" for no ticket."""

    kinds: Mapping[str, int] = field(default_factory=dict)
    sources: Mapping[str, int] = field(default_factory=dict)


def expire(namespace: Namespace, about: About, erasing: Erasing, *, now: float) -> Expired:
    """Delete what has expired, customer by customer, each within its own scope.

    Erasures whose process died are finished on the way, and what is left of old ones goes.

    Args:
        namespace: which one.
        about: what it remembers of itself.
        erasing: finishes erasures.
        now: seconds since 1970.

    Returns:
        Memories deleted.
    """
    gone: list[Memory] = []
    for shard in range(about.shards):
        namespace.chroma.renew()
        rows = namespace.chroma.get(namespace.memories(shard, about.generation))
        store = MemoryStore(namespace, about)
        store.before_write = partial(erasing.before_write, store)
        _tend_erasures(store, erasing, rows, now=now)
        for customer_id, conversation_id in _owners_of_expired(rows, now=now):
            scope = scope_of_owner(customer_id, conversation_id)
            gone += [m for m in sweep(store, scope, now=now) if m.part == 0 and not m.ends_slot]
        erasing.settle(store)
    kinds, sources = Counter(str(m.kind) for m in gone), Counter(m.source for m in gone)
    return Expired(dict(kinds), dict(sources))


def _tend_erasures(store: MemoryStore, erasing: Erasing, rows: Sequence[Row], *, now: float) -> None:
    """Finish the erasures of a shard, take back what came too late, and drop the rows of old ones."""
    erasures = [erasure for erasure in map(from_erasure_row, rows) if erasure and not erasing.is_at(erasure)]
    scopes = {scope.key: scope for scope in map(_scope_of, rows) if scope} if erasures else {}
    for erasure in erasures:
        if erasure.stage is Stage.ERASING:
            owner = scope_of_owner(erasure.customer_id, erasure.conversation_id)
            erasing.finish(store, owner, erasure)
            continue
        if erasure.stage is Stage.FLUSHING:
            erasing.conclude(store, erasure)
            continue
        if (scope := scopes.get(erasure.scope_key)) is not None:
            store.erase(scope, store.before_epoch(scope, erasure.epoch))
        erasing.erase_older_companions(erasure.scope_key, erasure.epoch)
        if now - erasure.requested_at > KEPT_SECONDS:
            store.epochs.drop(erasure)


def _scope_of(row: Row) -> Scope | None:
    """The scope a row of a memory says it is of; None for what is no memory."""
    memory = from_row(row.row_id, "", row.columns)
    if "erasure" in row.columns or not (memory.customer_id or memory.conversation_id):
        return None
    return scope_of_owner(memory.customer_id, memory.conversation_id)


def _owners_of_expired(rows: Sequence[Row], *, now: float) -> list[tuple[str, str]]:
    """Whom the expired ones of these rows belong to: (customer id, conversation id). No text is looked at."""
    found = (from_row(row.row_id, "", row.columns) for row in rows)
    owners = ((m.customer_id, "" if m.customer_id else m.conversation_id) for m in found if m.is_expired(now))
    return sorted(set(owners))
