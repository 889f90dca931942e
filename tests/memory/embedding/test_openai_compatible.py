"""The embedder that speaks OpenAI's protocol, against small servers of this test's own."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from development.chroma_server import free_port
from memory import errors
from memory.circuit import REST_SECONDS
from memory.embedding import EmbedderIdentity, Source
from memory.embedding.openai_compatible import BATCH, OpenAICompatibleEmbedder
from memory.openai_service import RETRIES
from memory.service_circuit import ServiceCircuits
from memory.settings import OpenAICompatibleSettings

KEY = "key-of-the-form"


@dataclass
class Request:
    """One request as the service saw it."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class Reply:
    """What the service answers; the headers keep the client's waits short."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=lambda: {"retry-after-ms": "1"})


@dataclass
class Service:
    """An embedding service under way."""

    url: str
    requests: list[Request] = field(default_factory=list)


@contextmanager
def _serve(answer: Callable[[Service, Request], Reply], port: int = 0) -> Iterator[Service]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            size = int(self.headers.get("Content-Length", 0))
            headers = {name.casefold(): value for name, value in self.headers.items()}
            request = Request(self.path, headers, json.loads(self.rfile.read(size)))
            service.requests.append(request)
            reply = answer(service, request)
            with suppress(ConnectionError):  # the client does not wait any more
                self._send(reply)

        def _send(self, reply: Reply) -> None:
            self.send_response(reply.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(reply.body)))
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    service = Service(f"http://127.0.0.1:{server.server_address[1]}/v1")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()


def _vectors(_: Service, request: Request) -> Reply:
    """Vectors that tell the place and the length of each text, sent in reverse order."""
    data = [
        {"object": "embedding", "index": i, "embedding": [float(i), float(len(text))]}
        for i, text in enumerate(request.body["input"])
    ]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    body = {"object": "list", "data": data[::-1], "model": request.body["model"], "usage": usage}
    return Reply(body=json.dumps(body).encode())


def _embedder(service: Service, *, key: str = KEY, seconds: float = 10.0) -> OpenAICompatibleEmbedder:
    return OpenAICompatibleEmbedder(
        OpenAICompatibleSettings(base_url=service.url, model="m", api_key=key, timeout_seconds=seconds)
    )


def test_texts_are_sent_in_batches_and_come_back_in_order() -> None:
    """Each vector belongs to its text, whatever order the service answers in."""
    texts = ["x" * n for n in range(1, 2 * BATCH + 3)]
    with _serve(_vectors) as service:
        vectors = _embedder(service).embed_documents(texts)
    assert [len(request.body["input"]) for request in service.requests] == [BATCH, BATCH, 2]
    assert [int(vector[1]) for vector in vectors] == [len(text) for text in texts]


def test_a_request_says_what_is_needed_and_no_more() -> None:
    """Model, texts and key go to the address of the settings; numbers are asked for as numbers."""
    with _serve(_vectors) as service:
        assert _embedder(service).embed_query("tea") == [0.0, 3.0]
    (request,) = service.requests
    assert request.path == "/v1/embeddings"
    assert request.body == {"input": ["tea"], "model": "m", "encoding_format": "float"}
    assert request.headers["authorization"] == f"Bearer {KEY}"


def test_no_texts_send_no_request() -> None:
    """An empty list is answered without the service."""
    with _serve(_vectors) as service:
        assert _embedder(service).embed_documents([]) == []
    assert service.requests == []


def test_it_is_known_by_source_and_model() -> None:
    """The address may move, the key may change: the model stays the model."""
    with _serve(_vectors) as service:
        assert _embedder(service).identity == EmbedderIdentity(Source.OPENAI_COMPATIBLE, "", "m")
        assert service.requests == []


VARIABLES = {
    "OPENAI_API_KEY": "key-of-the-environment",
    "OPENAI_ADMIN_KEY": "key-of-the-environment",
    "OPENAI_ORG_ID": "organization-of-the-environment",
    "OPENAI_PROJECT_ID": "project-of-the-environment",
    "OPENAI_WEBHOOK_SECRET": "secret-of-the-environment",
    "OPENAI_CUSTOM_HEADERS": "X-Evil: header-of-the-environment\nAuthorization: Bearer of-the-environment",
    "OPENAI_API_TYPE": "azure",
    "OPENAI_API_VERSION": "version-of-the-environment",
    "AZURE_OPENAI_API_KEY": "key-of-the-environment",
}


@pytest.mark.parametrize("key", [KEY, ""])
def test_variables_of_the_environment_have_no_influence(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    """Neither OpenAI's own variables nor proxies: the request is the same as without them."""
    with _serve(_vectors) as plain:
        _embedder(plain, key=key).embed_query("tea")
    elsewhere = f"http://127.0.0.1:{free_port()}"
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{elsewhere}/v1")
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, elsewhere)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with _serve(_vectors) as service:
        assert _embedder(service, key=key).embed_query("tea") == [0.0, 3.0]
    (expected,), (request,) = plain.requests, service.requests
    assert "of-the-environment" not in json.dumps([request.headers, request.body])
    assert (request.path, request.body) == (expected.path, expected.body)
    own = {"host": "", "x-stainless-read-timeout": ""}  # the port, and what is left of the call's time
    assert request.headers | own == expected.headers | own


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_a_stumble_is_tried_again(status: int) -> None:
    """Being busy or broken for a moment is not the end."""

    def stumble_once(service: Service, request: Request) -> Reply:
        return Reply(status) if len(service.requests) == 1 else _vectors(service, request)

    with _serve(stumble_once) as service:
        assert _embedder(service).embed_query("tea") == [0.0, 3.0]
    assert len(service.requests) == 2


