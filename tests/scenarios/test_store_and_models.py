"""The embedding model a namespace remembers, and every trouble a store or a model service can make."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import pytest

from development.chroma_server import ChromaServer, free_port
from development.daemon import PluginFailure, PluginProcess, Workspace
from development.embedding_server import EmbeddingServer
from memory import errors
from memory.embedding import BUILTIN
from memory.embedding.builtin import BuiltinEmbedder
from tests import fake_servers
from tests.conftest import Json, Nodes
from tests.fake_servers import FakeServer, serve
from tests.waiting import wait_until

ADA = "ada@example.com"
MODEL = {"provider": "example/models/models", "model": "embed-1", "model_type": "text-embedding"}
OTHER_MODEL = {"provider": "example/models/models", "model": "embed-2"}
MODEL_NAME = "dify/example/models/models/embed-1"
MARGIN_SECONDS = 15.0
"""What a busy machine may add to a time limit."""
MOST_TRIES = 1_000


def failure_of(call: Callable[[], object]) -> PluginFailure:
    """The failure a call ends with."""
    with pytest.raises(PluginFailure) as failure:
        call()
    return failure.value


def _is_over_or_asked(call: Future[Any], service: EmbeddingServer, asked: int) -> bool:
    """Whether a call has ended, or has made a request after so many."""
    return call.done() or len(service.asked) > asked


def until_it_works(call: Callable[[], object]) -> None:
    """Repeat a call for as long as it says that the server cannot be reached."""

    def works() -> bool:
        try:
            call()
        except PluginFailure as failure:
            if failure.code != "chroma_unreachable":
                raise
            return False
        return True

    wait_until(works)


@pytest.fixture
def service() -> Iterator[EmbeddingServer]:
    """An embedding service that works."""
    with EmbeddingServer() as server:
        yield server


def served(nodes: Nodes, server: EmbeddingServer, **fields: Any) -> Nodes:
    """The nodes with the form set to an embedding service."""
    form = {
        "embedding_source": "openai_compatible",
        "embedding_base_url": server.url,
        "embedding_model": "test-embed",
        **fields,
    }
    return Nodes(nodes.process, {**nodes.credentials, **form})


def with_form(nodes: Nodes, **fields: Any) -> Nodes:
    """The nodes with other fields in the form."""
    return Nodes(nodes.process, {**nodes.credentials, **fields})


# --- a model of the workspace -------------------------------------------------------------------


def test_a_model_chosen_once_serves_every_node_from_then_on(nodes: Nodes, workspace: Workspace) -> None:
    """Stored as documents and asked as queries with the first remember's model, with no other selector."""
    before = len(workspace.requests)
    nodes.remember("Likes teal lamps", customer_id=ADA, embedding_model=MODEL)
    nodes.remember("Drives a van", customer_id=ADA)
    assert nodes.texts("teal lamps", customer_id=ADA)[0] == "Likes teal lamps"
    assert nodes.forget(query="teal lamps", customer_id=ADA)["matched"] == 1

    asked = [call["request"] for call in workspace.requests[before:]]
    assert {(r["provider"], r["model"]) for r in asked} == {(MODEL["provider"], MODEL["model"])}
    by_text = {text: r["input_type"] for r in asked for text in r["texts"]}
    assert by_text["Likes teal lamps"] == by_text["Drives a van"] == "document"
    assert by_text["teal lamps"] == "query"


def test_the_selectors_value_may_come_as_text(nodes: Nodes, workspace: Workspace) -> None:
    """A selector's value as JSON text chooses the same model."""
    nodes.remember("Likes teal", customer_id=ADA, embedding_model=json.dumps(MODEL))

    assert workspace.requests[-1]["request"]["model"] == MODEL["model"]
    assert nodes.remember("Drives a van", customer_id=ADA, embedding_model=MODEL)["stored"] == 1


@pytest.mark.parametrize("value", [{"provider": "p"}, "embed-1", ["embed-1"], 7])
def test_a_selector_that_names_no_model_is_refused(nodes: Nodes, value: object) -> None:
    """Half a model is not taken for the built-in one."""
    failure = failure_of(lambda: nodes.remember("Likes teal", customer_id=ADA, embedding_model=value))

    assert failure.code == "parameter_invalid"


