"""Services that speak OpenAI's protocol; the one module that knows the openai client.

Clients are kept for the life of the process, one for each distinct address, key and time limit. Nothing comes
from the environment: neither keys nor proxies.
"""

from __future__ import annotations

import random
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memory import errors
from memory.clock import Deadline
from memory.embedding.model import is_vector
from memory.errors import MemoryFault
from memory.service_circuit import ServiceCircuit, ServiceCircuits
from memory.settings import OpenAICompatibleSettings

if TYPE_CHECKING:
    from openai import OpenAI, Timeout

RETRIES = 3
"""Times a request is sent again after 429, 5xx or a broken connection."""
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 8.0
CONNECT_SECONDS = 5.0
"""Of a request's time, how long making the connection may take."""
MAX_CLIENTS = 16

embedding_circuits = ServiceCircuits()
"""By address and model, since behind one address there may be a machine for each model."""

_clients: OrderedDict[OpenAICompatibleSettings, OpenAI] = OrderedDict()
_clients_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Faults:
    """Which of our errors a service's failures become; each takes the model's name."""

    timed_out: type[MemoryFault]
    unreachable: type[MemoryFault]
    refused: type[MemoryFault]
    rate_limited: type[MemoryFault]
    input_refused: type[MemoryFault]
    failed: type[MemoryFault]


EMBEDDER_FAULTS = Faults(
    errors.EmbedderTimeout,
    errors.EmbedderUnreachable,
    errors.EmbedderRefused,
    errors.EmbedderRateLimited,
    errors.TextRefused,
    errors.EmbedderFailed,
)
LANGUAGE_MODEL_FAULTS = Faults(
    errors.LanguageModelTimeout,
    errors.LanguageModelUnreachable,
    errors.LanguageModelRefused,
    errors.LanguageModelRateLimited,
    errors.LanguageModelFailed,
    errors.LanguageModelFailed,
)


def create_embeddings(settings: OpenAICompatibleSettings, texts: list[str]) -> list[list[float]]:
    """One vector a text, in the order of the texts.

    While the service is down, calls fail at once; see `memory.service_circuit`.

    Raises:
        SetupError, ServiceError, TextRefused: see `EMBEDDER_FAULTS`.
    """

    def work(client: OpenAI, seconds: float) -> list[list[float]]:
        answer = client.embeddings.create(
            input=texts, model=settings.model, encoding_format="float", timeout=_limits(seconds)
        )
        return [item.embedding for item in sorted(answer.data, key=lambda item: item.index)]

    circuit = embedding_circuits.of((settings.base_url, settings.model))
    vectors = _patiently(settings, work, EMBEDDER_FAULTS, circuit)
    if len(vectors) != len(texts) or not all(map(is_vector, vectors)):
        raise errors.EmbedderFailed(model=settings.model)
    return vectors


def create_answer(settings: OpenAICompatibleSettings, system: str, user: str) -> tuple[str, int]:
    """A language model's answer to one prompt, and the tokens both took (0 if the service does not say).

    Raises:
        SetupError, ServiceError: see `LANGUAGE_MODEL_FAULTS`; also where the answer is empty or was held back
            by a filter.
    """

    def work(client: OpenAI, seconds: float) -> tuple[str, int]:
        answer = client.chat.completions.create(
            model=settings.model,
            messages=[{"role": "system", "content": system}, {"role": "user", "content": user}],
            timeout=_limits(seconds),
        )
        choice = answer.choices[0]
        held_back = choice.finish_reason == "content_filter"
        text = "" if held_back else choice.message.content or ""
        return text, answer.usage.total_tokens if answer.usage else 0

    # A circuit of its own: much work waits better for a language model than it goes on without it.
    text, tokens = _patiently(settings, work, LANGUAGE_MODEL_FAULTS, ServiceCircuit())
    if not text.strip():
        raise errors.LanguageModelFailed(model=settings.model)
    return text, tokens


def _patiently[T](
    settings: OpenAICompatibleSettings,
    work: Callable[[OpenAI, float], T],
    faults: Faults,
    circuit: ServiceCircuit,
) -> T:
    """Run a request, again after 429, 5xx or a broken connection, all of it within the time limit.

    A request that timed out is not sent again: the service has the first one still to do.
    """
    import openai

    with circuit.call(settings.model) as call:
        deadline = Deadline.after(settings.timeout_seconds)
        client = client_of(settings)
        for attempt in range(RETRIES + 1):
            try:
                answer = work(client, max(0.01, deadline.remaining()))
            except Exception as error:  # openai's errors, and what a wrong server's answer leads to
                fault = translate(error, settings.model, faults)
                is_down = isinstance(error, openai.InternalServerError | openai.APIConnectionError)
                may_pass = (is_down and not isinstance(error, openai.APITimeoutError)) or isinstance(
                    error, openai.RateLimitError
                )
                pause = _pause(error, attempt)
            else:
                call.answered()
                return answer
            is_last = attempt == RETRIES or pause >= deadline.remaining()
            if not may_pass or is_last or not call.may_repeat:
                break
            time.sleep(pause)
        call.failed(type(fault)) if is_down else call.answered()
    raise fault from None


def _limits(seconds: float) -> Timeout:
    """A request's time, of which connecting may take a part."""
    from openai import Timeout

    return Timeout(seconds, connect=min(seconds, CONNECT_SECONDS))


def _pause(error: Exception, attempt: int) -> float:
    """Seconds before the next attempt: what the service asks for, else ever longer, with jitter."""
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers[name]) * unit)
        except (KeyError, TypeError, ValueError):
            continue
    longest = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2.0**attempt)
    return longest * random.uniform(0.5, 1.0)  # noqa: S311 - jitter


def translate(error: Exception, model: str, faults: Faults) -> MemoryFault:
    """Our error for one of the openai client's. Its text is never looked at nor passed on.

    Args:
        error: what the client raised.
        model: the model's name, for the message.
        faults: what the service's failures become.
    """
    import openai

    table: list[tuple[type[Exception], type[MemoryFault]]] = [
        (openai.APITimeoutError, faults.timed_out),
        (openai.APIConnectionError, faults.unreachable),
        (openai.AuthenticationError, faults.refused),
        (openai.PermissionDeniedError, faults.refused),
        (openai.NotFoundError, faults.refused),
        (openai.RateLimitError, faults.rate_limited),
        (openai.BadRequestError, faults.input_refused),
        (openai.UnprocessableEntityError, faults.input_refused),
    ]
    for theirs, ours in table:
        if isinstance(error, theirs):
            return ours(model=model)
    if isinstance(error, openai.APIStatusError) and error.status_code == 413:
        return faults.input_refused(model=model)
    return faults.failed(model=model)


def client_of(settings: OpenAICompatibleSettings) -> OpenAI:
    """The client for these settings."""
    from openai import DefaultHttpx2Client, Omit, OpenAI

    names = ("OpenAI-Organization", "OpenAI-Project")
    unsent: Any = {name: Omit() for name in names}
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
                max_retries=0,
                http_client=DefaultHttpx2Client(trust_env=False),
            )
            # The client adds headers of OPENAI_CUSTOM_HEADERS over ours; it has no argument against that.
            client._custom_headers = unsent
        _clients[settings] = client
        if len(_clients) > MAX_CLIENTS:
            _clients.popitem(last=False)[1].close()
        return client
