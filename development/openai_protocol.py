"""What our stand-ins for services of OpenAI's protocol share: life on a loopback port, and errors."""

import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

HANG_SECONDS = 120.0
"""A hanging answer gives up after that long, should nobody release it."""

type Answer = tuple[int, dict[str, str], bytes]
"""Status, headers, body."""


class OpenAIService:
    """A throw-away service on a free loopback port; use it as a context manager.

    A subclass says what is answered.
    """

    def __init__(self) -> None:
        self._released = threading.Event()
        self._released.set()
        self._ended = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )

    @property
    def url(self) -> str:
        """The base address, up to the version."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def answer(self, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """The answer to one request."""
        raise NotImplementedError

    def hang(self) -> None:
        """Take requests from now on and answer none of them."""
        self._released.clear()

    def release(self) -> None:
        """Go on answering."""
        self._released.set()

    def stop(self) -> None:
        """End it; hanging requests are answered first."""
        self._released.set()
        self._ended.set()
        self._server.shutdown()
        self._thread.join(10)
        self._server.server_close()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def bearer(headers: Mapping[str, str]) -> str:
    """The key a request was sent with; "" for none."""
    return headers.get("Authorization", headers.get("authorization", "")).removeprefix("Bearer ").strip()


def error_body(message: str, code: str) -> bytes:
    """A failure as these services word it."""
    return json.dumps({"error": {"message": message, "type": "invalid_request_error", "code": code}}).encode()


def _handler(service: OpenAIService) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.0"  # a connection a request: none is left open at the end

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, headers, answer = service.answer(self.path, dict(self.headers.items()), body)
            try:
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", **headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)
            except ConnectionError:
                self.close_connection = True  # the caller has given up waiting

        def log_message(self, format: str, *args: object) -> None:
            return

    return Handler
