"""Stands for Dify's web server in front of the endpoint group: HTTP outside, the plugin's protocol inside."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType

from development.daemon import Json, PluginFailure, PluginProcess, raw_request

CUT_BYTES = 10_485_760
"""Dify cuts a body at this length in silence, and rewrites its Content-Length."""
HOOK = "/e/hook-1"
"""Dify gives each endpoint group an address of its own, which the plugin does not see."""

_NOT_PASSED_ON = {"connection", "content-length", "host", "transfer-encoding", "x-forwarded-for", "x-real-ip"}


class HttpFront:
    """A web server on a free loopback port; use it as a context manager.

    Args:
        plugin: the running plugin process that answers.
        settings: the endpoint's settings, as an administrator saved them.
    """

    def __init__(self, plugin: PluginProcess, settings: Json) -> None:
        self.plugin, self.settings = plugin, settings
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )

    @property
    def url(self) -> str:
        """The address of the endpoint group, as Dify shows it."""
        return f"http://127.0.0.1:{self._server.server_address[1]}{HOOK}"

    def stop(self) -> None:
        """End it."""
        self._server.shutdown()
        self._thread.join(10)
        self._server.server_close()

    def __enter__(self) -> "HttpFront":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def _handler(front: HttpFront) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # lines of progress are small and must not wait for each other

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))[:CUT_BYTES]
            if not self.path.startswith(f"{HOOK}/"):
                self._answer_whole(404, b"404 page not found")
                return
            headers = {k: v for k, v in self.headers.items() if k.casefold() not in _NOT_PASSED_ON}
            raw = raw_request(self.command, self.path.removeprefix(HOOK), body, headers)
            pieces = front.plugin.streamed_endpoint(raw, settings=front.settings)
            try:
                first = next(pieces)
            except (PluginFailure, RuntimeError, StopIteration):
                self._answer_whole(500, b"Internal Server Error")
                return
            if isinstance(first, tuple):
                self._answer(*first, pieces)

        def _answer(
            self, status: int, headers: dict[str, str], pieces: Iterator[tuple[int, dict[str, str]] | bytes]
        ) -> None:
            self.send_response(status)
            for name, value in headers.items():
                if name.casefold() not in _NOT_PASSED_ON:
                    self.send_header(name, value)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.close_connection = True
            try:
                for piece in pieces:
                    if isinstance(piece, bytes):
                        self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                self.wfile.write(b"0\r\n\r\n")
            except (PluginFailure, RuntimeError, ConnectionError):
                return  # the answer stays without its end: the caller can tell that it was cut
            self.close_connection = False

        def _answer_whole(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "text/plain")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_DELETE = do_OPTIONS = do_POST  # noqa: N815 - the names are the library's

        def log_message(self, format: str, *args: object) -> None:
            return

    return Handler
