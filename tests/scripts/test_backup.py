"""The command lines that take memories elsewhere: web server, plugin process and Chroma are real."""

import gzip
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from development.daemon import PluginProcess
from development.http_front import HttpFront
from memory.backup_file import bound
from tests.scripts.conftest import KEY, Answer, Ended, ScriptedEndpoint, run_command

AUTHORIZED = {"Authorization": f"Bearer {KEY}"}
COUNT = 30


def backup(*arguments: object, **options: Any) -> Ended:
    """Run the command line for backups."""
    return run_command(*arguments, script="backup", **options)


def export(*arguments: object, **options: Any) -> Ended:
    """Run the command line for exports."""
    return run_command(*arguments, script="export_customer", **options)


@pytest.fixture
def front(plugin: PluginProcess, credentials: dict[str, Any]) -> Iterator[HttpFront]:
    """The endpoint group on a namespace with thirty customers, behind a web server."""
    with HttpFront(plugin, {**credentials, "api_key": KEY}) as server:
        sent = {"at": "2024-05-01T08:00:00Z", "role": "customer"}
        tickets = [
            {
                "source": "shop",
                "ticket_id": f"t{i}",
                "customer_id": f"c{i}",
                "messages": [
                    {"message_id": "1", "role": sent["role"], "created_at": sent["at"], "text": f"Mug {i}"}
                ],
            }
            for i in range(COUNT)
        ]
        url = f"{server.url}/tickets/import"
        requests.post(url, json={"tickets": tickets}, headers=AUTHORIZED, timeout=60).raise_for_status()
        yield server


@pytest.fixture
def empty(plugin: PluginProcess, credentials: dict[str, Any]) -> Iterator[HttpFront]:
    """The endpoint group on another namespace, which is empty."""
    settings = {**credentials, "namespace": f"t{uuid.uuid4().hex[:16]}", "api_key": KEY}
    with HttpFront(plugin, settings) as server:
        yield server


def lines_of(path: Path) -> list[dict[str, Any]]:
    """The lines of a backup's file."""
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def health_of(front: HttpFront) -> dict[str, Any]:
    """What a namespace holds, in counts."""
    health: dict[str, Any] = requests.get(f"{front.url}/health", headers=AUTHORIZED, timeout=30).json()
    return health


def test_a_backup_is_downloaded_and_restored(front: HttpFront, empty: HttpFront, tmp_path: Path) -> None:
    """The summaries count the same and name the same checksum, and an import finds everything unchanged."""
    path = tmp_path / "memory.jsonl.gz"
    ended = backup("download", path, "--url", front.url)
    assert (ended.status, ended.complaints) == (0, "")
    assert f"{COUNT} memories, {COUNT} links, {COUNT} ledger" in ended.output
    assert not list(tmp_path.glob("*.part"))
    loaded = backup("restore", path, "--url", empty.url, "--part-bytes", 20_000)
    assert (loaded.status, loaded.complaints) == (0, "")
    assert f"{COUNT} memories, {COUNT} links, {COUNT} ledger, 0 aliases loaded" in loaded.output
    assert ended.output.splitlines()[-1] == loaded.output.splitlines()[-1]
    counts = ("rows", "links", "tickets", "embedder", "dimension")
    assert [health_of(empty)[name] for name in counts] == [health_of(front)[name] for name in counts]


