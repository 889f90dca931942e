"""A language model behind OpenAI's protocol: its answer, its tokens, and each of its troubles as ours."""

from collections.abc import Iterator

import pytest

from development.chat_server import TOKENS, ChatServer
from memory.errors import LanguageModelTimeout, LanguageModelUnreachable
from memory.extraction.model import Completion
from memory.extraction.openai_compatible import OpenAICompatibleLanguageModel
from memory.settings import OpenAICompatibleSettings


@pytest.fixture
def chat() -> Iterator[ChatServer]:
    """A language model's service."""
    with ChatServer() as server:
        yield server


def model_at(url: str, *, seconds: float = 30.0) -> OpenAICompatibleLanguageModel:
    """The model at an address."""
    return OpenAICompatibleLanguageModel(
        OpenAICompatibleSettings(base_url=url, model="test-chat", timeout_seconds=seconds, purpose="llm")
    )


def test_the_answer_comes_as_it_is_with_its_tokens(chat: ChatServer) -> None:
    """Nothing is trimmed or read here, and both parts of the prompt arrive."""
    chat.say("  {} 你好 \n")

    assert model_at(chat.url).complete("Rules", "Material") == Completion("  {} 你好 \n", TOKENS)
    assert (chat.asked[0].system, chat.asked[0].user) == ("Rules", "Material")


def test_building_one_opens_no_connection() -> None:
    """The address is looked at when the model is asked."""
    with ChatServer() as server:
        address = server.url
    model = model_at(address)

    with pytest.raises(LanguageModelUnreachable):
        model.complete("Rules", "Material")


def test_a_service_that_hangs_is_given_up_and_not_asked_again(chat: ChatServer) -> None:
    """The time limit holds for all of it, and the service has the first request still to do."""
    chat.hang()

    with pytest.raises(LanguageModelTimeout) as failure:
        model_at(chat.url, seconds=0.5).complete("Rules", "Material")
    assert failure.value.retryable
    assert len(chat.asked) == 1
