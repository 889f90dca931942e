"""The memory record: what one statement carries, its derived id, and how it lies in the store."""

import json
import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

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


_NO_METADATA: Metadata = {}
"""One for all that have none; nobody writes to it."""


class Memory(NamedTuple):  # made several times as fast as a frozen dataclass
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
        origin: for a fact learned from a ticket, the id of the message that states it; "" for none.
        metadata: the user's own flat values.
        slot: `slot_key` of the slot; "" for none.
        slot_name: of a mark, `slot_name` of the slot it ends; "" in a statement.
        digest: `memory.text.digest` of the whole text, before it was cut into parts.
        parts: how many store rows hold the text; 1 unless it is long.
        part: which of them this row is, from 0.
        ends_slot: whether this is a content-free mark: whatever the slot held up to occurred_at is over.
    """

    memory_id: str
    text: str
    kind: Kind
    occurred_at: float
    recorded_at: float
    role: Role = Role.CUSTOMER
    subject: str = ""
    attribute: str = ""
    customer_id: str = ""
    conversation_id: str = ""
    case_id: str = ""
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
    origin: str = ""
    metadata: Metadata = _NO_METADATA
    slot: str = ""
    slot_name: str = ""
    digest: str = ""
    parts: int = 1
    part: int = 0
    ends_slot: bool = False

    @property
    def is_current(self) -> bool:
        """Whether no mark says that something newer took its place."""
        return self.superseded_at is None and not self.ends_slot

    @property
    def is_blank(self) -> bool:
        """Whether this row was overwritten to be deleted, and is there only because that was cut short."""
        return self.ends_slot and not self.slot and self.expires_at is None

    @property
    def ends_one(self) -> bool:
        """Whether this is the mark of a slot that ended; other rows without content are none."""
        return self.ends_slot and bool(self.slot)

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
    return slot_in(scope, slot_name(subject, attribute))


def slot_name(subject: str, attribute: str) -> str:
    """A slot's name without its words, the same in every scope: a mark keeps it when it moves."""
    return hashed("slot name", subject.strip().casefold(), attribute.strip().casefold())


def slot_in(scope: Scope, name: str) -> str:
    """The `slot_key` of a slot that is known by its `slot_name`."""
    return hashed("slot", scope.key, name)


