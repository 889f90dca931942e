"""With quotas in the settings no request of any verb exceeds them, and the answers are those without.

The gate in front of the real server refuses what Chroma Cloud's published quotas do not allow.
"""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from development.chroma_server import ChromaServer
from memory.content import Note, Statement
from memory.errors import ChromaQuotaExceeded
from memory.forgetting import Phase, Request
from memory.identity import Caller, scope_of_customer
from memory.listing import Page
from memory.quotas import CHROMA_CLOUD, NO_QUOTAS
from memory.recalling import Question
from memory.records import Kind, Memory, Metadata, Role, row_id
from tests.fake_servers import serve
from tests.rationed_chroma import Gate
from tests.scenarios.engines import Place, tickets_of

MANY = 620
"""Memories of the customer: more than two of the cloud's pages."""
LONG_NOTE: Metadata = {"note": "长" * 3_900}
"""Metadata as long as it may be: 11,700 bytes."""


@pytest.fixture
def gate(chroma: ChromaServer) -> Gate:
    """In front of the server that all tests share."""
    return Gate(chroma.url)


@pytest.fixture
def place(gate: Gate, namespace: str) -> Iterator[Place]:
    """A namespace behind the gate, with the cloud's quotas in its settings."""
    with serve(gate) as proxy:
        yield Place(proxy.url, namespace, quotas=CHROMA_CLOUD)


def _fill(place: Place, customer_id: str, conversation_id: str = "", *, count: int = MANY) -> None:
    statements = [
        Statement(f"Asked about order {10_000 + n}.", Role.CUSTOMER, Kind.EPISODIC, n) for n in range(count)
    ]
    caller = Caller.checked(customer_id, conversation_id)
    place.engine.remember(caller, statements, Note(metadata=LONG_NOTE))


def _statements(place: Place, customer_id: str) -> list[Memory]:
    """What the store holds of a customer, by id; rows without content left out."""
    rows = place.store.live(scope_of_customer(customer_id))
    return sorted((row for row in rows if not row.ends_slot), key=lambda row: row.memory_id)


def _ticket(messages: int) -> bytes:
    """An export of one ticket whose entry, with an id of 32 characters a message, is long."""
    said = [
        {
            "message_id": str(n),
            "role": "customer",
            "created_at": "2026-03-01T10:00:00Z",
            "text": f"Part {n} of the machine is missing.",
        }
        for n in range(messages)
    ]
    ticket = {"source": "shop", "ticket_id": "7", "customer_id": "bo", "subject": "Parts", "messages": said}
    return json.dumps({"tickets": [ticket]}).encode()


def test_the_gate_refuses_what_goes_beyond(place: Place, gate: Gate) -> None:
    """Without quotas in the settings the same calls are refused: the tests below can fail."""
    place.settings = replace(place.settings, quotas=NO_QUOTAS)
    with pytest.raises(ChromaQuotaExceeded):
        _fill(place, "anna")
    assert gate.refused


def test_a_large_customer_is_remembered_and_found(place: Place, gate: Gate) -> None:
    """Written, listed, exported and found by its words, though one answer holds 300 memories at most."""
    _fill(place, "anna")
    caller = Caller.checked("anna")
    listed, cursor, _ = place.engine.administration.list_memories(caller, Page(limit=500))
    rest, _, _ = place.engine.administration.list_memories(caller, Page(limit=500, cursor=cursor))
    assert len({memory.memory_id for memory in [*listed, *rest]}) == MANY
    assert all(memory.metadata == LONG_NOTE for memory in [*listed, *rest])
    items, *_ = place.engine.administration.export(caller, "")
    assert sum(isinstance(item.value, Memory) for item in items) == MANY
    for number in (10_000, 10_350, 10_619):
        question = Question(query=f"order {number}", limit=5, min_score=0.0)
        for _ in range(2):  # from the store, then with what the process knows
            best = place.engine.recall(caller, question).hits[0]
            assert best.memory.text == f"Asked about order {number}."
    assert gate.refused == []


def test_what_is_remembered_after_a_full_answer_is_found(place: Place, gate: Gate) -> None:
    """A search that brings as many as it may does not stand for all there is."""
    _fill(place, "anna", count=299)
    caller = Caller.checked("anna")
    question = Question(query="order 10298", limit=5, min_score=0.0)
    place.engine.recall(caller, question)
    place.remember("anna", *(f"Reported defect {n}." for n in range(50_000, 50_020)))
    for n in range(50_000, 50_020):
        found = place.engine.recall(caller, Question(query=f"defect {n}", limit=5, min_score=0.0)).hits
        assert found[0].memory.text == f"Reported defect {n}."
    assert gate.refused == []


def test_a_conversation_is_linked_and_forgotten(place: Place, gate: Gate) -> None:
    """Moving, deleting by ids and erasing everything keep to the quotas and leave nothing."""
    _fill(place, "", "conversation-1", count=320)
    assert place.engine.link(Caller.checked("anna", "conversation-1")).moved == 320
    caller = Caller.checked("anna")
    listed, _, _ = place.engine.administration.list_memories(caller, Page(limit=310))
    ids = tuple(memory.memory_id for memory in listed)
    place.engine.forget(caller, Request(phase=Phase.DELETE, memory_ids=ids))
    assert len(_statements(place, "anna")) == 320 - len(ids) == 10
    assert place.erase("anna").receipt is not None
    assert place.rows(scope_of_customer("anna")) == []
    assert gate.refused == []


def test_a_long_ticket_is_imported_changed_and_forgotten(place: Place, gate: Gate) -> None:
    """Its entry, which names all its memories, is longer than a value may be; a shorter one replaces it."""
    for messages in (400, 30):
        (result,) = place.engine.import_tickets(tickets_of(_ticket(messages))).results
        assert result.code == ""
        entry = place.engine.administration.find_import("shop", "7")
        assert entry is not None
        assert sorted(entry.row_ids) == sorted(row_id(m.memory_id, m.part) for m in _statements(place, "bo"))
        assert len(entry.row_ids) == messages
    assert place.engine.forget_ticket("shop", "7") is not None
    assert _statements(place, "bo") == []
    assert gate.refused == []


def test_a_backup_is_taken_and_loaded(place: Place, gate: Gate, namespace: str) -> None:
    """The copy holds the same memories, metadata and all."""
    _fill(place, "anna")
    lines = [line for lines in place.engine.administration.back_up("") for line in lines]
    other = Place(place.settings.url, f"{namespace}x", quotas=CHROMA_CLOUD)
    restore = other.engine.administration.restore(lines)
    for _ in restore.steps():
        pass
    assert restore.is_done
    assert _statements(other, "anna") == _statements(place, "anna")
    assert gate.refused == []


def test_calls_at_once_keep_to_the_quota(place: Place, gate: Gate) -> None:
    """However many callers there are, and all of one customer."""
    place.remember("anna", "Likes tea.")

    def call(number: int) -> None:
        if number % 4:
            place.engine.recall(Caller.checked("anna"), Question(query="tea"))
        else:
            place.remember("anna", f"Asked about order {number}.")

    with ThreadPoolExecutor(40) as pool:
        list(pool.map(call, range(120)))
    assert len(_statements(place, "anna")) == 31
    assert gate.refused == []
    assert gate.passed["query"] + gate.passed["get"] >= 90
