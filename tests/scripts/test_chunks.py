"""Tests of `scripts.chunks`."""

import gzip
import json
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from hypothesis import given, settings
from hypothesis import strategies as st

from scripts.chunks import MAX_MAP_LENGTH, Chunk, CustomerMap, Problem, cut
from scripts.ticket_stream import TicketFile
from tests.scripts.conftest import ticket, write_tickets


def pieces_of(path: Path, limit: int, entries: Mapping[str, str] | None = None) -> list[Chunk | Problem]:
    """A file in pieces."""
    return list(cut(TicketFile(path), limit=limit, customer_map=CustomerMap(entries or {})))


def chunks_of(path: Path, limit: int, entries: Mapping[str, str] | None = None) -> list[Chunk]:
    """A file in chunks, without the problems."""
    return [piece for piece in pieces_of(path, limit, entries) if isinstance(piece, Chunk)]


@settings(deadline=None)
@given(lengths=st.lists(st.integers(1, 300), min_size=1, max_size=30), limit=st.integers(500, 1500))
def test_chunks_are_full_and_under_the_limit(lengths: list[int], limit: int) -> None:
    """Every ticket travels once and in order, no body is over the limit, and none could take one more."""
    lines = [json.dumps(ticket(n, words="x" * length)).encode() for n, length in enumerate(lengths)]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "export.ndjson"
        path.write_bytes(b"\n".join(lines))
        bodies = [gzip.decompress(chunk.body()) for chunk in chunks_of(path, limit)]
    assert b"".join(bodies) == b"".join(line + b"\n" for line in lines)
    assert all(len(body) <= limit for body in bodies)
    for body, following in pairwise(bodies):
        assert len(body) + following.index(b"\n") + 1 > limit


def test_a_ticket_larger_than_a_chunk_is_a_problem_and_the_others_go_on(tmp_path: Path) -> None:
    """The large one is named by id and place; those before and after it travel."""
    path = tmp_path / "export.json"
    path.write_text(json.dumps([ticket(1), ticket(2, words="x" * 2_000), ticket(3)]))
    pieces = pieces_of(path, 1_000)
    assert [piece for piece in pieces if isinstance(piece, Problem)] == [
        Problem("export.json", "T-2", "ticket_too_large", "[1]")
    ]
    sent = [item.ticket_id for piece in pieces if isinstance(piece, Chunk) for item in piece.items]
    assert sent == ["T-1", "T-3"]


def test_a_line_that_is_a_large_page_is_taken_apart(tmp_path: Path) -> None:
    """Of a line with many tickets, which is larger than a chunk, each ticket travels by itself."""
    path = tmp_path / "pages.ndjson"
    pages = [{"tickets": [ticket(n) for n in range(start, start + 9)]} for start in (0, 9)]
    path.write_text("\n".join(json.dumps(page) for page in pages))
    items = [item for chunk in chunks_of(path, 1_000) for item in chunk.items]
    assert [item.ticket_id for item in items] == [f"T-{n}" for n in range(18)]
    assert items[10].path(".messages[0]") == "lines[2].tickets[1].messages[0]"


def test_a_chunk_gets_what_it_needs_of_the_customer_map(tmp_path: Path) -> None:
    """Of a large map only the entries whose identifier occurs travel, addresses in any case."""
    path = tmp_path / "export.json"
    path.write_text(json.dumps([ticket(1) | {"customer_email": "Ann@Example.com"}]))
    entries = {f"u{n}@example.com": f"c{n}" for n in range(5_000)} | {"ANN@example.com": "crm-1", "T-1": "x"}
    (chunk,) = chunks_of(path, 10_000, entries)
    assert chunk.customer_map == {"ann@example.com": "crm-1", "T-1": "x"}


def test_a_chunk_ends_where_its_customer_map_would_be_too_long_for_an_address(tmp_path: Path) -> None:
    """Many tickets with an entry each travel in several requests, whose maps fit and are complete."""
    path = tmp_path / "export.json"
    path.write_text(json.dumps([ticket(n) | {"customer_id": f"user-{n}"} for n in range(500)]))
    entries = {f"user-{n}": f"crm-{n}" for n in range(500)}
    chunks = chunks_of(path, 10_000_000, entries)
    maps = [dict(chunk.customer_map) for chunk in chunks]
    assert all(len(quote(json.dumps(each))) <= MAX_MAP_LENGTH for each in maps)
    assert {key: to for each in maps for key, to in each.items()} == entries
    assert 1 < len(chunks) < 50


def test_the_rest_of_an_unreadable_file_is_a_problem_after_its_good_tickets(tmp_path: Path) -> None:
    """What was read before the break travels, and the break is told."""
    path = write_tickets(tmp_path, 3_000)
    path.write_text(path.read_text()[:-30])
    *chunks, problem = pieces_of(path, 10_000)
    sent = [item.ticket_id for chunk in chunks if isinstance(chunk, Chunk) for item in chunk.items]
    assert sent == [f"T-{n}" for n in range(len(sent))]
    assert len(sent) > 2_000
    assert problem == Problem("export.json", None, "json_invalid", "")


def test_a_place_in_the_body_is_led_back_to_the_file(tmp_path: Path) -> None:
    """A line of the body is the ticket of the file that stands in it; what is no line stays as it is."""
    path = write_tickets(tmp_path, 9)
    second = chunks_of(path, 700)[1]
    first_in_it = second.items[0].where
    assert second.path_in_file("lines[1].messages[0].text") == f"{first_in_it}.messages[0].text"
    assert second.path_in_file("lines[99].x") == "lines[99].x"
    assert second.path_in_file("format") == "format"


def test_the_same_chunk_has_the_same_fingerprint(tmp_path: Path) -> None:
    """A fingerprint depends on words and map, not on where the file lies."""
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    first = chunks_of(write_tickets(one, 3), 10_000)[0]
    assert first.digest == chunks_of(write_tickets(other, 3), 10_000)[0].digest
    assert first.digest != chunks_of(write_tickets(other, 3, words="Other."), 10_000)[0].digest
    assert first.digest != chunks_of(write_tickets(other, 3), 10_000, {"ann": "crm-1"})[0].digest
