"""A language model's service of OpenAI's protocol that follows a script: answers, failures, silence."""

import json
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType

HANG_SECONDS = 120.0
"""A hanging answer gives up after that long, should nobody release it."""
TOKENS = 25
"""What every answer says it took, prompt and answer together."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it arrived.

    Attributes:
        path: of the address.
        key: what was sent as Bearer; "" for nothing.
        model: the model asked for.
        system, user: the two messages of the prompt.
        body: all of it, as it came.
    """

    path: str
    key: str
    model: str
    system: str
    user: str
    body: str


@dataclass(frozen=True, slots=True)
class _Step:
    status: int = 200
    text: str | None = ""
    finish_reason: str = "stop"
    headers: Mapping[str, str] | None = None


class ChatServer:
    """A throw-away service on a free loopback port; use it as a context manager.

    Args:
        models: names it knows; another one is answered with 404.
        key: the only key it accepts; "" accepts any.

    Attributes:
        asked: every request to the chat path, in order, the refused ones included.
        answers: gives the answer to a prompt once the script is at its end; None answers 500 then.
        repeats_input: whether a failure's body repeats what was sent, as some services do.
        pause_seconds: how long it takes over each answer.
    """

    def __init__(self, models: tuple[str, ...] = ("test-chat",), *, key: str = "") -> None:
        self.models = models
        self.key = key
        self.asked: list[Asked] = []
        self.answers: Callable[[str], str] | None = None
        self.repeats_input = False
        self.pause_seconds = 0.0
        self._script: deque[_Step] = deque()
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

    # --- the script ------------------------------------------------------------------------------

    def say(self, *answers: str) -> None:
        """Answer the next requests with these texts, in order."""
        self._script.extend(_Step(text=text) for text in answers)

    def fail(self, status: int, times: int = 1, *, headers: Mapping[str, str] | None = None) -> None:
        """Answer the next requests with a status; with 429, `headers` may hold Retry-After."""
        self._script.extend([_Step(status, headers=headers)] * times)

    def hold_back(self, text: str = "") -> None:
        """Answer the next request as a content filter does, with what was said until then."""
        self._script.append(_Step(text=text, finish_reason="content_filter"))

    def say_nothing(self) -> None:
        """Answer the next request without a text."""
        self._script.append(_Step(text=None))

    def forget_script(self) -> None:
        """Drop the steps that were not taken yet."""
        self._script.clear()

    def hang(self) -> None:
        """Take requests from now on and answer none of them."""
        self._released.clear()

    def release(self) -> None:
        """Go on answering."""
        self._released.set()

    # --- its life --------------------------------------------------------------------------------

    def answer(self, path: str, headers: Mapping[str, str], body: bytes) -> tuple[int, dict[str, str], bytes]:
        """The answer to one request: status, headers, body."""
        if not path.endswith("/chat/completions"):
            return 404, {}, _error("no such path", "not_found")
        asked = _read(path, headers, body)
        self.asked.append(asked)
        self._released.wait(HANG_SECONDS)
        self._ended.wait(self.pause_seconds)
        repeated = f" for {asked.key}: {asked.body}" if self.repeats_input else ""
        if self.key and asked.key != self.key:
            return 401, {}, _error("the key is not valid" + repeated, "invalid_api_key")
        if asked.model not in self.models:
            return 404, {}, _error("the model does not exist" + repeated, "model_not_found")
        step = self._next(asked)
        if step.status != 200:
            return step.status, dict(step.headers or {}), _error("as asked for" + repeated, "scripted")
        return 200, {}, _completion(asked.model, step)

    def _next(self, asked: Asked) -> _Step:
        if self._script:
            return self._script.popleft()
        return _Step(500) if self.answers is None else _Step(text=self.answers(asked.user))

    def stop(self) -> None:
        """End it; hanging requests are answered first."""
        self._released.set()
        self._ended.set()
        self._server.shutdown()
        self._thread.join(10)
        self._server.server_close()

    def __enter__(self) -> "ChatServer":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def _handler(service: ChatServer) -> type[BaseHTTPRequestHandler]:
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
    said = {message["role"]: message["content"] for message in request["messages"]}
    return Asked(
        path, key, request["model"], said.get("system", ""), said.get("user", ""), body.decode("utf-8")
    )


def _completion(model: str, step: _Step) -> bytes:
    message = {"role": "assistant", "content": step.text}
    choice = {"index": 0, "message": message, "finish_reason": step.finish_reason, "logprobs": None}
    usage = {"prompt_tokens": TOKENS - 5, "completion_tokens": 5, "total_tokens": TOKENS}
    answer = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": model,
        "choices": [choice],
        "usage": usage,
    }
    return json.dumps(answer).encode()


def _error(message: str, code: str) -> bytes:
    return json.dumps({"error": {"message": message, "type": "invalid_request_error", "code": code}}).encode()