@pytest.mark.parametrize(
    ("first", "second", "names"),
    [
        (MODEL, OTHER_MODEL, ("embed-1", "embed-2")),
        (None, MODEL, (str(BUILTIN), MODEL_NAME)),
    ],
)
def test_another_model_is_refused_with_both_names_and_stores_nothing(
    nodes: Nodes, first: Json | None, second: Json, names: tuple[str, str]
) -> None:
    """Vectors of two models are never mixed, though their lengths are the same."""
    nodes.remember("Likes teal", customer_id=ADA, embedding_model=first)
    failure = failure_of(lambda: nodes.remember("Drives a van", customer_id=ADA, embedding_model=second))

    assert failure.code == "embedder_mismatch"
    assert all(name in failure.message for name in names)
    assert "another namespace" in failure.message
    assert nodes.texts("", customer_id=ADA) == ["Likes teal"]


def test_a_model_that_changed_its_dimension_is_refused_with_both(
    chroma: ChromaServer, namespace: str
) -> None:
    """The same model's name with vectors of another length: remember and recall say which two lengths."""
    size = 512

    def embed(texts: list[str]) -> list[list[float]]:
        return [list(vector)[:size] for vector in BuiltinEmbedder().embed_documents(texts)]

    with PluginProcess(workspace=Workspace(embed=embed)) as process:
        nodes = Nodes(process, {"chroma_url": chroma.url, "namespace": namespace})
        nodes.remember("Likes teal", customer_id=ADA, embedding_model=MODEL)
        size = 256
        calls: list[Callable[[], object]] = [
            lambda: nodes.remember("Drives a van", customer_id=ADA),
            lambda: nodes.recall("teal", customer_id=ADA),
            lambda: nodes.forget(query="teal", customer_id=ADA),
        ]
        for call in calls:
            failure = failure_of(call)
            assert failure.code == "embedder_dimension_mismatch"
            assert "512" in failure.message
            assert "256" in failure.message
            assert MODEL_NAME in failure.message
        assert nodes.texts("", customer_id=ADA) == ["Likes teal"]


def test_a_workspace_model_that_fails_is_a_failure_that_can_be_retried(
    nodes: Nodes, workspace: Workspace
) -> None:
    """What Dify reports is no empty success, its text is not passed on, and the next call works."""
    nodes.remember("Likes teal", customer_id=ADA, embedding_model=MODEL)
    workspace.refusal = "credentials of tenant 4711 are wrong: sk-very-secret"
    try:
        failures = [
            failure_of(lambda: nodes.remember("Drives a van", customer_id=ADA)),
            failure_of(lambda: nodes.forget(query="teal", customer_id=ADA)),
        ]
        assert nodes.recall("teal", customer_id=ADA)["degraded"] == "embedder_failed"
    finally:
        workspace.refusal = None

    for failure in failures:
        assert failure.code == "embedder_failed"
        assert "sk-very-secret" not in json.dumps(failure.raw)
    assert nodes.texts("", customer_id=ADA) == ["Likes teal"]
    assert nodes.remember("Drives a van", customer_id=ADA)["stored"] == 1


def test_a_failed_first_write_settles_no_model(nodes: Nodes, workspace: Workspace) -> None:
    """If the chosen model cannot be reached, the namespace is still free to choose."""
    workspace.refusal = "no such model"
    try:
        failure_of(lambda: nodes.remember("Likes teal", customer_id=ADA, embedding_model=MODEL))
    finally:
        workspace.refusal = None

    assert nodes.remember("Likes teal", customer_id=ADA)["stored"] == 1


def test_reading_a_fresh_namespace_settles_no_model(nodes: Nodes) -> None:
    """Recall, forget, a link and an empty remember leave the choice to the first write."""
    nodes.recall("teal", customer_id=ADA)
    nodes.forget(scope="everything", action="delete", customer_id=ADA)
    nodes.link(customer_id=ADA, conversation_id="conv-1")
    assert nodes.remember("   ", customer_id=ADA)["skipped"] == 1

    assert nodes.remember("Likes teal", customer_id=ADA, embedding_model=MODEL)["stored"] == 1


# --- an OpenAI-compatible service ---------------------------------------------------------------


