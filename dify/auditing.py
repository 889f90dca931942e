"""Noting in the audit what a node or an endpoint did. It never makes a call fail."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dify.opening import open_audit
from dify.settings import read_settings
from memory.audit import Act
from memory.clock import system_clock
from memory.errors import IdInvalid, InternalError, MemoryFault
from memory.scope import checked_id

OK = "ok"
CUT_OFF = "cut_off"
"""The caller went away before the end of a streamed answer."""
COUNTS = {
    "stored",
    "duplicates",
    "superseded",
    "skipped",
    "found",
    "matched",
    "deleted",
    "links_removed",
    "moved",
    "imported",
    "replaced",
    "unchanged",
    "outdated",
    "failed",
    "removed",
    "expired",
    "audit_expired",
    "shared",
    "links",
    "tickets",
}
"""The numbers of an answer that are noted. Only these, so that nothing a caller chose gets in."""

_log = logging.getLogger("customer_memory")


@dataclass(slots=True)
class Deed:
    """What a call does, filled in while it does it.

    Attributes:
        who: name of the key, "node" or "webhook"; "" while nobody is known, and then nothing is noted.
        verb: what it does.
        is_change: whether it writes or erases; others are noted only where the settings say so.
        asked: the call's parameters.
        tickets: source and id of the tickets it imports.
    """

    who: str
    verb: str
    is_change: bool
    asked: Mapping[str, Any] = field(default_factory=dict, repr=False)
    tickets: list[tuple[str, str]] = field(default_factory=list, repr=False)


def note(
    form: Mapping[str, Any],
    deed: Deed,
    told: Any = None,
    *,
    outcome: str = OK,
) -> str:
    """Note a call that is over.

    Args:
        form: the credentials or the endpoint's settings.
        deed: what the call did.
        told: the answer it gave.
        outcome: "ok", or the code of its failure.

    Returns:
        "" if it is noted, or was not to be; else the code of what was in the way, which is logged too.
    """
    if not deed.who:
        return ""
    try:
        settings = read_settings(form).audit
        if not deed.is_change and not settings.includes_reads:
            return ""
        if outcome.startswith("chroma_"):
            return _tell(outcome, deed)  # where the call could not get through, this would wait in vain too
        open_audit(form, may_wait=False).append(_act(deed, told, outcome), now=system_clock())
    except MemoryFault as error:
        return _tell(error.code, deed)
    except Exception:  # whatever it is, its text may hold a customer's words
        return _tell(InternalError.code, deed)
    return ""


def note_lines(
    form: Mapping[str, Any], deed: Deed, lines: Iterator[Mapping[str, Any] | bytes]
) -> Iterator[Mapping[str, Any] | bytes]:
    """The lines of a streamed answer; when they end, or are not asked for any more, the call is noted."""
    last: Mapping[str, Any] | bytes = {}
    outcome = CUT_OFF
    try:
        for line in lines:
            last = line
            yield line
        outcome = OK
    except MemoryFault as fault:
        outcome = fault.code
        raise
    except Exception:
        outcome = InternalError.code
        raise
    finally:
        note(form, deed, last, outcome=outcome)


def _act(deed: Deed, told: Any, outcome: str) -> Act:
    answer = told if isinstance(told, Mapping) else {}
    conversation_id, source, ticket_id = (
        _text(deed.asked.get(name)) for name in ("conversation_id", "source", "ticket_id")
    )
    tickets = deed.tickets or ([(source, ticket_id)] if source and ticket_id else [])
    memory_ids = list(_memory_ids(answer))
    counts = dict(_counts(answer))
    counts |= {name: len(ids) for name, ids in (("memories", memory_ids), ("tickets", tickets)) if ids}
    customer_ids = (
        _text(place.get(name)) for name in ("customer_id", "into") for place in (answer, deed.asked)
    )
    return Act(
        who=deed.who,
        verb=deed.verb,
        outcome=outcome,
        counts=counts,
        customer_id=next(filter(None, customer_ids), ""),
        merged_id=_text(answer.get("from")) or _text(deed.asked.get("from")),
        memory_ids=memory_ids,
        tickets=tickets,
        conversation_ids=[conversation_id] if conversation_id else [],
    )


def _counts(answer: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    for name, value in answer.items():
        if isinstance(value, Mapping):
            yield from _counts({k: v for k, v in value.items() if not isinstance(v, Mapping)})
        elif name in COUNTS and isinstance(value, int) and not isinstance(value, bool):
            yield name, value


def _memory_ids(answer: Mapping[str, Any]) -> Iterator[str]:
    receipt = answer.get("receipt")
    for place in (answer, receipt if isinstance(receipt, Mapping) else {}):
        memories, ids = place.get("memories"), place.get("memory_ids")
        if isinstance(ids, list):
            yield from (each for each in ids if isinstance(each, str))
        elif isinstance(memories, list):
            yield from (each["memory_id"] for each in memories if "memory_id" in each)


def _text(value: Any) -> str:
    """An id as the engine reads it; "" for none."""
    try:
        return checked_id("id", value)
    except IdInvalid:
        return ""


def _tell(code: str, deed: Deed) -> str:
    """Say in the plugin's log that a call is not in the audit: its verb and a code, nothing else."""
    from dify_plugin.config.logger_format import plugin_logger_handler

    if plugin_logger_handler not in _log.handlers:
        _log.addHandler(plugin_logger_handler)
    _log.warning("audit_failed: %s by %s is not in the audit (%s)", deed.verb, deed.who, code)
    return code
