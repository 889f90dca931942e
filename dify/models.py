"""The models a call can use: built in, behind a service of the settings, or of the Dify workspace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dify.settings import Settings
from memory.embedding import BUILTIN, Embedder, EmbedderIdentity, Source
from memory.embedding.builtin import BuiltinEmbedder
from memory.embedding.model import is_vector
from memory.embedding.openai_compatible import OpenAICompatibleEmbedder
from memory.errors import (
    EmbedderFailed,
    EmbedderMismatch,
    EmbedderUnavailable,
    LanguageModelFailed,
)
from memory.extraction.model import Completion, LanguageModel
from memory.extraction.openai_compatible import OpenAICompatibleLanguageModel

if TYPE_CHECKING:
    from dify_plugin.core.runtime import Session

BATCH = 16
"""Texts a call back into Dify; every provider accepts that many."""


class SettingsEmbedders:
    """Which embedder the settings, the node and the session of a call lead to.

    Args:
        settings: the form.
        selected: what the node's model selector holds; None where nothing was selected.
        session: the way back into Dify; None where there is none.
    """

    def __init__(self, settings: Settings, selected: dict[str, Any] | None, session: Session | None) -> None:
        self._settings = settings
        self._selected = selected
        self._session = session

    def chosen(self) -> EmbedderIdentity | None:
        """The node's model, else the service of the settings; None where both are left at their default."""
        if self._selected is not None:
            return EmbedderIdentity(
                Source.DIFY, str(self._selected["provider"]), str(self._selected["model"])
            )
        if self._settings.embedding is not None:
            return OpenAICompatibleEmbedder(self._settings.embedding).identity
        return None

    def open(self, identity: EmbedderIdentity) -> Embedder:
        """An embedder for a model, without reaching it yet.

        Raises:
            EmbedderMismatch: the settings lead to another model.
            EmbedderUnavailable: it is one of the workspace, and there is no way back into Dify.
        """
        if identity.source is Source.BUILTIN:
            return BuiltinEmbedder()
        if identity.source is Source.DIFY:
            if self._session is None:
                raise EmbedderUnavailable(model=str(identity))
            return DifyEmbedder(identity, self._session)
        if self._settings.embedding is None:
            raise EmbedderMismatch(stored=str(identity), offered=str(BUILTIN))
        return OpenAICompatibleEmbedder(self._settings.embedding)


class DifyEmbedder:
    """An embedding model of the Dify workspace, reached through the session of the call.

    Args:
        identity: provider and model.
        session: the way back into Dify.
    """

    def __init__(self, identity: EmbedderIdentity, session: Session) -> None:
        self._identity = identity
        self._session = session

    @property
    def identity(self) -> EmbedderIdentity:
        """Which model it is."""
        return self._identity

    def embed_documents(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """See `memory.embedding.Embedder`."""
        vectors: list[Sequence[float]] = []
        for start in range(0, len(texts), BATCH):
            vectors.extend(self._embed(list(texts[start : start + BATCH]), for_query=False))
        return vectors

    def embed_query(self, text: str) -> Sequence[float]:
        """See `memory.embedding.Embedder`."""
        return self._embed([text], for_query=True)[0]

    def _embed(self, texts: list[str], *, for_query: bool) -> list[list[float]]:
        from dify_plugin.entities.model import EmbeddingInputType
        from dify_plugin.entities.model.text_embedding import TextEmbeddingModelConfig

        config = TextEmbeddingModelConfig(provider=self._identity.provider, model=self._identity.model)
        use = EmbeddingInputType.QUERY if for_query else EmbeddingInputType.DOCUMENT
        try:
            answer = self._session.model.text_embedding.invoke(config, texts, use)
            vectors = [list(map(float, vector)) for vector in answer.embeddings]
        except Exception:  # Dify reports every failure as a bare Exception with text of its own
            raise EmbedderFailed(model=str(self._identity)) from None
        if len(vectors) != len(texts) or not all(map(is_vector, vectors)):
            raise EmbedderFailed(model=str(self._identity))
        return vectors


def language_model(
    settings: Settings, selected: dict[str, Any] | None, session: Session | None
) -> LanguageModel | None:
    """The language model that extracts facts: the one selected, else the service of the settings.

    Args:
        settings: the form.
        selected: what the model selector holds; None where nothing was selected.
        session: the way back into Dify.

    Returns:
        The model, not reached yet; None where none was chosen.
    """
    if selected is not None and session is not None:
        return DifyLanguageModel(selected, session)
    if settings.language_model is not None:
        return OpenAICompatibleLanguageModel(settings.language_model)
    return None


class DifyLanguageModel:
    """A language model of the Dify workspace, reached through the session of the call.

    Args:
        selected: what the model selector holds: provider, model, mode, completion_params.
        session: the way back into Dify.
    """

    def __init__(self, selected: dict[str, Any], session: Session) -> None:
        self._selected = selected
        self._session = session

    def complete(self, system: str, user: str) -> Completion:
        """See `memory.extraction.model.LanguageModel`."""
        from dify_plugin.entities.model.llm import LLMModelConfig
        from dify_plugin.entities.model.message import SystemPromptMessage, UserPromptMessage

        name = f"{self._selected['provider']}/{self._selected['model']}"
        try:
            config = LLMModelConfig(
                provider=str(self._selected["provider"]),
                model=str(self._selected["model"]),
                mode=str(self._selected.get("mode") or "chat"),
                completion_params=dict(self._selected.get("completion_params") or {}),
            )
            answer = self._session.model.llm.invoke(
                model_config=config,
                prompt_messages=[
                    SystemPromptMessage(content=system),
                    UserPromptMessage(content=user),
                ],
                stream=False,
            )
            text = _plain_text(answer.message.content)
            tokens = int(answer.usage.total_tokens)
        except Exception:  # Dify reports every failure as a bare Exception with text of its own
            raise LanguageModelFailed(model=name) from None
        if not text.strip():
            raise LanguageModelFailed(model=name)
        return Completion(text, tokens)


def _plain_text(content: Any) -> str:
    """The text of an answer, which may come in parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(str(getattr(part, "data", "")) for part in parts)
