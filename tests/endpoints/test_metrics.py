"""The figures for Prometheus, of a real plugin process that did nothing else."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from development.daemon import PluginFailure, PluginProcess
from development.embedding_server import EmbeddingServer
from dify.failures import HTTP_STATUS
from dify.version import VERSION
from tests.conftest import Json, Nodes
from tests.endpoints.conftest import KEY, Api, message, ticket

ADA = "ada@example.com"

type Labels = tuple[tuple[str, str], ...]


class Counting(Api):
    """The endpoints of a process that serves these tests alone, and what it counted since one began."""

    def __init__(self, process: PluginProcess, settings: Json) -> None:
        super().__init__(process, settings)
        self.before: dict[tuple[str, Labels], float] = {}
        self.logged_before = len(process.stdout)
        self.before = self.samples()

    def samples(self) -> dict[tuple[str, Labels], float]:
        """Every sample by name and labels, as Prometheus' own parser reads them, less what was before."""
        answer = self.send("GET", "/metrics")
        assert answer.status == 200, answer.body
        assert answer.headers["Content-Type"].startswith("text/plain; version=")
        found = {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in text_string_to_metric_families(answer.body.decode())
            for sample in family.samples
        }
        return {key: value - self.before.get(key, 0.0) for key, value in found.items()}

    def figure(self, name: str, **labels: str) -> float:
        """One sample of ours; 0 where it is not there yet."""
        return self.samples().get((f"customer_memory_{name}", tuple(sorted(labels.items()))), 0.0)

    def counted(self, name: str) -> dict[tuple[str, ...], float]:
        """The samples of one name that are not 0, by the values of their labels, ordered by label."""
        named = {pairs: n for (each, pairs), n in self.samples().items() if each == f"customer_memory_{name}"}
        return {tuple(value for _, value in pairs): n for pairs, n in named.items() if n}


@pytest.fixture(scope="module")
def process() -> Iterator[PluginProcess]:
    """A plugin process nobody else calls."""
    with PluginProcess() as running:
        yield running


@pytest.fixture
def fresh(process: PluginProcess, credentials: Json) -> Counting:
    """Its endpoints on a fresh namespace."""
    return Counting(process, {**credentials, "api_key": KEY})


@pytest.fixture
def own_nodes(process: PluginProcess, credentials: Json) -> Nodes:
    """Its nodes on the same namespace."""
    return Nodes(process, credentials)


def test_calls_are_counted_by_verb_and_outcome(fresh: Counting, own_nodes: Nodes) -> None:
    """Through nodes and endpoints alike, with their times by stage, and what they did with memories."""
    own_nodes.remember("Prefers tea in the morning", customer_id=ADA)
    own_nodes.remember("Prefers tea in the morning", customer_id=ADA)
    fresh.post("/memories", {"customer_id": ADA, "content": "Drives a van"})
    assert own_nodes.recall("tea", customer_id=ADA, min_score=0)["found"] == 2
    own_nodes.forget(customer_id=ADA, scope="everything")
    own_nodes.forget(customer_id=ADA, scope="everything", action="delete")
    fresh.post("/tickets/import", {"tickets": [ticket("1", "bert", message(1, "A new kettle"))]})

    def calls(verb: str) -> float:
        return fresh.figure("calls_total", verb=verb, outcome="ok")

    assert [calls(v) for v in ("remember", "recall", "forget", "import_tickets")] == [3, 1, 2, 1]
    assert fresh.figure("call_seconds_count", verb="remember") == 3
    assert fresh.figure("call_seconds_bucket", verb="remember", le="+Inf") == 3
    assert 0 < fresh.figure("call_seconds_sum", verb="recall") < 60
    for stage in ("resolve", "embed", "search", "context"):
        assert fresh.figure("stage_seconds_count", verb="recall", stage=stage) == 1
    for stage, count in (("resolve", 3), ("embed", 2), ("write", 3)):  # what is known is not embedded again
        assert fresh.figure("stage_seconds_count", verb="remember", stage=stage) == count
    memories = fresh.counted("memories_total")
    assert memories["remember", "stored"] == 2
    assert memories["remember", "duplicates"] == 1
    assert memories["recall", "found"] == 2
    assert (memories["forget", "matched"], memories["forget", "deleted"]) == (4, 2)
    assert memories["import_tickets", "stored"] == 1
    assert fresh.figure("calls_in_flight") == 0
    assert (
        f'customer_memory_plugin_info{{version="{VERSION}"}} 1.0'
        in fresh.send("GET", "/metrics").body.decode()
    )
    assert ("process_resident_memory_bytes", ()) in fresh.samples()


