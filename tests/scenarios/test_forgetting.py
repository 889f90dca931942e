"""Forgetting: previewed, applied to exactly what was shown, and proven by reading back."""

from typing import Any

import pytest

from development.daemon import PluginFailure
from memory.scope import conversation_scope, customer_scope
from tests.conftest import Json, Nodes
from tests.scenarios.test_identity import Inside

ADA, GRACE = "ada@example.com", "grace@example.com"
SHARDS = 64


def remember_all(nodes: Nodes, texts: list[str], **parameters: Any) -> list[str]:
    """Store texts with one call and give their ids."""
    messages = [{"role": "user", "content": text} for text in texts]
    answer = nodes.remember(messages, kind="semantic", **parameters)
    return [memory["memory_id"] for memory in answer["memories"]]


@pytest.fixture
def inside(credentials: Json) -> Inside:
    """The test's namespace through a second connection."""
    return Inside(credentials)


# --- everything ---------------------------------------------------------------------------------


def test_a_customer_of_2500_memories_is_erased_whole_and_the_neighbour_is_untouched(
    nodes: Nodes, inside: Inside
) -> None:
    """All go, the answer says 2,500, and a customer of the same collection keeps theirs."""
    shard = customer_scope(ADA).shard(SHARDS)
    neighbour = next(
        name
        for name in (f"neighbour-{n}@example.com" for n in range(10_000))
        if customer_scope(name).shard(SHARDS) == shard
    )
    remember_all(nodes, ["Likes teal", "Parcel 7 was left at the gate"], customer_id=neighbour)
    for start, size in ((0, 1_000), (1_000, 1_000), (2_000, 500)):  # as many as one call takes
        texts = [f"Parcel {n} was left at the gate" for n in range(start, start + size)]
        remember_all(nodes, texts, customer_id=ADA)
    inside.namespace.chroma.renew()
    assert inside.about.shards == SHARDS

    preview = nodes.forget(customer_id=ADA, scope="everything")
    assert (preview["matched"], preview["deleted"], preview["receipt"]["verified"]) == (2_500, 0, False)
    gone = nodes.forget(customer_id=ADA, scope="everything", action="delete")

    assert (gone["matched"], gone["deleted"], gone["receipt"]["verified"]) == (2_500, 2_500, True)
    assert "2500" in gone.text
    inside.namespace.chroma.renew()
    assert inside.store.everything(customer_scope(ADA)) == []
    assert nodes.recall("Parcel 7 was left at the gate", customer_id=ADA, min_score=0)["found"] == 0
    assert sorted(nodes.texts("", customer_id=neighbour)) == ["Likes teal", "Parcel 7 was left at the gate"]


def test_erasing_a_customer_takes_history_marks_and_links_and_lets_them_start_anew(
    nodes: Nodes, inside: Inside
) -> None:
    """It was there, it is forgotten, all of it is gone, and the same customer can be remembered again."""
    nodes.remember("Plan is Basic", customer_id=ADA, attribute="plan", conversation_id="conv-1")
    nodes.remember("Plan is Pro", customer_id=ADA, attribute="plan", conversation_id="conv-1")
    team = nodes.remember("Plan is Team", customer_id=ADA, attribute="plan")
    nodes.forget(customer_id=ADA, memory_ids=[team["memories"][0]["memory_id"]], action="delete")
    nodes.remember("Likes teal", customer_id=GRACE, conversation_id="conv-2")
    # Two values of old, the mark of the end, and the sign to other processes that something was forgotten.
    assert len(inside.store.everything(customer_scope(ADA))) == 4

    gone = nodes.forget(customer_id=ADA, scope="everything", action="delete")

    assert (gone["deleted"], gone["receipt"]["links_removed"]) == (2, 1)
    assert inside.store.everything(customer_scope(ADA)) == []
    assert inside.links.find("conv-1") is None
    assert nodes.recall("", conversation_id="conv-1")["linked"] is False
    assert nodes.recall("", conversation_id="conv-2")["customer_id"] == GRACE
    assert nodes.texts("", customer_id=GRACE) == ["Likes teal"]
    anew = nodes.remember("Plan is Basic", customer_id=ADA, attribute="plan", occurred_at="2020-01-01")
    assert anew["memories"][0]["is_current"] is True
    assert nodes.texts("", customer_id=ADA) == ["Plan is Basic"]


def test_erasing_twice_is_no_error(nodes: Nodes) -> None:
    """The second time there is nothing, and the answer says so."""
    nodes.remember("Likes teal", customer_id=ADA)
    nodes.forget(customer_id=ADA, scope="everything", action="delete")
    again = nodes.forget(customer_id=ADA, scope="everything", action="delete")

    assert (again["matched"], again["deleted"], again["receipt"]["links_removed"]) == (0, 0, 0)


