"""The server's own files after an erasure and one vacuum: nothing of twenty victims is left in them."""

import json
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from development.chroma_server import ChromaServer
from development.places import CHROMA
from memory.forgetting import Phase, Reach, Request
from memory.identity import Caller
from memory.recalling import Question
from tests.endpoints.conftest import message, ticket
from tests.scenarios.engines import Place, tickets_of, vector_of

VICTIMS = [f"zqvictim{n:02d}" for n in range(20)]
BYSTANDERS = 1_500
TOLERANCE = 1e-5
HEADER = struct.Struct("<iQQQQ")
"""Of an index: version, offset of level 0, places, places in use, bytes of a place at level 0."""
LENGTH_BYTES = 4


@pytest.fixture
def server() -> Iterator[ChromaServer]:
    """A Chroma server whose files can be read, with its own defaults."""
    with ChromaServer() as own:
        yield own


def said(victim: str) -> dict[str, str]:
    """Every sentence about a victim, by what becomes of it."""
    return {
        "old value": f"Is on the {victim}basic plan",
        "value": f"Is on the {victim}pro plan",
        "fact": f"Likes {victim}teal lamps",
        "provisional": f"Said {victim}early, before it was known who it is",
        "message": f"My {victim}parcel is lost",
    }


def furnish(place: Place, victim: str) -> None:
    """History, metadata, a conversation that was linked later, a ticket; every id names the victim."""
    texts, customer_id = said(victim), f"{victim}@example.com"
    place.remember("", texts["provisional"], conversation_id=f"{victim}-conversation")
    place.engine.link(Caller.checked(customer_id, f"{victim}-conversation", f"{victim}-case"))
    place.remember(customer_id, texts["old value"], attribute="plan", case_id=f"{victim}-case")
    place.remember(customer_id, texts["value"], attribute="plan", conversation_id=f"{victim}-conversation")
    place.remember(customer_id, texts["fact"])
    body = [ticket(f"{victim}-ticket", customer_id, message(1, texts["message"]))]
    place.engine.import_tickets(tickets_of(json.dumps({"tickets": body}).encode()))


def in_use(path: Path) -> bytes:
    """What a file holds; of the two files with a place for each element, the places in use.

    Behind them Chroma writes memory it never initialised: any words the server has held can be in there by
    chance, and no erasure reaches them. The README says so. `header.bin` of hnswlib tells how much is in use.
    """
    content = path.read_bytes()
    if path.name not in ("length.bin", "data_level0.bin"):
        return content
    _, _, _, count, element_bytes = HEADER.unpack_from((path.parent / "header.bin").read_bytes())
    used = int(count) * (int(element_bytes) if path.name == "data_level0.bin" else LENGTH_BYTES)
    assert used <= len(content)
    return content[:used]


def traces(folder: Path) -> dict[str, set[str]]:
    """File → the victims of whom a word or a vector is in it."""
    found: dict[str, set[str]] = {}
    vectors = {(victim, text): vector_of(text) for victim in VICTIMS for text in said(victim).values()}
    for path in sorted(folder.rglob("*")):
        content = in_use(path) if path.is_file() else b""
        there = {v for v in VICTIMS if v.encode() in content or v.encode("utf-16-le") in content}
        for start in range(4):
            numbers = np.frombuffer(content[start : start + (len(content) - start) // 4 * 4], dtype="<f4")
            for (victim, _), vector in vectors.items():
                if len(numbers) < len(vector):
                    break
                with np.errstate(all="ignore"):
                    # Four numbers in a row, from the middle: a header cannot hide a vector.
                    near = [
                        np.abs(numbers[k : len(numbers) - 3 + k] - vector[8 + k]) < TOLERANCE
                        for k in range(4)
                    ]
                if np.any(near[0] & near[1] & near[2] & near[3]):
                    there.add(f"{victim} (vector)")
        if there:
            found[path.name] = there
    return found


def vacuum(server: ChromaServer) -> None:
    """What the operator runs, while the server runs."""
    command = [str(CHROMA), "vacuum", "--path", str(server.folder / "data"), "--force", "--timeout", "60"]
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603


@pytest.mark.parametrize("is_restarted", [False, True])
def test_nothing_of_the_erased_is_left_in_the_files(server: ChromaServer, is_restarted: bool) -> None:
    """Texts, ids, metadata and vectors, normalised or not, were in the files and are in none of them now."""
    place = Place(server.url, "disk")
    place.remember("neighbour@example.com", *[f"Neighbour's fact {n}" for n in range(BYSTANDERS // 2)])
    for victim in VICTIMS:
        furnish(place, victim)
    for customer in range(3):  # past the threshold at which the index is written to its file
        texts = [f"Fact {n} of bystander {customer}" for n in range(BYSTANDERS // 2)]
        place.remember(f"bystander-{customer}@example.com", *texts)
    before = traces(server.folder / "data")
    assert {v for there in before.values() for v in there} >= {*VICTIMS, *(f"{v} (vector)" for v in VICTIMS)}
    if is_restarted:
        server.kill()
        server.start()

    for number, victim in enumerate(VICTIMS):
        customer_id = f"{victim}@example.com"
        if number % 4 == 3:
            # In parts: what was imported, what is known by its id, then the links with nothing left.
            place.engine.forget_ticket("shop", f"{victim}-ticket")
            shown = place.engine.forget(Caller.checked(customer_id), Request(reach=Reach.EVERYTHING))
            ids = tuple(m.memory_id for m in shown.matched)
            assert len(ids) == 4
            place.engine.forget(Caller.checked(customer_id), Request(phase=Phase.DELETE, memory_ids=ids))
        place.erase(customer_id)
    vacuum(server)

    assert traces(server.folder / "data") == {}
    assert len(place.texts("neighbour@example.com")) == 100
    hits = place.engine.recall(
        Caller.checked("bystander-0@example.com"), Question(query="Fact 7 of bystander 0")
    ).hits
    assert hits[0].memory.text == "Fact 7 of bystander 0"
