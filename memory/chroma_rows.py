"""Rows as they lie in a Chroma collection, and how they come out of its answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memory.quotas import whole

type Vector = Sequence[float]


@dataclass(frozen=True, slots=True)
class Row:
    """One stored row. `vector` is there only where it was asked for."""

    row_id: str
    text: str
    columns: dict[str, Any]
    vector: Vector | None = None


def rows_of(found: Any) -> list[Row]:
    """A get's answer as rows. A row deleted while it was read has no document: it is gone."""
    if found is None:
        return []
    vectors = found["embeddings"]
    return [
        Row(
            row_id,
            *whole(found["documents"][i], dict(found["metadatas"][i] or {})),
            None if vectors is None else vectors[i].tolist(),
        )
        for i, row_id in enumerate(found["ids"])
        if found["documents"][i] is not None
    ]


def present(columns: Mapping[str, Any]) -> dict[str, Any]:
    """The columns that have a value."""
    return {name: value for name, value in columns.items() if value is not None}
