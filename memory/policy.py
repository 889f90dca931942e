"""What an administrator decides about content: what is redacted, kept for how long, and sure enough."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memory.records import Kind, Metadata

if TYPE_CHECKING:
    from memory.redaction import RedactionType

SECONDS_A_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Policy:
    """Rules for content.

    Attributes:
        redact: which secrets are replaced by marks before anything else sees the text; None for the usual.
        retention_days: how long memories of a kind are kept after they happened; a kind that is absent is
            kept for ever.
        min_confidence: extracted facts below it are not stored, 0 to 1.
    """

    redact: frozenset[RedactionType] | None = None
    retention_days: Mapping[Kind, float] = field(default_factory=dict)
    min_confidence: float = 0.6

    def expires_at(self, kind: Kind, occurred_at: float, explicit: float | None) -> float | None:
        """When a memory expires: the earlier of what the call says and what the kind allows."""
        days = self.retention_days.get(kind)
        by_kind = None if days is None else occurred_at + days * SECONDS_A_DAY
        bounds = [bound for bound in (by_kind, explicit) if bound is not None]
        return min(bounds, default=None)


class Redactor:
    """Redacts the texts of one call and counts what it found.

    Args:
        policy: which secrets.
    """

    def __init__(self, policy: Policy) -> None:
        from memory.redaction import DEFAULT_TYPES

        self._types = DEFAULT_TYPES if policy.redact is None else policy.redact
        self._counts: Counter[str] = Counter()
        self._counting = threading.Lock()

    @property
    def counts(self) -> dict[str, int]:
        """How many secrets of each type were replaced so far."""
        return dict(self._counts)

    def text(self, text: str) -> str:
        """The text with marks in place of secrets."""
        from memory.redaction import redact

        if not self._types or not text:
            return text
        found = redact(text, types=self._types)
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
