"""An embedding service of OpenAI's protocol: the built-in model behind it, faults on demand."""

import base64
import json
import struct
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from development.openai_protocol import HANG_SECONDS, Answer, OpenAIService, bearer, error_body
from memory.embedding import Embedder
from memory.embedding.builtin import BuiltinEmbedder

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


class EmbeddingServer(OpenAIService):
    """A throw-away service on a free loopback port; use it as a context manager.

    Args:
        models: names it knows; another one is answered with 404.
        key: the only key it accepts; "" accepts any.
        dimension: length of its vectors, at most 512; None for the model's own 512.
        embedder: what makes the vectors; None for the built-in model.

    Attributes:
        asked: every request to the embeddings path, in order, the refused ones included.
        repeats_input: whether a failure's body repeats what was sent, as some services do.
    """

    def __init__(
        self,
        models: tuple[str, ...] = ("test-embed",),
        *,
        key: str = "",
        dimension: int | None = None,
        embedder: Embedder | None = None,
    ) -> None:
        super().__init__()
        self.models = models
        self.key = key
        self.dimension = dimension
        self.asked: list[Asked] = []
        self._embedder = embedder or BuiltinEmbedder()
        self.repeats_input = False
        self._failures: deque[_Failure] = deque()

    def fail(self, status: int, times: int, *, headers: Mapping[str, str] | None = None) -> None:
        """Answer the next requests with a status; with 429, `headers` may hold Retry-After."""
        self._failures.extend([_Failure(status, dict(headers or {}))] * times)

    def recover(self) -> None:
        """Forget the failures that were asked for and not yet given."""
        self._failures.clear()

    def answer(self, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """The answer to one request: status, headers, body."""
        if not path.endswith("/embeddings"):
            return 404, {}, error_body("no such path", "not_found")
        asked = _read(path, headers, body)
        self.asked.append(asked)
        self._released.wait(HANG_SECONDS)
        repeated = f" for {asked.key}: {asked.texts}" if self.repeats_input else ""
        if self._failures:
            failure = self._failures.popleft()
            return failure.status, dict(failure.headers), error_body("as asked for" + repeated, "scripted")
        if self.key and asked.key != self.key:
            return 401, {}, error_body("the key is not valid" + repeated, "invalid_api_key")
        if asked.model not in self.models:
            return 404, {}, error_body("the model does not exist" + repeated, "model_not_found")
        return 200, {}, json.dumps(self._embedded(asked, json.loads(body))).encode()

    def _embedded(self, asked: Asked, request: dict[str, Any]) -> dict[str, Any]:
        with _embedding:
            vectors = self._embedder.embed_documents(asked.texts)
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


def _read(path: str, headers: Mapping[str, str], body: bytes) -> Asked:
    request = json.loads(body)
    given = request["input"]
    return Asked(path, bearer(headers), request["model"], [given] if isinstance(given, str) else list(given))


def _encoded(vector: list[float], encoding: str | None) -> list[float] | str:
    if encoding != "base64":
        return vector
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