def test_an_openai_compatible_service_embeds_what_is_stored_and_asked(
    nodes: Nodes, service: EmbeddingServer
) -> None:
    """The form's service is asked for its model with its key, in batches, and finds what was stored."""
    ours = served(nodes, service, embedding_api_key="sk-example")
    messages = [{"role": "user", "content": f"Note {n} about parcels"} for n in range(100)]
    ours.remember(messages, customer_id=ADA, kind="semantic")

    assert ours.texts("Note 42 about parcels", customer_id=ADA)[0] == "Note 42 about parcels"
    assert {(a.path, a.key, a.model) for a in service.asked} == {
        ("/v1/embeddings", "sk-example", "test-embed")
    }
    assert sum(len(a.texts) for a in service.asked if a.texts[0].startswith("Note")) == 101
    assert max(len(a.texts) for a in service.asked) <= 64


def test_a_service_with_another_model_or_none_is_refused_with_both_names(
    nodes: Nodes, service: EmbeddingServer
) -> None:
    """A form that leads to another model than the namespace's is refused by every node that needs one."""
    ours = served(nodes, service)
    ours.remember("Likes teal", customer_id=ADA)
    others = {"test-embed-2": served(nodes, service, embedding_model="test-embed-2"), str(BUILTIN): nodes}

    for name, other in others.items():
        for call in (
            partial(other.remember, "Drives a van", customer_id=ADA),
            partial(other.recall, "teal", customer_id=ADA),
            partial(other.forget, query="teal", customer_id=ADA),
        ):
            failure = failure_of(call)
            assert failure.code == "embedder_mismatch"
            assert "openai_compatible/test-embed;" in failure.message
            assert name in failure.message
    assert ours.texts("", customer_id=ADA) == ["Likes teal"]


def test_a_service_that_changed_its_dimension_is_refused_with_both(
    nodes: Nodes, service: EmbeddingServer
) -> None:
    """The message names the model and both lengths."""
    ours = served(nodes, service)
    ours.remember("Likes teal", customer_id=ADA)
    service.dimension = 256

    failure = failure_of(lambda: ours.recall("teal", customer_id=ADA))
    assert failure.code == "embedder_dimension_mismatch"
    assert all(part in failure.message for part in ("512", "256", "openai_compatible/test-embed"))


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_service_that_stumbles_is_asked_again(nodes: Nodes, service: EmbeddingServer, status: int) -> None:
    """Two failures in a row are not seen by the builder."""
    ours = served(nodes, service)
    ours.remember("Likes teal", customer_id=ADA)
    asked = len(service.asked)
    service.fail(status, 2, headers={"Retry-After": "0", "retry-after-ms": "1"})

    assert ours.texts("Likes teal", customer_id=ADA) == ["Likes teal"]
    assert len(service.asked) == asked + 3


@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [
        (429, "embedder_rate_limited", True),
        (500, "embedder_failed", True),
        (401, "embedder_refused", False),
        (403, "embedder_refused", False),
        (404, "embedder_refused", False),
        (400, "text_refused_by_model", False),
        (413, "text_refused_by_model", False),
        (422, "text_refused_by_model", False),
        (418, "embedder_failed", True),
    ],
)
def test_each_answer_of_a_service_has_its_own_code(
    nodes: Nodes, service: EmbeddingServer, status: int, code: str, retryable: bool
) -> None:
    """A service that goes on failing is reported by what it answered, and nothing is stored."""
    ours = served(nodes, service)
    ours.remember("Likes teal", customer_id=ADA)
    service.fail(status, 20, headers={"retry-after-ms": "1"})

    failure = failure_of(lambda: ours.remember("Drives a van", customer_id=ADA))

    assert failure.code == code
    assert ("Trying again later may help" in failure.message) is retryable
    assert "test-embed" in failure.message
    service.recover()
    assert ours.texts("", customer_id=ADA) == ["Likes teal"]


def test_a_wrong_key_is_refused_without_showing_it(nodes: Nodes) -> None:
    """The service says that the key is wrong, the message says so too, and the key is in neither."""
    with EmbeddingServer(key="sk-right") as server:
        server.repeats_input = True
        wrong = served(nodes, server, embedding_api_key="sk-wrong-but-secret")
        failure = failure_of(lambda: wrong.remember("Likes teal", customer_id=ADA))
        right = served(nodes, server, embedding_api_key="sk-right")
        assert right.remember("Likes teal", customer_id=ADA)["stored"] == 1

    assert failure.code == "embedder_refused"
    assert "sk-wrong-but-secret" not in json.dumps(failure.raw)


