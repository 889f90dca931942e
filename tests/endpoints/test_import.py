"""Importing past tickets: once, again, changed, cut off, and in bulk."""

import gzip
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from development.chroma_server import ChromaServer
from development.daemon import PluginProcess
from tests.conftest import Json
from tests.endpoints.conftest import Api, message, ticket


def statuses(report: Json) -> dict[str, int]:
    """The ticket counts of a report that are not zero."""
    return {status: count for status, count in report["tickets"].items() if count}


def test_ticket_becomes_events_of_the_customers_own_words(api: Api) -> None:
    """One memory a public customer message, with subject and answer beside it; the link is made."""
    api.post(
        "/tickets/import",
        {
            "tickets": [
                ticket(
                    "77",
                    "A",
                    message(1, "The lid of my machine is broken"),
                    message(2, "Try our Pro plan", role="agent"),
                    message(3, "Secret note about her", role="agent", public=False),
                    message(4, "It arrived, thank you"),
                    case_id="k1",
                    subject="Broken lid",
                )
            ]
        },
    )
    memories = api.get("/memories?customer_id=A")["memories"]
    assert [m["text"] for m in memories] == ["The lid of my machine is broken", "It arrived, thank you"]
    first = memories[0]
    assert (first["kind"], first["topic"], first["reply"]) == ("episodic", "Broken lid", "Try our Pro plan")
    assert (first["occurred_at"], first["case_id"]) == ("2024-03-01T10:00:00Z", "k1")
    assert api.get("/links?conversation_id=shop:77")["links"][0]["customer_id"] == "A"
    assert api.post("/recall", {"customer_id": "A", "query": "Pro plan", "kinds": "semantic"})["found"] == 0
    assert "Secret" not in json.dumps(memories)


def test_same_export_twice_changes_nothing(api: Api) -> None:
    """The second time every ticket is unchanged, and the counts equal what is there."""
    body = {"tickets": [ticket(str(i), f"c{i % 3}", message(1, f"Question {i}")) for i in range(12)]}
    first = api.post("/tickets/import", body)
    again = api.post("/tickets/import", body)
    assert (statuses(first), first["memories"]["stored"]) == ({"imported": 12}, 12)
    assert (statuses(again), again["memories"]["stored"]) == ({"unchanged": 12}, 0)
    assert sum(len(api.texts(f"c{i}")) for i in range(3)) == 12


def test_changed_ticket_replaces_what_came_from_it(api: Api) -> None:
    """An edited message has its new words, a deleted one and a redacted one are gone, a new one is there."""
    before = ticket("1", "A", *(message(day, f"Message of day {day}") for day in (1, 2, 3)))
    api.post("/tickets/import", {"tickets": [before]})
    after = ticket(
        "1",
        "A",
        message(1, "Edited message of day 1"),
        message(3, "", redacted=True),
        message(4, "Message of day 4"),
    )
    report = api.post("/tickets/import", {"tickets": [after]})
    assert (statuses(report), report["memories"]) == ({"replaced": 1}, {"stored": 2, "removed": 2})
    assert api.texts("A") == ["Edited message of day 1", "Message of day 4"]
    assert api.get("/tickets?source=shop&ticket_id=1")["memories"] == 2


def test_ticket_that_changes_its_customer_moves(api: Api) -> None:
    """Nothing of it stays with the first customer, and the link goes along."""
    api.post("/tickets/import", {"tickets": [ticket("1", "A", message(1, "A question"))]})
    report = api.post("/tickets/import", {"tickets": [ticket("1", "B", message(1, "A question"))]})
    assert statuses(report) == {"replaced": 1}
    assert (api.texts("A"), api.texts("B")) == ([], ["A question"])
    assert api.get("/links?conversation_id=shop:1")["links"][0]["customer_id"] == "B"


def test_older_version_of_a_ticket_does_not_replace_a_newer_one(api: Api) -> None:
    """Exports may arrive in any order."""
    new = ticket("1", "A", message(1, "New words"), updated_at="2024-03-09T00:00:00Z")
    old = ticket("1", "A", message(1, "Old words"), updated_at="2024-03-02T00:00:00Z")
    api.post("/tickets/import", {"tickets": [new]})
    assert statuses(api.post("/tickets/import", {"tickets": [old]})) == {"outdated": 1}
    assert api.texts("A") == ["New words"]


