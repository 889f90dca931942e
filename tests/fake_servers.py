"""What may answer at a wrong Chroma address: small HTTP servers on a free loopback port."""

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

GIVE_UP_SECONDS = 60.0
"""A server that never answers ends its answer after that long, should a test forget to leave it."""


@dataclass(frozen=True)
class Asked:
    """One request as it arrived, header names in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Answer:
    """What to answer. `pieces` are sent one by one, after the body."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    pieces: Iterator[bytes] | None = None


class FakeServer:
    """A server under way: its address, and what it was asked so far."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.asked: list[Asked] = []


@contextmanager
def serve(answer: Callable[[Asked], Answer]) -> Iterator[FakeServer]:
    """Answer every request by a function until the block is left."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(answer, lambda: fake))
    fake = FakeServer(int(server.server_address[1]))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()


def _handler(
    answer: Callable[[Asked], Answer], fake: Callable[[], FakeServer]
) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.0"  # a connection a request: none is left open at the end

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(self.command, self.path, headers, body)
            fake().asked.append(asked)
            given = answer(asked)
            try:
                self.send_response(given.status)
                self.send_header("Content-Type", given.content_type)
                for name, value in given.headers.items():
                    self.send_header(name, value)
                if given.pieces is None:
                    self.send_header("Content-Length", str(len(given.body)))
                self.end_headers()
                self.wfile.write(given.body)
                for piece in given.pieces or ():
                    self.wfile.write(piece)
                    self.wfile.flush()
            except ConnectionError:
                self.close_connection = True  # the caller has given up waiting

        do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = _answer  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            return

    return Handler


def web_server() -> Callable[[Asked], Answer]:
    """Some web site: a page for the root, a page of its own for what it does not have."""

    def answer(asked: Asked) -> Answer:
        is_there = asked.path == "/"
        page = b"<html><body>Welcome to our shop</body></html>"
        return Answer(200 if is_there else 404, page, "text/html")

    return answer


def one_page_application() -> Callable[[Asked], Answer]:
    """A web application that answers every address with its page."""
    page = b"<!doctype html><html><body><div id=app></div></body></html>"
    return lambda asked: Answer(200, page, "text/html")


def other_api() -> Callable[[Asked], Answer]:
    """Somebody else's JSON API, content with every request."""
    return lambda asked: Answer(200, b'{"status": "ok"}')


def old_chroma() -> Callable[[Asked], Answer]:
    """A Chroma server of before 1.0, which knows the first version of the API only."""

    def answer(asked: Asked) -> Answer:
        if asked.path == "/api/v1/heartbeat":
            return Answer(200, b'{"nanosecond heartbeat": 1700000000000000000}')
        if asked.path == "/api/v1/version":
            return Answer(200, b'"0.5.20"')
        return Answer(404, b'{"detail":"Not Found"}')

    return answer


def refusing(status: int) -> Callable[[Asked], Answer]:
    """A proxy that lets nobody through."""
    return lambda asked: Answer(status, b"<html><body>Go away</body></html>", "text/html")


def failing(status: int) -> Callable[[Asked], Answer]:
    """A server that fails, and repeats in its answer whatever it was sent, headers too."""

    def answer(asked: Asked) -> Answer:
        told = {
            "error": "InvalidArgumentError",
            "message": f"{asked.headers} {asked.body.decode('utf-8', 'replace')}",
        }
        return Answer(status, json.dumps(told).encode())

    return answer


def dripping(left: threading.Event) -> Callable[[Asked], Answer]:
    """A server that sends its answer a byte at a time and never comes to its end, until told to leave."""

    def pieces() -> Iterator[bytes]:
        for _ in range(int(GIVE_UP_SECONDS * 5)):
            yield b" "
            if left.wait(0.2):
                return

    return lambda asked: Answer(pieces=pieces())


def guarded(chroma_url: str, header: str, value: str) -> Callable[[Asked], Answer]:
    """A proxy in front of a real Chroma that lets through whoever sends the right header."""

    def answer(asked: Asked) -> Answer:
        if asked.headers.get(header.lower()) != value:
            return Answer(401, b'{"message": "who are you?"}')
        return passed_on(chroma_url, asked)

    return answer


def passed_on(chroma_url: str, asked: Asked) -> Answer:
    """What a real Chroma answers to a request."""
    address = urlsplit(chroma_url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port or 80, timeout=30)
    try:
        connection.request(asked.method, asked.path, asked.body, {"Content-Type": "application/json"})
        theirs = connection.getresponse()
        body = theirs.read()
        return Answer(theirs.status, body, theirs.headers.get("Content-Type", "application/json"))
    finally:
        connection.close()
