"""Embedding services that speak OpenAI's protocol; the one module that knows the openai client."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from memory.embedding.model import EmbedderIdentity, Source, Vector
from memory.errors import (
    EmbedderFailed,
    EmbedderRateLimited,
    EmbedderRefused,
    EmbedderTimeout,
    EmbedderUnreachable,
    MemoryFault,
    TextRefused,
)
from memory.settings import OpenAICompatibleSettings

if TYPE_CHECKING:
    from openai import OpenAI

BATCH = 64
"""Texts in one request; the common servers accept at least this many."""
RETRIES = 3
"""Times a request is sent again after 429, 5xx or a broken connection; the client waits 0.5 s, then twice as
long each time up to 8 s, with jitter, or as long as Retry-After says."""
MAX_CLIENTS = 16

_clients: OrderedDict[OpenAICompatibleSettings, OpenAI] = OrderedDict()
_clients_lock = threading.Lock()


class OpenAICompatibleEmbedder:
    """A model served over OpenAI's embeddings API.

    Args:
        settings: address, model, key and time limit.

    """

    def __init__(self, settings: OpenAICompatibleSettings) -> None:
        self._settings = settings

    @property
    def identity(self) -> EmbedderIdentity:
        """Which model it is."""
        return EmbedderIdentity(Source.OPENAI_COMPATIBLE, "", self._settings.model)

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """See `memory.embedding.Embedder`."""
        vectors: list[Vector] = []
        for start in range(0, len(texts), BATCH):
            vectors.extend(self._embed(list(texts[start : start + BATCH])))
        return vectors

    def embed_query(self, text: str) -> Vector:
        """See `memory.embedding.Embedder`."""
        return self.embed_documents([text])[0]

    def _embed(self, texts: list[str]) -> list[Vector]:
        try:
            answer = _client(self._settings).embeddings.create(
                input=texts, model=self._settings.model, encoding_format="float"
            )
            ordered = sorted(answer.data, key=lambda item: item.index)
            vectors: list[Vector] = [item.embedding for item in ordered]
        except Exception as error:  # openai's errors, and what a wrong server's answer leads to
            raise translate(error, self._settings.model) from None
        if len(vectors) != len(texts) or not all(vectors):
            raise EmbedderFailed(model=self._settings.model)
        return vectors


def translate(error: Exception, model: str) -> MemoryFault:
    """Our error for one of the openai client's. Its text is never looked at nor passed on.

    Args:
        error: what the client raised.
        model: the model's name, for the message.

    """
    import openai

    table: list[tuple[type[Exception], type[MemoryFault]]] = [
        (openai.APITimeoutError, EmbedderTimeout),
        (openai.APIConnectionError, EmbedderUnreachable),
        (openai.AuthenticationError, EmbedderRefused),
        (openai.PermissionDeniedError, EmbedderRefused),
        (openai.NotFoundError, EmbedderRefused),
        (openai.RateLimitError, EmbedderRateLimited),
        (openai.BadRequestError, TextRefused),
        (openai.UnprocessableEntityError, TextRefused),
    ]
    for theirs, ours in table:
        if isinstance(error, theirs):
            return ours(model=model)
    if isinstance(error, openai.APIStatusError) and error.status_code == 413:
        return TextRefused(model=model)
    return EmbedderFailed(model=model)


def _client(settings: OpenAICompatibleSettings) -> OpenAI:
    """A client for these settings, kept for the life of the process; nothing comes from the environment."""
    from openai import DefaultHttpx2Client, Omit, OpenAI

    unsent: Any = {"OpenAI-Organization": Omit(), "OpenAI-Project": Omit()}
    with _clients_lock:
        client = _clients.pop(settings, None)
        if client is None:
            client = OpenAI(
                api_key=settings.api_key or "none",
                base_url=settings.base_url,
                admin_api_key="",
                organization="",
                project="",
                webhook_secret="",
                default_headers=unsent,
                timeout=settings.timeout_seconds,
                max_retries=RETRIES,
                http_client=DefaultHttpx2Client(trust_env=False),
            )
        _clients[settings] = client
        if len(_clients) > MAX_CLIENTS:
            _clients.popitem(last=False)[1].close()
        return client
