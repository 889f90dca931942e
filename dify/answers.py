"""What a node answers: declared outputs, the same as JSON, and one sentence a person can read."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memory import audit
from memory.clock import iso
from memory.forgetting import Forgotten, Phase, Reach
from memory.identity import Linked
from memory.ledger import Entry
from memory.links import Link
from memory.merge_notes import Merge
from memory.recalling import Hit, Recalled
from memory.receipts import LINKS, TYPES, Receipt
from memory.records import Memory
from memory.remembering import Outcome, Remembered

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
    stored, duplicates = result.counts["stored"], result.counts["duplicates"]
    outputs = {
        "memories": [_outcome(outcome) for outcome in result.outcomes[:MAX_LISTED]]
        + [{"action": "skipped", "index": s.index, "reason": s.reason} for s in result.skipped[:MAX_LISTED]],
        **result.counts,
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
        "degraded": result.degraded,
        "customer_id": result.customer_id,
        "linked": result.is_linked,
    }
    text = f"Found {_count(found, 'memory', 'memories')}" if found else "Nothing is known"
    by_words = (
        " It was looked for by words alone, since the embedding model fails." if result.degraded else ""
    )
    return Answer(text + _of(result.is_linked) + "." + by_words, outputs)


def forgotten(result: Forgotten) -> Answer:
    """The answer of a forget node, with the receipt."""
    matched = len(result.matched)
    is_preview = result.request.phase is Phase.PREVIEW
    outputs = {
        "matched": matched,
        "deleted": result.deleted,
        "receipt": {
            "action": str(result.request.phase),
            **(receipt(result.receipt) if result.receipt else _unproven(result)),
            "matched": matched,
            "deleted": result.deleted,
            "links_removed": result.receipt.counts.get(LINKS, 0) if result.receipt else 0,
            "memory_ids": [m.memory_id for m in result.matched[:MAX_LISTED]],
            # A deletion's receipt holds no content: what it names is gone.
            "memories": [brief(m) for m in result.matched[:MAX_LISTED]] if is_preview else [],
            "not_found": list(result.not_found[:MAX_LISTED]),
            "verified": not is_preview,
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


def receipt(proof: Receipt) -> dict[str, Any]:
    """A receipt as it is kept: no content, no names."""
    return {
        "receipt_id": proof.receipt_id,
        "customer_hash": proof.customer_hash or None,
        "scope": proof.scope,
        "before": iso(proof.before),
        "kinds": list(proof.kinds),
        "counts": {name: proof.counts.get(name, 0) for name in map(str, TYPES)},
        "verified_by": list(proof.verified),
        "not_covered": list(proof.not_covered),
        "requested_at": iso(proof.requested_at),
        "completed_at": iso(proof.completed_at),
    }


def _unproven(result: Forgotten) -> dict[str, Any]:
    """What stands for a receipt in a preview, and where nothing was ever stored."""
    is_preview = result.request.phase is Phase.PREVIEW
    return {
        "receipt_id": None,
        "customer_hash": None,
        "scope": str(result.request.reach),
        "before": iso(result.request.before),
        "kinds": sorted(result.request.kinds),
        "counts": {},
        "verified_by": [],
        "not_covered": [],
        "requested_at": iso(result.requested_at),
        "completed_at": None if is_preview else iso(result.requested_at),
    }


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
            "recency": round(hit.score.recency, 4),
            "case": round(hit.score.case, 4),
            "current": round(hit.score.current, 4),
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


def exported(memory: Memory, *, now: float) -> dict[str, Any]:
    """A memory as an export shows it: its whole text, and all that is kept with it for a person to read."""
    return {
        **brief(memory),
        "text": memory.text,
        "subject": memory.subject,
        "message_id": memory.message_id,
        "is_expired": memory.is_expired(now),
    }


def ended(mark: Memory) -> dict[str, Any]:
    """The mark that a value of an attribute holds no longer; it names neither, since they were forgotten."""
    return {
        "memory_id": mark.memory_id,
        "ended_at": iso(mark.occurred_at),
        "recorded_at": iso(mark.recorded_at),
    }


def link(link: Link) -> dict[str, Any]:
    """A link as the endpoint lists it."""
    return {
        "conversation_id": link.conversation_id,
        "customer_id": link.customer_id,
        "case_id": link.case_id,
        "linked_at": iso(link.linked_at),
    }


def merge(merge: Merge) -> dict[str, Any]:
    """What a merge would move, or moved; ids and numbers, and of a preview the names of contested slots."""
    slots = [
        {"subject": s.subject, "attribute": s.attribute, "wins": "from" if s.old_wins else "into"}
        for s in merge.contested
    ]
    return {
        "dry_run": not merge.merge_id,
        "merge_id": merge.merge_id or None,
        "from": merge.customer_id,
        "into": merge.into_id,
        "memories": sum(merge.kinds.values()),
        "kinds": dict(merge.kinds),
        "shared": merge.shared,
        "links": merge.links,
        "tickets": merge.tickets,
        "slots": slots,
        "memory_ids": list(merge.memory_ids),
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


def audit_entry(entry: audit.Entry) -> dict[str, Any]:
    """An entry of the audit."""
    return {
        "audit_id": entry.entry_id,
        "at": iso(entry.at),
        "who": entry.who,
        "verb": entry.verb,
        "outcome": entry.outcome,
        "counts": dict(entry.counts),
        "customer": entry.customer,
        "merged": entry.merged,
        "memories": list(entry.memories),
        "tickets": list(entry.tickets),
        "conversations": list(entry.conversations),
    }


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _of(is_linked: bool) -> str:
    return "" if is_linked else " for this conversation, which is linked to no customer yet"
