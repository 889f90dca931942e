"""Reading back: whether rows that were deleted can still be found, in any way there is to find one."""

from collections.abc import Sequence

from memory.chroma import Chroma
from memory.epochs import epoch_of
from memory.records import row_id
from memory.scope import Scope

NEAREST = 1_000
"""Rows a search is asked for."""


def still_there(
    chroma: Chroma,
    collection: str,
    scope: Scope,
    gone: Sequence[tuple[str, int]],
    *,
    before_epoch: int,
    dimension: int,
) -> int:
    """How many rows are still found that should not be, by id, by listing the scope and by searching it.

    Args:
        chroma: a fresh connection.
        collection: where they lay.
        scope: whose they were.
        gone: memory id and part of each.
        before_epoch: all rows of an older epoch should be gone as well.
        dimension: of a vector.
    """
    wanted = {row_id(memory_id, part) for memory_id, part in gone}
    by_id = chroma.get(collection, ids=sorted(wanted))
    # Said anew after the erasure of everything: the same statement has the same id.
    anew = {row.row_id for row in by_id if before_epoch and epoch_of(row) >= before_epoch}
    wanted -= anew
    found = {row.row_id for row in by_id} & wanted
    vector = [dimension**-0.5] * dimension
    for key in (scope.key, scope.history_key):
        listed = chroma.get(collection, where={"scope": key})
        found |= {row.row_id for row in listed} & wanted
        found |= {
            row.row_id for row in listed if "erasure" not in row.columns and epoch_of(row) < before_epoch
        }
        found |= chroma.nearest(collection, vector, where={"scope": key}, limit=NEAREST).keys() & wanted
    return len(found)
