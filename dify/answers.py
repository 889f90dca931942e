"""What a node answers: declared outputs, the same as JSON, and one sentence a person can read."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memory.clock import iso
from memory.forgetting import Forgotten, Phase, Reach
from memory.identity import Linked
from memory.ledger import Entry
from memory.links import Link
from memory.recalling import Hit, Recalled
from memory.records import Memory
from memory.remembering import Action, Outcome, Remembered

MAX_LISTED = 500
"""Memories one answer lists; counts are of all. Keeps an answer far below Dify's 5 MB a line."""
MAX_LISTED_TEXT = 2_000
"""Characters of each text in a listing; a recall gives texts whole."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One node's answer.

    Attributes:
        text: one sentence for a person.
        outputs: the declared output variables, in the order of the output schema.
    """

    text: str
    outputs: Mapping[str, Any]


def remembered(result: Remembered) -> Answer:
    """The answer of a remember node."""
    stored = result.count(Action.CREATED, Action.UPDATED, Action.SUPERSEDED)
    duplicates = result.count(Action.DUPLICATE)
    outputs = {
        "memories": [_outcome(outcome) for outcome in result.outcomes[:MAX_LISTED]]
        + [{"action": "skipped", "index": s.index, "reason": s.reason} for s in result.skipped[:MAX_LISTED]],
        "stored": stored,
        "duplicates": duplicates,
        "superseded": result.superseded,
        "skipped": len(result.skipped),
        "redacted": dict(result.redacted),
        "tokens": result.tokens,
        "customer_id": result.customer_id,
        "linked": result.is_linked,
    }
    parts = [
        f"Stored {_count(stored, 'memory', 'memories')}",
        f"{_count(duplicates, 'duplicate', 'duplicates')}" if duplicates else "",
        f"{result.superseded} superseded" if result.superseded else "",
        f"{len(result.skipped)} skipped" if result.skipped else "",
        f"{sum(result.redacted.values())} redacted" if result.redacted else "",
    ]
    return Answer(", ".join(filter(None, parts)) + _of(result.is_linked) + ".", outputs)


def recalled(result: Recalled) -> Answer:
    """The answer of a recall node."""
    found = len(result.hits)
    outputs = {
        "context": result.context,
        "memories": [_hit(hit) for hit in result.hits],
        "found": found,
        "customer_id": result.customer_id,
        "linked": result.is_linked,
    }
    text = f"Found {_count(found, 'memory', 'memories')}" if found else "Nothing is known"
    return Answer(text + _of(result.is_linked) + ".", outputs)


def forgotten(result: Forgotten) -> Answer:
    """The answer of a forget node, with the receipt."""
    matched = len(result.matched)
    is_preview = result.request.phase is Phase.PREVIEW
    outputs = {
        "matched": matched,
        "deleted": result.deleted,
        "receipt": {
            "action": str(result.request.phase),
            "scope": str(result.request.reach),
            "matched": matched,
            "deleted": result.deleted,
            "links_removed": result.links_removed,
            "memory_ids": [m.memory_id for m in result.matched[:MAX_LISTED]],
            # A deletion's receipt holds no content: what it names is gone.
            "memories": [brief(m) for m in result.matched[:MAX_LISTED]] if is_preview else [],
            "not_found": list(result.not_found[:MAX_LISTED]),
            "verified": not is_preview,
            "requested_at": iso(result.requested_at),
            "completed_at": iso(result.completed_at),
        },
        "customer_id": result.customer_id,
    }
    if is_preview:
        text = f"{_count(matched, 'memory', 'memories')} would be forgotten"
        hint = " Run it again with action delete" + (
            " and these memory_ids." if result.request.reach is Reach.MATCHING else "."
        )
        return Answer(text + _of(result.is_linked) + "." + (hint if matched else ""), outputs)
    text = f"Forgot {_count(result.deleted, 'memory', 'memories')}"
    missing = f" {len(result.not_found)} of the ids were not found." if result.not_found else ""
    verified = ", and made sure that they are gone." if result.deleted else "."
    return Answer(text + _of(result.is_linked) + verified + missing, outputs)


def linked(result: Linked) -> Answer:
    """The answer of a link_conversation node."""
    outputs = {
        "customer_id": result.link.customer_id,
        "previous_customer_id": result.previous_customer_id,
        "case_id": result.link.case_id,
        "moved": result.moved,
        "linked": True,
    }
    text = "The conversation is linked to the customer"
    if result.link.case_id:
        text += " and the case"
    if result.moved:
        text += f"; {_count(result.moved, 'memory', 'memories')} came along"
    return Answer(text + ".", outputs)


def _outcome(outcome: Outcome) -> dict[str, Any]:
    return {
        "action": str(outcome.action),
        **brief(outcome.memory),
        "supersedes": list(outcome.supersedes),
    }


def _hit(hit: Hit) -> dict[str, Any]:
    found = {**brief(hit.memory), "text": hit.memory.text, "score": None}
    if hit.score is not None:
        found["score"] = round(hit.score.total, 4)
        found["score_parts"] = {
            "dense": round(hit.score.dense, 4),
            "lexical": round(hit.score.lexical, 4),
        }
    return found


def brief(memory: Memory) -> dict[str, Any]:
    """A memory as every answer shows it."""
    return {
        "memory_id": memory.memory_id,
        "text": memory.text[:MAX_LISTED_TEXT],
        "kind": str(memory.kind),
        "role": str(memory.role),
        "attribute": memory.attribute,
        "conversation_id": memory.conversation_id,
        "case_id": memory.case_id,
        "occurred_at": iso(memory.occurred_at),
        "recorded_at": iso(memory.recorded_at),
        "confirmed_at": iso(memory.confirmed_at),
        "expires_at": iso(memory.expires_at),
        "is_current": memory.is_current,
        "superseded_at": iso(memory.superseded_at),
        "superseded_by": memory.superseded_by,
        "topic": memory.topic,
        "reply": memory.reply,
        "source": memory.source,
        "ticket_id": memory.ticket_id,
        "metadata": memory.metadata,
    }


def link(link: Link) -> dict[str, Any]:
    """A link as the endpoint lists it."""
    return {
        "conversation_id": link.conversation_id,
        "customer_id": link.customer_id,
        "case_id": link.case_id,
        "linked_at": iso(link.linked_at),
    }


def ticket(entry: Entry) -> dict[str, Any]:
    """What was imported from a ticket."""
    return {
        "source": entry.source,
        "ticket_id": entry.ticket_id,
        "customer_id": entry.customer_id,
        "conversation_id": entry.conversation_id,
        "memories": entry.memories,
        "memory_ids": [row for row in entry.row_ids if "." not in row],
        "updated_at": iso(entry.updated_at),
        "imported_at": iso(entry.imported_at),
        "complete": entry.is_complete,
    }


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _of(is_linked: bool) -> str:
    return "" if is_linked else " for this conversation, which is linked to no customer yet"
