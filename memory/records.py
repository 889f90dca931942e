"""The memory record: what one statement carries, its derived id, and how it lies in the store."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from memory.scope import Scope, hashed

type Scalar = str | int | float | bool
type Metadata = dict[str, Scalar]
"""Flat values, as users may attach them."""
type Columns = dict[str, Scalar | None]
"""Every column of a stored row; None clears what an earlier version of the row had there."""


class Kind(StrEnum):
    """What sort of statement a memory is."""

    SEMANTIC = "semantic"
    """A fact that holds."""
    EPISODIC = "episodic"
    """Something that happened or was said."""
    PROCEDURAL = "procedural"
    """How to treat this customer."""


class Role(StrEnum):
    """Whose words a memory holds."""

    CUSTOMER = "customer"
    AGENT = "agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One statement about one customer, or the mark that ends a slot.

    Attributes:
        memory_id: derived from scope, kind, slot or text, and `basis`; see `derive_id`.
        text: what is remembered; "" in a mark.
        kind, role: see there.
        subject, attribute: name of the slot; attribute "" means no slot.
        customer_id, conversation_id, case_id: where it belongs; "" for none.
        occurred_at: when it was so, seconds since 1970.
        recorded_at: when we learned it, seconds since 1970.
        confirmed_at: when it was last stated again, seconds since 1970; None if never.
        expires_at: from when it is not recalled any more; None for never.
        superseded_at, superseded_by: since when it is history and through which memory; None and ""
            while it is current. superseded_by is "" too where the value ended without a successor.
        basis: what makes two statements of equal text different memories; part of the id.
        topic, reply: subject of the ticket it comes from, and what the agent answered; they help to find the
            statement and are shown beside it, never as part of it.
        source, ticket_id, message_id: which message of which helpdesk it comes from; "" for none.
        metadata: the user's own flat values.
        slot: `slot_key` of the slot; "" for none.
        digest: `memory.text.digest` of the whole text, before it was cut into parts.
        parts: how many store rows hold the text; 1 unless it is long.
        part: which of them this row is, from 0.
        ends_slot: whether this is a content-free mark: whatever the slot held up to occurred_at is over.
    """

    memory_id: str
    text: str
    kind: Kind
    role: Role = Role.CUSTOMER
    subject: str = ""
    attribute: str = ""
    customer_id: str = ""
    conversation_id: str = ""
    case_id: str = ""
    occurred_at: float
    recorded_at: float
    confirmed_at: float | None = None
    expires_at: float | None = None
    superseded_at: float | None = None
    superseded_by: str = ""
    basis: str = ""
    topic: str = ""
    reply: str = ""
    source: str = ""
    ticket_id: str = ""
    message_id: str = ""
    metadata: Metadata = field(default_factory=dict)
    slot: str = ""
    digest: str = ""
    parts: int = 1
    part: int = 0
    ends_slot: bool = False

    @property
    def is_current(self) -> bool:
        """Whether no mark says that something newer took its place."""
        return self.superseded_at is None and not self.ends_slot

    @property
    def stated_at(self) -> float:
        """When it was last said to be so: what decides between values of one slot."""
        return max(self.occurred_at, self.confirmed_at or self.occurred_at)

    @property
    def index_text(self) -> str:
        """What is searched by meaning: the text, led by what it is about, which it may not say itself."""
        about = " ".join(filter(None, (self.subject, self.attribute, self.topic)))
        return f"{about}: {self.text}" if about else self.text

    @property
    def words(self) -> str:
        """What is searched by words: the same, and the answer it got."""
        return f"{self.index_text}\n{self.reply}" if self.reply else self.index_text

    @property
    def row_ids(self) -> list[str]:
        """The ids of all rows that hold this statement, the first of them its own."""
        return [row_id(self.memory_id, part) for part in range(self.parts)]

    def is_expired(self, now: float) -> bool:
        """Whether its time is over."""
        return self.expires_at is not None and self.expires_at <= now


def slot_key(scope: Scope, subject: str, attribute: str) -> str:
    """What the rows of one slot are filtered by. Subject and attribute compare without regard to case."""
    return hashed("slot", scope.key, subject.strip().casefold(), attribute.strip().casefold())


def in_scope(memory: Memory, scope: Scope) -> Memory:
    """The statement as it is in a scope: with its id and slot there, and no marks yet."""
    slot = slot_key(scope, memory.subject, memory.attribute) if memory.attribute else ""
    # A message of a ticket stays the same memory when its text is edited or redacted.
    text_digest = "" if memory.message_id else memory.digest
    return replace(
        memory,
        memory_id=derive_id(scope, kind=memory.kind, slot=slot, text_digest=text_digest, basis=memory.basis),
        customer_id=scope.customer_id,
        slot=slot,
        superseded_at=None,
        superseded_by="",
    )


