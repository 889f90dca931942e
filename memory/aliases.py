"""Aliases: customers that were merged into another, and what a merge moved, so that it can be undone.

The rows hold ids and times, nothing of what was said.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from memory.chroma import Chroma
from memory.chroma_rows import Row
from memory.identity import scope_of_customer
from memory.namespace import Namespace, unsearched_vector
from memory.records import Columns
from memory.scope import Scope, hashed

type Details = dict[str, str | float | None]
"""Ids and times of a statement."""


class State(StrEnum):
    """How far a merge has come."""

    CLAIMED = "claimed"
    """It is only asked for: nobody may act on it but who asked."""
    LISTING = "listing"
    """The id is an alias from here on; what is going to move is being noted."""
    MOVING = "moving"
    DONE = "done"
    UNDOING = "undoing"


class What(StrEnum):
    """What a merge moves."""

    MEMORY = "memory"
    MARK = "mark"
    LINK = "link"
    TICKET = "ticket"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    """A customer that was merged into another.

    Attributes:
        customer_id: the old id.
        into_id: the customer the merge named.
        target_id: who answers for the old id; another than `into_id` after that one was merged too.
        merge_id: of the merge.
        merged_at: seconds since 1970.
        state: see there.
        epoch: the old customer's when the merge began; see `memory.epochs`.
    """

    customer_id: str
    into_id: str
    target_id: str
    merge_id: str
    merged_at: float
    state: State
    epoch: int = 0

    @property
    def old(self) -> Scope:
        """The scope of the old id."""
        return scope_of_customer(self.customer_id)

    @property
    def target(self) -> Scope:
        """The scope that answers for it."""
        return scope_of_customer(self.target_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """One thing a merge moved.

    Attributes:
        what: see there.
        item_id: its id with the new customer: a memory's, or the row's of a link or a ledger entry.
        old_id: its id with the old one.
        kind: of a memory.
        is_shared: whether the new customer had the same statement already.
        details: of a shared statement, what the old customer's had that the other's may not have.
    """

    what: What
    item_id: str
    old_id: str = ""
    kind: str = ""
    is_shared: bool = False
    details: Details | None = None


class AliasStore:
    """The aliases of one namespace.

    Args:
        namespace: where they lie.
    """

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace

    def find(self, customer_id: str) -> Alias | None:
        """The alias of this id, whatever its state; None if it was never merged."""
        return self.find_all([customer_id]).get(customer_id)

    def find_all(self, customer_ids: Iterable[str]) -> dict[str, Alias]:
        """The aliases of many ids, by id."""
        wanted = set(customer_ids)
        ids = sorted(map(_alias_id, wanted))
        rows = self._namespace.chroma.get(self._namespace.aliases, ids=ids)
        return {a.customer_id: a for a in map(_alias, rows) if a.customer_id in wanted}

    def into(self, scope: Scope) -> list[Alias]:
        """The aliases that a customer answers for."""
        if scope.is_provisional:
            return []
        rows = self._namespace.chroma.get(self._namespace.aliases, where={"target": scope.key})
        return [alias for alias in map(_alias, rows) if alias.target_id == scope.customer_id]

    def of_merge(self, merge_id: str) -> Alias | None:
        """The alias a merge made; None for an unknown merge, or one that was undone."""
        rows = self._namespace.chroma.get(self._namespace.aliases, where={"made_by": merge_id})
        return next(map(_alias, rows), None)

    def claim(self, alias: Alias) -> Alias:
        """Write an alias unless the id has one; of several callers at once, one wins.

        Returns:
            The one that is there now.
        """
        self._namespace.chroma.add(self._namespace.aliases, [_alias_row(alias)])
        there = self.find(alias.customer_id)
        if there is None:  # what an erasure cut short left of an earlier one
            self.put(alias)
        return there or alias

    def put(self, *aliases: Alias) -> None:
        """Write aliases over the ones that were there."""
        if aliases:
            self._namespace.chroma.put(self._namespace.aliases, [_alias_row(a) for a in aliases])

    def erase(self, *aliases: Alias) -> None:
        """Delete aliases and what is noted of their merges, overwritten first."""
        for alias in aliases:
            rows = self._namespace.chroma.get(self._namespace.aliases, where={"moved_by": alias.merge_id})
            # What a merge moved is found again by the merge, should this be cut short before the alias goes.
            for ids, columns in (
                ([row.row_id for row in rows], _MOVED_COLUMNS),
                ([_alias_id(alias.customer_id)], _ALIAS_COLUMNS),
            ):
                wiped = [(row_id, alias.old.key) for row_id in ids]
                self._namespace.wipe(self._namespace.aliases, wiped, columns)

    def older(self, scope: Scope, *, before_epoch: int, chroma: Chroma | None = None) -> list[Alias]:
        """The aliases that an erasure of everything takes along: into the customer, and a claim of its own.

        Args:
            scope: of the customer.
            before_epoch: of the erasure; an alias made later stays.
            chroma: a connection to read through; None for the usual one.
        """
        if scope.is_provisional:
            return []
        found: dict[str, Alias] = {}
        for column in ("target", "customer"):
            rows = (chroma or self._namespace.chroma).get(self._namespace.aliases, where={column: scope.key})
            for alias in (_alias(row) for row in rows if row.columns.get("customer_id")):
                if column == "target" or alias.state is State.CLAIMED:
                    found[alias.customer_id] = alias
        return [alias for alias in found.values() if int(alias.merged_at * 1_000) <= before_epoch]

    # --- what a merge moved ----------------------------------------------------------------------

    def note(self, alias: Alias, moved: Sequence[Moved]) -> None:
        """Note what a merge is going to move; what is noted already stays as it is."""
        self._namespace.chroma.add(self._namespace.aliases, [_moved_row(alias, each) for each in moved])

    def noted(self, alias: Alias) -> list[Moved]:
        """What a merge moved, or was going to."""
        rows = self._namespace.chroma.get(self._namespace.aliases, where={"moved_by": alias.merge_id})
        return [_moved(row) for row in rows if "what" in row.columns]


def is_sound(row: Row) -> bool:
    """Whether a row is an alias, or a note of what a merge moved, whose id and columns agree.

    Raises:
        ValueError, TypeError, RequestError: it is neither.
    """
    if "what" in row.columns:
        merge_id, moved = str(row.columns.get("moved_by", "")), _moved(row)
        return bool(merge_id and moved.item_id) and row.row_id == _moved_id(merge_id, moved)
    alias = _alias(row)
    right = _alias_row(alias)
    keys = ("customer", "target")
    is_own = all(row.columns.get(key) == right.columns[key] for key in keys)
    return bool(alias.merge_id) and row.row_id == right.row_id and is_own


def signed(row: Row) -> list[Scope]:
    """The scopes that bear a signpost because of a row: of an alias the old one and who answers for it."""
    if "what" in row.columns:
        return []
    alias = _alias(row)
    return [] if alias.state is State.CLAIMED else [alias.old, alias.target]


def new_alias(old: Scope, new: Scope, *, now: float) -> Alias:
    """An alias that is only asked for."""
    merge_id = hashed("merge", old.key, new.key, f"{now:.6f}")
    return Alias(
        customer_id=old.customer_id,
        into_id=new.customer_id,
        target_id=new.customer_id,
        merge_id=merge_id,
        merged_at=now,
        state=State.CLAIMED,
    )


def in_state(alias: Alias, state: State) -> Alias:
    """The alias in another state."""
    return replace(alias, state=state)


_ALIAS_COLUMNS = ("customer_id", "into_id", "target_id", "target", "made_by", "merged_at", "state", "epoch")
_MOVED_COLUMNS = ("what", "item_id", "old_id", "kind", "is_shared")


def _alias_id(customer_id: str) -> str:
    return hashed("alias", customer_id)


def _alias_row(alias: Alias) -> Row:
    row_id = _alias_id(alias.customer_id)
    columns: Columns = {
        "customer_id": alias.customer_id,
        "customer": alias.old.key,
        "into_id": alias.into_id,
        "target_id": alias.target_id,
        "target": alias.target.key,
        "made_by": alias.merge_id,
        "merged_at": float(alias.merged_at),
        "state": str(alias.state),
        "epoch": alias.epoch or None,
    }
    return Row(row_id, "", columns, unsearched_vector(row_id))


def _alias(row: Row) -> Alias:
    columns = row.columns
    return Alias(
        customer_id=str(columns.get("customer_id", "")),
        into_id=str(columns.get("into_id", "")),
        target_id=str(columns.get("target_id", "")),
        merge_id=str(columns.get("made_by", "")),
        merged_at=float(columns.get("merged_at", 0.0)),
        state=State(str(columns.get("state", State.CLAIMED))),
        epoch=int(columns.get("epoch", 0)),
    )


def _moved_id(merge_id: str, moved: Moved) -> str:
    return hashed("moved", merge_id, moved.what, moved.item_id)


def _moved_row(alias: Alias, moved: Moved) -> Row:
    row_id = _moved_id(alias.merge_id, moved)
    columns: Columns = {
        "moved_by": alias.merge_id,
        "what": str(moved.what),
        "item_id": moved.item_id,
        "old_id": moved.old_id or None,
        "kind": moved.kind or None,
        "is_shared": True if moved.is_shared else None,
    }
    return Row(row_id, json.dumps(moved.details or {}), columns, unsearched_vector(row_id))


def _moved(row: Row) -> Moved:
    columns = row.columns
    return Moved(
        what=What(str(columns.get("what", What.MEMORY))),
        item_id=str(columns.get("item_id", "")),
        old_id=str(columns.get("old_id", "")),
        kind=str(columns.get("kind", "")),
        is_shared=bool(columns.get("is_shared", False)),
        details=json.loads(row.text or "{}") or None,
    )
