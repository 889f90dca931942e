"""An embedding service of OpenAI's protocol: the built-in model behind it, faults on demand."""

import base64
import json
import struct
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from memory.embedding.builtin import BuiltinEmbedder

HANG_SECONDS = 120.0
"""A hanging answer gives up after that long, should nobody release it."""

_embedding = threading.Lock()


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it arrived.

    Attributes:
        path: of the address.
        key: what was sent as Bearer; "" for nothing.
        model: the model asked for.
        texts: what was to be embedded.

    """

    path: str
    key: str
    model: str
    texts: list[str]


@dataclass(frozen=True, slots=True)
class _Failure:
    status: int
    headers: Mapping[str, str]


class EmbeddingServer:
    """A throw-away service on a free loopback port; use it as a context manager.

    Args:
        models: names it knows; another one is answered with 404.
        key: the only key it accepts; "" accepts any.
        dimension: length of its vectors, at most 512; None for the model's own 512.

    Attributes:
        asked: every request to the embeddings path, in order, the refused ones included.
        repeats_input: whether a failure's body repeats what was sent, as some services do.

    """

    def __init__(
        self, models: tuple[str, ...] = ("test-embed",), *, key: str = "", dimension: int | None = None
    ) -> None:
        self.models = models
        self.key = key
        self.dimension = dimension
        self.asked: list[Asked] = []
        self.repeats_input = False
        self._failures: deque[_Failure] = deque()
        self._released = threading.Event()
        self._released.set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )

    @property
    def url(self) -> str:
        """The base address, up to the version."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def fail(self, status: int, times: int, *, headers: Mapping[str, str] | None = None) -> None:
        """Answer the next requests with a status; with 429, `headers` may hold Retry-After."""
        self._failures.extend([_Failure(status, dict(headers or {}))] * times)

    def recover(self) -> None:
        """Forget the failures that were asked for and not yet given."""
        self._failures.clear()

    def hang(self) -> None:
        """Take requests from now on and answer none of them."""
        self._released.clear()

    def release(self) -> None:
        """Go on answering."""
        self._released.set()

    def answer(self, path: str, headers: Mapping[str, str], body: bytes) -> tuple[int, dict[str, str], bytes]:
        """The answer to one request: status, headers, body."""
        if not path.endswith("/embeddings"):
            return 404, {}, _error("no such path", "not_found")
        asked = _read(path, headers, body)
        self.asked.append(asked)
        self._released.wait(HANG_SECONDS)
        repeated = f" for {asked.key}: {asked.texts}" if self.repeats_input else ""
        if self._failures:
            failure = self._failures.popleft()
            return failure.status, dict(failure.headers), _error("as asked for" + repeated, "scripted")
        if self.key and asked.key != self.key:
            return 401, {}, _error("the key is not valid" + repeated, "invalid_api_key")
        if asked.model not in self.models:
            return 404, {}, _error("the model does not exist" + repeated, "model_not_found")
        return 200, {}, json.dumps(self._embedded(asked, json.loads(body))).encode()

    def _embedded(self, asked: Asked, request: dict[str, Any]) -> dict[str, Any]:
        with _embedding:
            vectors = BuiltinEmbedder().embed_documents(asked.texts)
        data = [
            {
                "object": "embedding",
                "index": index,
                "embedding": _encoded(list(vector)[: self.dimension], request.get("encoding_format")),
            }
            for index, vector in enumerate(vectors)
        ]
        usage = {"prompt_tokens": len(asked.texts), "total_tokens": len(asked.texts)}
        return {"object": "list", "model": asked.model, "data": data, "usage": usage}

    def stop(self) -> None:
        """End it; hanging requests are answered first."""
        self._released.set()
        self._server.shutdown()
        self._thread.join(10)
        self._server.server_close()

    def __enter__(self) -> "EmbeddingServer":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def _handler(service: EmbeddingServer) -> type[BaseHTTPRequestHandler]:
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


def _read(path: str, headers: Mapping[str, str], body: bytes) -> Asked:
    request = json.loads(body)
    key = headers.get("Authorization", headers.get("authorization", "")).removeprefix("Bearer ").strip()
    given = request["input"]
    return Asked(path, key, request["model"], [given] if isinstance(given, str) else list(given))


def _encoded(vector: list[float], encoding: str | None) -> list[float] | str:
    if encoding != "base64":
        return vector
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def _error(message: str, code: str) -> bytes:
    return json.dumps({"error": {"message": message, "type": "invalid_request_error", "code": code}}).encode()
