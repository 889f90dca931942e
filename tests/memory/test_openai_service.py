"""Every error of the openai client becomes one of ours, for the embedder and for the language model."""

import inspect

import httpx2
import openai
import pytest

from memory import errors
from memory.openai_service import EMBEDDER_FAULTS, LANGUAGE_MODEL_FAULTS, Faults, translate

OPENAI = {
    "APIConnectionError": "unreachable",
    "APIError": "failed",
    "APIResponseValidationError": "failed",
    "APIStatusError": "failed",
    "APITimeoutError": "timed_out",
    "AuthenticationError": "refused",
    "BadRequestError": "input_refused",
    "ConflictError": "failed",
    "ContentFilterFinishReasonError": "failed",
    "InternalServerError": "failed",
    "InvalidWebhookSignatureError": "failed",
    "LengthFinishReasonError": "failed",
    "NotFoundError": "refused",
    "OAuthError": "refused",
    "OpenAIError": "failed",
    "PermissionDeniedError": "refused",
    "RateLimitError": "rate_limited",
    "UnprocessableEntityError": "input_refused",
    "WebSocketConnectionClosedError": "failed",
    "WebSocketQueueFullError": "failed",
}
"""The client's exceptions, and which of `Faults` each is on purpose."""


def _exceptions() -> dict[str, type[Exception]]:
    classes = inspect.getmembers(openai, inspect.isclass)
    return {name: c for name, c in classes if issubclass(c, Exception) and not name.startswith("_")}


def test_every_error_of_the_openai_client_is_mapped() -> None:
    """Where the client grows an error we have not thought of, this fails."""
    assert set(_exceptions()) == set(OPENAI)


@pytest.mark.parametrize(
    "faults", [EMBEDDER_FAULTS, LANGUAGE_MODEL_FAULTS], ids=["embedder", "language model"]
)
@pytest.mark.parametrize(("name", "fault"), OPENAI.items())
def test_an_error_becomes_ours(name: str, fault: str, faults: Faults) -> None:
    """Each class leads to the error chosen for it, with the model's name and no word of its text."""
    theirs = _exceptions()[name]
    error = theirs.__new__(theirs, "a text with hunter2")
    if isinstance(error, openai.APIStatusError):
        error.status_code = 418
    ours = translate(error, "model-1", faults)
    assert type(ours) is getattr(faults, fault)
    assert "model-1" in ours.message
    assert "hunter2" not in str(ours)


def test_a_request_that_is_too_large_is_refused_input() -> None:
    """413 has no class of its own in the client."""
    request = httpx2.Request("POST", "http://llm.example.com")
    response = httpx2.Response(413, request=request)
    error = openai.APIStatusError("hunter2", response=response, body=None)
    assert type(translate(error, "m", EMBEDDER_FAULTS)) is errors.TextRefused


@pytest.mark.parametrize("error", [ValueError("hunter2"), KeyError("hunter2"), httpx2.ReadError("hunter2")])
def test_an_error_of_nobody_is_a_failure_of_the_service(error: Exception) -> None:
    """What a wrong server's answer leads to inside the client is no error of the caller."""
    ours = translate(error, "m", EMBEDDER_FAULTS)
    assert type(ours) is errors.EmbedderFailed
    assert "hunter2" not in str(ours)
