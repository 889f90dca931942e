"""Bodies of every kind."""

import csv
import gzip
import io
import json
import subprocess
import sys

import pytest

from tickets.errors import TicketFormatError
from tickets.model import ParseOptions, Ticket, TicketProblem
from tickets.reader import read_tickets


def ticket(ticket_id: object, text: str = "Hello, it is me.", **more: object) -> dict[str, object]:
    """Write a ticket of the canonical format."""
    message = {"message_id": "1", "role": "customer", "created_at": 1714550400, "text": text}
    return {"ticket_id": ticket_id, "customer_id": "ann", "messages": [message], **more}


def read(body: bytes | str, **more: str) -> list[Ticket | TicketProblem]:
    """Read a body of the canonical format."""
    return list(read_tickets(body, format="canonical", content_type=more.get("content_type")))


def ids(results: list[Ticket | TicketProblem]) -> list[str | None]:
    """Write results as ids, and problems as code and path."""
    return [
        f"{each.code} {each.path}" if isinstance(each, TicketProblem) else each.ticket_id for each in results
    ]


def failure(body: bytes | str, **more: object) -> str:
    """Give the code and path of the error that a body raises at once."""
    with pytest.raises(TicketFormatError) as caught:
        read_tickets(body, **more)  # type: ignore[arg-type]
    return str(caught.value)


@pytest.mark.parametrize(
    "document",
    [{"tickets": [ticket(1), ticket("2")]}, [ticket(1), ticket("2")]],
)
def test_document_is_read_in_any_wrapping(document: object) -> None:
    """Bytes, text, a byte order mark and gzip give the same tickets."""
    text = json.dumps(document)
    for body in (
        text,
        text.encode(),
        b"\xef\xbb\xbf" + text.encode(),
        gzip.compress(text.encode()),
    ):
        assert ids(read(body)) == ["1", "2"]


def test_single_ticket_is_read() -> None:
    """One ticket needs no list around it."""
    assert ids(read(json.dumps(ticket(1)))) == ["1"]


def test_bad_line_does_not_stop_the_others() -> None:
    """Each bad line of NDJSON is one problem with its number; empty lines count but say nothing."""
    lines = [
        "{broken",
        json.dumps(ticket(1)),
        "",
        "[1]",
        "7",
        json.dumps(ticket(2, "x\u2028y")),
        "NaN",
    ]
    results = read("\r\n".join(lines), content_type="application/x-ndjson; charset=utf-8")
    assert ids(results) == [
        "json_invalid lines[1]",
        "1",
        "ticket_invalid lines[4][0]",
        "envelope_invalid lines[5]",
        "2",
        "json_invalid lines[7]",
    ]


def test_ndjson_is_told_by_its_content() -> None:
    """Without a media type, a body of which half the lines are objects is NDJSON."""
    body = "\n".join([json.dumps(ticket(1)), "{broken"])
    assert ids(list(read_tickets(body))) == ["1", "json_invalid lines[2]"]


def test_problem_in_a_line_names_the_line() -> None:
    """The path of a field begins with the line."""
    body = "\n".join([json.dumps(ticket(1)), json.dumps(ticket(2, messages=[{"message_id": "1"}]))])
    assert ids(read(body)) == ["1", "text_missing lines[2].messages[0].text"]


def test_broken_document_is_no_ndjson() -> None:
    """A document cut in the middle is refused as a whole, not read in part."""
    text = json.dumps({"tickets": [ticket(1), ticket(2)]}, indent=1)
    assert failure(text[:-2]) == "json_invalid"
    assert failure('{"tickets": [\n{"ticket_id": 1},\n{"ticket_id": 2}\n]') == "json_invalid"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", "body_empty"),
        (b" \n\0", "body_empty"),
        (b"\xef\xbb\xbf", "body_empty"),
        (b"caf\xe9", "encoding_not_utf8"),
        ("[]".encode("utf-16"), "encoding_not_utf8"),
        (b"hello", "json_invalid"),
        (b"{", "json_invalid"),
        (b'{"tickets": NaN}', "json_invalid"),
        (b"[" + b"9" * 5000 + b"]", "json_invalid"),
        (b"[" * 200_000, "json_too_deep"),
        (b'{"a":' * 200_000, "json_too_deep"),
        (b"7", "format_undetected at format"),
        (b"\x1f\x8bnonsense", "gzip_invalid"),
        (gzip.compress(b"[]", mtime=0)[:-4], "gzip_invalid"),
        (gzip.compress(b"[]", mtime=0) + b"rest", "gzip_invalid"),
        (gzip.compress(b"", mtime=0), "body_empty"),
    ],
)
def test_unreadable_body_is_one_clear_error(body: bytes, expected: str) -> None:
    """The error is raised by the call, with a code and without content."""
    assert failure(body) == expected


@pytest.mark.parametrize("body", [b"7", b'"text"', b'{"tickets": {"a": 1}}', b'{"tickets": null}'])
def test_envelope_without_a_list_is_an_error(body: bytes) -> None:
    """With an explicit format, too, there must be something like tickets."""
    assert failure(body, format="canonical").startswith("envelope_invalid")


