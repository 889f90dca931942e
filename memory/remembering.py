"""Remembering: statements become records, duplicates are met, slots keep one current value."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from memory.content import Skipped, Statement
from memory.embedding import Embedder
from memory.records import Kind, Memory, Metadata, Role, in_scope, slot_key
from memory.scope import Scope
from memory.slots import current_of, order, settle
from memory.store import MemoryStore, Stored
from memory.text import digest, split

SECONDS_A_DAY = 86_400.0
_STEP = 1e-6
"""Seconds between the statements of one call, so that the later one is the newer."""


class Action(StrEnum):
    """What became of a statement."""

    CREATED = "created"
    UPDATED = "updated"
    """The same value was known; now it is known to hold later, or for longer."""
    DUPLICATE = "duplicate"
    SUPERSEDED = "superseded"
    """Stored as history: a newer value of its slot is known already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """What a call to remember says of all its statements.

    Attributes:
        scope: whose memory.
        conversation_id, case_id: where they were said; "" for none.
        subject, attribute: the slot of the customer's own facts; attribute "" for none.
        occurred_at: when they were so, seconds since 1970; None for now.
        expires_at: seconds since 1970; None for never.
        metadata: the user's own.

    """

    scope: Scope
    conversation_id: str = ""
    case_id: str = ""
    subject: str = ""
    attribute: str = ""
    occurred_at: float | None = None
    expires_at: float | None = None
    metadata: Metadata = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one statement.

    Attributes:
        action: see there.
        memory: the record as it is now; for a duplicate, the one that was there.
        supersedes: ids of the memories it made history.

    """

    action: Action
    memory: Memory
    supersedes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Remembered:
    """What a call to remember did.

    Attributes:
        outcomes: one a statement that was looked at, in order.
        skipped: what was not, and why.

    """

    outcomes: tuple[Outcome, ...]
    skipped: tuple[Skipped, ...]
    customer_id: str
    is_linked: bool

    def count(self, *actions: Action) -> int:
        """How many statements ended with one of these actions."""
        return sum(1 for outcome in self.outcomes if outcome.action in actions)

    @property
    def superseded(self) -> int:
        """How many memories became history, or were stored as history, through this call."""
        retired = {old for outcome in self.outcomes for old in outcome.supersedes}
        return len(retired) + self.count(Action.SUPERSEDED)


def remember(
    store: MemoryStore,
    embedder: Embedder,
    writing: Writing,
    statements: Sequence[Statement],
    *,
    now: float,
) -> list[Outcome]:
    """Store statements in one scope.

    Args:
        store, embedder: where to, and what makes the vectors.
        writing: what holds for all of them.
        statements: what to store, oldest first.
        now: seconds since 1970.

    Returns:
        One outcome a statement, in order.

    Raises:
        SetupError, ServiceError: the embedder or the store failed. What was written until then is whole,
            and the same call again completes it.

    """
    slotted = [s for s in statements if _slot(writing, s)]
    plain = [s for s in statements if not _slot(writing, s)]
    outcomes = {
        **_remember_plain(store, embedder, writing, plain, now=now),
        **_remember_slotted(store, embedder, writing, slotted, now=now),
    }
    return [outcomes[statement.index] for statement in statements]


def _slot(writing: Writing, statement: Statement) -> str:
    """The slot a statement speaks of; only the customer's own facts have one."""
    is_fact = statement.kind is not Kind.EPISODIC and statement.role is Role.CUSTOMER
    if not writing.attribute or not is_fact:
        return ""
    return slot_key(writing.scope, writing.subject, writing.attribute)


# --- statements without a slot ------------------------------------------------------------------


def _remember_plain(
    store: MemoryStore,
    embedder: Embedder,
    writing: Writing,
    statements: Sequence[Statement],
    *,
    now: float,
) -> dict[int, Outcome]:
    records = {s.index: _record(writing, s, basis=_plain_basis(writing, s), now=now) for s in statements}
    known = {
        m.memory_id: m
        for m in store.read(writing.scope, [m.memory_id for m in records.values()])
        if m.part == 0
    }
    outcomes: dict[int, Outcome] = {}
    fresh: dict[str, Memory] = {}
    longer: list[Memory] = []
    for index, record in records.items():
        earlier = known.get(record.memory_id) or fresh.get(record.memory_id)
        if earlier is None or earlier.is_expired(now):
            fresh[record.memory_id] = record
            outcomes[index] = Outcome(Action.CREATED, record)
        elif _lasts_longer(record.expires_at, earlier):
            extended = replace(earlier, expires_at=record.expires_at)
            longer.append(extended)
            outcomes[index] = Outcome(Action.UPDATED, extended)
        else:
            outcomes[index] = Outcome(Action.DUPLICATE, earlier)
    _write(store, embedder, writing.scope, list(fresh.values()))
    store.confirm(writing.scope, [part for m in longer for part in parts_of(m)])
    return outcomes


def _plain_basis(writing: Writing, statement: Statement) -> str:
    """Facts and rules are the same whenever they are said; what happened depends on when and where."""
    if statement.kind is not Kind.EPISODIC:
        return ""
    when = "" if writing.occurred_at is None else f"at:{writing.occurred_at:.6f}"
    return f"{when}|in:{writing.conversation_id}|by:{statement.role}"


def _lasts_longer(expires_at: float | None, memory: Memory) -> bool:
    if memory.expires_at is None:
        return False
    return expires_at is None or expires_at > memory.expires_at


