"""Tests of the command line against an endpoint with a script."""

import json
import socket
from pathlib import Path

import pytest

from scripts.import_tickets import main
from tests.scripts.conftest import KEY, Answer, ScriptedEndpoint, report, run_command, write_tickets

QUICK = ["--retry-seconds", "0"]
LINES = {"Content-Type": "application/x-ndjson"}
JSON = {"Content-Type": "application/json"}


def failure(code: str, *, retryable: bool = False, message: str = "It is so.") -> bytes:
    """The body of an answer that is an error."""
    return json.dumps({"error": {"code": code, "message": message, "retryable": retryable}}).encode()


def progress(done: int) -> bytes:
    """A line of progress."""
    return json.dumps({"done": done, "total": 9, "rate": 1.0, "eta_seconds": 1.0}).encode() + b"\n"


def test_a_file_is_imported_in_chunks(endpoint: ScriptedEndpoint, tmp_path: Path) -> None:
    """Every ticket is sent once, with key, format and options, and the summary counts them all."""
    path = write_tickets(tmp_path, 20)
    options = ["--source", "shop", "--timezone", "Europe/Berlin", "--include-private", "--dry-run"]
    ended = run_command(
        path, "--url", endpoint.url, "--chunk-bytes", 1_000, "--customer-field", "a.b", *options
    )
    assert (ended.status, ended.counts) == (0, [20, 0, 0, 0, 0])
    assert "nothing was written" in ended.output
    assert [each for asked in endpoint.asked for each in asked.ticket_ids] == [f"T-{n}" for n in range(20)]
    assert len(endpoint.asked) > 3
    asked = endpoint.asked[0]
    assert asked.path == "/e/hook/tickets/import"
    assert asked.query == {
        "format": "canonical",
        "source": "shop",
        "timezone": "Europe/Berlin",
        "include_private": "true",
        "dry_run": "true",
        "customer_field": "a.b",
    }
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert "content-encoding" not in asked.headers


def test_a_plain_import_names_no_option(endpoint: ScriptedEndpoint, tmp_path: Path) -> None:
    """Started as a module and with nothing but an address, only the format found is said."""
    ended = run_command(write_tickets(tmp_path, 1), "--url", f"{endpoint.url}/", as_module=True)
    assert ended.status == 0
    assert endpoint.asked[0].query == {"format": "canonical"}


def test_the_customer_map_comes_from_a_file(endpoint: ScriptedEndpoint, tmp_path: Path) -> None:
    """The entries that occur are sent as JSON."""
    names = tmp_path / "map.json"
    names.write_text(json.dumps({"ann": "crm-1", "bob": "crm-2"}))
    run_command(write_tickets(tmp_path, 1), "--url", endpoint.url, "--customer-map", names)
    assert json.loads(endpoint.asked[0].query["customer_map"]) == {"ann": "crm-1"}


def test_progress_lines_end_in_a_report(endpoint: ScriptedEndpoint, tmp_path: Path) -> None:
    """A stream of lines is followed to its last one, which is the report."""
    endpoint.answers.append(Answer(body=progress(1) + progress(2) + report(2), headers=LINES))
    ended = run_command(write_tickets(tmp_path, 2), "--url", endpoint.url)
    assert (ended.status, ended.counts) == (0, [2, 0, 0, 0, 0])
    assert endpoint.asked[0].headers["accept"].startswith("application/x-ndjson")


def test_a_cursor_is_followed_with_the_same_body(endpoint: ScriptedEndpoint, tmp_path: Path) -> None:
    """An import that stopped for time goes on where it says, until it is complete."""
    endpoint.answers.append(Answer(206, report(1, cursor=1), JSON))
    endpoint.answers.append(Answer(200, report(2, cursor=3) + b"\n", LINES))
    endpoint.answers.append(Answer(200, report(1), JSON))
    ended = run_command(write_tickets(tmp_path, 4), "--url", endpoint.url)
    assert (ended.status, ended.counts) == (0, [4, 0, 0, 0, 0])
    assert [asked.query.get("cursor") for asked in endpoint.asked] == [None, "1", "3"]
    assert len({asked.body for asked in endpoint.asked}) == 1