def test_bad_items_do_not_stop_the_others(api: Api) -> None:
    """Each has its own code and place, and none of its words."""
    body = {
        "tickets": [
            ticket("1", "A", message(1, "Good")),
            ticket("2", None, message(1, "SECRET words")),
            ticket("3", "A", message(1, "SECRET words", created_at="2024-03-01T10:00:00")),
            ticket("4", "{{customer}}", message(1, "SECRET words")),
            "SECRET",
            ticket("6", "A", message(1, "Good too"), message(2, "SECRET", created_at="soon")),
        ]
    }
    report = api.post("/tickets/import", body)
    assert statuses(report) == {"imported": 2, "failed": 4}
    codes = {problem["ticket_id"]: problem["code"] for problem in report["problems"]}
    assert codes["2"] == "customer_missing"
    assert codes["3"] == "time_without_zone"
    assert codes["4"] == "id_invalid"
    assert codes["6"] == "time_invalid"
    assert "SECRET" not in json.dumps(report)
    assert api.texts("A") == ["Good", "Good too"]


def test_conversation_of_another_customer_is_refused_for_that_ticket(api: Api) -> None:
    """A link somebody made is not taken by an import."""
    api.send("PUT", "/links", {"conversation_id": "shop:1", "customer_id": "B"})
    body = {"tickets": [ticket("1", "A", message(1, "Mine")), ticket("2", "A", message(1, "Mine too"))]}
    report = api.post("/tickets/import", body)
    assert report["problems"] == [{"ticket_id": "1", "code": "conversation_of_another_customer", "path": ""}]
    assert (api.texts("A"), api.texts("B")) == (["Mine too"], [])


def test_dry_run_says_what_would_happen_and_writes_nothing(api: Api) -> None:
    """Neither memories nor links nor the namespace."""
    body = {"tickets": [ticket("1", "A", message(1, "A question"))]}
    report = api.post("/tickets/import?dry_run=true", body)
    assert (statuses(report), report["memories"]["stored"], report["dry_run"]) == ({"imported": 1}, 1, True)
    assert api.texts("A") == []
    assert api.get("/health")["embedder"] is None
    assert api.get("/links?customer_id=A")["links"] == []


@pytest.mark.parametrize("encode", ["json", "array", "ndjson", "gzip"])
def test_every_way_of_writing_an_export_is_read(api: Api, encode: str) -> None:
    """JSON, a bare array, NDJSON, gzip: the same memories."""
    tickets = [ticket(str(i), "A", message(i, f"Question {i}")) for i in (1, 2)]
    lines = "\n".join(map(json.dumps, tickets)).encode()
    body = {
        "json": json.dumps({"tickets": tickets}).encode(),
        "array": json.dumps(tickets).encode(),
        "ndjson": lines,
        "gzip": gzip.compress(lines),
    }[encode]
    assert statuses(api.post("/tickets/import", body)) == {"imported": 2}
    assert api.texts("A") == ["Question 1", "Question 2"]


def test_csv_is_read_with_its_media_type(api: Api) -> None:
    """Rows of one ticket need not be adjacent."""
    rows = (
        "ticket_id;customer_id;message_id;role;public;body;created_at\n"
        '1;A;1;customer;true;"First\nline";2024-03-01T10:00:00Z\n'
        "2;B;1;customer;true;Other;2024-03-01T10:00:00Z\n"
        "1;A;2;customer;true;Second;2024-03-02T10:00:00Z\n"
    )
    headers = {"Content-Type": "text/csv"}
    assert statuses(api.post("/tickets/import", rows.encode(), headers=headers)) == {"imported": 2}
    assert api.texts("A") == ["First\nline", "Second"]