@pytest.mark.parametrize(
    ("status", "expected", "requests"),
    [
        (400, errors.TextRefused, 1),
        (401, errors.EmbedderRefused, 1),
        (403, errors.EmbedderRefused, 1),
        (404, errors.EmbedderRefused, 1),
        (413, errors.TextRefused, 1),
        (422, errors.TextRefused, 1),
        (429, errors.EmbedderRateLimited, RETRIES + 1),
        (500, errors.EmbedderFailed, RETRIES + 1),
        (503, errors.EmbedderFailed, RETRIES + 1),
    ],
)
def test_a_refusal_is_one_of_our_errors(
    status: int, expected: type[errors.MemoryFault], requests: int
) -> None:
    """What cannot pass is not tried again; our message names the model and repeats no word of the service."""
    body = json.dumps({"error": {"message": "refused: hunter2", "code": "x"}}).encode()
    with _serve(lambda *_: Reply(status, body)) as service:
        with pytest.raises(expected) as caught:
            _embedder(service).embed_query("hunter2")
        assert len(service.requests) == requests
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert " m " in f" {caught.value.message} ".replace(".", " ")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>welcome</html>",
        b"[]",
        b"null",
        b"{}",
        b'{"data": null}',
        b'{"data": []}',
        b'{"data": [{"index": 0, "embedding": []}]}',
        b'{"data": [{"index": 0, "embedding": null}]}',
        b'{"data": [{"index": 0, "embedding": ["a"]}]}',
        b'{"data": [{"index": 0, "embedding": [NaN]}]}',
        b'{"data": [{"index": 0, "embedding": [1e999]}]}',
        b'{"data": [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [1.0]}]}',
        b'{"data": [5]}',
        b'{"data": [{"index": 0, "embedding": "AAAA"}]}',
    ],
    ids=repr,
)
def test_an_answer_that_is_no_list_of_vectors_is_a_failure(body: bytes) -> None:
    """Whatever stands at the address, the call ends with an error of ours and nothing is stored."""
    with _serve(lambda *_: Reply(200, body)) as service, pytest.raises(errors.EmbedderFailed):
        _embedder(service).embed_query("tea")


def test_a_client_that_is_closed_for_another_still_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """While one request waits, requests with many other keys push its client out; it is answered still."""
    monkeypatch.setattr("memory.openai_service.MAX_CLIENTS", 1)
    asked, go_on = threading.Event(), threading.Event()

    def wait_for_others(service: Service, request: Request) -> Reply:
        if request.headers["authorization"] == f"Bearer {KEY}":
            asked.set()
            go_on.wait(10)
        return _vectors(service, request)

    with _serve(wait_for_others) as service, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(_embedder(service).embed_query, "tea")
        assert asked.wait(10)
        for key in ("one", "two"):
            _embedder(service, key=key).embed_query("tea")
        go_on.set()
        assert waiting.result() == [0.0, 3.0]
    assert len(service.requests) == 3


class Time:
    """The circuits' clock, which moves when told."""

    now = 1_000.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Time:
    """A clock of the test's own for the circuits of embedding services."""
    moment = Time()
    monkeypatch.setattr("memory.openai_service.embedding_circuits", ServiceCircuits(lambda: moment.now))
    return moment