def test_a_service_that_is_not_there_is_unreachable(nodes: Nodes) -> None:
    """A closed port is told apart from a service that refuses."""
    with EmbeddingServer() as server:
        ours = served(nodes, server)
        ours.remember("Likes teal", customer_id=ADA)

    failure = failure_of(lambda: ours.remember("Drives a van", customer_id=ADA))
    assert failure.code == "embedder_unreachable"


@pytest.mark.parametrize("query", ["Which lamps does she like?", "Likes teal lamps"])
@pytest.mark.parametrize(
    ("status", "code"),
    [(500, "embedder_failed"), (429, "embedder_rate_limited"), (None, "embedder_unreachable")],
)
def test_while_a_service_fails_a_recall_goes_on_by_words_and_says_so(
    nodes: Nodes, status: int | None, code: str, query: str
) -> None:
    """What shares words with the query is found with no score above the whole one's; the rest is not."""
    with EmbeddingServer() as server:
        ours = served(nodes, server)
        ours.remember("Likes teal lamps", customer_id=ADA)
        ours.remember("Drives a van", customer_id=ADA)
        ours.remember("Liked brass lamps", customer_id=ADA, attribute="lamps")
        ours.remember("Likes steel lamps now", customer_id=ADA, attribute="lamps")
        whole = ours.recall(query, customer_id=ADA, min_score=0, include_superseded=True)
        if status is not None:
            server.fail(status, 50, headers={"retry-after-ms": "1"})
            degraded = ours.recall(query, customer_id=ADA, include_superseded=True)
            server.recover()
            wait_until(lambda: ours.recall(query, customer_id=ADA)["degraded"] != code)
            assert ours.recall(query, customer_id=ADA)["degraded"] == ""
    if status is None:
        degraded = ours.recall(query, customer_id=ADA, include_superseded=True)

    assert (whole["degraded"], degraded["degraded"]) == ("", code)
    assert "by words alone" in degraded.text
    assert "by words alone" not in whole.text
    scores = {memory["text"]: memory["score"] for memory in degraded["memories"]}
    before = {memory["text"]: memory["score"] for memory in whole["memories"]}
    assert scores.keys() == {"Likes teal lamps", "Liked brass lamps", "Likes steel lamps now"}
    assert all(score <= before[text] for text, score in scores.items())
    assert "Likes teal lamps" in degraded["context"]
    if query == "Likes teal lamps":
        assert scores[query] == 1.0  # the very words need no meaning


def test_by_words_alone_nothing_reaches_the_threshold_that_shares_no_word(
    nodes: Nodes, service: EmbeddingServer
) -> None:
    """A question about something else finds nothing, as it would otherwise."""
    ours = served(nodes, service)
    ours.remember("Likes teal lamps", customer_id=ADA)
    service.fail(500, 50, headers={"retry-after-ms": "1"})

    answer = ours.recall("When does the parcel arrive?", customer_id=ADA)
    assert (answer["found"], answer["degraded"]) == (0, "embedder_failed")
    assert ours.recall("", customer_id=ADA)["degraded"] == ""  # the most recent need no model


def test_a_service_that_hangs_leaves_a_recall_time_for_the_words(
    nodes: Nodes, service: EmbeddingServer
) -> None:
    """The model's time is its own: the store is read after it."""
    ours = served(nodes, service, timeout_seconds=2)
    ours.remember("Likes teal lamps", customer_id=ADA)
    service.hang()
    answer = ours.recall("Which lamps does she like?", customer_id=ADA)
    service.release()

    assert (answer["found"], answer["degraded"]) == (1, "embedder_timeout")


