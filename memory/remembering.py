"""Remembering: statements become records, duplicates are met, slots keep one current value."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from memory.content import Skipped, Statement
from memory.embedding import Embedder
from memory.policy import Policy
from memory.records import Kind, Memory, Metadata, Role, in_scope, slot_key
from memory.scope import Scope
from memory.slots import current_of, end_mark, heads, order
from memory.store import MemoryStore, Stored
from memory.text import digest, split

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
    ENDED = "ended"
    """It said that a slot's value holds no longer: the slot has no current value now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """What holds for all statements of one call.

    Attributes:
        scope: whose memory.
        conversation_id, case_id: where they were said; "" for none.
        expires_at: seconds since 1970; None for what the policy says.
        metadata: the user's own.
        policy: how long memories are kept.
        source, ticket_id: the ticket they come from; "" for none.
    """

    scope: Scope
    conversation_id: str = ""
    case_id: str = ""
    expires_at: float | None = None
    metadata: Metadata = field(default_factory=dict)
    policy: Policy = field(default_factory=Policy)
    source: str = ""
    ticket_id: str = ""


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
        redacted: how many secrets of each type were replaced by marks.
        tokens: what a language model took; 0 without one.
    """

    outcomes: tuple[Outcome, ...]
    skipped: tuple[Skipped, ...]
    customer_id: str
    is_linked: bool
    redacted: Mapping[str, int] = field(default_factory=dict)
    tokens: int = 0

    def count(self, *actions: Action) -> int:
        """How many statements ended with one of these actions."""
        return sum(1 for outcome in self.outcomes if outcome.action in actions)

    @property
    def superseded(self) -> int:
        """How many memories became history, or were stored as history, through this call."""
        retired = {old for outcome in self.outcomes for old in outcome.supersedes}
        late = {o.memory.memory_id for o in self.outcomes if o.action is Action.SUPERSEDED}
        return len(retired | late)

    @property
    def counts(self) -> dict[str, int]:
        """Statements stored, known before and skipped, and memories that became history."""
        return {
            "stored": self.count(Action.CREATED, Action.UPDATED, Action.SUPERSEDED),
            "duplicates": self.count(Action.DUPLICATE),
            "superseded": self.superseded,
            "skipped": len(self.skipped),
        }


def remember(
    store: MemoryStore,
    embedder: Embedder,
    writing: Writing,
    statements: Sequence[Statement],
    *,
    now: float,
) -> list[Outcome]:
    """Store statements in one scope, and remove for good what has expired there.

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
    sweep(store, writing.scope, now=now)
    by_slot: dict[str, list[Statement]] = {}
    for statement in statements:
        by_slot.setdefault(_slot(writing, statement), []).append(statement)
    plain = by_slot.pop("", [])
    outcomes = _remember_plain(store, embedder, writing, plain, now=now)
    for slot, values in by_slot.items():
        outcomes |= _remember_slotted(store, embedder, writing, slot, values, now=now)
    if not writing.source:
        known = [o.memory for o in outcomes.values() if o.action is Action.DUPLICATE and o.memory.source]
        store.adopt(writing.scope, [part for memory in known for part in parts_of(memory)])
    return [outcomes[statement.index] for statement in statements]


def sweep(store: MemoryStore, scope: Scope, *, now: float) -> list[Memory]:
    """Delete what has expired in a scope.

    Returns:
        The rows that are gone.
    """
    over = [memory for memory in store.expiring(scope) if memory.is_expired(now)]
    going = {memory.memory_id for memory in over}
    for slot in sorted({memory.slot for memory in over if memory.slot}):
        held = current_of(store.slot(scope, slot))
        if held is not None and held.memory_id in going:
            # The value before it does not hold again because this one's time is over.
            store.write_marks(scope, [end_mark(held, now=now)._replace(conversation_id="")])
    store.erase(scope, over)
    return over


def _slot(writing: Writing, statement: Statement) -> str:
    """The slot a statement speaks of; only the customer's own facts have one."""
    is_fact = statement.kind is not Kind.EPISODIC and statement.role is Role.CUSTOMER
    if not statement.attribute or not is_fact:
        return ""
    return slot_key(writing.scope, statement.subject, statement.attribute)


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
            extended = earlier._replace(expires_at=record.expires_at)
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
    when = "" if statement.occurred_at is None else f"at:{statement.occurred_at:.6f}"
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
    slot: str,
    statements: Sequence[Statement],
    *,
    now: float,
) -> dict[int, Outcome]:
    before = store.slot(writing.scope, slot)
    view = list(before)
    outcomes: dict[int, Outcome] = {}
    fresh: dict[str, Memory] = {}
    confirmed: dict[str, Memory] = {}
    marks: list[Memory] = []
    for statement in statements:
        if not statement.is_still_so:
            mark = _ending(writing, statement, slot, now=now)
            marks.append(mark)
            view.append(mark)
            outcomes[statement.index] = Outcome(Action.ENDED, mark)
            continue
        outcome = _place(writing, statement, view, now=now)
        record = outcome.memory
        outcomes[statement.index] = outcome
        if record in view:
            continue
        known = record.memory_id in {m.memory_id for m in before}
        (confirmed if known else fresh)[record.memory_id] = record
        view = [m for m in view if m.memory_id != record.memory_id] + [record]
    _write(store, embedder, writing.scope, list(fresh.values()))
    store.write_marks(writing.scope, marks)
    store.confirm(writing.scope, [part for m in confirmed.values() for part in parts_of(m)])
    return _with_consequences(outcomes, before, store.settle(writing.scope, slot))