def test_expansion_of_gzip_is_limited() -> None:
    """A small body that expands beyond the limit is refused before it is expanded."""
    bomb = gzip.compress(b" " * 50_000_000)
    assert len(bomb) < 100_000
    assert failure(bomb, max_bytes=1_000_000) == "body_too_large"
    assert failure(b" " * 2000, max_bytes=1000) == "body_too_large"


def test_gzip_of_several_members_is_read_whole() -> None:
    """Files that were appended to each other stay one body."""
    text = json.dumps([ticket(1)]).encode()
    assert ids(read(gzip.compress(text[:20]) + gzip.compress(text[20:]) + b"\0\0")) == ["1"]


def test_newer_of_two_wins_across_lines() -> None:
    """By `updated_at`; when it does not decide, the later one; another source is another ticket."""
    lines = [
        ticket(1, "new", updated_at="2024-05-03T00:00:00Z"),
        ticket(1, "old", updated_at="2024-05-02T00:00:00+00:00"),
        ticket(2, "first"),
        ticket(2, "last"),
        ticket(1, "other", source="brand"),
    ]
    results = read("\n".join(json.dumps(line) for line in lines))
    found = [each for each in results if isinstance(each, Ticket)]
    assert [(each.source, each.ticket_id, each.messages[0].text) for each in found] == [
        ("canonical", "1", "new"),
        ("canonical", "2", "last"),
        ("brand", "1", "other"),
    ]


def test_source_of_the_request_names_tickets_that_name_none() -> None:
    """A ticket's own source stays."""
    body = json.dumps([ticket(1), ticket(2, source="brand")])
    results = read_tickets(body, options=ParseOptions(source="shop"))
    assert [each.source for each in results if isinstance(each, Ticket)] == ["shop", "brand"]


HEADER = ["ticket_id", "customer_email", "message_id", "role", "body", "created_at"]
ROW = ["1", "ann@example.com", "m1", "customer", 'One, "two";\nthree', "2024-05-01T08:00:00Z"]


def rows(delimiter: str, header: list[str], *more: list[str]) -> str:
    """Write CSV."""
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter).writerows([header, *more])
    return out.getvalue()


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize(
    "header",
    [HEADER, ["ID", "E-Mail", "Comment ID", "Author Type", "Message", "Date"]],
)
def test_csv_is_read_with_any_delimiter_and_usual_headers(delimiter: str, header: list[str]) -> None:
    """Quoted delimiters, quotes and line ends stay inside their field."""
    (result,) = read_tickets("\ufeff" + rows(delimiter, header, ROW))
    assert isinstance(result, Ticket)
    assert (result.ticket_id, result.customer_id) == ("1", "ann@example.com")
    assert result.messages[0].text == 'One, "two";\nthree'


def test_csv_field_may_be_longer_than_a_page() -> None:
    """A message of 200 kB is read."""
    (result,) = read_tickets(rows(",", HEADER, [*ROW[:4], "word " * 40_000, ROW[5]]))
    assert isinstance(result, Ticket)
    assert len(result.messages[0].text) > 199_000


@pytest.mark.parametrize(
    ("word", "kept"), [("yes", False), ("true", False), ("no", True), ("0", True), ("", True)]
)
def test_csv_column_private_is_the_opposite_of_public(word: str, kept: bool) -> None:
    """Tables that mark notes instead of public messages are understood."""
    (result,) = read_tickets(rows(",", [*HEADER, "private"], [*ROW, word]))
    assert isinstance(result, Ticket)
    assert bool(result.messages) is kept


def test_csv_visibility_that_is_unclear_is_refused() -> None:
    """What may be private is left out, and said."""
    results = list(read_tickets(rows(",", [*HEADER, "private"], [*ROW, "maybe"])))
    assert ids(results) == ["flag_invalid lines[2].public"]


def test_csv_with_an_open_quote_is_refused() -> None:
    """Otherwise one customer's message would swallow the rows of the others."""
    text = rows(",", HEADER, ROW) + '2,bo@example.com,m1,customer,"open,2024-05-01\n3,cy@x'
    assert failure(text) == "csv_invalid at lines[4]"


@pytest.mark.parametrize("column", ["ticket_id", "message_id", "role", "body", "created_at"])
def test_csv_without_a_needed_column_is_refused(column: str) -> None:
    """The error names the column of ours that is missing."""
    header = [name if name != column else "other" for name in HEADER]
    assert failure(rows(",", header, ROW), content_type="text/csv") == f"csv_column_missing at {column}"


def test_csv_is_our_own_format_only() -> None:
    """No vendor's shape fits into rows."""
    assert failure(rows(",", HEADER, ROW), format="zendesk") == "csv_needs_canonical at format"


def test_package_imports_nothing_of_the_plugin() -> None:
    """It knows neither Dify nor the engine nor HTTP."""
    code = (
        "import sys, tickets; "
        "banned = {'dify_plugin', 'werkzeug', 'chromadb', 'memory', 'dify', 'httpx', 'openai'}; "
        "sys.exit(', '.join(banned & set(sys.modules)) or 0)"
    )
    done = subprocess.run(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