def test_while_a_service_hangs_one_call_waits_for_it_and_no_other(
    nodes: Nodes, service: EmbeddingServer
) -> None:
    """The others go on by words, or fail, without a request; its first answer is good for all."""
    patient, ours = served(nodes, service), served(nodes, service, timeout_seconds=2)
    ours.remember("Likes teal lamps", customer_id=ADA)
    service.hang()
    assert ours.recall("Which lamps?", customer_id=ADA)["degraded"] == "embedder_timeout"
    asked = len(service.asked)
    with ThreadPoolExecutor(1) as pool:
        for _ in range(MOST_TRIES):
            waiting = pool.submit(patient.recall, "Which lamps?", customer_id=ADA)
            wait_until(partial(_is_over_or_asked, waiting, service, asked))
            if len(service.asked) > asked:  # the rest before it is short, and it may come too early
                break
        for _ in range(20):
            answer = ours.recall("Which lamps?", customer_id=ADA)
            assert (answer["found"], answer["degraded"]) == (1, "embedder_timeout")
            failure = failure_of(lambda: ours.remember("Drives a van", customer_id=ADA))
            assert failure.code == "embedder_timeout"
            assert "Trying again later may help" in failure.message
        assert len(service.asked) == asked + 1
        assert not waiting.done()
        service.release()
        assert waiting.result(60)["degraded"] == ""
    assert ours.recall("Which lamps?", customer_id=ADA)["degraded"] == ""
    assert ours.remember("Drives a van", customer_id=ADA)["stored"] == 1


def test_sixty_calls_at_once_to_a_service_that_is_down_do_not_each_try_again(
    nodes: Nodes, service: EmbeddingServer
) -> None:
    """Once it is known, a call makes one request at the most; all of them answer, and say so."""
    ours = served(nodes, service)
    ours.remember("Likes teal lamps", customer_id=ADA)
    service.fail(503, 10_000, headers={"retry-after-ms": "1"})
    ours.recall("Which lamps?", customer_id=ADA)
    asked = len(service.asked)
    with ThreadPoolExecutor(60) as pool:
        answers = [pool.submit(ours.recall, "Which lamps?", customer_id=ADA) for _ in range(60)]
        found = [(each.result(120)["found"], each.result()["degraded"]) for each in answers]
    assert found == [(1, "embedder_failed")] * 60
    assert len(service.asked) - asked <= 60


@pytest.mark.parametrize(("status", "code"), [(401, "embedder_refused"), (404, "embedder_refused")])
def test_a_wrong_key_or_model_is_no_reason_for_words_alone(
    nodes: Nodes, service: EmbeddingServer, status: int, code: str
) -> None:
    """What the administrator has to change fails, so that somebody sees it."""
    ours = served(nodes, service)
    ours.remember("Likes teal lamps", customer_id=ADA)
    service.fail(status, 50)

    assert failure_of(lambda: ours.recall("teal lamps", customer_id=ADA)).code == code


def test_a_web_server_in_place_of_a_service_is_a_failure_and_no_empty_answer(nodes: Nodes) -> None:
    """Pages and somebody else's JSON are no vectors."""
    for answer in (fake_servers.one_page_application(), fake_servers.other_api()):
        with serve(answer) as web:
            form = {
                "embedding_source": "openai_compatible",
                "embedding_base_url": web.url + "/v1",
                "embedding_model": "test-embed",
            }
            ours = with_form(nodes, **form)
            failure = failure_of(partial(ours.remember, "Likes teal", customer_id=ADA))
        assert failure.code == "embedder_failed"


def test_a_service_that_hangs_ends_the_call_within_its_time(nodes: Nodes, service: EmbeddingServer) -> None:
    """The form's time is the time of the whole call, however often the client would ask again."""
    ours = served(nodes, service, timeout_seconds=2)
    ours.remember("Likes teal", customer_id=ADA)
    service.hang()
    started = time.monotonic()

    failure = failure_of(lambda: ours.remember("Drives a van", customer_id=ADA))
    elapsed = time.monotonic() - started
    service.release()

    assert failure.code == "embedder_timeout"
    assert elapsed < 2 + 6
    assert ours.texts("", customer_id=ADA) == ["Likes teal"]


