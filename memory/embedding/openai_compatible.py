"""The embedder behind a service that speaks OpenAI's protocol (OpenAI, Ollama, vLLM, Xinference, …)."""

from collections.abc import Sequence

from memory.embedding.model import EmbedderIdentity, Source, Vector
from memory.openai_service import create_embeddings
from memory.settings import OpenAICompatibleSettings

BATCH = 64
"""Texts in one request; the common servers accept at least this many."""


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
            vectors.extend(create_embeddings(self._settings, list(texts[start : start + BATCH])))
        return vectors

    def embed_query(self, text: str) -> Vector:
        """See `memory.embedding.Embedder`."""
        return self.embed_documents([text])[0]
