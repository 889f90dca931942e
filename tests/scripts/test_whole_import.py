"""The command line end to end: web server, plugin process and Chroma are real."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from benchmarks.generated_tickets import generate, second_round
from development.daemon import PluginProcess
from development.http_front import CUT_BYTES, HttpFront
from tests.scripts.conftest import KEY, run_command
from tests.tickets.fixtures import DATA

AUTHORIZED = {"Authorization": f"Bearer {KEY}"}


@pytest.fixture
def front(plugin: PluginProcess, credentials: dict[str, Any]) -> Iterator[HttpFront]:
    """The endpoint group on a fresh namespace, behind a web server."""
    with HttpFront(plugin, {**credentials, "api_key": KEY}) as server:
        yield server


def memories_of(front: HttpFront, customer_id: str) -> list[dict[str, Any]]:
    """What the endpoint lists of a customer."""
    query = {"customer_id": customer_id, "limit": "200"}
    answer = requests.get(f"{front.url}/memories", params=query, headers=AUTHORIZED, timeout=30)
    memories: list[dict[str, Any]] = answer.json()["memories"]
    return memories


def test_an_export_imported_twice_is_replaced_where_it_changed(front: HttpFront, tmp_path: Path) -> None:
    """The second round replaces, breaks and leaves exactly those it should, and what is listed agrees."""
    first = generate(300)
    second = second_round(first)
    first.write(tmp_path / "first.json")
    second.write(tmp_path / "second.json")
    options = ["--url", front.url, "--chunk-bytes", 60_000]
    ended = run_command(tmp_path / "first.json", *options)
    assert (ended.status, ended.counts) == (0, [300, 0, 0, 0, 0])
    ended = run_command(tmp_path / "second.json", *options)
    changed, broken = len(second.changed), len(second.broken)
    assert (ended.status, ended.counts) == (1, [0, changed, 300 - changed - broken, 0, broken])
    assert all(ticket_id in ended.output for ticket_id in second.broken)
    for customer in list(second.messages)[:20]:
        assert len(memories_of(front, customer)) == second.messages[customer]


def test_an_import_that_runs_out_of_time_goes_on(
    plugin: PluginProcess, credentials: dict[str, Any], tmp_path: Path
) -> None:
    """With one second a request, the cursors are followed until every ticket is in."""
    first = generate(400)
    first.write(tmp_path / "first.json")
    settings = {**credentials, "api_key": KEY, "import_seconds": "1"}
    with HttpFront(plugin, settings) as front:
        ended = run_command(tmp_path / "first.json", "--url", front.url)
        assert (ended.status, ended.counts) == (0, [400, 0, 0, 0, 0])
        assert len(memories_of(front, "customer-7")) == first.messages["customer-7"]


def test_each_format_arrives_as_memories(front: HttpFront, tmp_path: Path) -> None:
    """The plain export of each vendor, in one call, comes to what its fixture expects of customers' words."""
    files, expected = [], 0
    for plain in sorted(DATA.glob("*/plain.json")):
        files.append(shutil.copy(plain, tmp_path / f"{plain.parent.name}.json"))
        results = json.loads(plain.with_name("plain.expected.json").read_text())["results"]
        messages = [each for ticket in results for each in ticket["messages"]]
        expected += sum(each["role"] == "customer" for each in messages)
    ended = run_command(*files, "--url", front.url)
    assert (ended.status, len(files)) == (0, 9)
    assert f"\n{expected} memories stored" in ended.output


def test_a_wrong_key_is_refused(front: HttpFront, tmp_path: Path) -> None:
    """The real endpoint's refusal ends the command with status 2."""
    generate(2).write(tmp_path / "first.json")
    assert run_command(tmp_path / "first.json", "--url", front.url, key="wrong").status == 2


def test_a_body_dify_cuts_is_too_large(front: HttpFront) -> None:
    """A body of the length at which Dify cuts is answered with 413, not with half an import."""
    answer = requests.post(
        f"{front.url}/tickets/import", data=b" " * (CUT_BYTES + 100), headers=AUTHORIZED, timeout=60
    )
    assert answer.status_code == 413


def test_progress_comes_while_the_import_runs(front: HttpFront, tmp_path: Path) -> None:
    """The first line of progress is there before the last ticket is: it comes in a piece of its own."""
    first = generate(400)
    body = json.dumps(first.tickets).encode()
    headers = AUTHORIZED | {"Accept": "application/x-ndjson", "Content-Type": "application/json"}
    with requests.post(
        f"{front.url}/tickets/import", data=body, headers=headers, stream=True, timeout=60
    ) as answer:
        lines = [json.loads(line) for line in answer.iter_lines()]
        assert answer.headers["Transfer-Encoding"] == "chunked"
    *steps, last = lines
    assert 0 < steps[0]["done"] < 400
    assert last["complete"] is True
