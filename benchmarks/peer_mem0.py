"""mem0's open-source library on the same Chroma server and with the same embedder, to compare with.

Its versions are pinned in peer-mem0.txt and installed into an environment of its own. It stores what it is
given (`infer=False`: no language model), with telemetry off. It has no field for when something was said, so
the moment leads the text, and lies in the metadata too, by which questions within bounds of time are
filtered. Its extra for word search and entities is left out: on Chroma mem0 has no word search, and entities
are found with a language model's facts only.
"""

import filecmp
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.data_sets import Memories, Question, Turn
from benchmarks.metrics import Answer
from benchmarks.systems import LIMIT, Stored
from development.chroma_server import ChromaServer
from development.embedding_server import EmbeddingServer
from development.places import PEERS, PLUGIN_PYTHON, PROJECT, UV

REQUIREMENTS = PROJECT / "benchmarks" / "peer-mem0.txt"
ADDED = 500
"""Turns that are stored with mem0's own `add`, which takes 30 ms or more for each; after that the same
records are written in batches."""
MODEL = "builtin"
_ENVIRONMENT = PEERS / "mem0"


def install() -> Path:
    """Make mem0's environment where it is not there yet.

    Returns:
        Its Python.

    Raises:
        SystemExit: it cannot be installed.
    """
    python, installed = _ENVIRONMENT / "bin/python", _ENVIRONMENT / "locked"
    if installed.exists() and filecmp.cmp(REQUIREMENTS, installed, shallow=False):
        return python
    print(f"installing {REQUIREMENTS.read_text().split()[0]} into {_ENVIRONMENT.relative_to(PROJECT)}")
    commands: list[list[str | Path]] = [
        [UV, "venv", "--quiet", "--clear", "--python", PLUGIN_PYTHON, _ENVIRONMENT],
        [UV, "pip", "install", "--quiet", "--python", python, "-r", REQUIREMENTS],
    ]
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"mem0 cannot be installed (--no-peer runs without):\n{done.stderr[-2_000:]}")
    shutil.copy(REQUIREMENTS, installed)
    return python


@dataclass(frozen=True, slots=True)
class Row:
    """One message as mem0 takes it: whose, who says it ("user", "assistant"), what, and when."""

    scope: str
    role: str
    content: str
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """What a call answered: ids, the seconds it took, and of these the seconds for vectors."""

    ids: tuple[str, ...]
    seconds: float
    embedding_seconds: float


class Mem0:
    """mem0 in a process of its own; use it as a context manager.

    Args:
        chroma: the server.
        collection: a name that nobody has used.
        service: the embedding service, which knows `MODEL`.
    """

    name = "mem0"

    def __init__(self, chroma: ChromaServer, collection: str, service: EmbeddingServer) -> None:
        self._chroma, self._collection, self._service = chroma, collection, service
        self._added = Stored()
        self._turns: dict[str, str] = {}

    def __enter__(self) -> Self:
        python = install()
        self._folder = Path(tempfile.mkdtemp(prefix="customer-memory-mem0-"))
        environment = {
            "PATH": os.defpath,
            "HOME": str(self._folder),
            "MEM0_DIR": str(self._folder),
            "MEM0_TELEMETRY": "False",
            "ANONYMIZED_TELEMETRY": "False",
        }
        self._log = self._folder / "log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [python, "-I", PROJECT / "benchmarks" / "peer_mem0_process.py"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                cwd=self._folder,
                text=True,
                encoding="utf-8",
            )
        self._send(
            {
                "chroma_port": self._chroma.port,
                "collection": self._collection,
                "embedding_url": self._service.url,
                "embedding_model": MODEL,
                "history": str(self._folder / "history.db"),
            }
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.communicate()
        shutil.rmtree(self._folder, ignore_errors=True)

    def remember(self, memories: Memories) -> Stored:
        """See `benchmarks.systems.System.remember`; what was written in batches is not counted."""
        before = self._added
        for session in memories.sessions:
            rows = [Row(memories.scope, turn.role, dated(turn), session.at) for turn in session.turns]
            if self._added.turns < ADDED:
                added = self.add(rows)
                ids = added.ids
                self._added += Stored(len(rows), added.seconds)
            else:
                ids = self.write(rows)
            self._turns.update(zip(ids, (turn.turn_id for turn in session.turns), strict=True))
        return Stored(self._added.turns - before.turns, self._added.seconds - before.seconds)

    def recall(self, question: Question, *, is_usual: bool) -> Answer:
        """See `benchmarks.systems.System.recall`."""
        found = self.search(
            question.scope, question.text, since=question.since, until=question.until, is_usual=is_usual
        )
        return Answer(
            tuple(self._turns[memory_id] for memory_id in found.ids), found.seconds, found.embedding_seconds
        )

    def add(self, rows: Sequence[Row]) -> Told:
        """Store messages of one scope and moment with mem0's `add`, the way its users do."""
        return self._told({"do": "add", "rows": [asdict(row) for row in rows]})

    def write(self, rows: Sequence[Row]) -> tuple[str, ...]:
        """Store in batches the very records that `add` writes one at a time; their ids."""
        return tuple(self._ask({"do": "write", "rows": [asdict(row) for row in rows]})["ids"])

    def search(
        self,
        scope: str,
        text: str,
        *,
        since: float | None = None,
        until: float | None = None,
        is_usual: bool = False,
    ) -> Told:
        """Search one scope with mem0's `search`, for ten memories; see `recall`."""
        return self._told(
            {
                "do": "search",
                "scope": scope,
                "query": text,
                "limit": LIMIT,
                "since": since,
                "until": until,
                "is_usual": is_usual,
            }
        )

    def _told(self, request: dict[str, Any]) -> Told:
        told = self._ask(request)
        return Told(tuple(told["ids"]), told["seconds"], told["embedding_seconds"])

    def _send(self, request: dict[str, Any]) -> None:
        if self._process.stdin is None:
            raise RuntimeError("mem0's process takes no requests")
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()

    def _ask(self, request: dict[str, Any]) -> Any:
        self._send(request)
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line:
            raise SystemExit(f"mem0 ended:\n{self._log.read_text()[-2_000:]}")
        return json.loads(line)


def dated(turn: Turn) -> str:
    """A turn's text, led by its moment where that is known, worded as in LoCoMo."""
    if turn.at is None:
        return turn.text
    moment = datetime.fromtimestamp(turn.at, UTC)
    hour = f"{moment.hour % 12 or 12}:{moment:%M} {'am' if moment.hour < 12 else 'pm'}"
    return f"[{hour} on {moment.day} {moment:%B, %Y}] {turn.text}"