def test_an_unlinked_conversation_is_erased_by_itself(nodes: Nodes, inside: Inside) -> None:
    """Everything of a conversation without a customer is its own memory and nobody else's."""
    nodes.within("conv-1").remember("Likes teal")
    nodes.within("conv-2").remember("Drives a van")
    nodes.remember("Owns a bicycle", customer_id=ADA)

    gone = nodes.within("conv-1").forget(scope="everything", action="delete")

    assert gone["deleted"] == 1
    assert inside.store.everything(conversation_scope("conv-1")) == []
    assert nodes.texts("", conversation_id="conv-2") == ["Drives a van"]
    assert nodes.texts("", customer_id=ADA) == ["Owns a bicycle"]


# --- a conversation, a case ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scope", "given"),
    [("conversation", {"conversation_id": "conv-1"}), ("case", {"case_id": "case-1"})],
)
def test_forgetting_a_conversation_or_a_case_takes_its_history_and_nothing_else(
    nodes: Nodes, inside: Inside, scope: str, given: Json
) -> None:
    """Its memories go with what they superseded; the customer's others and older values stay as they were."""
    home: Json = {"customer_id": ADA, "attribute": "home"}
    nodes.remember(
        "Lives in Lyon", occurred_at="2023-01-01", conversation_id="conv-0", case_id="case-0", **home
    )
    ours: Json = {"conversation_id": "conv-1", "case_id": "case-1"}
    nodes.remember("Lives in Porto", occurred_at="2024-01-01", **ours, **home)
    nodes.remember("Lives in Turku", occurred_at="2025-01-01", **ours, **home)
    nodes.remember("Likes teal", customer_id=ADA, **ours)
    nodes.remember("Owns a bicycle", customer_id=ADA, conversation_id="conv-0", case_id="case-0")

    preview = nodes.forget(customer_id=ADA, scope=scope, **given)
    assert preview["matched"] == 3
    assert len(inside.store.everything(customer_scope(ADA))) == 5
    gone = nodes.forget(customer_id=ADA, scope=scope, action="delete", **given)

    assert gone["deleted"] == 3
    assert nodes.texts("", customer_id=ADA) == ["Owns a bicycle"]
    assert sorted(nodes.texts("", customer_id=ADA, include_superseded=True)) == [
        "Lives in Lyon",
        "Owns a bicycle",
    ]


@pytest.mark.parametrize("action", ["preview", "delete"])
@pytest.mark.parametrize(
    ("parameters", "code"),
    [
        ({"scope": "conversation"}, "parameter_missing"),
        ({"scope": "case"}, "parameter_missing"),
        ({"scope": "matching"}, "parameter_missing"),
        ({"scope": "all"}, "parameter_invalid"),
        ({"action": "Delete it"}, "parameter_invalid"),
        ({"scope": "everything", "before": "some day"}, "parameter_invalid"),
        ({"scope": "everything", "kinds": "facts"}, "parameter_invalid"),
    ],
)
def test_a_forget_that_does_not_say_what_is_refused(
    nodes: Nodes, action: str, parameters: Json, code: str
) -> None:
    """An empty or unreadable selection deletes nothing."""
    nodes.remember("Likes teal", customer_id=ADA)

    with pytest.raises(PluginFailure) as failure:
        nodes.forget(customer_id=ADA, **{"action": action, **parameters})
    assert failure.value.code == code
    assert nodes.texts("", customer_id=ADA) == ["Likes teal"]


def test_a_case_or_conversation_nothing_is_of_deletes_nothing(nodes: Nodes) -> None:
    """An empty selection is an answer of zero."""
    nodes.remember("Likes teal", customer_id=ADA)

    for parameters in (
        {"scope": "case", "case_id": "case-9"},
        {"scope": "conversation", "conversation_id": "conv-9"},
    ):
        gone = nodes.forget(customer_id=ADA, action="delete", **parameters)
        assert (gone["matched"], gone["deleted"]) == (0, 0)
    assert nodes.texts("", customer_id=ADA) == ["Likes teal"]


# --- what matches -------------------------------------------------------------------------------


def test_a_preview_shows_ids_and_texts_and_deletes_nothing(nodes: Nodes) -> None:
    """The preview is the default, and it is told apart from a deletion in the answer."""
    ids = remember_all(nodes, ["Likes teal lamps", "Drives a van"], customer_id=ADA)

    preview = nodes.forget(query="teal lamps", customer_id=ADA)

    assert (preview["matched"], preview["deleted"]) == (1, 0)
    receipt = preview["receipt"]
    assert (receipt["action"], receipt["memory_ids"], receipt["completed_at"]) == ("preview", ids[:1], None)
    assert [m["text"] for m in receipt["memories"]] == ["Likes teal lamps"]
    assert len(nodes.texts("", customer_id=ADA)) == 2


