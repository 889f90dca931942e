"""Stored rows of memories as whoever copies them sees them: whose they are, and what is a copy."""

from collections.abc import Sequence
from dataclasses import replace

from memory.chroma_rows import Row, Vector
from memory.embedding import Embedder
from memory.embedding.model import cosine
from memory.errors import RequestError
from memory.identity import scope_of_owner
from memory.records import belongs_to, from_row
from memory.scope import shard_of

NEAR = 0.9999
"""Cosine of two vectors that are the same: a store that compares by angle keeps them at another length."""


class Unowned(Exception):
    """A row whose words were overwritten, in the moment before it is deleted: it says of nobody any more."""


def shard_of_row(row: Row, shards: int, old_shard: int) -> int:
    """Which of so many collections a row belongs in, by what it says itself.

    Args:
        row: of a memory, an erasure or a signpost.
        shards: how many collections there are.
        old_shard: where it lies; decides for a row that no read returns, since it contradicts itself.

    Raises:
        Unowned: it is about to be deleted, and there is nothing in it.
    """
    columns = row.columns
    if "erasure" in columns:
        return shard_of(str(columns["scope"]), shards)
    memory = from_row(row.row_id, "", columns)
    conversation_id = str(columns.get("provisional_of", memory.conversation_id))
    if memory.is_blank and not memory.customer_id and not conversation_id:
        raise Unowned
    try:
        scope = scope_of_owner(memory.customer_id, "" if memory.customer_id else conversation_id)
    except RequestError:
        return old_shard % shards
    return scope.shard(shards) if belongs_to(columns, scope) else old_shard % shards


def is_same(row: Row, other: Row | None, *, with_vector: bool = False) -> bool:
    """Whether another row is a copy of it."""
    if other is None or (row.text, row.columns) != (other.text, other.columns):
        return False
    return not with_vector or is_near(row.vector or (), other.vector or ())


def is_near(one: Vector, other: Vector) -> bool:
    """Whether two vectors point the same way."""
    return len(one) == len(other) > 0 and cosine(one, other) >= NEAR


def vectors_of(rows: Sequence[Row], embedder: Embedder, dimension: int) -> list[Row]:
    """Rows of memories with the vectors a model makes of them; those without words get a constant one."""
    texts = {
        row.row_id: from_row(row.row_id, row.text, row.columns).index_text
        for row in rows
        if row.text and not {"erasure", "ends_slot"} & row.columns.keys()
    }
    vectors = dict(zip(texts, embedder.embed_documents(list(texts.values())), strict=True)) if texts else {}
    constant = [1.0] + [0.0] * (dimension - 1)
    return [replace(row, vector=vectors.get(row.row_id, constant)) for row in rows]