@pytest.mark.parametrize("question", ["teal \x00 lamps", "teal"])
def test_a_question_reaches_a_service_without_control_characters(
    nodes: Nodes, service: EmbeddingServer, question: str
) -> None:
    """What is asked is cleaned as what is stored is."""
    ours = served(nodes, service)
    ours.remember("Likes teal lamps", customer_id=ADA)

    assert ours.recall(question, customer_id=ADA)["found"] == 1
    assert all("\x00" not in text for asked in service.asked for text in asked.texts)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"embedding_base_url": ""}, "embedding_base_url"),
        ({"embedding_base_url": "ollama:11434"}, "embedding_base_url"),
        ({"embedding_model": " "}, "embedding_model"),
        ({"embedding_api_key": "schlüssel"}, "embedding_api_key"),
        ({"embedding_source": "cloud"}, "embedding_source"),
        ({"timeout_seconds": "soon"}, "timeout_seconds"),
        ({"timeout_seconds": 0}, "timeout_seconds"),
        ({"namespace": "a/b"}, "namespace"),
        ({"chroma_token": "to\nken"}, "chroma_token"),
        ({"chroma_auth_header": "X Token"}, "chroma_auth_header"),
    ],
)
def test_a_field_of_the_form_that_cannot_be_used_is_named(
    nodes: Nodes, service: EmbeddingServer, fields: Json, field: str
) -> None:
    """When it is saved and when a node runs, the message names the field."""
    ours = served(nodes, service, **fields)

    assert field in failure_of(lambda: ours.process.validate(ours.credentials)).message
    failure = failure_of(lambda: ours.recall("teal", customer_id=ADA))
    assert failure.code == "setting_invalid"
    assert field in failure.message


# --- trouble with Chroma ------------------------------------------------------------------------


def test_a_form_that_leads_to_a_chroma_server_is_accepted(nodes: Nodes) -> None:
    """With the address alone, also with a slash at its end, and nothing is created by the check."""
    for url in (nodes.credentials["chroma_url"], nodes.credentials["chroma_url"] + "/"):
        nodes.process.validate({"chroma_url": url})


@contextmanager
def closed_port() -> Iterator[FakeServer]:
    """An address nobody listens at."""
    with serve(fake_servers.web_server()) as server:
        pass
    yield server


TROUBLE: dict[str, tuple[Callable[[], AbstractContextManager[FakeServer]], type[errors.MemoryFault]]] = {
    "nothing": (closed_port, errors.ChromaUnreachable),
    "a web site": (lambda: serve(fake_servers.web_server()), errors.ChromaNotFound),
    "a one-page application": (lambda: serve(fake_servers.one_page_application()), errors.ChromaNotFound),
    "another API": (lambda: serve(fake_servers.other_api()), errors.ChromaNotFound),
    "Chroma 0.5": (lambda: serve(fake_servers.old_chroma()), errors.ChromaTooOld),
    "a proxy that answers 401": (lambda: serve(fake_servers.refusing(401)), errors.ChromaRefused),
    "a proxy that answers 403": (lambda: serve(fake_servers.refusing(403)), errors.ChromaRefused),
    "a proxy that answers 429": (lambda: serve(fake_servers.refusing(429)), errors.ChromaBusy),
    "a proxy that answers 502": (lambda: serve(fake_servers.refusing(502)), errors.ChromaFailed),
}


@pytest.mark.parametrize(("server", "fault"), TROUBLE.values(), ids=TROUBLE.keys())
def test_each_trouble_with_the_server_has_its_own_message(
    nodes: Nodes,
    server: Callable[[], AbstractContextManager[FakeServer]],
    fault: type[errors.MemoryFault],
) -> None:
    """Saving the form and running a node tell the same trouble in the same words."""
    with server() as running:
        ours = with_form(nodes, chroma_url=running.url)
        saving = failure_of(lambda: ours.process.validate(ours.credentials))
        asking = failure_of(lambda: ours.recall("teal", customer_id=ADA))
        telling = failure_of(lambda: ours.remember("Likes teal", customer_id=ADA))
        linking = failure_of(lambda: ours.link(customer_id=ADA, conversation_id="conv-1"))

    assert fault().message in saving.message
    assert [f.code for f in (asking, telling, linking)] == [fault.code] * 3
    assert all(fault().message in f.message for f in (asking, telling, linking))


@pytest.mark.parametrize(
    ("field", "fault"),
    [
        ("chroma_tenant", errors.ChromaTenantMissing),
        ("chroma_database", errors.ChromaDatabaseMissing),
    ],
)
def test_a_tenant_or_database_that_is_not_there_is_named(
    nodes: Nodes, field: str, fault: type[errors.MemoryFault]
) -> None:
    """Both are told apart, when saving and from every node; nothing is taken for an empty memory."""
    ours = with_form(nodes, **{field: "missing"})

    assert fault().message in failure_of(lambda: ours.process.validate(ours.credentials)).message
    calls: list[Callable[[], object]] = [
        lambda: ours.recall("", customer_id=ADA),
        lambda: ours.recall("", conversation_id="conv-1"),
        lambda: ours.remember("Likes teal", customer_id=ADA),
        lambda: ours.forget(scope="everything", customer_id=ADA),
        lambda: ours.link(customer_id=ADA, conversation_id="conv-1"),
    ]
    assert [failure_of(call).code for call in calls] == [fault.code] * 5


