"""Tests of `scripts.ticket_stream`."""

import gzip
import json
from pathlib import Path

import pytest

from scripts.ticket_stream import Item, TicketFile, Unreadable
from tests.scripts.conftest import ticket
from tests.tickets.fixtures import CASES, case_name, describe, load_expected
from tickets.formats import FORMAT_NAMES
from tickets.model import TicketProblem
from tickets.reader import read_tickets

WHOLE = [case for case in CASES if case.suffix in {".json", ".ndjson", ".csv"}]


def read(path: Path, format: str | None = None) -> list[Item]:
    """The items of a file."""
    return list(TicketFile(path, format).items())


def ids(path: Path) -> list[str | None]:
    """The ids of the tickets of a file."""
    return [item.ticket_id for item in read(path)]


@pytest.mark.parametrize("case", WHOLE, ids=case_name)
def test_a_streamed_export_says_the_same_as_the_whole_one(case: Path) -> None:
    """Every fixture, cut into lines and read as NDJSON, gives the results it gives as one body."""
    options, expected = load_expected(case)
    file = TicketFile(case, case.parent.name)
    items = list(file.items())
    body = b"\n".join(item.line for item in items)
    results = list(
        read_tickets(body, format=file.format, options=options, content_type="application/x-ndjson")
    )
    without_paths = [{k: v for k, v in each.items() if k not in {"path", "problems"}} for each in expected]
    found = [{k: v for k, v in each.items() if k not in {"path", "problems"}} for each in describe(results)]
    assert found == without_paths


@pytest.mark.parametrize("case", WHOLE, ids=case_name)
def test_a_problem_is_named_by_its_place_in_the_file(case: Path) -> None:
    """The path of a problem in a cut piece, led back to the file, is the one the whole body gives."""
    options, _ = load_expected(case)
    file = TicketFile(case, case.parent.name)
    items = list(file.items())
    found, expected = [], []
    for item in items:
        for result in read_tickets(
            item.line, format=file.format, options=options, content_type="application/x-ndjson"
        ):
            problems = [result] if isinstance(result, TicketProblem) else result.problems
            found += [(p.code, item.path(p.path.removeprefix("lines[1]"))) for p in problems]
    for result in read_tickets(case.read_bytes(), format=file.format, options=options):
        problems = [result] if isinstance(result, TicketProblem) else result.problems
        expected += [(p.code, p.path) for p in problems]
    assert found == expected


@pytest.mark.parametrize("format", FORMAT_NAMES)
def test_a_format_is_told_by_the_tickets(format: str) -> None:
    """Without a word about it, the plain export of each vendor is recognised."""
    file = TicketFile(next(case for case in WHOLE if case_name(case) == f"{format}-plain"))
    assert list(file.items())
    assert file.format == format


def test_a_compressed_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    """Gzip is expanded by content, whatever the name, and the mark is skipped."""
    path = tmp_path / "export.json"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + json.dumps([ticket(1), ticket(2)]).encode()))
    assert ids(path) == ["T-1", "T-2"]


def test_a_bare_array_is_read(tmp_path: Path) -> None:
    """An array without an envelope names its places by position."""
    path = tmp_path / "export.json"
    path.write_text(json.dumps([ticket(1), ticket(2)], indent=2))
    assert [item.where for item in read(path)] == ["[0]", "[1]"]


def test_documents_one_after_another_are_read(tmp_path: Path) -> None:
    """Pages that were appended to one file, over many lines each, all count."""
    path = tmp_path / "pages.json"
    pages = [{"tickets": [ticket(1)]}, {"tickets": [ticket(2)]}]
    path.write_text("\n".join(json.dumps(page, indent=1) for page in pages))
    assert ids(path) == ["T-1", "T-2"]


def test_lines_are_passed_on_as_they_are(tmp_path: Path) -> None:
    """NDJSON keeps its lines as they are, the broken one too, and the number of each."""
    path = tmp_path / "export.ndjson"
    lines = [json.dumps(ticket(1)).encode(), b"", b'{"broken":', json.dumps(ticket(2)).encode()]
    path.write_bytes(b"\r\n".join(lines))
    assert [(item.line, item.where) for item in read(path)] == [
        (lines[0], "lines[1]"),
        (lines[2], "lines[3]"),
        (lines[3], "lines[4]"),
    ]


def test_lines_are_told_from_a_document_without_a_suffix(tmp_path: Path) -> None:
    """NDJSON under any name is recognised by its lines."""
    path = tmp_path / "export.txt"
    path.write_text(f"{json.dumps(ticket(1))}\n{json.dumps(ticket(2))}\n")
    assert [item.where for item in read(path)] == ["lines[1]", "lines[2]"]


