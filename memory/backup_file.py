"""The file a backup is: lines of JSON, bound to each other by a checksum.

    header       what the namespace is, and how much it held when the backup began
    row …        one stored row each, its vector as base64 of 32-bit floats
    checkpoint   how many rows so far, the checksum up to here, and the cursor to go on from
    row …
    trailer      how many rows of each collection, and the checksum of everything

The checksum of a line is SHA-256 over the checksum before it and the line's bytes; checkpoints and the
trailer are not part of it. So a backup that was cut goes on behind its last checkpoint, and a part of one
can be checked by itself.
"""

import base64
import binascii
import hashlib
import json
import math
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from memory.chroma_rows import Row, Vector
from memory.embedding import EmbedderIdentity, Source

FORMAT = "customer-memory-backup"
VERSION = 1
MAX_DIMENSION = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What a backup's first line says.

    Attributes:
        namespace: the name it had.
        embedder: the model its vectors come from; None where nothing was ever remembered.
        dimension: length of a vector; 0 without an embedder.
        shards: collections its memories were spread over.
        counts: rows of each collection when the backup began.
        created_at: when that was, ISO 8601.
    """

    namespace: str
    embedder: EmbedderIdentity | None
    dimension: int
    shards: int
    counts: Mapping[str, int]
    created_at: str

    def line(self) -> bytes:
        """The header as a line, without its end."""
        model = self.embedder
        return encoded(
            {
                "type": "header",
                "format": FORMAT,
                "version": VERSION,
                "namespace": self.namespace,
                "embedder": None
                if model is None
                else {"source": str(model.source), "provider": model.provider, "model": model.model},
                "dimension": self.dimension,
                "shards": self.shards,
                "counts": dict(self.counts),
                "created_at": self.created_at,
            }
        )


def read_header(line: bytes) -> Header:
    """A backup's first line.

    Raises:
        ValueError: it is none, or of a version this plugin does not know.
    """
    value = decoded(line)
    if (value.get("type"), value.get("format"), value.get("version")) != ("header", FORMAT, VERSION):
        raise ValueError("no header of a known version")
    try:
        model = value["embedder"]
        header = Header(
            namespace=str(value["namespace"]),
            embedder=None
            if model is None
            else EmbedderIdentity(Source(model["source"]), str(model["provider"]), str(model["model"])),
            dimension=int(value["dimension"]),
            shards=int(value["shards"]),
            counts={str(name): int(count) for name, count in value["counts"].items()},
            created_at=str(value["created_at"]),
        )
    except (KeyError, TypeError, AttributeError):
        raise ValueError("a header with parts missing") from None
    if not (0 if header.embedder is None else 1) <= header.dimension <= MAX_DIMENSION:
        raise ValueError("a dimension no vector has")
    return header


def row_line(collection: str, row: Row) -> bytes:
    """A row of a collection as a line, without its end."""
    vector = base64.b64encode(array("f", row.vector or ()).tobytes()).decode()
    return encoded(
        {
            "type": "row",
            "collection": collection,
            "id": row.row_id,
            "text": row.text,
            "columns": dict(sorted(row.columns.items())),
            "vector": vector,
        }
    )


def read_row(value: Mapping[str, Any]) -> Row:
    """The row a line holds.

    Raises:
        ValueError: it cannot be stored as it is.
    """
    row_id, text, columns = value.get("id"), value.get("text"), value.get("columns")
    if (
        not isinstance(row_id, str)
        or not row_id
        or not isinstance(text, str)
        or not isinstance(columns, dict)
    ):
        raise ValueError("a row with parts missing")
    for name, column in columns.items():
        if not name or name[0] in "#$" or not isinstance(column, str | int | float | bool):
            raise ValueError("a column that cannot be stored")
        if isinstance(column, float) and not math.isfinite(column):
            raise ValueError("a column that is no number")
    # What is no text in UTF-8 could not be sent on.
    for part in (row_id, text, *columns, *(c for c in columns.values() if isinstance(c, str))):
        part.encode()
    return Row(row_id, text, columns, _vector(value.get("vector")))


def _vector(value: object) -> Vector:
    if not isinstance(value, str):
        raise ValueError("a row without a vector")
    try:
        vector = array("f", base64.b64decode(value, validate=True))
    except binascii.Error:
        raise ValueError("a vector that is no base64") from None
    if not vector or not all(map(math.isfinite, vector)):
        raise ValueError("a vector that is none")
    return vector.tolist()


def checkpoint_line(rows: int, checksum: str, cursor: str) -> bytes:
    """A checkpoint as a line, without its end."""
    return encoded({"type": "checkpoint", "rows": rows, "checksum": checksum, "cursor": cursor})


def trailer_line(counts: Mapping[str, int], checksum: str) -> bytes:
    """The last line, without its end."""
    return encoded({"type": "trailer", "counts": dict(counts), "checksum": checksum})


def bound(checksum: str, lines: Iterable[bytes]) -> str:
    """The checksum after some lines more; it begins with "" before the header."""
    for line in lines:
        checksum = hashlib.sha256(checksum.encode() + line).hexdigest()
    return checksum


def encoded(value: Mapping[str, Any]) -> bytes:
    """A JSON object as one line, without its end."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode()


def decoded(line: bytes) -> dict[str, Any]:
    """The JSON object a line holds.

    Raises:
        ValueError: it holds none.
    """
    try:
        value = json.loads(line)
    except RecursionError:
        raise ValueError("nested too deep") from None
    if not isinstance(value, dict):
        raise ValueError("no object")
    return value
