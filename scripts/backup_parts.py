"""A backup's file on this side: written so that it can be gone on with, and read in parts."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memory.backup_file import bound, decoded
from scripts.requesting import Stopped

GZIP_MAGIC = b"\x1f\x8b"
DEFAULT_PART_BYTES = 6_000_000
"""Before compression, of one request; Dify cuts bodies of 10 MB."""


@dataclass(slots=True)
class Place:
    """How far a file is.

    Attributes:
        header: the first line; b"" before there is one.
        checksum: up to here.
        cursor: of the last checkpoint.
        rows: so far.
        trailer: the last line's object; None before there is one.
    """

    header: bytes = b""
    checksum: str = ""
    cursor: str = ""
    rows: int = 0
    trailer: dict[str, Any] | None = None


class BackupWriter:
    """Writes a backup as it arrives: each stretch up to a checkpoint is checked, compressed and kept.

    Args:
        path: the unfinished file; one that is there is gone on with.

    Attributes:
        place: how far it is.

    Raises:
        Stopped: what is there is no unfinished backup.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.place = Place()
        self._stretch: list[bytes] = []
        if path.exists():
            self._take_up()

    def add(self, line: bytes) -> None:
        """Take one line.

        Raises:
            Stopped: what arrived is not what was sent.
        """
        value = _object(line)
        if self._take(line, value):
            with self._path.open("ab") as file:
                file.write(gzip.compress(b"".join(each + b"\n" for each in self._stretch)))
            self._stretch = []

    def drop_rest(self) -> None:
        """Forget the lines behind the last checkpoint: they are sent again."""
        self._stretch = []

    def _take(self, line: bytes, value: dict[str, Any]) -> bool:
        """Take a line up; whether it ended a stretch that was right and is news."""
        kind, place = value.get("type"), self.place
        if kind in {"header", "row"}:
            self._stretch.append(line)
            return False
        checksum = bound(place.checksum, self._stretch)
        if kind not in {"checkpoint", "trailer"} or value.get("checksum") != checksum:
            raise Stopped("What arrived is not what was sent: a checksum is wrong.")
        if not self._stretch and kind == "checkpoint":
            return False  # the one that was gone on from
        place.header = place.header or self._stretch[0]
        place.checksum = checksum
        if kind == "trailer":
            place.trailer = value
        else:
            place.cursor, place.rows = str(value["cursor"]), int(value["rows"])
        self._stretch.append(line)
        return True

    def _take_up(self) -> None:
        """Read what an earlier run has kept, and cut off a stretch that was not written whole."""
        end = 0
        for size, lines in _members(self._path):
            for line in lines:
                if self._take(line, _object(line)):
                    self._stretch = []
            end += size
        with self._path.open("r+b") as file:
            file.truncate(end)


def _members(path: Path) -> Iterator[tuple[int, list[bytes]]]:
    """The whole gzip members of a file: length in the file, and lines."""
    with path.open("rb") as file:
        rest = b""
        while True:
            stream, content, size = zlib.decompressobj(zlib.MAX_WBITS | 16), b"", 0
            while not stream.eof:
                piece = rest or file.read(1_000_000)
                if not piece:
                    return
                try:
                    content += stream.decompress(piece)
                except zlib.error:
                    raise Stopped(f"{path.name} is no unfinished backup; remove it.") from None
                rest = stream.unused_data
                size += len(piece) - len(rest)
            yield size, content.splitlines()


@dataclass(slots=True)
class Part:
    """One request's share of a backup.

    Attributes:
        lines: header, checkpoint before, and what follows.
        numbers: where each of them is in the file, from 1.
    """

    lines: list[bytes] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)

    def body(self) -> bytes:
        """The part as it is sent."""
        return gzip.compress(b"".join(line + b"\n" for line in self.lines))


def header_of(path: Path) -> bytes:
    """A backup's first line.

    Raises:
        Stopped: the file is no backup.
    """
    line = next(_lines(path), (1, b""))[1]
    if _object(line).get("type") != "header":
        raise Stopped(f"{path.name} is no backup.")
    return line


def parts_of(path: Path, *, behind: str, size: int) -> Iterator[Part]:
    """The parts of a backup behind a checksum.

    Args:
        path: the file, plain or gzip.
        behind: the checksum it was loaded up to.
        size: bytes of a part, about; a stretch up to a checkpoint is never parted.

    Raises:
        Stopped: the file is cut or damaged, or nothing in it has this checksum.
    """
    lines = _lines(path)
    _, header = next(lines, (1, b""))
    checksum, is_behind = bound("", [header]), False
    before: tuple[int, bytes] | None = None
    part, stretch = Part([header], [1]), list[tuple[int, bytes]]()
    is_behind = checksum == behind
    for number, line in lines:
        value = _object(line)
        stretch.append((number, line))
        if value.get("type") == "row":
            checksum = bound(checksum, [line])
            continue
        if value.get("checksum") != checksum:
            raise Stopped(f"{path.name} is damaged before line {number:,}: a checksum is wrong.")
        if is_behind:
            part.numbers += [each for each, _ in stretch]
            part.lines += [each for _, each in stretch]
        before, stretch = (number, line), []
        is_full = sum(map(len, part.lines)) >= size
        if value.get("type") == "trailer":
            if is_behind:
                yield part
            return
        if is_full or (not is_behind and checksum == behind):
            if is_full:
                yield part
            part = Part([header, before[1]], [1, before[0]])
        is_behind = is_behind or checksum == behind
    raise Stopped(f"{path.name} is cut: it has no trailer. Download it again.")


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    with path.open("rb") as file:
        is_gzip = file.read(2) == GZIP_MAGIC
    try:
        with gzip.open(path) if is_gzip else path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                yield number, line.rstrip(b"\n")
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise Stopped(f"{path.name} is cut or damaged.") from None


def _object(line: bytes) -> dict[str, Any]:
    try:
        return decoded(line)
    except ValueError:
        raise Stopped("A line is no JSON object: this is no backup, or it is damaged.") from None