def test_a_cursor_that_does_not_move_ends_the_import(endpoint: ScriptedEndpoint, tmp_path: Path) -> None:
    """An endpoint that points back to the beginning is not asked for ever."""
    endpoint.answers.extend([Answer(206, report(0, cursor=0), JSON)] * 3)
    ended = run_command(write_tickets(tmp_path, 1), "--url", endpoint.url)
    assert (ended.status, len(endpoint.asked)) == (2, 1)


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_busy_endpoint_is_asked_again(endpoint: ScriptedEndpoint, tmp_path: Path, status: int) -> None:
    """A passing failure is waited out, whether a proxy says it or the endpoint, and counts nothing twice."""
    endpoint.answers.append(Answer(status, b"<html>later</html>", {"Retry-After": "0"}))
    endpoint.answers.append(Answer(status, failure("chroma_busy", retryable=True), JSON))
    ended = run_command(write_tickets(tmp_path, 3), "--url", endpoint.url, *QUICK)
    assert (ended.status, ended.counts) == (0, [3, 0, 0, 0, 0])
    assert len({asked.body for asked in endpoint.asked}) == 1
    assert len(endpoint.asked) == 3


def test_a_failure_in_the_middle_of_progress_is_tried_again(
    endpoint: ScriptedEndpoint, tmp_path: Path
) -> None:
    """An error line after a good start counts as what it says."""
    body = progress(1) + failure("chroma_timeout", retryable=True) + b"\n"
    endpoint.answers.append(Answer(200, body, LINES))
    ended = run_command(write_tickets(tmp_path, 2), "--url", endpoint.url, *QUICK)
    assert (ended.status, ended.counts, len(endpoint.asked)) == (0, [2, 0, 0, 0, 0], 2)


def test_a_cut_connection_is_tried_again(endpoint: ScriptedEndpoint, tmp_path: Path) -> None:
    """An answer that breaks off, in a line, between lines or before the first byte, is asked for again."""
    whole = progress(1) + report(2)
    for cut_at in (len(progress(1)) + 5, len(progress(1)), 0):
        endpoint.answers.append(Answer(200, whole, LINES, cut_at=cut_at))
    ended = run_command(write_tickets(tmp_path, 2), "--url", endpoint.url, *QUICK)
    assert (ended.status, ended.counts, len(endpoint.asked)) == (0, [2, 0, 0, 0, 0], 4)


def test_after_broken_streams_plain_json_is_asked_for(endpoint: ScriptedEndpoint, tmp_path: Path) -> None:
    """Where progress lines do not get through, the import goes on without them."""
    endpoint.answers.extend([Answer(200, progress(1), LINES)] * 2)
    ended = run_command(write_tickets(tmp_path, 2), "--url", endpoint.url, *QUICK)
    accepted = [asked.headers["accept"] for asked in endpoint.asked]
    assert (ended.status, accepted[2]) == (0, "application/json")
    assert all("ndjson" in each for each in accepted[:2])


def test_tries_have_an_end(endpoint: ScriptedEndpoint, tmp_path: Path) -> None:
    """An endpoint that stays busy is left alone after the agreed number of tries, with status 2."""
    endpoint.answers.extend([Answer(503, b"", {})] * 9)
    ended = run_command(write_tickets(tmp_path, 2), "--url", endpoint.url, *QUICK, "--retries", 2)
    assert (ended.status, len(endpoint.asked)) == (2, 3)


def test_failed_tickets_are_listed_and_written_down(endpoint: ScriptedEndpoint, tmp_path: Path) -> None:
    """Status 1, with id and code of each on the screen, and with its place in the file as JSON."""
    problem = {"ticket_id": "T-1", "code": "time_invalid", "path": "lines[2].messages[0].created_at"}
    tickets = {"imported": 1, "replaced": 0, "unchanged": 0, "outdated": 0, "failed": 1}
    endpoint.answers.append(Answer(200, report(1, problems=[problem], tickets=tickets), JSON))
    written = tmp_path / "problems.jsonl"
    ended = run_command(write_tickets(tmp_path, 2), "--url", endpoint.url, "--problems", written)
    assert (ended.status, ended.counts) == (1, [1, 0, 0, 0, 1])
    assert "T-1" in ended.output
    assert "time_invalid" in ended.output
    assert [json.loads(line) for line in written.read_text().splitlines()] == [
        {
            "file": "export.json",
            "ticket_id": "T-1",
            "code": "time_invalid",
            "path": "tickets[1].messages[0].created_at",
        }
    ]


def test_a_ticket_larger_than_a_chunk_is_listed(endpoint: ScriptedEndpoint, tmp_path: Path) -> None:
    """One that cannot travel is a failed ticket; the others are imported."""
    path = write_tickets(tmp_path, 2)
    large = write_tickets(tmp_path, 1, name="large.json", words="x" * 5_000)
    ended = run_command(path, large, "--url", endpoint.url, "--chunk-bytes", 2_000)
    assert (ended.status, ended.counts) == (1, [2, 0, 0, 0, 1])
    assert "large.json  ticket T-0  ticket_too_large" in ended.output


