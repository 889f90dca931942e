"""What the nodes answer: counts of all, listings within bounds, sentences a person can read."""

import json

import pytest

from dify.answers import MAX_LISTED, MAX_LISTED_TEXT
from tests.conftest import Nodes

MAX_LINE_BYTES = 5_242_880
"""Dify's daemon kills a process that sends a longer line."""


def test_counts_are_of_all_and_listings_are_bounded(nodes: Nodes) -> None:
    """Of many memories the answers list a part and say how many there are."""
    messages = [
        {"role": "user", "content": f"Ticket {n}: the parcel is late"} for n in range(MAX_LISTED + 50)
    ]
    stored = nodes.remember(messages, customer_id="anna", conversation_id="c")
    assert stored["stored"] == MAX_LISTED + 50
    assert len(stored["memories"]) == MAX_LISTED
    preview = nodes.forget(scope="everything", customer_id="anna")
    assert preview["matched"] == MAX_LISTED + 50
    assert len(preview["receipt"]["memory_ids"]) == len(preview["receipt"]["memories"]) == MAX_LISTED


def test_the_longest_answer_fits_into_a_line(nodes: Nodes) -> None:
    """As many memories as may be asked for, each as long as one can be in JSON, stay under Dify's limit."""
    few, most = 10, 100
    messages = [{"role": "user", "content": f"{n:03} " + "👍" * 1_990} for n in range(few)]
    metadata = json.dumps({"note": "x" * 3_900})
    nodes.remember(messages, customer_id="anna", metadata=metadata)
    answer = nodes.recall("", customer_id="anna", limit=most, max_tokens=32_000)
    assert answer["found"] == few
    assert len(json.dumps(answer.json)) * most / few < MAX_LINE_BYTES


def test_a_listing_cuts_texts_and_a_recall_does_not(nodes: Nodes) -> None:
    """The preview of a deletion shows how a long text begins; a prompt's memory is whole up to its part."""
    text = "The parcel was opened by customs. " * 50
    nodes.remember(text, customer_id="anna")
    (memory,) = nodes.recall("", customer_id="anna")["memories"]
    assert memory["text"] == text.strip()
    (listed,) = nodes.forget(scope="everything", customer_id="anna")["receipt"]["memories"]
    assert listed["text"] == text.strip()[:MAX_LISTED_TEXT]


def test_the_receipt_of_a_deletion_holds_no_content(nodes: Nodes) -> None:
    """What is gone is named by its id and by nothing it said."""
    nodes.remember("hunter2 is her favourite song", customer_id="anna", metadata='{"note": "hunter3"}')
    shown = nodes.forget(query="song", customer_id="anna")
    assert "hunter2" in json.dumps(shown["receipt"])
    ids = shown["receipt"]["memory_ids"]
    done = nodes.forget(memory_ids=ids, action="delete", customer_id="anna")
    assert done["deleted"] == 1
    assert done["receipt"]["memory_ids"] == ids
    told = json.dumps([done.text, done.json, done.variables])
    assert "hunter2" not in told
    assert "hunter3" not in told


def test_no_answer_shows_a_key_of_the_store(nodes: Nodes) -> None:
    """Keys, digests and vectors of the store stay inside."""
    nodes.remember("Pro", customer_id="anna", attribute="plan")
    for answer in (nodes.recall("plan", customer_id="anna"), nodes.forget(query="plan", customer_id="anna")):
        listed = answer.variables.get("memories") or answer["receipt"]["memories"]
        assert listed
        for memory in listed:
            assert not {"scope", "slot", "digest", "basis", "key", "vector", "embedding"} & set(memory)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("Likes tea", "Stored 1 memory."),
        ("", "Stored 0 memories, 1 skipped."),
        ([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}], "Stored 2 memories."),
    ],
)
def test_a_sentence_counts_as_a_person_would(nodes: Nodes, content: object, sentence: str) -> None:
    """One memory, two memories, and what was left out."""
    assert nodes.remember(content, customer_id="anna").text == sentence


def test_an_unlinked_conversation_is_told_in_words(nodes: Nodes) -> None:
    """Whoever reads the sentence learns that no customer is known."""
    assert "linked to no customer yet" in nodes.remember("Likes tea", conversation_id="c").text
    assert "linked to no customer yet" in nodes.recall("tea", conversation_id="c").text
    assert "linked to no customer yet" not in nodes.recall("tea", customer_id="anna").text