# --- statements with a slot ---------------------------------------------------------------------


def _remember_slotted(
    store: MemoryStore,
    embedder: Embedder,
    writing: Writing,
    statements: Sequence[Statement],
    *,
    now: float,
) -> dict[int, Outcome]:
    if not statements:
        return {}
    slot = _slot(writing, statements[0])
    before = store.slot(writing.scope, slot)
    view = list(before)
    outcomes: dict[int, Outcome] = {}
    fresh: dict[str, Memory] = {}
    confirmed: dict[str, Memory] = {}
    for statement in statements:
        outcome = _place(writing, statement, view, now=now)
        record = outcome.memory
        outcomes[statement.index] = outcome
        if record in view:
            continue
        known = record.memory_id in {m.memory_id for m in before}
        (confirmed if known else fresh)[record.memory_id] = record
        view = [m for m in view if m.memory_id != record.memory_id] + [record]
    _write(store, embedder, writing.scope, list(fresh.values()))
    store.confirm(writing.scope, [part for m in confirmed.values() for part in parts_of(m)])
    # Read back: another process may have written to the slot meanwhile. Whoever reads last sees all.
    after = store.slot(writing.scope, slot)
    changes = settle(after)
    store.restate(writing.scope, changes)
    return _with_consequences(outcomes, before, after, changes)


def _place(writing: Writing, statement: Statement, slot: Sequence[Memory], *, now: float) -> Outcome:
    """What a statement is to the slot as we see it: a new value, the same again, or nothing new."""
    current = current_of(slot)
    if writing.occurred_at is None:
        same = current is not None and current.digest == digest(statement.text)
        if current is not None and same and not current.is_expired(now):
            longer = _lasts_longer(writing.expires_at, current)
            again = replace(
                current,
                confirmed_at=now + statement.index * _STEP,
                expires_at=writing.expires_at if longer else current.expires_at,
            )
            return Outcome(Action.UPDATED if longer else Action.DUPLICATE, again)
        basis = f"after:{current.memory_id if current else ''}"
        ended = max((m.occurred_at for m in slot if m.ends_slot), default=None)
        if current is None and ended is not None:
            basis = f"after:end:{ended:.6f}"
    else:
        basis = f"at:{writing.occurred_at:.6f}"
    record = _record(writing, statement, basis=basis, now=now)
    if any(m.memory_id == record.memory_id for m in slot):
        earlier = next(m for m in slot if m.memory_id == record.memory_id)
        return Outcome(Action.DUPLICATE, earlier)
    if current is not None and current.digest == record.digest and order(record) > order(current):
        return Outcome(Action.UPDATED, record)
    return Outcome(Action.CREATED, record)


def _with_consequences(
    outcomes: dict[int, Outcome],
    before: Sequence[Memory],
    after: Sequence[Memory],
    changes: Sequence[Memory],
) -> dict[int, Outcome]:
    """The outcomes with what the settled slot says of each: what it retired, or that it is history."""
    settled = {m.memory_id: m for m in after} | {m.memory_id: m for m in changes}
    were_current = {m.memory_id for m in before if m.is_current}
    told: dict[int, Outcome] = {}
    for index, outcome in outcomes.items():
        memory = settled.get(outcome.memory.memory_id, outcome.memory)
        written = outcome.action in {Action.CREATED, Action.UPDATED}
        retired = tuple(
            m.memory_id
            for m in settled.values()
            if written
            and m.superseded_by == memory.memory_id
            and (m.memory_id in were_current or m.memory_id not in {b.memory_id for b in before})
        )
        action = outcome.action
        if written and not memory.is_current and not retired:
            action = Action.SUPERSEDED
        text = memory.text if memory.parts == 1 else outcome.memory.text
        told[index] = Outcome(action, replace(memory, text=text), retired)
    return told


# --- both ---------------------------------------------------------------------------------------


def _record(writing: Writing, statement: Statement, *, basis: str, now: float) -> Memory:
    slotted = bool(_slot(writing, statement))
    recorded_at = now + statement.index * _STEP
    record = Memory(
        memory_id="",
        text=statement.text,
        kind=statement.kind,
        role=statement.role,
        subject=writing.subject if slotted else "",
        attribute=writing.attribute if slotted else "",
        conversation_id=writing.conversation_id,
        case_id=writing.case_id,
        occurred_at=recorded_at if writing.occurred_at is None else writing.occurred_at,
        recorded_at=recorded_at,
        expires_at=writing.expires_at,
        basis=basis,
        metadata=writing.metadata,
        digest=digest(statement.text),
        parts=max(1, len(split(statement.text))),
    )
    return in_scope(record, writing.scope)


def parts_of(memory: Memory) -> list[Memory]:
    """One record a stored row, each with its part of the text."""
    if memory.parts == 1:
        return [memory]
    texts = split(memory.text)
    if len(texts) != memory.parts:  # read back in parts: only ids and columns matter
        texts = [memory.text] * memory.parts
    return [replace(memory, text=text, part=i) for i, text in enumerate(texts)]


def _write(store: MemoryStore, embedder: Embedder, scope: Scope, records: Sequence[Memory]) -> None:
    rows = [part for record in records for part in parts_of(record)]
    if not rows:
        return
    vectors = embedder.embed_documents([row.index_text for row in rows])
    stored: list[Stored] = list(zip(rows, vectors, strict=True))
    store.write(scope, stored)
