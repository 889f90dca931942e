"""What an administrator decides about content: what is redacted, kept for how long, and sure enough."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final

from memory.records import Kind, Metadata

if TYPE_CHECKING:
    from memory.redaction import RedactionType

SECONDS_A_DAY = 86_400.0

_REMEMBERED: Final = 1_024
_LONGEST_REMEMBERED: Final = 2_000
"""Subjects and canned replies repeat within a ticket and a batch: how many results, of which length."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Rules for content.

    Attributes:
        redact: which secrets are replaced by marks before anything else sees the text; None for the usual.
        retention_days: how long memories of a kind are kept after they happened; a kind that is absent is
            kept for ever.
        retention_days_by_source: the same for what was imported, by the source of its ticket.
        hash_key: secret that receipts name a customer by, as a keyed hash; "" names nobody.
        min_confidence: extracted facts below it are not stored, 0 to 1.
    """

    redact: frozenset[RedactionType] | None = None
    retention_days: Mapping[Kind, float] = field(default_factory=dict)
    min_confidence: float = 0.6
    retention_days_by_source: Mapping[str, float] = field(default_factory=dict)
    hash_key: str = field(default="", repr=False)

    def expires_at(
        self, kind: Kind, occurred_at: float, explicit: float | None, *, source: str = ""
    ) -> float | None:
        """When a memory expires: the earliest of what the call says and what kind and source allow."""
        allowed = (self.retention_days.get(kind), self.retention_days_by_source.get(source))
        bounds = [occurred_at + days * SECONDS_A_DAY for days in allowed if days is not None]
        return min(bounds if explicit is None else [*bounds, explicit], default=None)


class Redactor:
    """Redacts the texts of one call and counts what it found.

    Args:
        policy: which secrets.
    """

    def __init__(self, policy: Policy) -> None:
        from memory.redaction import DEFAULT_TYPES, redact

        self._types = DEFAULT_TYPES if policy.redact is None else policy.redact
        self._redact = partial(redact, types=self._types)
        self._redact_again = lru_cache(_REMEMBERED)(self._redact)
        self._counts: Counter[str] = Counter()
        self._counting = threading.Lock()

    @property
    def counts(self) -> dict[str, int]:
        """How many secrets of each type were replaced so far."""
        return dict(self._counts)

    def text(self, text: str) -> str:
        """The text with marks in place of secrets."""
        if not self._types or not text:
            return text
        found = self._redact_again(text) if len(text) <= _LONGEST_REMEMBERED else self._redact(text)
        if found.counts:
            with self._counting:
                self._counts.update(found.counts)
        return found.text

    def metadata(self, values: Metadata) -> Metadata:
        """The user's own metadata with marks in place of secrets."""
        from memory.redaction import redact_value

        if not self._types or not values:
            return values
        found = redact_value({**values}, types=self._types)
        with self._counting:
            self._counts.update(found.counts)
        kept = found.value if isinstance(found.value, dict) else {}
        return {key: value for key, value in kept.items() if isinstance(value, str | int | float)}