def test_a_file_that_cannot_be_read_does_not_stop_the_others(
    endpoint: ScriptedEndpoint, tmp_path: Path
) -> None:
    """The broken file is listed with its code, the next one is imported, and the status is 1."""
    broken = tmp_path / "broken.json"
    broken.write_text('{"tickets": [')
    ended = run_command(broken, write_tickets(tmp_path, 2), "--url", endpoint.url, "--format", "canonical")
    assert (ended.status, ended.counts) == (1, [2, 0, 0, 0, 0])
    assert "broken.json  -  json_invalid" in ended.output


def test_a_chunk_the_endpoint_cannot_read_is_listed(endpoint: ScriptedEndpoint, tmp_path: Path) -> None:
    """The tickets of a refused chunk fail with the reader's own code, the next chunk is sent."""
    message = "The export cannot be read: envelope_invalid at lines[1]."
    endpoint.answers.append(Answer(422, failure("export_invalid", message=message), JSON))
    ended = run_command(write_tickets(tmp_path, 2), "--url", endpoint.url, "--chunk-bytes", 200)
    assert (ended.status, ended.counts) == (1, [1, 0, 0, 0, 1])
    assert "ticket T-0  envelope_invalid" in ended.output


@pytest.mark.parametrize(
    ("answer", "word"),
    [
        (Answer(401, failure("unauthorized"), JSON), "CUSTOMER_MEMORY_API_KEY"),
        (Answer(404, b"404 page not found", {}), "no Customer Memory endpoint"),
        (Answer(200, b"<html>Dify</html>", {}), "no Customer Memory endpoint"),
        (Answer(200, b'{"complete": true}', JSON), "no Customer Memory endpoint"),
        (Answer(302, b"", {"Location": "https://example.com/"}), "redirects"),
        (Answer(409, failure("embedder_mismatch"), JSON), "embedder_mismatch"),
        (Answer(502, failure("chroma_refused"), JSON), "chroma_refused"),
    ],
    ids=["key", "address", "page", "other-json", "redirect", "model", "chroma-key"],
)
def test_what_somebody_has_to_act_on_ends_the_import(
    endpoint: ScriptedEndpoint, tmp_path: Path, answer: Answer, word: str
) -> None:
    """Status 2 after one request, with a sentence that says what is wrong."""
    endpoint.answers.append(answer)
    ended = run_command(write_tickets(tmp_path, 2), "--url", endpoint.url, "--chunk-bytes", 200)
    assert (ended.status, len(endpoint.asked)) == (2, 1)
    assert word in ended.complaints


def test_an_endpoint_nobody_listens_at_ends_the_import(tmp_path: Path) -> None:
    """Status 2 when the address cannot be reached."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        ended = run_command(write_tickets(tmp_path, 1), "--url", url, *QUICK, "--retries", 1)
    assert ended.status == 2
    assert "cannot be reached" in ended.complaints


@pytest.mark.parametrize(
    "arguments",
    [
        ["--url", "ftp://example.com"],
        ["--url", "http://example.com", "--format", "other"],
        ["--url", "http://example.com", "--timezone", "Mars/Base"],
        ["--url", "http://example.com", "--chunk-bytes", "10000001"],
        ["--url", "http://example.com", "--customer-map", "/nowhere.json"],
        ["--url", "http://example.com", "--state", "/nowhere/state"],
        [],
    ],
    ids=["address", "format", "zone", "size", "map", "state", "none"],
)
def test_a_wrong_call_is_told_before_anything_is_sent(
    tmp_path: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Status 2 for options that cannot be."""
    monkeypatch.setenv("CUSTOMER_MEMORY_API_KEY", KEY)
    with pytest.raises(SystemExit) as raised:
        main([str(write_tickets(tmp_path, 1)), *arguments])
    assert raised.value.code == 2


@pytest.mark.parametrize("key", [None, "", "two\nlines", "schlüssel"])
def test_a_key_is_needed(tmp_path: Path, key: str | None) -> None:
    """Status 2 without a usable key in the environment, whose text is not repeated."""
    ended = run_command(write_tickets(tmp_path, 1), "--url", "http://127.0.0.1:9", key=key)
    assert ended.status == 2
    assert "CUSTOMER_MEMORY_API_KEY" in ended.complaints
    assert not key or key not in ended.output + ended.complaints


