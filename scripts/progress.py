"""What was done so far: counted for the summary, and kept on disk so that an import can go on later."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any

from scripts.chunks import Problem

STATUSES = ("imported", "replaced", "unchanged", "outdated", "failed")


@dataclass(slots=True)
class Tally:
    """What became of some tickets.

    Attributes:
        tickets: how many of each status.
        stored, removed: memories.
        problems: what was no plain success.
        omitted: problems that the endpoint counted and did not list.
    """

    tickets: Counter[str] = field(default_factory=Counter)
    stored: int = 0
    removed: int = 0
    problems: list[Problem] = field(default_factory=list)
    omitted: int = 0

    def add(self, other: Tally) -> None:
        """Count another one in."""
        self.tickets.update(other.tickets)
        self.stored += other.stored
        self.removed += other.removed
        self.problems += other.problems
        self.omitted += other.omitted

    @property
    def is_fine(self) -> bool:
        """Whether everything was a plain success."""
        return not (self.problems or self.omitted or self.tickets["failed"])


@dataclass(slots=True)
class Done:
    """How far a chunk got.

    Attributes:
        cursor: where to go on in it; None if it is done.
        tally: what became of the tickets until there.
    """

    cursor: int | None
    tally: Tally


class State:
    """What earlier runs have done, in a file with one line of JSON for each answer of the endpoint.

    It holds counts, ids of tickets with problems, and fingerprints; no words of a ticket, and no key. A line
    that was cut short counts as not written.

    Args:
        path: the file; None keeps nothing.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._done: dict[tuple[str, str, str], Done] = {}
        if path is not None and path.exists():
            for line in path.read_bytes().split(b"\n"):
                self._read(line)

    def find(self, target: str, file: str, chunk: str) -> Done:
        """How far a chunk of a file got at a target; all three are fingerprints."""
        return self._done.get((target, file, chunk)) or Done(0, Tally())

    def note(self, target: str, file: str, chunk: str, done: Done) -> None:
        """Keep how far it got."""
        self._done[target, file, chunk] = done
        if self._path is None:
            return
        tally = {
            "tickets": dict(done.tally.tickets),
            "stored": done.tally.stored,
            "removed": done.tally.removed,
            "problems": [astuple(each) for each in done.tally.problems],
            "omitted": done.tally.omitted,
        }
        line = {"target": target, "file": file, "chunk": chunk, "cursor": done.cursor, "tally": tally}
        with self._path.open("ab") as file_of_state:
            if file_of_state.tell() and not self._ends_whole():
                file_of_state.write(b"\n")
            file_of_state.write(json.dumps(line).encode() + b"\n")
            file_of_state.flush()
            os.fsync(file_of_state.fileno())

    def _ends_whole(self) -> bool:
        if self._path is None:
            return True
        with self._path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read() == b"\n"

    def _read(self, line: bytes) -> None:
        try:
            value = json.loads(line)
            key = value["target"], value["file"], value["chunk"]
            self._done[key] = Done(value["cursor"], _tally(value["tally"]))
        except (ValueError, KeyError, TypeError):
            return


def _tally(value: Mapping[str, Any]) -> Tally:
    return Tally(
        Counter(value["tickets"]),
        value["stored"],
        value["removed"],
        [Problem(*each) for each in value["problems"]],
        value["omitted"],
    )
