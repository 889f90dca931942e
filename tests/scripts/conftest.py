"""What the tests of the command line share: endpoints that answer by a script, and the command itself."""

import gzip
import json
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from development.places import PROJECT

KEY = "a-key-nobody-may-see"


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it arrived."""

    path: str
    query: dict[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def lines(self) -> list[bytes]:
        """The lines of the body."""
        return gzip.decompress(self.body).splitlines()

    @property
    def ticket_ids(self) -> list[object]:
        """The ids of the tickets in it."""
        return [json.loads(line).get("ticket_id") for line in self.lines]


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: sent whole, or cut after so many bytes."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    cut_at: int | None = None


def report(done: int, *, cursor: int | None = None, **more: Any) -> bytes:
    """A report that says that so many tickets were imported."""
    statuses = dict.fromkeys(("imported", "replaced", "unchanged", "outdated", "failed"), 0)
    value: dict[str, Any] = {
        "complete": cursor is None,
        "cursor": None if cursor is None else str(cursor),
        "tickets": statuses | {"imported": done},
        "memories": {"stored": done, "removed": 0},
        "problems": [],
        "problems_omitted": 0,
    }
    return json.dumps(value | more).encode()


class ScriptedEndpoint:
    """An endpoint that gives the answers it was told to give, and then says yes to everything.

    Attributes:
        asked: every request, in order.
        answers: what to answer next.
    """

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.answers: deque[Answer] = deque()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server.server_address[1]}/e/hook"

    def answer(self, asked: Asked) -> Answer:
        """Take a request."""
        self.asked.append(asked)
        if self.answers:
            return self.answers.popleft()
        return Answer(body=report(len(asked.lines)), headers={"Content-Type": "application/json"})


def _handler(endpoint: ScriptedEndpoint) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.casefold(): value for name, value in self.headers.items()}
            answer = endpoint.answer(Asked(parts.path, dict(parse_qsl(parts.query)), headers, body))
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body[: answer.cut_at])

        do_GET = do_POST  # noqa: N815 - the name is the library's

        def log_message(self, format: str, *args: object) -> None:
            return

    return Handler


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    """An endpoint with a script."""
    scripted = ScriptedEndpoint()
    thread = threading.Thread(target=scripted.server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield scripted
    scripted.server.shutdown()
    thread.join()
    scripted.server.server_close()


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run of the command ended."""

    status: int
    output: str
    complaints: str

    @property
    def counts(self) -> list[int]:
        """Imported, replaced, unchanged, outdated, failed: of the last row of the table."""
        row = [line for line in self.output.splitlines() if line][1:]
        last = next(line for at, line in enumerate(row) if "memories stored" in row[at + 1])
        return [int(cell.replace(",", "")) for cell in last.split()[-5:]]


def run_command(
    *arguments: object, key: str | None = KEY, as_module: bool = False, script: str = "import_tickets"
) -> Ended:
    """Run a command line as a user does."""
    start = ["-m", f"scripts.{script}"] if as_module else [f"scripts/{script}.py"]
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    if key is not None:
        environment["CUSTOMER_MEMORY_API_KEY"] = key
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-W", "error", *start, *map(str, arguments)],
        cwd=PROJECT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def ticket(number: int, *, words: str = "My mug is broken.") -> dict[str, Any]:
    """A ticket in the canonical shape."""
    return {
        "ticket_id": f"T-{number}",
        "customer_id": "ann",
        "messages": [
            {
                "message_id": "1",
                "role": "customer",
                "created_at": "2024-05-01T08:00:00Z",
                "text": words,
            }
        ],
    }


def write_tickets(folder: Path, count: int, *, name: str = "export.json", words: str = "My mug.") -> Path:
    """An export with so many tickets, numbered from 0."""
    path = folder / name
    path.write_text(json.dumps({"tickets": [ticket(number, words=words) for number in range(count)]}))
    return path
