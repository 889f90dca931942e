"""Forgetting: what is meant is resolved to ids, shown or deleted, and read back."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from memory.errors import ForgetUnverified, MemoryIdsRequired, ParameterMissing
from memory.identity import Resolved
from memory.ledger import Ledger
from memory.records import Kind, Memory
from memory.scope import Scope
from memory.slots import current_of, end_mark, heads
from memory.store import MemoryStore

MAX_MEMORY_IDS = 5_000
"""Ids in one call."""
ROUNDS = 3
"""Times the store is read again and what is left deleted, before giving up."""


class Reach(StrEnum):
    """What a call to forget is about; what design.md calls the forget's scope."""

    MATCHING = "matching"
    """What a query finds, or the ids given."""
    CONVERSATION = "conversation"
    CASE = "case"
    EVERYTHING = "everything"
    """The customer as a whole, links included."""


class Phase(StrEnum):
    """Whether to show what would go, or to let it go."""

    PREVIEW = "preview"
    DELETE = "delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to forget.

    Attributes:
        reach, phase: see there.
        query: what to look for when previewing what matches.
        memory_ids: the ids a preview returned.
        before: only what was so before this moment, seconds since 1970; None for no bound.
        kinds: only these; empty for all.
    """

    reach: Reach = Reach.MATCHING
    phase: Phase = Phase.PREVIEW
    query: str = ""
    memory_ids: tuple[str, ...] = ()
    before: float | None = None
    kinds: frozenset[Kind] = frozenset()

    @property
    def is_whole(self) -> bool:
        """Whether it means the customer as a whole, with nothing held back."""
        return self.reach is Reach.EVERYTHING and self.before is None and not self.kinds

    def check(self) -> None:
        """Make sure that what matches is said, and said by ids where it is to be deleted.

        Raises:
            ParameterMissing: there is neither a query nor an id.
            MemoryIdsRequired: a deletion by query; a preview's ids are needed.
        """
        if self.reach is not Reach.MATCHING or self.memory_ids:
            return
        if not self.query.strip():
            raise ParameterMissing(name="query or memory_ids")
        if self.phase is Phase.DELETE:
            raise MemoryIdsRequired

    def admits(self, memory: Memory) -> bool:
        """Whether a memory is within the bounds of time and kind.

        A mark goes with the whole customer only: forgetting never makes an ended value hold again.
        """
        if memory.ends_slot:
            return self.is_whole
        return (not self.kinds or memory.kind in self.kinds) and (
            self.before is None or memory.occurred_at < self.before
        )


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What a call to forget met and did.

    Attributes:
        matched: the statements that are meant, one row each.
        deleted: how many of them are gone, read back; 0 for a preview.
        not_found: ids that were given and are no memories of this customer.
        links_removed: conversations that are linked to nobody now.
        requested_at, completed_at: seconds since 1970; completed_at is None for a preview.
    """

    request: Request
    matched: tuple[Memory, ...]
    deleted: int
    not_found: tuple[str, ...]
    links_removed: int
    requested_at: float
    completed_at: float | None
    customer_id: str
    is_linked: bool


def select(store: MemoryStore, resolved: Resolved, request: Request) -> tuple[list[Memory], tuple[str, ...]]:
    """The rows a request means, apart from a query's, and the ids that were not found.

    Raises:
        ParameterMissing: the conversation or case to forget is not named.
    """
    scope = resolved.scope
    if request.reach is Reach.MATCHING:
        rows = [m for m in store.read(scope, request.memory_ids) if not m.ends_slot]
        found = {m.memory_id for m in rows}
        missing = tuple(i for i in dict.fromkeys(request.memory_ids) if i not in found)
        return [m for m in rows if request.admits(m)], missing
    rows = store.everything(scope)
    if request.reach is Reach.CONVERSATION:
        if not resolved.conversation_id:
            raise ParameterMissing(name="conversation_id")
        rows = [m for m in rows if m.conversation_id == resolved.conversation_id]
    elif request.reach is Reach.CASE:
        if not resolved.case_id:
            raise ParameterMissing(name="case_id")
        rows = [m for m in rows if m.case_id == resolved.case_id]
    return [m for m in rows if request.admits(m)], ()


def erase(store: MemoryStore, resolved: Resolved, request: Request, *, now: float) -> int:
    """Delete what a request means, and read back.

    Args:
        store: the memories.
        resolved: whose.
        request: what.
        now: seconds since 1970.

    Returns:
        How many statements are gone.

    Raises:
        ForgetUnverified: some could still be read afterwards.
    """
    gone: set[str] = set()
    for _ in range(ROUNDS):
        rows, _missing = select(store, resolved, request)
        if not rows:
            return len(gone)
        if not request.is_whole:
            _end_slots(store, resolved.scope, rows, now=now)
        store.erase(resolved.scope, rows)
        gone.update(m.memory_id for m in heads(rows))
    remaining = len(heads(select(store, resolved, request)[0]))
    if remaining:
        raise ForgetUnverified(remaining=remaining)
    return len(gone)


def erase_entries(ledger: Ledger, resolved: Resolved, request: Request, gone: Sequence[Memory]) -> None:
    """Delete the ledger's entries of tickets whose memories are gone, so that the ledger tells the truth."""
    if resolved.scope.is_provisional:
        return
    tickets = {(m.source, m.ticket_id) for m in gone if m.ticket_id}
    has_bounds = request.before is not None or bool(request.kinds)
    conversation_id = "" if has_bounds else resolved.conversation_id
    is_conversation = request.reach is Reach.CONVERSATION and bool(conversation_id)
    ledger.erase(
        entry.key
        for entry in ledger.of_customer(resolved.scope)
        if request.is_whole
        or entry.key in tickets
        or (is_conversation and entry.conversation_id == conversation_id)
    )


def _end_slots(store: MemoryStore, scope: Scope, rows: Sequence[Memory], *, now: float) -> None:
    """Where the value a slot holds is about to go, say so first, so that no older one comes back."""
    going = {m.memory_id for m in rows}
    marks = []
    for slot in sorted({m.slot for m in rows if m.slot}):
        held = current_of(store.slot(scope, slot))
        if held is not None and held.memory_id in going:
            # Of no conversation: what was forgotten does not go along when the conversation moves.
            marks.append(replace(end_mark(held, now=now), conversation_id=""))
    store.write_marks(scope, marks)