def test_applying_takes_the_previewed_ids_and_not_what_matches_by_then(nodes: Nodes) -> None:
    """What was stored between preview and deletion stays, though it matches the query as well."""
    nodes.remember("Likes teal lamps", customer_id=ADA)
    ids = nodes.forget(query="teal lamps", customer_id=ADA)["receipt"]["memory_ids"]
    nodes.remember("Ordered three teal lamps", customer_id=ADA)

    gone = nodes.forget(query="teal lamps", memory_ids=ids, action="delete", customer_id=ADA)

    assert (gone["matched"], gone["deleted"]) == (1, 1)
    assert nodes.texts("", customer_id=ADA) == ["Ordered three teal lamps"]


def test_deleting_by_query_alone_is_refused(nodes: Nodes) -> None:
    """A deletion needs the ids a preview gave."""
    nodes.remember("Likes teal lamps", customer_id=ADA)

    with pytest.raises(PluginFailure) as failure:
        nodes.forget(query="teal lamps", action="delete", customer_id=ADA)
    assert failure.value.code == "memory_ids_required"
    assert nodes.texts("", customer_id=ADA) == ["Likes teal lamps"]


def test_what_is_not_found_is_said(nodes: Nodes) -> None:
    """Unknown ids, another customer's and those already gone are listed, and the others are deleted."""
    kept, gone_before, target = remember_all(nodes, ["Kept", "Gone before", "Target"], customer_id=ADA)
    (theirs,) = remember_all(nodes, ["Theirs"], customer_id=GRACE)
    nodes.forget(memory_ids=[gone_before], action="delete", customer_id=ADA)
    unknown = "0" * 32

    gone = nodes.forget(
        memory_ids=f"{target}, {unknown},{gone_before}\n{theirs}", action="delete", customer_id=ADA
    )

    assert (gone["matched"], gone["deleted"]) == (1, 1)
    assert gone["receipt"]["not_found"] == [unknown, gone_before, theirs]
    assert "3 of the ids were not found" in gone.text
    assert [m["memory_id"] for m in nodes.recall("", customer_id=ADA)["memories"]] == [kept]
    assert nodes.texts("", customer_id=GRACE) == ["Theirs"]


def test_the_receipt_of_a_deletion_holds_no_content_and_says_that_it_was_read_back(
    nodes: Nodes, inside: Inside
) -> None:
    """After a deletion the text is neither in the answer nor to be read through a second connection."""
    (memory_id,) = remember_all(nodes, ["Likes teal lamps"], customer_id=ADA)
    assert len(inside.store.read(customer_scope(ADA), [memory_id])) == 1

    gone = nodes.forget(memory_ids=[memory_id], action="delete", customer_id=ADA)

    assert gone["receipt"]["verified"] is True
    assert gone["receipt"]["completed_at"] >= gone["receipt"]["requested_at"]
    assert "teal" not in str(gone)
    assert inside.store.read(customer_scope(ADA), [memory_id]) == []


def test_bounds_of_time_and_kind_hold_for_every_scope(nodes: Nodes) -> None:
    """Before is exclusive, kinds are those named, and the rest and the links stay."""
    given: Json = {"customer_id": ADA, "conversation_id": "conv-1"}
    nodes.remember("Old fact", occurred_at="2023-01-01", **given)
    nodes.remember("Fact", occurred_at="2024-01-01", **given)
    nodes.remember("Old event", kind="episodic", occurred_at="2023-01-01", **given)
    nodes.remember("Old rule", kind="procedural", occurred_at="2023-01-01", **given)

    gone = nodes.forget(
        customer_id=ADA, scope="everything", action="delete", before="2024-01-01", kinds="semantic,procedural"
    )

    assert (gone["deleted"], gone["receipt"]["links_removed"]) == (2, 0)
    assert sorted(nodes.texts("", customer_id=ADA)) == ["Fact", "Old event"]
    assert nodes.recall("", conversation_id="conv-1")["customer_id"] == ADA


def test_part_of_a_long_memory_cannot_be_forgotten_by_itself(nodes: Nodes, inside: Inside) -> None:
    """The store's own id of a part is no memory's id: nothing goes, and it is said to be not found."""
    text = " ".join(f"Sentence number {n} of a long letter." for n in range(200))
    memory_id = nodes.remember(text, customer_id=ADA)["memories"][0]["memory_id"]
    rows = len(inside.store.everything(customer_scope(ADA)))
    assert rows > 1

    gone = nodes.forget(memory_ids=[f"{memory_id}.1"], action="delete", customer_id=ADA)

    assert (gone["matched"], gone["deleted"]) == (0, 0)
    assert len(inside.store.everything(customer_scope(ADA))) == rows


def test_forgetting_in_a_namespace_never_written_to_finds_nothing(nodes: Nodes) -> None:
    """There is nothing to forget, and nothing is created by asking."""
    gone = nodes.forget(customer_id=ADA, scope="everything", action="delete")
    by_id = nodes.forget(customer_id=ADA, memory_ids=["0" * 32], action="delete")

    assert (gone["matched"], gone["deleted"]) == (0, 0)
    assert by_id["receipt"]["not_found"] == ["0" * 32]
