"""The language model behind a service that speaks OpenAI's protocol."""

from memory.extraction.model import Completion
from memory.openai_service import create_answer
from memory.settings import OpenAICompatibleSettings


class OpenAICompatibleLanguageModel:
    """A model served over OpenAI's chat API.

    Args:
        settings: address, model, key and time limit.
    """

    def __init__(self, settings: OpenAICompatibleSettings) -> None:
        self._settings = settings

    def complete(self, system: str, user: str) -> Completion:
        """See `memory.extraction.model.LanguageModel`."""
        return Completion(*create_answer(self._settings, system, user))