def test_an_import_goes_on_after_an_interruption(endpoint: ScriptedEndpoint, tmp_path: Path) -> None:
    """The second run sends only what the first has not finished, and its summary counts both."""
    path, state = write_tickets(tmp_path, 4), tmp_path / "state"
    options = [path, "--url", endpoint.url, "--chunk-bytes", 400, "--state", state, *QUICK, "--retries", 0]
    endpoint.answers.extend([Answer(200, report(2), JSON), Answer(503, b"", {})])
    assert run_command(*options).status == 2
    ended = run_command(*options)
    assert (ended.status, ended.counts) == (0, [4, 0, 0, 0, 0])
    sent = [asked.ticket_ids for asked in endpoint.asked]
    assert sent == [["T-0", "T-1"], ["T-2", "T-3"], ["T-2", "T-3"]]
    again = run_command(*options)
    assert (again.status, again.counts, len(endpoint.asked)) == (0, [4, 0, 0, 0, 0], 3)


def test_an_import_goes_on_in_the_middle_of_a_chunk(endpoint: ScriptedEndpoint, tmp_path: Path) -> None:
    """A chunk that was half done is sent with the cursor, and its problems are not forgotten."""
    problem = {"ticket_id": "T-0", "code": "customer_missing", "path": ""}
    tickets = {"imported": 1, "replaced": 0, "unchanged": 0, "outdated": 0, "failed": 1}
    half = report(1, cursor=2, problems=[problem], tickets=tickets)
    endpoint.answers.extend([Answer(206, half, JSON), Answer(401, failure("unauthorized"), JSON)])
    options = [write_tickets(tmp_path, 4), "--url", endpoint.url, "--state", tmp_path / "state"]
    assert run_command(*options).status == 2
    endpoint.answers.append(Answer(200, report(2), JSON))
    ended = run_command(*options)
    assert endpoint.asked[-1].query["cursor"] == "2"
    assert (ended.status, ended.counts) == (1, [3, 0, 0, 0, 1])
    assert "T-0" in ended.output


def test_a_state_cut_short_is_good_up_to_there(endpoint: ScriptedEndpoint, tmp_path: Path) -> None:
    """A last line that was not written to its end counts as not written, and the file goes on after it."""
    state = tmp_path / "state"
    options = [write_tickets(tmp_path, 2), "--url", endpoint.url, "--chunk-bytes", 200, "--state", state]
    run_command(*options)
    state.write_bytes(state.read_bytes()[:-20])
    ended = run_command(*options)
    assert [asked.ticket_ids for asked in endpoint.asked] == [["T-0"], ["T-1"], ["T-1"]]
    assert ended.counts == [2, 0, 0, 0, 0]
    run_command(*options)
    assert len(endpoint.asked) == 3


def test_another_target_or_another_file_is_not_taken_for_done(
    endpoint: ScriptedEndpoint, tmp_path: Path
) -> None:
    """A dry run, another source or changed words are sent although the state knows the file."""
    path, state = write_tickets(tmp_path, 1), tmp_path / "state"
    options = ["--url", endpoint.url, "--state", state]
    run_command(path, *options, "--dry-run")
    run_command(path, *options)
    run_command(path, *options, "--source", "shop")
    write_tickets(tmp_path, 1, words="Other words.")
    run_command(path, *options)
    assert len(endpoint.asked) == 4


def test_neither_key_nor_words_are_ever_shown(endpoint: ScriptedEndpoint, tmp_path: Path) -> None:
    """Whatever happens, screen and files hold no key and nothing a customer said."""
    words = "The-secret-of-Ann"
    path = write_tickets(tmp_path, 3, words=words)
    state, problems = tmp_path / "state", tmp_path / "problems"
    refused = Answer(422, failure("export_invalid"), JSON)
    endpoint.answers.extend([Answer(503, f"{words} {KEY}".encode(), {}), refused, Answer(500, b"", {})])
    endpoint.answers.append(Answer(401, failure("unauthorized"), JSON))
    ended = run_command(
        path,
        "--url",
        endpoint.url,
        "--chunk-bytes",
        250,
        "--state",
        state,
        "--problems",
        problems,
        *QUICK,
    )
    assert ended.status == 2
    assert words.encode() in endpoint.asked[0].lines[0]
    written = state.read_text() if state.exists() else ""
    everything = ended.output + ended.complaints + written + problems.read_text()
    assert words not in everything
    assert KEY not in everything
