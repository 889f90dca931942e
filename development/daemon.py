"""Plays Dify's plugin daemon: starts the plugin process and speaks its protocol over stdin and stdout.

One JSON message a line each way. Calls back into Dify (its models) are answered by a `Workspace`, which has a
real embedding model behind Dify's protocol, and a language model that follows a script.
"""

import json
import os
import queue
import re
import subprocess
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from development.places import PLUGIN_PYTHON, PROJECT

PROVIDER = "customer_memory"
START_SECONDS = 60.0
CALL_SECONDS = 300.0

_SURROGATES = re.compile("[\ud800-\udfff]")

type Json = dict[str, Any]


class PluginFailure(Exception):
    """The plugin answered a call with an error, as Dify would show it on a node.

    Attributes:
        error_type: name of the exception's class in the plugin.
        message: its text.
        raw: the whole error message of the protocol.
    """

    def __init__(self, error_type: str, message: str, raw: Json) -> None:
        super().__init__(f"{error_type}: {message}")
        self.error_type = error_type
        self.message = message
        self.raw = raw

    @property
    def code(self) -> str:
        """The stable code in the brackets at the message's end."""
        return self.message.rpartition("[")[2].rstrip("]")


@dataclass
class ToolAnswer:
    """What a tool node sent: its text, its JSON objects, and its output variables by name."""

    text: str = ""
    json: list[Json] = field(default_factory=list)
    variables: Json = field(default_factory=dict)

    def __getitem__(self, variable: str) -> Any:
        return self.variables[variable]


@dataclass
class HttpAnswer:
    """What an endpoint sent. `chunks` are the pieces in which the body came."""

    status: int
    headers: dict[str, str]
    chunks: list[bytes]

    @property
    def body(self) -> bytes:
        """The whole body."""
        return b"".join(self.chunks)

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class Workspace:
    """Dify's side of the calls back: embedding models, and a language model with a script.

    Args:
        embed: makes one vector a text; None for the plugin's own built-in model, the only real one that comes
            without a download.
        script: answers the language model gives, in order; each is text, or an exception to report.

    Attributes:
        requests: what the plugin asked for, in order.
        refusal: text of an error to answer every embedding call with; None answers properly.
    """

    def __init__(
        self,
        embed: Callable[[list[str]], list[list[float]]] | None = None,
        script: list[str | Exception] | None = None,
    ) -> None:
        self._embed = embed or _builtin_embed
        self.script = deque(script or [])
        self.requests: list[Json] = []
        self.refusal: str | None = None

    def answer(self, call: Json) -> Iterator[tuple[str, str, Json | None]]:
        """The events that answer one call back: (event, message, data)."""
        self.requests.append(call)
        request = call["request"]
        if call["type"] == "text_embedding":
            yield self._embedding(request)
        elif call["type"] == "llm":
            yield self._completion(request)
        else:
            yield "error", f"no such service: {call['type']}", None
        yield "end", "", None

    def _embedding(self, request: Json) -> tuple[str, str, Json | None]:
        if self.refusal is not None:
            return "error", self.refusal, None
        usage = dict.fromkeys(("tokens", "total_tokens"), len(request["texts"])) | {
            "unit_price": "0",
            "price_unit": "0",
            "total_price": "0",
            "currency": "USD",
            "latency": 0.0,
        }
        vectors = self._embed(request["texts"])
        return "response", "", {"model": request["model"], "embeddings": vectors, "usage": usage}

    def _completion(self, request: Json) -> tuple[str, str, Json | None]:
        step = self.script.popleft() if self.script else RuntimeError("the script is at its end")
        if isinstance(step, Exception):
            return "error", str(step), None
        usage = dict.fromkeys(("prompt_tokens", "completion_tokens", "total_tokens"), 10) | dict.fromkeys(
            (
                "prompt_unit_price",
                "prompt_price_unit",
                "prompt_price",
                "completion_unit_price",
                "completion_price_unit",
                "completion_price",
                "total_price",
            ),
            "0",
        )
        delta = {
            "index": 0,
            "message": {"role": "assistant", "content": step, "tool_calls": []},
            "usage": usage | {"currency": "USD", "latency": 0.0},
            "finish_reason": "stop",
        }
        return "response", "", {"model": request["model"], "prompt_messages": [], "delta": delta}