@pytest.mark.parametrize("status", [500, 503])
def test_a_service_that_is_down_is_asked_once_after_each_rest(clock: Time, status: int) -> None:
    """The first call tries again and again; a hundred more fail without a request, as after each rest."""
    is_down, code = True, errors.EmbedderFailed.code

    def answer(service: Service, request: Request) -> Reply:
        return Reply(status) if is_down else _vectors(service, request)

    def codes(calls: int) -> list[str]:
        found = []
        for _ in range(calls):
            try:
                _embedder(service).embed_query("tea")
            except errors.ServiceError as fault:
                found.append(fault.code)
        return found

    with _serve(answer) as service:
        assert codes(1) == [code]
        assert len(service.requests) == RETRIES + 1
        assert codes(100) == [code] * 100
        assert len(service.requests) == RETRIES + 1
        for rest in range(1, 4):
            clock.now += REST_SECONDS
            assert codes(100) == [code] * 100
            assert len(service.requests) == RETRIES + 1 + rest
        is_down = False
        assert codes(100) == [code] * 100
        clock.now += REST_SECONDS
        assert codes(100) == []
    assert len(service.requests) == RETRIES + 4 + 100


def test_an_address_nobody_listens_at_is_tried_once_after_each_rest(clock: Time) -> None:
    """A service that starts there is used with the first call after a rest."""
    port = free_port()
    embedder = _embedder(Service(f"http://127.0.0.1:{port}/v1"))
    for _ in range(3):
        with pytest.raises(errors.EmbedderUnreachable):
            embedder.embed_query("tea")
    with _serve(_vectors, port=port) as service:
        with pytest.raises(errors.EmbedderUnreachable):
            embedder.embed_query("tea")
        assert service.requests == []
        clock.now += REST_SECONDS
        assert embedder.embed_query("tea") == [0.0, 3.0]


@pytest.mark.parametrize("status", [400, 401, 404, 413, 429])
def test_a_refusal_is_an_answer(clock: Time, status: int) -> None:
    """What the caller or the administrator has to change, or a limit, keeps nobody else from asking."""
    assert clock.now  # which stands still: an open circuit would stay open

    def refuse_milk(service: Service, request: Request) -> Reply:
        return Reply(status) if request.body["input"] == ["milk"] else _vectors(service, request)

    with _serve(refuse_milk) as service:
        with pytest.raises(errors.MemoryFault):
            _embedder(service).embed_query("milk")
        assert _embedder(service).embed_query("tea") == [0.0, 3.0]


def test_a_text_the_service_cannot_digest_does_not_stop_the_others(clock: Time) -> None:
    """Where others are answered meanwhile, one that fails again and again is its own."""

    def fail_milk(service: Service, request: Request) -> Reply:
        if request.body["input"] == ["milk"]:
            clock.now += 1.0
            assert _embedder(service).embed_query("tea") == [0.0, 3.0]
            return Reply(500)
        return _vectors(service, request)

    with _serve(fail_milk) as service:
        with pytest.raises(errors.EmbedderFailed):
            _embedder(service).embed_query("milk")
        assert _embedder(service).embed_query("tea") == [0.0, 3.0]


def test_one_model_that_is_down_leaves_another_at_the_same_address_alone(clock: Time) -> None:
    """Behind a gateway each model has a machine of its own."""

    def answer(service: Service, request: Request) -> Reply:
        clock.now += 0.001
        return Reply(502) if request.body["model"] == "down" else _vectors(service, request)

    with _serve(answer) as service:
        down = OpenAICompatibleEmbedder(OpenAICompatibleSettings(base_url=service.url, model="down"))
        for _ in range(2):
            with pytest.raises(errors.EmbedderFailed):
                down.embed_query("tea")
        assert _embedder(service).embed_query("tea") == [0.0, 3.0]


def test_nobody_at_the_address_is_unreachable() -> None:
    """The error says that the service cannot be reached."""
    nobody = Service(f"http://127.0.0.1:{free_port()}/v1")
    with pytest.raises(errors.EmbedderUnreachable):
        _embedder(nobody).embed_query("tea")


def test_a_hanging_service_ends_the_call_within_its_time() -> None:
    """The time limit is for the whole call, however often it is tried again."""
    leave = threading.Event()

    def hang(*_: object) -> Reply:
        leave.wait(30)
        return Reply(500)

    with _serve(hang) as service:
        started = time.monotonic()
        try:
            with pytest.raises(errors.EmbedderTimeout):
                _embedder(service, seconds=1.0).embed_query("tea")
            assert time.monotonic() - started < 2.0
        finally:
            leave.set()


def test_no_wait_the_service_asks_for_is_longer_than_the_call() -> None:
    """A service that says "come back in a minute" is not waited for beyond the time limit."""
    with _serve(lambda *_: Reply(429, headers={"Retry-After": "5"})) as service:
        started = time.monotonic()
        with pytest.raises(errors.EmbedderRateLimited):
            _embedder(service, seconds=1.0).embed_query("tea")
        assert time.monotonic() - started < 3.0