def derive_id(scope: Scope, *, kind: Kind, slot: str, text_digest: str, basis: str) -> str:
    """The id of a statement: the same statement gets the same id, whoever writes it and how often.

    Args:
        scope: whose memory.
        kind: what sort of statement.
        slot: `slot_key`, or "".
        text_digest: `memory.text.digest` of the whole text.
        basis: what else tells statements apart: the moment it happened, the conversation, the value a
            slot held before.

    Returns:
        32 hexadecimal digits.
    """
    return hashed("memory", scope.key, kind, slot, text_digest, basis)


def row_id(memory_id: str, part: int) -> str:
    """The store's id for one part of a statement."""
    return memory_id if part == 0 else f"{memory_id}.{part}"


def to_columns(memory: Memory, scope: Scope) -> Columns:
    """The row's metadata, with None for what is absent. Times are floats, always."""
    return {
        "scope": scope.key if memory.is_current else scope.history_key,
        "customer_id": scope.customer_id or None,
        "conversation_id": memory.conversation_id or None,
        "case_id": memory.case_id or None,
        "kind": str(memory.kind),
        "role": str(memory.role),
        "slot": memory.slot or None,
        "subject": memory.subject or None,
        "attribute": memory.attribute or None,
        "digest": memory.digest or None,
        "occurred_at": float(memory.occurred_at),
        "recorded_at": float(memory.recorded_at),
        "confirmed_at": _float(memory.confirmed_at),
        "expires_at": _float(memory.expires_at),
        # What can expire is found by one equality, without reading the rest.
        "expiring": None if memory.expires_at is None else scope.key,
        "basis": memory.basis or None,
        "topic": memory.topic or None,
        "reply": memory.reply or None,
        "source": memory.source or None,
        "ticket_id": memory.ticket_id or None,
        "message_id": memory.message_id or None,
        "metadata": json.dumps(memory.metadata, ensure_ascii=False) if memory.metadata else None,
        "parts": memory.parts if memory.parts > 1 else None,
        "part": memory.part if memory.part else None,
        "ends_slot": True if memory.ends_slot else None,
        **_mark_columns(memory),
    }


def to_mark_columns(memory: Memory, scope: Scope) -> Columns:
    """Only the columns that say whether a memory is current."""
    return {
        "scope": scope.key if memory.is_current else scope.history_key,
        **_mark_columns(memory),
    }


def _mark_columns(memory: Memory) -> Columns:
    return {
        "superseded_at": _float(memory.superseded_at),
        "superseded_by": memory.superseded_by or None,
    }


def belongs_to(metadata: Mapping[str, object], scope: Scope) -> bool:
    """Whether a row's own columns say that it is of this scope; the second lock behind the filter."""
    if metadata.get("scope") not in {scope.key, scope.history_key}:
        return False
    if scope.is_provisional:
        return metadata.get("customer_id") is None
    return metadata.get("customer_id") == scope.customer_id


def from_row(row_id_: str, text: str, metadata: Metadata) -> Memory:
    """A row of the store as a memory. The id is the statement's, without the part's number."""
    return Memory(
        memory_id=row_id_.partition(".")[0],
        text=text,
        kind=Kind(str(metadata.get("kind", Kind.SEMANTIC))),
        role=Role(str(metadata.get("role", Role.CUSTOMER))),
        subject=str(metadata.get("subject", "")),
        attribute=str(metadata.get("attribute", "")),
        customer_id=str(metadata.get("customer_id", "")),
        conversation_id=str(metadata.get("conversation_id", "")),
        case_id=str(metadata.get("case_id", "")),
        occurred_at=float(metadata.get("occurred_at", 0.0)),
        recorded_at=float(metadata.get("recorded_at", 0.0)),
        confirmed_at=_optional(metadata, "confirmed_at"),
        expires_at=_optional(metadata, "expires_at"),
        superseded_at=_optional(metadata, "superseded_at"),
        superseded_by=str(metadata.get("superseded_by", "")),
        basis=str(metadata.get("basis", "")),
        topic=str(metadata.get("topic", "")),
        reply=str(metadata.get("reply", "")),
        source=str(metadata.get("source", "")),
        ticket_id=str(metadata.get("ticket_id", "")),
        message_id=str(metadata.get("message_id", "")),
        metadata=_user_metadata(metadata),
        slot=str(metadata.get("slot", "")),
        digest=str(metadata.get("digest", "")),
        parts=int(metadata.get("parts", 1)),
        part=int(metadata.get("part", 0)),
        ends_slot=bool(metadata.get("ends_slot", False)),
    )


def _user_metadata(metadata: Metadata) -> Metadata:
    raw = metadata.get("metadata")
    if not isinstance(raw, str):
        return {}
    try:
        value = json.loads(raw)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _float(value: float | None) -> float | None:
    return None if value is None else float(value)


def _optional(metadata: Metadata, name: str) -> float | None:
    value = metadata.get(name)
    return None if value is None else float(value)
