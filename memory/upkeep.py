"""Upkeep of a whole namespace: how much it holds, and deleting for good what has expired."""

from collections import Counter

from memory.identity import scope_of_owner
from memory.namespace import About, Namespace
from memory.records import from_row
from memory.remembering import sweep
from memory.store import MemoryStore


def describe(namespace: Namespace) -> dict[str, str | int | None]:
    """The server's version, the namespace, its embedder, and how much it holds."""
    version = namespace.chroma.check()
    about = namespace.about()
    shards = 0 if about is None else about.shards
    return {
        "chroma_version": version,
        "namespace": namespace.name,
        "embedder": None if about is None else str(about.embedder),
        "dimension": None if about is None else about.dimension,
        "shards": shards,
        "rows": sum(namespace.count_rows(shards)),
        "links": namespace.chroma.count(namespace.links),
        "tickets": namespace.chroma.count(namespace.ledger),
    }


def expire(namespace: Namespace, about: About, *, now: float) -> dict[str, int]:
    """Delete what has expired, customer by customer, each within its own scope.

    Args:
        namespace: which one.
        about: what it remembers of itself.
        now: seconds since 1970.

    Returns:
        Memories deleted, by kind.
    """
    store = MemoryStore(namespace, about)
    gone: Counter[str] = Counter()
    for shard in range(about.shards):
        namespace.chroma.renew()
        for customer_id, conversation_id in _owners_of_expired(namespace, shard, now=now):
            scope = scope_of_owner(customer_id, conversation_id)
            gone.update(str(m.kind) for m in sweep(store, scope, now=now) if m.part == 0)
    return dict(gone)


def _owners_of_expired(namespace: Namespace, shard: int, *, now: float) -> list[tuple[str, str]]:
    """Whom the expired rows of a shard belong to: (customer id, conversation id). No text is looked at."""
    rows = namespace.chroma.get(namespace.memories(shard))
    found = (from_row(row.row_id, "", row.columns) for row in rows)
    owners = ((m.customer_id, "" if m.customer_id else m.conversation_id) for m in found if m.is_expired(now))
    return sorted(set(owners))