@pytest.mark.parametrize(
    ("path", "body", "headers", "expected"),
    [
        ("", b"not json", {}, (422, "export_invalid")),
        ("", b"", {}, (422, "export_invalid")),
        ("", b'{"a": 1}', {}, (422, "export_invalid")),
        ("?format=lotus", b"[]", {}, (422, "export_invalid")),
        ("?timezone=Mars", b"[]", {}, (422, "export_invalid")),
        ("?customer_map=[1]", b"[]", {}, (400, "parameter_invalid")),
        ("?cursor=-1", b"[]", {}, (400, "parameter_invalid")),
        ("", gzip.compress(b"x" * 70_000_000, mtime=0), {}, (413, "body_too_large")),
        ("", b"{}", {"Content-Type": "image/png"}, (415, "media_type_unsupported")),
    ],
)
def test_unreadable_request_is_refused_as_a_whole(
    api: Api, path: str, body: bytes, headers: dict[str, str], expected: tuple[int, str]
) -> None:
    """With its own status and code."""
    assert api.error("POST", f"/tickets/import{path}", body, headers=headers) == expected


def test_progress_comes_line_by_line_with_the_report_last(api: Api) -> None:
    """A line a batch, sent while the import runs."""
    body = {"tickets": [ticket(str(i), "A", message(1, f"Question {i}")) for i in range(700)]}
    answer = api.send("POST", "/tickets/import", body, headers={"Accept": "application/x-ndjson"})
    assert answer.headers["Content-Type"] == "application/x-ndjson"
    *progress, report = [json.loads(line) for line in answer.body.splitlines()]
    assert len(progress) >= 2
    assert [line["done"] for line in progress] == sorted(line["done"] for line in progress)
    assert len(answer.chunks) == len(progress) + 1
    assert (report["complete"], statuses(report)) == (True, {"imported": 700})
    assert len(api.texts("A")) == 700


def test_import_stops_when_its_time_is_over_and_goes_on_with_the_cursor(api: Api) -> None:
    """206 and a cursor until all is done; the sum is the same as in one go."""
    api.settings["import_seconds"] = "1"
    body = {"tickets": [ticket(str(i), f"c{i}", message(1, f"Question number {i}")) for i in range(700)]}
    stored, cursor, rounds = 0, "", 0
    while True:
        answer = api.send("POST", f"/tickets/import?cursor={cursor}", body)
        report = answer.json()
        stored += report["memories"]["stored"]
        rounds += 1
        assert answer.status == (200 if report["complete"] else 206)
        if report["complete"]:
            break
        assert int(report["cursor"]) > int(cursor or 0)
        cursor = report["cursor"]
    assert (stored, rounds > 1) == (700, True)
    assert api.get("/health")["rows"] == 700


def test_report_of_many_problems_stays_small(api: Api) -> None:
    """What does not fit is counted."""
    body = [ticket("t" * 400 + str(i), None, message(1, "x")) for i in range(9_000)]
    answer = api.send("POST", "/tickets/import", body)
    report = answer.json()
    assert len(answer.body) < 2_000_000
    assert report["tickets"]["failed"] == 9_000
    assert len(report["problems"]) + report["problems_omitted"] == 9_000
    assert report["problems_omitted"] > 0


def test_forgotten_ticket_is_gone_with_its_entry(api: Api) -> None:
    """DELETE /tickets takes its memories only."""
    body = {"tickets": [ticket("1", "A", message(1, "One")), ticket("2", "A", message(1, "Two"))]}
    api.post("/tickets/import", body)
    answer = api.send("DELETE", "/tickets?source=shop&ticket_id=1").json()
    assert (answer["deleted"], answer["verified"]) == (1, True)
    assert api.texts("A") == ["Two"]
    assert api.error("GET", "/tickets?source=shop&ticket_id=1") == (404, "not_found")
    assert api.error("DELETE", "/tickets?source=shop&ticket_id=1") == (404, "not_found")


def test_forgetting_a_customer_takes_the_tickets_entries_along(api: Api) -> None:
    """The ledger does not say that something is there which is not."""
    body = {"tickets": [ticket("1", "A", message(1, "One")), ticket("2", "B", message(1, "Two"))]}
    api.post("/tickets/import", body)
    api.send("DELETE", "/memories?customer_id=A&everything=true&dry_run=false")
    assert api.error("GET", "/tickets?source=shop&ticket_id=1") == (404, "not_found")
    assert api.get("/tickets?source=shop&ticket_id=2")["memories"] == 1