@pytest.mark.parametrize(
    "url",
    [
        "",
        "   ",
        "chroma",
        "chroma:8000",
        "localhost:8000",
        "ftp://chroma.example.com",
        "http://",
        "http:///path",
        "http://chroma.example.com:99999",
        "http://chroma.example.com:0",
        "http://chroma.example.com:port",
        "http://[::1",
        "http://chroma .example.com",
        "http://user:secret@chroma.example.com",
        "http://chroma.example.com?token=secret",
        "http://chroma.example.com/#secret",
        "http://.../",
        "http://exa\u2100mple.com",
    ],
)
def test_a_malformed_address_is_refused_in_words_and_not_repeated(nodes: Nodes, url: str) -> None:
    """Saving and running say what an address looks like, without repeating a password that was in it."""
    ours = with_form(nodes, chroma_url=url)
    saving = failure_of(lambda: ours.process.validate(ours.credentials))
    running = failure_of(lambda: ours.recall("teal", customer_id=ADA))

    assert "http://chroma.example.com:8000" in saving.message
    assert running.code == "chroma_address_invalid"
    assert "secret" not in json.dumps([saving.raw, running.raw])


@pytest.mark.parametrize(
    ("header", "sent"), [(None, "Bearer right-token"), ("X-Chroma-Token", "right-token")]
)
def test_a_token_is_sent_in_its_header_and_a_wrong_one_is_refused(
    nodes: Nodes, chroma: ChromaServer, header: str | None, sent: str
) -> None:
    """Behind a proxy that checks the token everything works with it, and nothing without."""
    with serve(fake_servers.guarded(chroma.url, header or "Authorization", sent)) as proxy:
        form = {"chroma_url": proxy.url} | ({"chroma_auth_header": header} if header else {})
        right = with_form(nodes, chroma_token="right-token", **form)
        right.process.validate(right.credentials)
        right.remember("Likes teal", customer_id=ADA)
        assert right.texts("teal", customer_id=ADA) == ["Likes teal"]

        for token in ("wrong-token", ""):
            wrong = with_form(nodes, chroma_token=token, **form)
            saving = failure_of(partial(wrong.process.validate, wrong.credentials))
            running = failure_of(partial(wrong.recall, "teal", customer_id=ADA))
            assert errors.ChromaRefused().message in saving.message
            assert running.code == "chroma_refused"
            assert "wrong-token" not in json.dumps([saving.raw, running.raw])


def test_a_server_that_hangs_ends_saving_and_running_with_its_own_message(nodes: Nodes) -> None:
    """Saving ends after 5 seconds whatever the form's time is, a node within the form's time."""
    with ChromaServer() as server:
        ours = with_form(nodes, chroma_url=server.url, timeout_seconds=2)
        ours.remember("Likes teal", customer_id=ADA)
        server.freeze()
        try:
            started = time.monotonic()
            running = failure_of(lambda: ours.recall("teal", customer_id=ADA))
            ran = time.monotonic() - started
            patient = with_form(ours, timeout_seconds=200)
            saving = failure_of(lambda: patient.process.validate(patient.credentials))
            saved = time.monotonic() - started - ran
        finally:
            server.thaw()
        until_it_works(lambda: ours.recall("teal", customer_id=ADA))
        assert ours.texts("teal", customer_id=ADA) == ["Likes teal"]

    assert running.code == "chroma_timeout"
    assert errors.ChromaUnreachable().message in saving.message  # by then it is known that nobody answers
    assert ran < 2 + MARGIN_SECONDS
    assert saved < 5 + MARGIN_SECONDS


def test_a_server_that_drips_its_answer_ends_with_the_calls_time(nodes: Nodes) -> None:
    """A byte now and then does not keep a call alive beyond its time."""
    left = threading.Event()
    with serve(fake_servers.dripping(left)) as server:
        ours = with_form(nodes, chroma_url=server.url, timeout_seconds=2)
        started = time.monotonic()
        giving_up = threading.Timer(2 + 8, left.set)
        giving_up.start()
        failure = failure_of(lambda: ours.recall("teal", customer_id=ADA))
        elapsed = time.monotonic() - started
        giving_up.cancel()
        giving_up.join()
        left.set()

    assert failure.code == "chroma_timeout"
    assert elapsed < 2 + 8