def in_scope(memory: Memory, scope: Scope) -> Memory:
    """The statement as it is in a scope: with its id and slot there, and no marks yet."""
    slot = slot_key(scope, memory.subject, memory.attribute) if memory.attribute else ""
    # A message of a ticket stays the same memory when its text is edited or redacted.
    text_digest = "" if memory.message_id else memory.digest
    return memory._replace(
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
    """The row's metadata, with None for what is absent. Times are floats, always.

    What never changes lies in one column together: the store keeps every column of every row in a row of
    its own, and reads four columns three times as fast as twenty.
    """
    return {
        "scope": scope.key if memory.is_current else scope.history_key,
        "customer_id": scope.customer_id or None,
        # A mark names no conversation: without this, nobody could tell whose it is.
        "provisional_of": scope.conversation_id or None,
        "case_id": memory.case_id or None,
        "slot": memory.slot or None,
        **to_confirmation_columns(memory, scope),
        "source": memory.source or None,
        "ticket_id": memory.ticket_id or None,
        "ends_slot": True if memory.ends_slot else None,
        "fixed": _fixed(memory),
        **_mark_columns(memory),
    }


def _fixed(memory: Memory) -> str:
    """What never changes of a memory, as JSON; what is as usual is left out."""
    values: dict[str, Scalar | Metadata] = {
        "kind": str(memory.kind),
        "role": "" if memory.role is Role.CUSTOMER else str(memory.role),
        "occurred_at": float(memory.occurred_at),
        "recorded_at": float(memory.recorded_at),
        "conversation_id": memory.conversation_id,
        "subject": memory.subject,
        "attribute": memory.attribute,
        "slot_name": memory.slot_name,
        "digest": memory.digest,
        "basis": memory.basis,
        "topic": memory.topic,
        "reply": memory.reply,
        "message_id": memory.message_id,
        "origin": memory.origin,
        "metadata": memory.metadata,
        "parts": memory.parts if memory.parts > 1 else "",
    }
    present = {name: value for name, value in values.items() if value not in ("", {})}
    return json.dumps(present, ensure_ascii=False, separators=(",", ":"))


def to_mark_columns(memory: Memory, scope: Scope) -> Columns:
    """Only the columns that say whether a memory is current."""
    return {
        "scope": scope.key if memory.is_current else scope.history_key,
        **_mark_columns(memory),
    }


def to_confirmation_columns(memory: Memory, scope: Scope) -> Columns:
    """Only the columns that say when a memory was last stated and when it expires."""
    return {
        "confirmed_at": _float(memory.confirmed_at),
        "expires_at": _float(memory.expires_at),
        # What can expire is found by one equality, without reading the rest.
        "expiring": None if memory.expires_at is None else scope.key,
    }


def _mark_columns(memory: Memory) -> Columns:
    return {
        "superseded_at": _float(memory.superseded_at),
        "superseded_by": memory.superseded_by or None,
    }


def belongs_to(metadata: Mapping[str, object], scope: Scope) -> bool:
    """Whether a row says itself that it is a memory of this scope; the second lock behind the filter."""
    if "erasure" in metadata:
        return False
    if metadata.get("scope") not in {scope.key, scope.history_key}:
        return False
    if scope.is_provisional:
        return metadata.get("customer_id") is None
    return metadata.get("customer_id") == scope.customer_id


def from_row(row_id_: str, text: str, metadata: Metadata) -> Memory:
    """A row of the store as a memory. The id is the statement's, without the part's number."""
    fixed = _read_fixed(metadata)
    memory_id, _, part = row_id_.partition(".")
    return Memory(
        memory_id=memory_id,
        text=text,
        kind=_KINDS[fixed.get("kind", Kind.SEMANTIC)],
        role=_ROLES[fixed.get("role", Role.CUSTOMER)],
        subject=fixed.get("subject", ""),
        attribute=fixed.get("attribute", ""),
        customer_id=str(metadata.get("customer_id", "")),
        conversation_id=fixed.get("conversation_id", ""),
        case_id=str(metadata.get("case_id", "")),
        occurred_at=fixed.get("occurred_at", 0.0),
        recorded_at=fixed.get("recorded_at", 0.0),
        confirmed_at=_optional(metadata, "confirmed_at"),
        expires_at=_optional(metadata, "expires_at"),
        superseded_at=_optional(metadata, "superseded_at"),
        superseded_by=str(metadata.get("superseded_by", "")),
        basis=fixed.get("basis", ""),
        topic=fixed.get("topic", ""),
        reply=fixed.get("reply", ""),
        source=str(metadata.get("source", "")),
        ticket_id=str(metadata.get("ticket_id", "")),
        message_id=fixed.get("message_id", ""),
        origin=fixed.get("origin", ""),
        metadata=fixed.get("metadata", {}),
        slot=str(metadata.get("slot", "")),
        slot_name=fixed.get("slot_name", ""),
        digest=fixed.get("digest", ""),
        parts=fixed.get("parts", 1),
        part=int(part or 0),
        ends_slot=bool(metadata.get("ends_slot", False)),
    )


_KINDS = {str(kind): kind for kind in Kind}
_ROLES = {str(role): role for role in Role}


_DECODER = json.JSONDecoder()


def check(memory: Memory) -> None:
    """Make sure that a record read from elsewhere, such as a backup, holds values of the right types.

    Raises:
        ValueError: it does not.
    """
    texts = (
        *(memory.subject, memory.attribute, memory.conversation_id, memory.digest, memory.basis),
        *(memory.topic, memory.reply, memory.message_id, memory.origin),
    )
    numbers = (memory.occurred_at, memory.recorded_at)
    counts = (memory.parts, memory.part)
    is_sound = (
        all(isinstance(text, str) for text in texts)
        and all(isinstance(number, float) and math.isfinite(number) for number in numbers)
        and all(isinstance(count, int) and not isinstance(count, bool) and count >= 0 for count in counts)
        and isinstance(memory.metadata, dict)
        and all(isinstance(value, str | int | float | bool) for value in memory.metadata.values())
    )
    if not is_sound:
        raise ValueError("a value of another type")


def _read_fixed(metadata: Metadata) -> dict[str, Any]:
    raw = metadata.get("fixed")
    value = _DECODER.raw_decode(raw)[0] if isinstance(raw, str) else {}
    return value if isinstance(value, dict) else {}


def _float(value: float | None) -> float | None:
    return None if value is None else float(value)


def _optional(metadata: Metadata, name: str) -> float | None:
    value = metadata.get(name)
    return None if value is None else float(value)