def _ending(writing: Writing, statement: Statement, slot: str, *, now: float) -> Memory:
    """The mark that a slot's value holds no longer, from the moment the statement speaks of."""
    at = now + statement.index * _STEP if statement.occurred_at is None else statement.occurred_at
    ended = _record(writing, statement, basis="", now=now)._replace(
        occurred_at=at, confirmed_at=None, slot=slot
    )
    return end_mark(ended, now=now)


def _place(writing: Writing, statement: Statement, slot: Sequence[Memory], *, now: float) -> Outcome:
    """What a statement is to the slot as we see it: a new value, the same again, or nothing new."""
    current = current_of(slot)
    if statement.occurred_at is None:
        same = current is not None and current.digest == digest(statement.text)
        if current is not None and same and not current.is_expired(now):
            again = _confirmed(writing, statement, current, now=now)
            is_longer = again.expires_at != current.expires_at
            return Outcome(Action.UPDATED if is_longer else Action.DUPLICATE, again)
        basis = f"after:{current.memory_id if current else ''}"
        ended = max((m.occurred_at for m in slot if m.ends_slot), default=None)
        if current is None and ended is not None:
            basis = f"after:end:{ended:.6f}"
    else:
        basis = f"at:{statement.occurred_at:.6f}"
    record = _record(writing, statement, basis=basis, now=now)
    earlier = next((m for m in slot if m.memory_id == record.memory_id), None)
    if earlier is not None:
        return Outcome(Action.DUPLICATE, earlier)
    if current is not None and current.digest == record.digest and order(record) > order(current):
        return Outcome(Action.UPDATED, record)
    return Outcome(Action.CREATED, record)


def _confirmed(writing: Writing, statement: Statement, current: Memory, *, now: float) -> Memory:
    """The current value, stated again now, and kept at least as long as before."""
    stated_at = now + statement.index * _STEP
    expires_at = _expiry(writing, statement, stated_at)
    if not _lasts_longer(expires_at, current):
        expires_at = current.expires_at
    return current._replace(confirmed_at=stated_at, expires_at=expires_at)


def _with_consequences(
    outcomes: dict[int, Outcome], before: Sequence[Memory], after: Sequence[Memory]
) -> dict[int, Outcome]:
    """The outcomes with what the settled slot says of each: what it retired, or that it is history."""
    settled = {m.memory_id: m for m in heads(after)}
    were_history = {m.memory_id for m in before if not m.is_current}
    told: dict[int, Outcome] = {}
    for index, outcome in outcomes.items():
        if outcome.action is Action.ENDED:
            ended = (
                m.memory_id
                for m in settled.values()
                if m.superseded_at == outcome.memory.occurred_at
                and not m.superseded_by
                and m.memory_id not in were_history
            )
            told[index] = replace(outcome, supersedes=tuple(ended))
            continue
        memory = settled.get(outcome.memory.memory_id, outcome.memory)
        written = outcome.action in {Action.CREATED, Action.UPDATED}
        retired = tuple(
            m.memory_id
            for m in settled.values()
            if written and m.superseded_by == memory.memory_id and m.memory_id not in were_history
        )
        is_history = written and not memory.is_current and not retired
        text = memory.text if memory.parts == 1 else outcome.memory.text
        told[index] = Outcome(
            Action.SUPERSEDED if is_history else outcome.action, memory._replace(text=text), retired
        )
    return told


# --- both ---------------------------------------------------------------------------------------


def _record(writing: Writing, statement: Statement, *, basis: str, now: float) -> Memory:
    slotted = bool(_slot(writing, statement))
    recorded_at = now + statement.index * _STEP
    occurred_at = recorded_at if statement.occurred_at is None else statement.occurred_at
    record = Memory(
        memory_id="",
        text=statement.text,
        kind=statement.kind,
        role=statement.role,
        subject=statement.subject if slotted else "",
        attribute=statement.attribute if slotted else "",
        conversation_id=writing.conversation_id,
        case_id=writing.case_id,
        occurred_at=occurred_at,
        recorded_at=recorded_at,
        expires_at=_expiry(writing, statement, occurred_at),
        basis=basis,
        source=writing.source,
        ticket_id=writing.ticket_id,
        origin=statement.origin,
        metadata=writing.metadata,
        digest=digest(statement.text),
        parts=max(1, len(split(statement.text))),
    )
    return in_scope(record, writing.scope)


def _expiry(writing: Writing, statement: Statement, at: float) -> float | None:
    return writing.policy.expires_at(statement.kind, at, writing.expires_at, source=writing.source)


def record_of(writing: Writing, statement: Statement, *, now: float) -> Memory:
    """The record of a statement with a time of its own, as `remember` is going to write it."""
    if _slot(writing, statement):
        basis = f"at:{statement.occurred_at:.6f}"
    else:
        basis = _plain_basis(writing, statement)
    return _record(writing, statement, basis=basis, now=now)


def parts_of(memory: Memory) -> list[Memory]:
    """One record a stored row, each with its part of the text."""
    if memory.parts == 1:
        return [memory]
    texts = split(memory.text)
    if len(texts) != memory.parts:  # read back in parts: only ids and columns matter
        texts = [memory.text] * memory.parts
    return [memory._replace(text=text, part=i) for i, text in enumerate(texts)]


def _write(store: MemoryStore, embedder: Embedder, scope: Scope, records: Sequence[Memory]) -> None:
    rows = [part for record in records for part in parts_of(record)]
    if not rows:
        return
    vectors = embedder.embed_documents([row.index_text for row in rows])
    stored: list[Stored] = list(zip(rows, vectors, strict=True))
    store.write(scope, stored)