def test_a_failure_is_counted_once_under_its_code(fresh: Counting, own_nodes: Nodes) -> None:
    """Whether the engine met it, or it never came so far; what nobody knows has no verb of the caller's."""
    own_nodes.remember("Prefers tea", customer_id=ADA, conversation_id="c-1")
    for content, ids in (("x", {"customer_id": "bert", "conversation_id": "c-1"}), ("x", {}), (7, {})):
        with pytest.raises(PluginFailure):
            own_nodes.remember(content, **ids)
    fresh.send("POST", "/memories", b"{")
    fresh.send("POST", "/recall", {"query": "tea"}, key="wrong")
    fresh.send("POST", "/recall-of-everybody", {})
    fresh.send("POST", "/tickets/import", b"no export")
    fresh.send("POST", "/tickets/import", b"no export", headers={"Accept": "application/x-ndjson"})
    calls = fresh.counted("calls_total")
    assert {(verb, outcome): count for (outcome, verb), count in calls.items()} == {
        ("remember", "ok"): 1,
        ("remember", "conversation_of_another_customer"): 1,
        ("remember", "customer_missing"): 2,
        ("remember", "body_invalid"): 1,
        ("recall", "unauthorized"): 1,
        ("unknown", "not_found"): 1,
        ("import_tickets", "export_invalid"): 2,
    }
    logged = (json.loads(line) for line in fresh.process.stdout[fresh.logged_before :])
    lines = [json.loads(line["data"]["message"]) for line in logged if line["event"] == "log"]
    told = Counter((line["verb"], line["outcome"]) for line in lines)
    assert {(verb, outcome): count for (outcome, verb), count in calls.items()} == told


def test_a_call_that_finds_nothing_is_counted_once(fresh: Counting) -> None:
    """No such merge and no such ticket: the calls went well."""
    fresh.post("/memories", {"customer_id": ADA, "content": "Drives a van"})
    for method, path in (("GET", "/tickets"), ("DELETE", "/tickets")):
        assert fresh.send(method, f"{path}?source=shop&ticket_id=404").status == 404
    assert fresh.send("POST", "/merge/undo", {"merge_id": "f" * 32}).status == 404
    ended = {labels: n for labels, n in fresh.counted("calls_total").items() if labels[1] != "remember"}
    assert {outcome for outcome, _ in ended} == {"ok"}
    assert sum(ended.values()) == 3


def test_exports_backups_and_loads_are_counted(fresh: Counting) -> None:
    """As pages and line by line; one that is refused counts under its code."""
    fresh.post("/memories", {"customer_id": ADA, "content": "Drives a van"})
    lines = {"Accept": "application/x-ndjson"}
    for headers in ({}, lines):
        assert fresh.send("GET", f"/export?customer_id={ADA}", headers=headers).status == 200
    backup = fresh.send("GET", "/backup")
    assert backup.status == 200
    assert fresh.send("POST", "/backup", backup.body).status == 409
    fresh.settings |= {"namespace": f"{fresh.settings['namespace']}-copy"}
    assert fresh.send("POST", "/backup", backup.body).status == 200
    assert fresh.send("POST", "/backup", backup.body, headers=lines).status == 200
    calls = fresh.counted("calls_total")
    assert {labels: count for labels, count in calls.items() if labels[1] != "remember"} == {
        ("ok", "export"): 2,
        ("ok", "back_up"): 1,
        ("namespace_not_empty", "restore"): 1,
        ("ok", "restore"): 2,
    }
    assert fresh.figure("calls_in_flight") == 0


def test_an_import_counts_its_batches_and_nothing_else(fresh: Counting) -> None:
    """Answered as a whole or line by line."""
    tickets = {"tickets": [ticket("1", "bert", message(1, "A new kettle"))]}
    fresh.post("/tickets/import", tickets)
    fresh.send("POST", "/tickets/import", tickets, headers={"Accept": "application/x-ndjson"})
    assert fresh.counted("calls_total") == {("ok", "import_tickets"): 2}


