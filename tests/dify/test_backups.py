"""Backups within the time of a request."""

import uuid
from collections.abc import Iterator

import pytest

from development.chroma_server import ChromaServer
from dify.backups import Load, download
from dify.opening import Selected, open_engine
from memory.administration import Administration
from memory.chroma_connection import connections
from memory.content import Note, Statement
from memory.engine import Engine
from memory.identity import Caller
from memory.records import Kind, Role


def test_a_download_that_runs_out_of_time_ends_with_a_page() -> None:
    """The first page is given always, so that each request gets further; each is given whole."""
    pages = [[b"header", b"checkpoint"], [b"row", b"checkpoint"], [b"trailer"]]
    assert b"".join(download(iter(pages), 0.0)) == b"header\ncheckpoint\n"
    assert b"".join(download(iter(pages), 60.0)).split() == [line for page in pages for line in page]


def engine_on(chroma: ChromaServer) -> Engine:
    """An engine on a fresh namespace."""
    form = {"chroma_url": chroma.url, "namespace": f"t{uuid.uuid4().hex[:16]}"}
    return open_engine(form, Selected(), None)


@pytest.fixture
def lines(chroma: ChromaServer) -> Iterator[list[bytes]]:
    """The backup of a namespace with a memory of each of eight customers."""
    engine = engine_on(chroma)
    for number in range(8):
        statement = Statement(f"Likes tea number {number}", Role.CUSTOMER, Kind.SEMANTIC, 0)
        engine.remember(Caller.checked(f"c{number}"), [statement], Note())
    yield [line for page in engine.administration.back_up("") for line in page]
    connections.close()


def loaded(administration: Administration, lines: list[bytes]) -> Load:
    """A request that has no time, run to its end."""
    load = Load(administration.restore(lines), 0.0)
    for _ in load.steps():
        pass
    return load


def test_a_load_that_runs_out_of_time_goes_on_with_the_same_body(
    chroma: ChromaServer, lines: list[bytes]
) -> None:
    """Each request loads one stretch of rows, none of them twice, until it is done."""
    administration = engine_on(chroma).administration
    rows = [0]
    while not (report := loaded(administration, lines).report())["done"]:
        assert report["complete"] is False
        assert report["rows"] > rows[-1]
        rows.append(report["rows"])
    assert len(rows) > 4
    assert (report["complete"], report["rows"], report["loaded"]["memories"]) == (True, 8, 8)
