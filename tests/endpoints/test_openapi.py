"""The OpenAPI description says what the endpoints really answer."""

import json
from typing import Any

import jsonschema
import pytest
import yaml

from development.places import PROJECT
from tests.conftest import Json
from tests.endpoints.conftest import Api, message, ticket

DESCRIPTION: Json = yaml.safe_load((PROJECT / "endpoints/openapi.yaml").read_text(encoding="utf-8"))
METHODS = {"get", "post", "put", "delete"}


def declared_routes() -> set[tuple[str, str]]:
    """Method and path of every endpoint that Dify shows."""
    group = yaml.safe_load((PROJECT / "endpoints/customer_memory.yaml").read_text(encoding="utf-8"))
    files = [yaml.safe_load((PROJECT / name).read_text(encoding="utf-8")) for name in group["endpoints"]]
    return {(each["method"], each["path"]) for each in files if not each.get("hidden")}


def described_routes() -> set[tuple[str, str]]:
    """Method and path of every operation described."""
    return {
        (method.upper(), path)
        for path, operations in DESCRIPTION["paths"].items()
        for method in operations
        if method in METHODS
    }


def schema_of(method: str, path: str, status: str) -> Json:
    """The schema of an operation's JSON answer, with the components to resolve references in."""
    responses = DESCRIPTION["paths"][path][method.lower()]["responses"]
    response = responses.get(status, responses["default"])
    if "$ref" in response:
        response = DESCRIPTION["components"]["responses"]["Failure"]
    schema = response["content"]["application/json"]["schema"]
    return {**schema, "components": DESCRIPTION["components"]}


def test_every_endpoint_is_described_and_every_description_exists() -> None:
    """The two lists are the same."""
    assert declared_routes() == described_routes()


def test_version_is_the_plugins() -> None:
    """The description goes with the package."""
    manifest = yaml.safe_load((PROJECT / "manifest.yaml").read_text(encoding="utf-8"))
    assert DESCRIPTION["info"]["version"] == manifest["version"]


CALLS: list[tuple[str, str, str, Any]] = [
    ("GET", "/health", "", None),
    ("POST", "/tickets/import", "", {"tickets": [ticket("1", "A", message(1, "Hello")), ticket("2", None)]}),
    ("GET", "/tickets", "?source=shop&ticket_id=1", None),
    ("POST", "/memories", "", {"customer_id": "A", "content": [{"role": "user", "content": "Prefers tea"}]}),
    ("POST", "/memories", "", {"customer_id": "A", "content": [{"role": "system", "content": "x"}]}),
    ("POST", "/recall", "", {"customer_id": "A", "query": "tea"}),
    ("POST", "/recall", "", {"customer_id": "A"}),
    ("GET", "/memories", "?customer_id=A&limit=1", None),
    ("PUT", "/links", "", {"conversation_id": "c", "customer_id": "A"}),
    ("GET", "/links", "?customer_id=A", None),
    ("GET", "/export", "?customer_id=A", None),
    ("POST", "/merge", "", {"from": "A", "into": "B", "dry_run": True}),
    ("POST", "/merge", "", {"from": "A", "into": "B", "dry_run": False}),
    ("POST", "/merge/undo", "", None),
    ("DELETE", "/tickets", "?source=shop&ticket_id=1", None),
    ("DELETE", "/memories", "?customer_id=A&query=tea", None),
    ("DELETE", "/memories", "?customer_id=A&everything=true&dry_run=false", None),
    ("GET", "/receipts", "?limit=1", None),
    ("POST", "/maintenance/expire", "", None),
    ("GET", "/audit", "?limit=3", None),
    ("GET", "/audit", "?verb=remember&key=api_key", None),
    ("GET", "/health", "", None),
]


def test_every_answer_fits_its_schema(api: Api) -> None:
    """Success of every operation, in an order in which each has something to answer."""
    seen = set()
    merge_id = ""
    for method, path, query, body in CALLS:
        sent = {"merge_id": merge_id} if path == "/merge/undo" else body
        answer = api.send(method, path + query, sent)
        if path == "/merge":
            merge_id = answer.json()["merge_id"]
        assert answer.status == 200, (method, path, answer.body)
        jsonschema.validate(answer.json(), schema_of(method, path, "200"))
        seen.add((method, path))
    others = {("GET", "/backup"), ("POST", "/backup"), ("GET", "/metrics")}
    assert seen | others == described_routes()


def test_a_backup_and_its_load_fit_their_schemas(api: Api) -> None:
    """Every line of a backup, and the report of loading it."""
    api.post("/tickets/import", {"tickets": [ticket("1", "A", message(1, "Hello"))]})
    lines = api.send("GET", "/backup").body.splitlines()
    content = DESCRIPTION["paths"]["/backup"]["get"]["responses"]["200"]["content"]
    schema = {**content["application/x-ndjson"]["schema"], "components": DESCRIPTION["components"]}
    for line in lines:
        jsonschema.validate(json.loads(line), schema)
    empty = Api(api.process, {**api.settings, "namespace": f"{api.settings['namespace']}-2"})
    report = empty.post("/backup", b"\n".join(lines))
    assert report["complete"] is True
    jsonschema.validate(report, schema_of("POST", "/backup", "200"))


@pytest.mark.parametrize(("method", "path"), sorted(described_routes()))
def test_every_failure_fits_its_schema(api: Api, method: str, path: str) -> None:
    """A wrong key, on every operation."""
    answer = api.send(method, path, {}, key="wrong")
    jsonschema.validate(answer.json(), schema_of(method, path, str(answer.status)))


def test_stopped_import_fits_its_schema(api: Api) -> None:
    """The answer with status 206."""
    api.settings["import_seconds"] = "1"
    body = {"tickets": [ticket(str(i), f"c{i}", message(1, f"Question {i}")) for i in range(600)]}
    answer = api.send("POST", "/tickets/import", body)
    assert answer.status == 206
    jsonschema.validate(answer.json(), schema_of("POST", "/tickets/import", "206"))
