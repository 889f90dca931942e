"""Cuts tickets into bodies of requests: under a limit, at the borders of tickets."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import quote

from scripts.ticket_stream import Item, TicketFile, Unreadable

MAX_CHUNK_BYTES = 10_000_000
"""Dify cuts a body at 10,485,760 bytes."""
DEFAULT_CHUNK_BYTES = 4_000_000
MAX_MAP_LENGTH = 4_000
"""What a customer map may take in the address of a request; many servers stop at 8,000 in all."""
TOO_LARGE = "ticket_too_large"

_LINE = re.compile(r"lines\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class Problem:
    """What could not be imported, and why. It holds no words of a ticket.

    Attributes:
        file: name of the file.
        ticket_id: which ticket; None where that is not known.
        code: stable snake_case code.
        path: where in the file; "" where that is not known.
    """

    file: str
    ticket_id: str | None
    code: str
    path: str


@dataclass(frozen=True)
class Chunk:
    """Tickets that travel together.

    Attributes:
        items: the tickets.
        customer_map: what of the customer map they need.
    """

    items: tuple[Item, ...]
    customer_map: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of what it says, in hexadecimal."""
        known = hashlib.sha256(json.dumps(dict(sorted(self.customer_map.items()))).encode())
        for item in self.items:
            known.update(b"\n" + item.line)
        return known.hexdigest()

    def body(self) -> bytes:
        """NDJSON, compressed."""
        return gzip.compress(b"".join(item.line + b"\n" for item in self.items), 6, mtime=0)

    def path_in_file(self, path: str) -> str:
        """A path in the body as a path in the file."""
        line = _LINE.match(path)
        if line is None or not 0 < int(line[1]) <= len(self.items):
            return path
        return self.items[int(line[1]) - 1].path(path[line.end() :])


class CustomerMap:
    """The map from the export's identifiers to customers, of which each chunk gets what it needs.

    Args:
        entries: identifier → customer id; an address counts in any case.
    """

    def __init__(self, entries: Mapping[str, str]) -> None:
        lowered = {key.lower(): to for key, to in entries.items() if "@" in key}
        self._entries = {**lowered, **entries}

    def needed(self, item: Item) -> dict[str, str]:
        """The entries whose identifier occurs in a ticket."""
        if not self._entries:
            return {}
        try:
            found = set(_identifiers(json.loads(item.line)))
        except (ValueError, RecursionError):
            return {}
        return {key: self._entries[key] for key in sorted(found) if key in self._entries}


def cut(file: TicketFile, *, limit: int, customer_map: CustomerMap) -> Iterator[Chunk | Problem]:
    """Cut a file into chunks.

    Args:
        file: the export.
        limit: bytes of a chunk before compression, at most 10,000,000.
        customer_map: see there.

    Returns:
        Chunks; and the problems of tickets that are larger than a chunk, and of what cannot be read.
    """
    chunk = _Growing(limit)
    unreadable: Problem | None = None
    try:
        for item in file.items():
            for part in [item] if len(item.line) < limit else file.parts(item):
                if len(part.line) >= limit:
                    yield Problem(file.path.name, part.ticket_id, TOO_LARGE, part.where)
                    continue
                needed = customer_map.needed(part)
                if not chunk.has_room(part, needed):
                    yield chunk.done()
                chunk.add(part, needed)
    except Unreadable as fault:
        unreadable = Problem(file.path.name, None, fault.code, fault.path)
    if chunk:
        yield chunk.done()
    if unreadable is not None:
        yield unreadable


class _Growing:
    """A chunk that is not full yet."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._start()

    def _start(self) -> None:
        self._items: list[Item] = []
        self._map: dict[str, str] = {}
        self._bytes = self._map_length = 0

    def has_room(self, item: Item, needed: Mapping[str, str]) -> bool:
        """Whether one more ticket fits; the first always does."""
        length = self._map_length + _length({k: v for k, v in needed.items() if k not in self._map})
        is_small = self._bytes + len(item.line) + 1 <= self._limit and length <= MAX_MAP_LENGTH
        return is_small or not self._items

    def add(self, item: Item, needed: Mapping[str, str]) -> None:
        """Take one more ticket."""
        self._map_length += _length({k: v for k, v in needed.items() if k not in self._map})
        self._items.append(item)
        self._map.update(needed)
        self._bytes += len(item.line) + 1

    def done(self) -> Chunk:
        """The chunk; the next one starts."""
        chunk = Chunk(tuple(self._items), self._map)
        self._start()
        return chunk

    def __bool__(self) -> bool:
        return bool(self._items)


def _length(entries: Mapping[str, str]) -> int:
    """What entries take in an address."""
    return len(quote(json.dumps(dict(entries)))) if entries else 0


def _identifiers(value: Any) -> Iterator[str]:
    """All texts and whole numbers in a ticket; addresses in lower case too."""
    if isinstance(value, dict):
        for each in value.values():
            yield from _identifiers(each)
    elif isinstance(value, list):
        for each in value:
            yield from _identifiers(each)
    elif isinstance(value, str):
        yield value.strip()
        if "@" in value:
            yield value.strip().lower()
    elif isinstance(value, int):
        yield str(value)