def test_a_download_goes_on_where_it_was_cut(front: HttpFront, tmp_path: Path) -> None:
    """Half a file, cut within a stretch, becomes the very backup that is downloaded in one go."""
    whole = tmp_path / "whole.jsonl.gz"
    backup("download", whole, "--url", front.url)
    content = whole.read_bytes()
    path = tmp_path / "memory.jsonl.gz"
    path.with_name("memory.jsonl.gz.part").write_bytes(content[: len(content) // 2])
    ended = backup("download", path, "--url", front.url)
    assert ended.status == 0
    assert lines_of(path) == lines_of(whole)


def test_a_restore_goes_on_where_it_was_cut(front: HttpFront, empty: HttpFront, tmp_path: Path) -> None:
    """A load that another run began is gone on with, and one that is complete is not done again."""
    path = tmp_path / "memory.jsonl.gz"
    backup("download", path, "--url", front.url)
    content = gzip.decompress(path.read_bytes())
    half = content[: len(content) // 2]
    answer = requests.post(f"{empty.url}/backup", data=half, headers=AUTHORIZED, timeout=60)
    assert answer.json()["error"]["code"] == "backup_damaged"
    assert 0 < health_of(empty)["rows"] < COUNT
    for _ in range(2):
        ended = backup("restore", path, "--url", empty.url)
        assert (ended.status, ended.complaints) == (0, "")
        assert f"{COUNT} memories, {COUNT} links, {COUNT} ledger, 0 aliases loaded" in ended.output


def test_rows_that_are_left_out_are_named_by_their_line(
    front: HttpFront, empty: HttpFront, tmp_path: Path
) -> None:
    """Status 1, and the line in the file, whatever part it was sent in."""
    path = tmp_path / "memory.jsonl.gz"
    backup("download", path, "--url", front.url)
    lines = gzip.decompress(path.read_bytes()).splitlines()
    checksum, foreign = bound("", lines[:1]), 0
    for i, line in enumerate(lines[1:], 1):
        value = json.loads(line)
        if value["type"] == "row":
            if value["collection"] == "links" and not foreign:
                foreign = i + 1
                value["columns"]["customer_id"] = "eve"
                lines[i] = json.dumps(value).encode()
            checksum = bound(checksum, [lines[i]])
        else:
            lines[i] = json.dumps(value | {"checksum": checksum}).encode()
    path.write_bytes(b"\n".join(lines) + b"\n")  # plain is as good as gzip
    ended = backup("restore", path, "--url", empty.url, "--part-bytes", 20_000)
    assert ended.status == 1
    assert "1 rows left out" in ended.output
    assert f"line {foreign:,}  links  row_foreign" in ended.output


@pytest.mark.parametrize("damage", ["cut", "changed", "no backup", "cut gzip"])
def test_a_damaged_file_is_not_loaded_as_a_whole(
    front: HttpFront, empty: HttpFront, tmp_path: Path, damage: str
) -> None:
    """Status 2 with a sentence; what is good before the damage may be there already."""
    path = tmp_path / "memory.jsonl.gz"
    backup("download", path, "--url", front.url)
    content = gzip.decompress(path.read_bytes())
    path.write_bytes(
        {
            "cut": content[: content.rindex(b'{"type":"trailer"')],
            "changed": content.replace(b"Mug 17", b"Mug 71"),
            "no backup": b'{"tickets": []}\n',
            "cut gzip": path.read_bytes()[:-30],
        }[damage]
    )
    ended = backup("restore", path, "--url", empty.url)
    assert ended.status == 2
    assert ended.complaints.count("\n") == 1
    assert "Mug 71" not in json.dumps(
        requests.get(f"{empty.url}/memories?customer_id=c17", headers=AUTHORIZED, timeout=30).json()
    )


def test_what_is_there_already_is_refused(front: HttpFront, tmp_path: Path) -> None:
    """No file is written over, and no namespace is loaded over."""
    path = tmp_path / "memory.jsonl.gz"
    backup("download", path, "--url", front.url)
    again = backup("download", path, "--url", front.url)
    assert (again.status, "is there already" in again.complaints) == (2, True)
    ended = backup("restore", path, "--url", front.url)
    assert (ended.status, "namespace_not_empty" in ended.complaints) == (2, True)


def test_an_export_is_written(front: HttpFront, tmp_path: Path) -> None:
    """A line an item, the first for whom it is about, the last with counts; nobody else's words."""
    path = tmp_path / "c7.jsonl"
    ended = export(path, "--customer-id", "c7", "--url", front.url)
    assert (ended.status, ended.complaints) == (0, "")
    assert "1 memories, 0 ended, 1 links, 1 tickets" in ended.output
    first, memory, link, ticket, last = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    assert (first["type"], first["customer_id"]) == ("customer", "c7")
    assert (memory["type"], memory["text"]) == ("memory", "Mug 7")
    assert (link["type"], ticket["type"], ticket["ticket_id"]) == ("link", "ticket", "t7")
    assert last["counts"] == {"memories": 1, "ended": 0, "links": 1, "tickets": 1}
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("command", ["download", "restore", "export"])
def test_a_wrong_key_and_no_key_are_refused(front: HttpFront, tmp_path: Path, command: str) -> None:
    """Status 2, and no file is left."""
    path = tmp_path / "file"
    if command == "restore":
        path.write_bytes(b'{"type":"header","counts":{}}\n')
    for key in ("wrong", None):
        if command == "export":
            ended = export(path, "--customer-id", "c7", "--url", front.url, key=key)
        else:
            ended = backup(command, path, "--url", front.url, key=key)
        assert ended.status == 2
        assert "CUSTOMER_MEMORY_API_KEY" in ended.complaints
    assert path.exists() == (command == "restore")


def test_a_busy_endpoint_is_asked_again(endpoint: ScriptedEndpoint, tmp_path: Path) -> None:
    """An answer that breaks off and one that is not ready are tried again, from the last checkpoint on."""
    header = b'{"type":"header","counts":{"links":2}}'
    begun = bound("", [header])
    rows = [json.dumps({"type": "row", "id": i, "text": "x" * 20_000}).encode() for i in "12"]

    def checkpoint(rows: int, checksum: str) -> bytes:
        value = {"type": "checkpoint", "rows": rows, "checksum": checksum, "cursor": f"at-{rows}"}
        return json.dumps(value).encode()

    middle, end = bound(begun, rows[:1]), bound(begun, rows)
    trailer = json.dumps({"type": "trailer", "counts": {"links": 2}, "checksum": end}).encode()
    first = b"\n".join([header, checkpoint(0, begun), rows[0], checkpoint(1, middle), rows[1], b""])
    rest = b"\n".join([checkpoint(1, middle), rows[1], checkpoint(2, end), trailer, b""])
    lines = {"Content-Type": "application/x-ndjson"}
    endpoint.answers.extend(
        [
            Answer(503, b'{"error":{"code":"chroma_busy","message":"","retryable":true}}'),
            Answer(200, first, lines, cut_at=len(first) - 9_000),
            Answer(200, rest, lines),
        ]
    )
    path = tmp_path / "memory.jsonl.gz"
    ended = backup("download", path, "--url", endpoint.url, "--retry-seconds", 0.01)
    assert ended.status == 0
    assert [asked.query for asked in endpoint.asked] == [{}, {}, {"cursor": "at-1"}]
    told = [line for line in lines_of(path) if line["type"] != "checkpoint"]
    assert [line.get("id", line["type"]) for line in told] == ["header", "1", "2", "trailer"]


def test_what_was_changed_on_the_way_is_noticed(endpoint: ScriptedEndpoint, tmp_path: Path) -> None:
    """A wrong checksum ends the download; nothing of that stretch is kept."""
    header = b'{"type":"header","counts":{}}'
    wrong = b'{"type":"checkpoint","rows":0,"checksum":"0","cursor":"c"}'
    endpoint.answers.append(
        Answer(200, header + b"\n" + wrong + b"\n", {"Content-Type": "application/x-ndjson"})
    )
    ended = backup("download", tmp_path / "memory.jsonl.gz", "--url", endpoint.url)
    assert (ended.status, "checksum is wrong" in ended.complaints) == (2, True)
    assert list(tmp_path.iterdir()) == []
