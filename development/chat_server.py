"""A language model's service of OpenAI's protocol that follows a script: answers, failures, silence."""

import json
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from development.openai_protocol import HANG_SECONDS, Answer, OpenAIService, bearer, error_body

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


class ChatServer(OpenAIService):
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
        super().__init__()
        self.models = models
        self.key = key
        self.asked: list[Asked] = []
        self.answers: Callable[[str], str] | None = None
        self.repeats_input = False
        self.pause_seconds = 0.0
        self._script: deque[_Step] = deque()

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

    def answer(self, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """The answer to one request: status, headers, body."""
        if not path.endswith("/chat/completions"):
            return 404, {}, error_body("no such path", "not_found")
        asked = _read(path, headers, body)
        self.asked.append(asked)
        self._released.wait(HANG_SECONDS)
        self._ended.wait(self.pause_seconds)
        repeated = f" for {asked.key}: {asked.body}" if self.repeats_input else ""
        if self.key and asked.key != self.key:
            return 401, {}, error_body("the key is not valid" + repeated, "invalid_api_key")
        if asked.model not in self.models:
            return 404, {}, error_body("the model does not exist" + repeated, "model_not_found")
        step = self._next(asked)
        if step.status != 200:
            return step.status, dict(step.headers or {}), error_body("as asked for" + repeated, "scripted")
        return 200, {}, _completion(asked.model, step)

    def _next(self, asked: Asked) -> _Step:
        if self._script:
            return self._script.popleft()
        return _Step(500) if self.answers is None else _Step(text=self.answers(asked.user))


def _read(path: str, headers: Mapping[str, str], body: bytes) -> Asked:
    request = json.loads(body)
    said = {message["role"]: message["content"] for message in request["messages"]}
    return Asked(
        path,
        bearer(headers),
        request["model"],
        said.get("system", ""),
        said.get("user", ""),
        body.decode("utf-8"),
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
