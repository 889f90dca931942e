"""A backup as an answer, and as a body: lines within the time of a request, plain or gzip."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

from dify.imports import MAX_EXPANDED_BYTES
from dify.web_errors import BodyTooLarge, MediaTypeUnsupported
from memory.backup import MEMORIES, SIDE_COLLECTIONS
from memory.errors import BackupDamaged
from memory.pacing import background
from memory.restoring import Restore

GZIP_MAGIC = b"\x1f\x8b"
_EXPAND_BYTES = 262_144
_MEDIA_TYPES = ("json", "ndjson", "gzip", "octet-stream", "text/plain", "x-www-form-urlencoded")


def download(pages: Iterator[list[bytes]], seconds: float) -> Iterator[bytes]:
    """The lines of a backup, until it or the time is over.

    The first page is read before anything is answered, so that what is wrong from the start has a status.

    Args:
        pages: lines without their ends; each page ends where it can be gone on from.
        seconds: time for the answer.
    """
    ends_at = time.monotonic() + seconds
    first = next(pages)

    def rest() -> Iterator[bytes]:
        yield _joined(first)
        while time.monotonic() < ends_at:
            with background():
                page = next(pages, None)
            if page is None:
                return
            yield _joined(page)

    return rest()


def _joined(lines: list[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def read_backup(headers: Mapping[str, str], body: bytes) -> Iterator[bytes]:
    """The lines of a body, without their ends and without empty ones; a gzip body is expanded as it is read.

    Raises:
        MediaTypeUnsupported: it is something else, by its type.
        BodyTooLarge, BackupDamaged: while it is read: it expands to too much, or cannot be.
    """
    content_type = headers.get("content-type", "").casefold()
    if content_type and not any(kind in content_type for kind in _MEDIA_TYPES):
        raise MediaTypeUnsupported
    pieces = _expanded(body) if body.startswith(GZIP_MAGIC) else iter([body])
    return _lines(pieces)


def _expanded(body: bytes) -> Iterator[bytes]:
    """A gzip body, which may be several one after another, piece by piece."""
    size = 0
    while body:
        stream = zlib.decompressobj(zlib.MAX_WBITS | 16)
        while not stream.eof:
            try:
                piece = stream.decompress(body, _EXPAND_BYTES)
            except zlib.error:
                raise BackupDamaged(line=1, reason="it is no gzip") from None
            body = stream.unconsumed_tail
            size += len(piece)
            if size > MAX_EXPANDED_BYTES:
                raise BodyTooLarge(limit=MAX_EXPANDED_BYTES)
            if not piece and not body:
                break  # it was cut: its lines so far are good, and the last one tells
            yield piece
        body = stream.unused_data


def _lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        yield from filter(None, whole)
    if rest:
        yield rest


class Load:
    """One request that loads a backup, or a part of one.

    Args:
        restore: the load.
        seconds: time for the request.
    """

    def __init__(self, restore: Restore, seconds: float) -> None:
        self._restore = restore
        self._started = time.monotonic()
        self._ends_at = self._started + seconds

    def steps(self) -> Iterator[None]:
        """Load until the part or the time is over.

        Raises:
            RequestError, SetupError, ServiceError: what was loaded until then stays.
        """
        steps = self._restore.steps()
        while True:
            with background():
                is_over = next(steps, self) is self
            if is_over:
                return
            yield
            if time.monotonic() > self._ends_at:
                return

    def lines(self) -> Iterator[Mapping[str, Any]]:
        """Progress, and the report as the last line; what is wrong from the start is raised at once."""
        steps = self.steps()
        is_over = next(steps, self) is self

        def rest() -> Iterator[Mapping[str, Any]]:
            if not is_over:
                yield self._progress()
                for _ in steps:
                    yield self._progress()
            yield self.report()

        return rest()

    def _progress(self) -> dict[str, Any]:
        loaded = self._restore.loaded
        return {"rows": loaded.rows if loaded else 0}

    def report(self) -> dict[str, Any]:
        """How far the load is, in counts, and every row of this part that was left out."""
        loaded, restore = self._restore.loaded, self._restore
        names = (MEMORIES, *(side.name for side in SIDE_COLLECTIONS))
        return {
            "complete": bool(loaded and loaded.is_complete),
            "done": restore.is_done,
            "rows": loaded.rows if loaded else 0,
            "checksum": loaded.reached if loaded else "",
            "loaded": {name: loaded.stored.get(name, 0) if loaded else 0 for name in names},
            "embedded_again": loaded.embedded if loaded else 0,
            "left_out": restore.left_out,
            "problems": [
                {"line": each.line, "collection": each.collection, "code": each.code}
                for each in restore.problems
            ],
            "problems_omitted": restore.left_out - len(restore.problems),
            "seconds": round(time.monotonic() - self._started, 3),
        }