def test_provisional_memory_of_a_conversation_comes_along_with_its_ticket(api: Api) -> None:
    """What was said in it before the import is the customer's afterwards."""
    api.post("/memories", {"conversation_id": "chat-9", "content": "Said before"})
    body = {"tickets": [ticket("1", "A", message(1, "Said in the ticket"), conversation_id="chat-9")]}
    api.post("/tickets/import", body)
    found = api.post("/recall", {"conversation_id": "chat-9"})
    assert {m["text"] for m in found["memories"]} == {"Said before", "Said in the ticket"}
    assert found["customer_id"] == "A"


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("a lone \ud800 surrogate", "a lone  surrogate"),
        ("a NUL \x00 inside", "a NUL  inside"),
        ("<|endoftext|> and more", "<|endoftext|> and more"),
    ],
)
def test_odd_characters_are_stored_cleaned(api: Api, text: str, stored: str) -> None:
    """Never a 500."""
    report = api.post("/tickets/import", {"tickets": [ticket("1", "A", message(1, text))]})
    assert statuses(report) == {"imported": 1}
    assert api.texts("A")[0].split() == stored.split()


def test_huge_message_is_split_and_stays_one_memory(api: Api) -> None:
    """200 kB in one message; a shorter version later leaves nothing but signs that it changed and shrank."""
    long = " ".join(f"Sentence number {i} of a long story." for i in range(5_500))
    report = api.post("/tickets/import", {"tickets": [ticket("1", "A", message(1, long))]})
    assert report["memories"]["stored"] == 1
    assert api.get("/health")["rows"] > 90
    found = api.post("/recall", {"customer_id": "A", "query": "Sentence number 5432"})
    assert (found["found"], "5432" in found["memories"][0]["text"]) == (1, True)
    api.post("/tickets/import", {"tickets": [ticket("1", "A", message(1, "Short now"))]})
    assert (api.texts("A"), api.get("/health")["rows"]) == (["Short now"], 3)


def test_chunk_cut_by_a_crash_and_sent_again_ends_in_the_same_state(
    chroma: ChromaServer, settings: Json
) -> None:
    """A plugin killed in the middle of an import: the same as without the kill."""
    body = [ticket(str(i), f"c{i % 7}", *(message(d, f"Words {i} {d}") for d in (1, 2))) for i in range(500)]
    with PluginProcess() as process:
        api = Api(process, settings)
        lines: list[str] = []

        def send() -> None:
            try:
                api.send("POST", "/tickets/import", body, headers={"Accept": "application/x-ndjson"})
            except RuntimeError as gone:
                lines.append(str(gone))

        sending = threading.Thread(target=send)
        sending.start()
        while not any('"result"' in line for line in process.stdout):  # the first batch is done
            threading.Event().wait(0.01)
        process.kill()
        sending.join()
        assert lines == ["the plugin process ended during a call"]
    with PluginProcess() as process:
        api = Api(process, settings)
        report = api.post("/tickets/import", body)
        assert report["tickets"]["failed"] == 0
        assert sum(len(api.texts(f"c{i}")) for i in range(7)) == 1_000
        assert statuses(api.post("/tickets/import", body)) == {"unchanged": 500}
        health = api.get("/health")
        assert (health["rows"], health["tickets"], health["links"]) == (1_000, 500, 500)


def vendor_fixtures() -> list[Any]:
    """The plain situation of every vendor."""
    folder = Path(__file__).parent.parent / "data/tickets"
    return [pytest.param(path, id=path.parent.name) for path in sorted(folder.glob("*/plain.json"))]


@pytest.mark.parametrize("path", vendor_fixtures())
def test_every_vendors_export_is_imported_through_the_endpoint(api: Api, path: Path) -> None:
    """Detected by its keys; the same again is unchanged."""
    body = path.read_bytes()
    first = api.post("/tickets/import", body)
    assert first["tickets"]["imported"] > 0
    assert first["memories"]["stored"] > 0
    assert api.get("/health")["rows"] == first["memories"]["stored"]
    again = api.post("/tickets/import", body)
    assert again["tickets"]["unchanged"] == first["tickets"]["imported"]
