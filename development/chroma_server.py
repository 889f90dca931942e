"""A throw-away Chroma server: its own folder, a free loopback port, gone at the end."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType

from development.places import CHROMA

START_SECONDS = 60.0


def free_port() -> int:
    """A loopback port nobody listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class ChromaServer:
    """A real Chroma server for demo, tests and benchmarks; use it as a context manager.

    Args:
        folder: where it keeps its files; None for a temporary one that is removed at the end.
        port: where it listens; None for a free one.
    """

    def __init__(self, folder: Path | None = None, port: int | None = None) -> None:
        self._temporary = folder is None
        self.folder = folder or Path(tempfile.mkdtemp(prefix="customer-memory-chroma-"))
        self.port = port or free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Its process id, while it runs."""
        if self._process is None:
            raise RuntimeError("the Chroma server does not run")
        return self._process.pid

    def start(self) -> None:
        """Start it and wait until it answers.

        Raises:
            RuntimeError: it ended, or did not answer within 60 s.
        """
        log = (self.folder / "server.log").open("ab")
        self._process = subprocess.Popen(
            [CHROMA, "run", "--path", self.folder / "data", "--host", "127.0.0.1", "--port", str(self.port)],
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "ANONYMIZED_TELEMETRY": "False"},
        )
        log.close()
        ends_at = time.monotonic() + START_SECONDS
        while time.monotonic() < ends_at:
            if self._process.poll() is not None:
                break
            try:
                with urllib.request.urlopen(f"{self.url}/api/v2/heartbeat", timeout=2):  # noqa: S310
                    return
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                time.sleep(0.05)
        self.stop()
        raise RuntimeError(f"the Chroma server did not start; see {self.folder}/server.log")

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it in an orderly way."""
        self._end(signal.SIGTERM)

    def freeze(self) -> None:
        """Let it hang: connections are accepted, nothing is answered."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        os.kill(self.pid, signal.SIGCONT)

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(how)
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._process = None

    def __enter__(self) -> "ChromaServer":
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        if self._temporary:
            shutil.rmtree(self.folder, ignore_errors=True)