def test_an_embedding_service_that_fails_shows_in_figures(fresh: Counting) -> None:
    """Its failures by code, the recalls by words alone, and its circuit until it is back."""
    with EmbeddingServer() as service:
        fresh.settings |= {
            "embedding_source": "openai_compatible",
            "embedding_base_url": service.url,
            "embedding_model": "test-embed",
        }
        fresh.post("/memories", {"customer_id": ADA, "content": "Prefers tea"})
        closed, opened = ({"service": "embedder", "state": state} for state in ("closed", "open"))
        assert (fresh.figure("circuits", **closed), fresh.figure("circuits", **opened)) == (1, 0)
        service.fail(500, 1_000, headers={"retry-after-ms": "1"})
        for _ in range(3):
            told = fresh.post("/recall", {"customer_id": ADA, "query": "tea"})
            assert told["degraded"] == "embedder_failed"
        assert fresh.error("POST", "/memories", {"customer_id": ADA, "content": "Likes cake"}) == (
            502,
            "embedder_failed",
        )
        assert (fresh.figure("circuits", **closed), fresh.figure("circuits", **opened)) == (0, 1)
        assert fresh.get("/health")["open_circuits"] == {"chroma": 0, "embedder": 1}
    assert fresh.figure("embedder_failures_total", code="embedder_failed") == 4
    assert fresh.figure("degraded_recalls_total", reason="embedder_failed") == 3
    assert fresh.figure("calls_total", verb="recall", outcome="ok") == 3
    assert fresh.figure("calls_total", verb="remember", outcome="embedder_failed") == 1
    assert fresh.figure("circuits", service="chroma", state="open") == 0


def test_nothing_of_a_customer_a_key_or_a_server_is_in_it(fresh: Counting) -> None:
    """Labels are verbs, stages and codes: nothing that anybody chose, also where it was refused."""
    hidden = "zebrafish7731"
    own = {"customer_id": hidden, "conversation_id": f"conv-{hidden}", "case_id": f"case-{hidden}"}
    fresh.settings["namespace"] = f"space-{hidden}"
    fresh.post("/memories", {**own, "content": f"Likes {hidden}", "metadata": {hidden: hidden}})
    fresh.post("/recall", {**own, "query": hidden})
    fresh.send("GET", f"/{hidden}")
    fresh.send("POST", "/recall", {**own, "kinds": hidden}, key=f"key-{hidden}")
    fresh.send("POST", "/memories", {**own, "kind": hidden, "content": hidden})
    fresh.post("/tickets/import", {"tickets": [ticket(hidden, hidden, message(1, hidden), source=hidden)]})
    text = fresh.send("GET", "/metrics").body.decode()
    for word in (hidden, KEY, "127.0.0.1", fresh.settings["chroma_url"], "test-embed"):
        assert word not in text
    labels = {
        (name, value)
        for pairs in re.findall(r"^customer_memory_\w+\{(.*)\} ", text, re.MULTILINE)
        for name, value in re.findall(r'(\w+)="([^"]*)"', pairs)
    }
    ours = {"verb", "outcome", "stage", "what", "le", "service", "state", "version", "code", "reason"}
    assert {name for name, _ in labels} <= ours
    codes = {fault.code for fault in HTTP_STATUS} | {"ok"}
    assert {value for name, value in labels if name in {"outcome", "code", "reason"}} <= codes


def test_the_environment_of_the_daemon_changes_nothing(credentials: Json, tmp_path: Path) -> None:
    """Variables of the client library that another program set: no file is written, no line is added."""
    environment = {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path), "PROMETHEUS_DISABLE_CREATED_SERIES": "false"}
    with PluginProcess(environment=environment) as own:
        api = Counting(own, {**credentials, "api_key": KEY})
        api.post("/recall", {"customer_id": ADA, "query": "tea"})
        assert api.figure("calls_total", verb="recall", outcome="ok") == 1
        assert not [name for name, _ in api.samples() if name.endswith("_created")]
    assert list(tmp_path.iterdir()) == []