def test_a_server_that_was_away_is_used_again_once_it_is_back(nodes: Nodes) -> None:
    """A crash of the server costs failures while it lasts and nothing after it: what was stored is there."""
    port = free_port()
    server = ChromaServer(port=port)
    with server:
        ours = with_form(nodes, chroma_url=server.url, timeout_seconds=10)
        ours.remember("Likes teal", customer_id=ADA)
        server.kill()
        assert failure_of(lambda: ours.recall("teal", customer_id=ADA)).code == "chroma_unreachable"
        server.start()

        until_it_works(lambda: ours.recall("teal", customer_id=ADA))
        assert ours.texts("teal", customer_id=ADA) == ["Likes teal"]
        assert ours.remember("Likes teal", customer_id=ADA)["duplicates"] == 1


# --- nothing leaks ------------------------------------------------------------------------------

SECRETS = {
    "chroma_token": "chroma-token-5f2c",
    "embedding_api_key": "sk-embedding-8d1e",
}
WORDS = "zebrafish-7731"


def test_no_failure_shows_a_secret_or_a_customers_words(
    nodes: Nodes, plugin: PluginProcess, service: EmbeddingServer
) -> None:
    """No part of an error, no log line, no line of stderr holds them, though the servers repeat them."""
    logged_before, stderr_before = len(plugin.stdout), len(plugin.stderr)
    given: Json = {"customer_id": f"{WORDS}@example.com", "conversation_id": f"conv-{WORDS}"}
    text = f"The name of my cat is {WORDS}"
    service.repeats_input = True
    failures: list[PluginFailure] = []

    def run(ours: Nodes) -> None:
        calls: list[Callable[[], object]] = [
            lambda: ours.remember(text, attribute=f"cat {WORDS}", metadata={"note": WORDS}, **given),
            lambda: ours.recall(text, **given),
            lambda: ours.forget(query=text, **given),
            lambda: ours.link(**given),
        ]
        for call in calls:
            try:
                call()
            except PluginFailure as failure:
                failures.append(failure)

    ours = served(nodes, service, **SECRETS)
    ours.remember(text, **given)
    for status in (400, 401, 500):
        service.fail(status, 40, headers={"retry-after-ms": "1"})
        run(ours)
        service.recover()
    for status in (400, 401, 409, 500):
        with serve(fake_servers.failing(status)) as server:
            run(with_form(ours, chroma_url=server.url))
            saving = with_form(ours, chroma_url=server.url)
            failures.append(failure_of(partial(saving.process.validate, saving.credentials)))
    run(with_form(ours, chroma_url="http://127.0.0.1:1"))
    run(with_form(ours, chroma_database="missing"))
    odd: list[Callable[[], object]] = [
        lambda: ours.remember({WORDS: text}, **given),
        lambda: ours.remember(text, occurred_at=WORDS, **given),
        lambda: ours.remember(text, kind=WORDS, **given),
        lambda: ours.remember(text, metadata=f'{{"{WORDS}": [1]}}', **given),
        lambda: ours.remember(text, expires_in_days=WORDS, **given),
        lambda: ours.remember(text, attribute=WORDS * 20, **given),
        lambda: ours.recall(text, limit=WORDS, **given),
        lambda: ours.recall(text, kinds=WORDS, **given),
        lambda: ours.recall(**{"query": {WORDS: 1}, **given}),
        lambda: ours.recall(text, customer_id=WORDS, conversation_id=f"conv-{WORDS}"),
        lambda: ours.recall(text, customer_id=[WORDS]),
        lambda: ours.forget(query=text, action="delete", **given),
    ]
    failures += [failure_of(call) for call in odd]

    assert len(failures) > 35
    assert "internal_error" not in {failure.code for failure in failures}
    said = [json.dumps(failure.raw, ensure_ascii=False) for failure in failures]
    # Answers of calls that went well may hold the words; everything that is no answer may not.
    said += [line for line in plugin.stdout[logged_before:] if json.loads(line)["event"] != "session"]
    said += plugin.stderr[stderr_before:]
    for hidden in (WORDS, *SECRETS.values()):
        assert [line for line in said if hidden in line] == []