class PluginProcess:
    """The plugin process, driven as the daemon drives it; use it as a context manager.

    Args:
        folder: the plugin's folder: the project, or an unpacked package.
        python: the interpreter of the environment it runs in.
        workspace: answers its calls back into Dify.
        environment: more environment variables for it.
    """

    def __init__(
        self,
        folder: Path = PROJECT,
        python: Path = PLUGIN_PYTHON,
        workspace: Workspace | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.folder, self.python = folder, python
        self.workspace = workspace or Workspace()
        self.environment = dict(environment or {})
        self.stdout: list[str] = []
        self.stderr: list[str] = []
        self.seconds_to_first_line = 0.0
        self.declaration: Json = {}
        self._sessions: dict[str, queue.Queue[Json]] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._writing = threading.Lock()
        self._first_line = threading.Event()
        self._readers: list[threading.Thread] = []

    # --- its life --------------------------------------------------------------------------------

    def start(self) -> None:
        """Start it and wait for its first line.

        Raises:
            RuntimeError: it ended, or sent nothing within 60 s.
        """
        started = time.monotonic()
        kept = ("PATH", "HOME", "LANG", "TMPDIR", "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
        self._process = subprocess.Popen(
            [self.python, "-m", "main"],
            cwd=self.folder,
            env={k: os.environ[k] for k in kept if k in os.environ}
            | {"INSTALL_METHOD": "local", "PYTHONDONTWRITEBYTECODE": "1"}
            | self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for read in (self._read_stdout, self._read_stderr):
            self._readers.append(threading.Thread(target=read, daemon=True))
            self._readers[-1].start()
        if not self._first_line.wait(START_SECONDS):
            self.stop()
            raise RuntimeError("the plugin sent no first line:\n" + "".join(self.stderr[-20:]))
        if not self.declaration:
            self.stop()
            raise RuntimeError("the plugin did not start:\n" + "".join(self.stderr[-20:]))
        self.seconds_to_first_line = time.monotonic() - started

    def stop(self) -> None:
        """End it in an orderly way."""
        self._end(kill=False)

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self._end(kill=True)

    @property
    def pid(self) -> int:
        """Its process id, while it runs."""
        if self._process is None:
            raise RuntimeError("the plugin does not run")
        return self._process.pid

    def _end(self, *, kill: bool) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        (process.kill if kill else process.terminate)()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for reader in self._readers:
            reader.join(10)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
        self._readers.clear()

    def __enter__(self) -> "PluginProcess":
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    # --- calls -----------------------------------------------------------------------------------

    def tool(
        self,
        name: str,
        parameters: Json,
        *,
        credentials: Json,
        conversation_id: str | None = None,
        provider: str = PROVIDER,
    ) -> ToolAnswer:
        """Call a tool node.

        Raises:
            PluginFailure: the node failed.
        """
        answer = ToolAnswer()
        data = {
            "type": "tool",
            "action": "invoke_tool",
            "user_id": str(uuid.uuid4()),
            "provider": provider,
            "tool": name,
            "credentials": credentials,
            "credential_type": "api-key",
            "tool_parameters": parameters,
        }
        for message in self.call(data, conversation_id=conversation_id):
            content = message["message"]
            if message["type"] == "text":
                answer.text += content["text"]
            elif message["type"] == "json":
                answer.json.append(content["json_object"])
            elif message["type"] == "variable":
                answer.variables[content["variable_name"]] = content["variable_value"]
        return answer

    def validate(self, credentials: Json) -> None:
        """Save a credentials form.

        Raises:
            PluginFailure: the form was refused; its message is what the builder reads.
        """
        data = {
            "type": "tool",
            "action": "validate_tool_credentials",
            "user_id": "",
            "provider": PROVIDER,
            "credentials": credentials,
        }
        for _ in self.call(data):
            pass

    def endpoint(
        self,
        method: str,
        path: str,
        *,
        settings: Json,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
    ) -> HttpAnswer:
        """Send a request to the endpoint group, as Dify's web server passes it on."""
        return self.raw_endpoint(raw_request(method, path, body, headers or {}), settings=settings)

    def raw_endpoint(self, raw: bytes, *, settings: Json) -> HttpAnswer:
        """Send the bytes of a request to the endpoint group."""
        answer = HttpAnswer(0, {}, [])
        for piece in self.streamed_endpoint(raw, settings=settings):
            if isinstance(piece, bytes):
                answer.chunks.append(piece)
            else:
                answer.status, answer.headers = piece
        return answer

    def streamed_endpoint(
        self, raw: bytes, *, settings: Json
    ) -> Iterator[tuple[int, dict[str, str]] | bytes]:
        """Send the bytes of a request to the endpoint group, and give the answer as it comes.

        Yields:
            Status and headers first, then the pieces of the body.

        Raises:
            PluginFailure, RuntimeError: as `call`.
        """
        data = {
            "type": "endpoint",
            "action": "invoke_endpoint",
            "user_id": "",
            "settings": settings,
            "raw_http_request": raw.hex(),
        }
        for message in self.call(data, endpoint_id="endpoint-1"):
            if "status" in message:
                yield message["status"], message.get("headers", {})
            if message.get("result"):
                yield bytes.fromhex(message["result"])

    def call(
        self, data: Json, *, conversation_id: str | None = None, endpoint_id: str | None = None
    ) -> Iterator[Json]:
        """Send one request and yield the answer's stream messages.

        Raises:
            PluginFailure: the plugin answered with an error.
            RuntimeError: it ended, or did not answer within 300 s.
        """
        session = uuid.uuid4().hex
        answers: queue.Queue[Json] = queue.Queue()
        self._sessions[session] = answers
        try:
            self._send(
                {
                    "session_id": session,
                    "event": "request",
                    "conversation_id": conversation_id,
                    "message_id": None,
                    "app_id": "app-1",
                    "endpoint_id": endpoint_id,
                    "data": data,
                }
            )
            yield from self._answers(session, answers)
        finally:
            del self._sessions[session]

    def _answers(self, session: str, answers: "queue.Queue[Json]") -> Iterator[Json]:
        while True:
            try:
                data = answers.get(timeout=CALL_SECONDS)
            except queue.Empty:
                raise RuntimeError("the plugin did not answer in time") from None
            kind, content = data["type"], data.get("data") or {}
            if kind == "end":
                return
            if kind == "error":
                raise PluginFailure(content.get("error_type", ""), content.get("message", ""), content)
            if kind == "gone":
                raise RuntimeError("the plugin process ended during a call")
            if kind == "invoke":
                threading.Thread(target=self._call_back, args=(session, content), daemon=True).start()
            else:
                yield content

    def _call_back(self, session: str, call: Json) -> None:
        for event, message, data in self.workspace.answer(call):
            self._send(
                {
                    "session_id": session,
                    "event": "backwards_response",
                    "data": {
                        "backwards_request_id": call["backwards_request_id"],
                        "event": event,
                        "message": message,
                        "data": data,
                    },
                }
            )

    def _send(self, message: Json) -> None:
        process = self._process
        if process is None or process.stdin is None:
            raise RuntimeError("the plugin does not run")
        # As Dify's own writer does it: a lone surrogate becomes the replacement character.
        text = _SURROGATES.sub("\ufffd", json.dumps(message, ensure_ascii=False))
        line = text.encode() + b"\n"
        with self._writing:
            process.stdin.write(line)
            process.stdin.flush()

    # --- what it says ----------------------------------------------------------------------------

    def _read_stdout(self) -> None:
        process = self._process
        if process is None or process.stdout is None:
            return
        for raw in iter(process.stdout.readline, b""):
            line = raw.decode("utf-8", "replace").strip()
            if not line:
                continue
            message = json.loads(line)
            if not self.declaration and "event" not in message:
                self.declaration = message
                self._first_line.set()
                continue
            self.stdout.append(line)
            waiting = self._sessions.get(message.get("session_id") or "")
            if message.get("event") == "session" and waiting is not None:
                waiting.put(message["data"])
        self._first_line.set()
        for waiting in list(self._sessions.values()):
            waiting.put({"type": "gone"})

    def _read_stderr(self) -> None:
        process = self._process
        if process is None or process.stderr is None:
            return
        for raw in iter(process.stderr.readline, b""):
            self.stderr.append(raw.decode("utf-8", "replace"))


def raw_request(method: str, path: str, body: bytes, headers: Mapping[str, str]) -> bytes:
    """The bytes of a request as Dify's web server writes them."""
    lines = [f"{method} {path} HTTP/1.1", "Host: dify.example.com", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode("utf-8") + b"\r\n\r\n" + body


def _builtin_embed(texts: list[str]) -> list[list[float]]:
    from memory.embedding.builtin import BuiltinEmbedder

    return [list(vector) for vector in BuiltinEmbedder().embed_documents(texts)]