def test_a_ticket_brings_only_the_users_it_names(tmp_path: Path) -> None:
    """Of a Zendesk page each ticket gets its requester and its writers, also when they come last."""
    path = tmp_path / "zendesk.json"
    comments = [{"id": 1, "author_id": 8, "body": "Hello", "created_at": "2024-05-01T08:00:00Z"}]
    tickets = [{"id": n, "requester_id": 10 + n, "comments": comments} for n in range(3)]
    users = [{"id": each, "email": f"u{each}@example.com"} for each in (8, 9, 10, 11, 12)]
    path.write_text(json.dumps({"tickets": tickets, "users": users}))
    pages = [json.loads(item.line) for item in read(path)]
    assert [[user["id"] for user in page["users"]] for page in pages] == [[10, 8], [11, 8], [12, 8]]
    assert [page["tickets"] for page in pages] == [[each] for each in tickets]


def test_a_conversation_list_inside_a_ticket_is_no_envelope(tmp_path: Path) -> None:
    """A single Freshdesk ticket, whose messages are called conversations, stays one ticket."""
    path = tmp_path / "freshdesk.json"
    path.write_text(
        json.dumps({"id": 5, "requester_id": 1, "description_text": "Hi", "conversations": [{"id": 6}]})
    )
    assert ids(path) == ["5"]


def test_scattered_rows_are_put_together(tmp_path: Path) -> None:
    """Rows of a ticket that stand apart become one ticket, with the line of each of its messages."""
    path = tmp_path / "export.csv"
    path.write_text(
        "Ticket;Message ID;Role;Customer;Date;Body\n"
        'A;1;customer;ann;2024-05-01T08:00:00Z;"two\nlines"\n'
        "B;1;customer;bob;2024-05-01T08:00:00Z;other\n"
        "\n"
        "A;2;customer;ann;2024-05-02T08:00:00Z;more\n"
    )
    first, second = read(path)
    found = json.loads(first.line)
    assert [message["text"] for message in found["messages"]] == ["two\nlines", "more"]
    assert first.path(".messages[1].created_at") == "lines[6].created_at"
    assert (first.ticket_id, second.ticket_id) == ("A", "B")


def test_rows_without_a_ticket_stay_apart(tmp_path: Path) -> None:
    """Each row that names no ticket is one item, so that each can be reported."""
    path = tmp_path / "export.csv"
    row = ",1,customer,ann,2024-05-01T08:00:00Z,words\n"
    path.write_text("ticket_id,message_id,role,customer_id,created_at,body\n" + row + row)
    assert [item.where for item in read(path)] == ["lines[2]", "lines[3]"]


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("empty.json", b" \n", "body_empty"),
        ("cut.json", b'{"tickets": [', "json_invalid"),
        ("cut.json.gz", gzip.compress(json.dumps([ticket(1)] * 9).encode(), mtime=0)[:-20], "gzip_invalid"),
        ("latin.csv", "ticket_id,message_id,role,created_at,body\n1,1,customer,2024,für".encode("latin-1"),
         "encoding_not_utf8"),
        ("open.csv", b'ticket_id,message_id,role,created_at,body\n1,1,customer,2024,"open', "csv_invalid"),
        ("columns.csv", b"a,b\n1,2\n", "csv_column_missing"),
        ("other.json", b'{"a": 1}', "format_undetected"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_read_is_named_by_a_code(
    tmp_path: Path, name: str, content: bytes, code: str
) -> None:
    """What is wrong with a file is said with the same codes as for a body."""
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(Unreadable) as raised:
        read(path)
    assert raised.value.code == code


def test_what_came_before_a_break_is_given(tmp_path: Path) -> None:
    """Of a large file that breaks off, the tickets well before the break are read."""
    path = tmp_path / "cut.json"
    path.write_text(json.dumps([ticket(n) for n in range(3_000)])[:-20])
    items = TicketFile(path, "canonical").items()
    assert [next(items).ticket_id for _ in range(2_000)] == [f"T-{n}" for n in range(2_000)]
    with pytest.raises(Unreadable):
        list(items)


def test_rows_of_another_format_are_refused(tmp_path: Path) -> None:
    """CSV is of our own format only, as for the endpoint."""
    path = tmp_path / "export.csv"
    path.write_text("ticket_id,message_id,role,created_at,body\n1,1,customer,2024,x\n")
    with pytest.raises(Unreadable) as raised:
        read(path, "zendesk")
    assert raised.value.code == "csv_needs_canonical"
