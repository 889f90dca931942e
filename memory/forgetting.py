"""What a call to forget means, in the rows of one scope; `memory.erasing` takes it away."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from memory.erasures import WHOLE, Task
from memory.errors import MemoryIdsRequired, ParameterMissing
from memory.identity import Resolved
from memory.receipts import Receipt
from memory.records import Kind, Memory
from memory.scope import Scope
from memory.slots import current_of, end_mark
from memory.store import MemoryStore

MIN_SCORE = 0.1
"""Least score of a memory that a query to forget means; a person looks at them before they go."""
MAX_MEMORY_IDS = 5_000
"""Ids in one call."""


class Reach(StrEnum):
    """What a call to forget is about; what design.md calls the forget's scope."""

    MATCHING = "matching"
    """What a query finds, or the ids given."""
    CONVERSATION = "conversation"
    CASE = "case"
    EVERYTHING = WHOLE
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
        receipt: of a deletion; None for a preview, and where nothing was ever stored.
        not_found: ids that were given and are no memories of this customer.
        requested_at: seconds since 1970.
    """

    request: Request
    matched: tuple[Memory, ...]
    not_found: tuple[str, ...]
    receipt: Receipt | None
    requested_at: float
    customer_id: str
    is_linked: bool

    @property
    def deleted(self) -> int:
        """How many statements are gone, read back; 0 for a preview."""
        return self.receipt.deleted if self.receipt else 0


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


def task_of(resolved: Resolved, request: Request) -> Task:
    """What a deletion is to take away, as it is noted in the store."""
    return Task(
        reach=str(request.reach),
        conversation_id=resolved.conversation_id if request.reach is Reach.CONVERSATION else "",
        case_id=resolved.case_id if request.reach is Reach.CASE else "",
        memory_ids=request.memory_ids if request.reach is Reach.MATCHING else (),
        before=request.before,
        kinds=request.kinds,
    )


def end_slots(store: MemoryStore, scope: Scope, rows: Sequence[Memory], *, now: float) -> None:
    """Where the value a slot holds is about to go, say so first, so that no older one comes back.

    Args:
        store, scope: whose.
        rows: what is about to go.
        now: seconds since 1970.
    """
    going = {m.memory_id for m in rows}
    marks = []
    for slot in sorted({m.slot for m in rows if m.slot}):
        held = current_of(store.slot(scope, slot))
        if held is not None and held.memory_id in going:
            # Of no conversation: what was forgotten does not go along when the conversation moves.
            marks.append(end_mark(held, now=now)._replace(conversation_id=""))
    store.write_marks(scope, marks)
