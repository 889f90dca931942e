"""Signposts: rows that say "this customer was merged with another; look there first".

A customer's own memory is read by every call anyway. So a merge leaves one row in it, in that of the old
customer and of the new one, and no call has to ask whether there was a merge: one that meets the row stops
before it has done anything, finds out what became of the customer, and starts again. The row has no content.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps

from memory.chroma_rows import Row
from memory.records import Columns
from memory.scope import Scope, hashed

_is_looking: ContextVar[bool] = ContextVar("is_looking", default=False)


class SignpostMet(Exception):
    """A read met a signpost in a call that has not asked what became of its customer."""


def follows_signposts[**P, R](call: Callable[P, R]) -> Callable[P, R]:
    """Let a call start again, asking about merges first, when it meets a signpost."""

    @wraps(call)
    def following(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return call(*args, **kwargs)
        except SignpostMet:
            with looking():
                return call(*args, **kwargs)

    return following


@contextmanager
def looking() -> Iterator[None]:
    """Mark work that asks about merges first, and need not stop at a signpost."""
    token = _is_looking.set(True)
    try:
        yield
    finally:
        _is_looking.reset(token)


def is_looking() -> bool:
    """Whether the caller is to ask about merges first."""
    return _is_looking.get()


def heed() -> None:
    """Stop at a signpost, unless the call has asked already.

    Raises:
        SignpostMet: it has not.
    """
    if not _is_looking.get():
        raise SignpostMet


def signpost_id(scope: Scope) -> str:
    """The row id of a scope's signpost."""
    return hashed("signpost", scope.key)


def signpost(scope: Scope, vector: Sequence[float], *, epoch: int) -> Row:
    """The row. It lies where every read of the scope looks: among the live rows and those that expire.

    Args:
        scope: whose.
        vector: one that stands for none.
        epoch: the scope's; see `memory.epochs`.
    """
    columns: Columns = {
        "scope": scope.key,
        "customer_id": scope.customer_id,
        "expiring": scope.key,
        "is_signpost": True,
        "ends_slot": True,
        "epoch": epoch or None,
    }
    return Row(signpost_id(scope), "", columns, vector)


def is_signpost(row: Row) -> bool:
    """Whether a row is one."""
    return bool(row.columns.get("is_signpost", False))
