"""What becomes of statements that are written: facts that change, repeat, arrive late or are odd."""

import itertools
import json
from typing import Any

import pytest

from development.daemon import PluginFailure
from tests.conftest import Nodes

CUSTOMER = "ada@example.com"


def history(nodes: Nodes, **parameters: Any) -> list[dict[str, Any]]:
    """Everything known of the customer, history included."""
    answer = nodes.recall("", customer_id=CUSTOMER, limit=100, include_superseded=True, **parameters)
    memories: list[dict[str, Any]] = answer["memories"]
    return memories


# --- facts that change --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("I love Chinese food", "I hate Chinese food"),
        ("Deadline is October 15", "Deadline is October 16"),
        ("Takes 10 mg", "Takes 5 mg"),
        ("Deployment is allowed", "Deployment is not allowed"),
    ],
)
def test_the_later_statement_of_a_slot_is_current_and_the_earlier_is_history_with_an_end(
    nodes: Nodes, older: str, newer: str
) -> None:
    """However alike two values of a slot are, the later one holds and the earlier one has ended."""
    first = nodes.remember(older, customer_id=CUSTOMER, attribute="what holds")
    second = nodes.remember(newer, customer_id=CUSTOMER, attribute="what holds")

    assert (first["stored"], second["stored"], second["superseded"]) == (1, 1, 1)
    assert nodes.texts("", customer_id=CUSTOMER) == [newer]
    assert nodes.texts(older, customer_id=CUSTOMER, min_score=0) == [newer]
    current, ended = sorted(history(nodes), key=lambda m: not m["is_current"])
    assert (current["text"], current["is_current"], current["superseded_at"]) == (newer, True, None)
    assert (ended["text"], ended["is_current"]) == (older, False)
    assert ended["superseded_at"] == current["occurred_at"]
    assert ended["superseded_by"] == current["memory_id"]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_the_newest_value_of_a_slot_holds_in_whatever_order_the_values_arrive(
    nodes: Nodes, order: tuple[int, ...]
) -> None:
    """Values imported in any order leave the newest as current, and each older one ended by its successor."""
    values = [
        ("Lives in Lyon", "2023-01-10"),
        ("Lives in Porto", "2024-02-20"),
        ("Lives in Turku", "2025-03-30"),
    ]
    for i in order:
        text, occurred_at = values[i]
        nodes.remember(text, customer_id=CUSTOMER, attribute="home", occurred_at=occurred_at)

    assert nodes.texts("", customer_id=CUSTOMER) == ["Lives in Turku"]
    by_text = {m["text"]: m for m in history(nodes)}
    assert len(by_text) == 3
    assert by_text["Lives in Lyon"]["superseded_at"] == "2024-02-20T00:00:00Z"
    assert by_text["Lives in Lyon"]["superseded_by"] == by_text["Lives in Porto"]["memory_id"]
    assert by_text["Lives in Porto"]["superseded_at"] == "2025-03-30T00:00:00Z"
    assert by_text["Lives in Porto"]["superseded_by"] == by_text["Lives in Turku"]["memory_id"]


def test_a_value_that_returns_is_current_again(nodes: Nodes) -> None:
    """A slot that goes from one value to another and back holds the first value once more."""
    for text in ("Plan is Basic", "Plan is Pro", "Plan is Basic"):
        nodes.remember(text, customer_id=CUSTOMER, attribute="plan")

    assert nodes.texts("", customer_id=CUSTOMER) == ["Plan is Basic"]
    assert [m["is_current"] for m in history(nodes)].count(True) == 1


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Deadline is October 15", "Deadline is October 16"),
        ("Takes 10 mg", "Takes 5 mg"),
        ("Deployment is not allowed on Fridays", "The invoice was not paid"),
        ("Alice is CEO of Acme", "Sarah is CTO of Acme"),
        ("I like cats", "I like dogs"),
        ("Ships to the US", "Ships to the us"),
    ],
)
def test_statements_without_a_slot_stay_beside_each_other(nodes: Nodes, first: str, second: str) -> None:
    """Similar is not duplicate: without a slot both statements are kept and current."""
    nodes.remember(first, customer_id=CUSTOMER)
    answer = nodes.remember(second, customer_id=CUSTOMER)

    assert (answer["stored"], answer["duplicates"], answer["superseded"]) == (1, 0, 0)
    assert sorted(nodes.texts("", customer_id=CUSTOMER)) == sorted([first, second])


def test_slots_of_different_names_do_not_touch_each_other(nodes: Nodes) -> None:
    """Two facts of the same shape under two attributes are both current."""
    nodes.remember("Alice is CEO of Acme", customer_id=CUSTOMER, attribute="CEO of Acme")
    answer = nodes.remember("Sarah is CTO of Acme", customer_id=CUSTOMER, attribute="CTO of Acme")

    assert answer["superseded"] == 0
    assert sorted(nodes.texts("", customer_id=CUSTOMER)) == ["Alice is CEO of Acme", "Sarah is CTO of Acme"]


def test_the_same_slot_of_another_customer_is_another_slot(nodes: Nodes) -> None:
    """A value of one customer never ends the value of another."""
    nodes.remember("Plan is Basic", customer_id="ada@example.com", attribute="plan")
    answer = nodes.remember("Plan is Pro", customer_id="grace@example.com", attribute="plan")

    assert answer["superseded"] == 0
    assert nodes.texts("", customer_id="ada@example.com") == ["Plan is Basic"]
    assert nodes.texts("", customer_id="grace@example.com") == ["Plan is Pro"]


# --- the same again -----------------------------------------------------------------------------


@pytest.mark.parametrize("attribute", ["", "drink"])
@pytest.mark.parametrize("again", ["Prefers  jasmine\ntea ", "Prefers jasmine tea"])
def test_the_same_fact_twice_is_one_record(nodes: Nodes, attribute: str, again: str) -> None:
    """Said again, with other white space or not, a fact is the duplicate of the one that is there."""
    first = nodes.remember("Prefers jasmine tea", customer_id=CUSTOMER, attribute=attribute)
    second = nodes.remember(again, customer_id=CUSTOMER, attribute=attribute)

    assert (second["stored"], second["duplicates"]) == (0, 1)
    assert second["memories"][0]["action"] == "duplicate"
    assert second["memories"][0]["memory_id"] == first["memories"][0]["memory_id"]
    assert len(history(nodes)) == 1


def test_the_same_fact_in_two_unicode_spellings_is_one_record(nodes: Nodes) -> None:
    """A composed and a decomposed letter are the same letter."""
    nodes.remember("Meets at the café", customer_id=CUSTOMER)

    assert nodes.remember("Meets at the cafe\u0301", customer_id=CUSTOMER)["duplicates"] == 1
    assert len(history(nodes)) == 1


def test_a_call_that_is_sent_again_changes_nothing(nodes: Nodes) -> None:
    """A retry of a whole list of messages gives one record a message."""
    messages = [{"role": "user", "content": f"Message {n} of ten"} for n in range(10)]
    given: dict[str, Any] = {"customer_id": CUSTOMER, "conversation_id": "conv-1"}

    first = nodes.remember(json.dumps(messages), **given)
    second = nodes.remember(json.dumps(messages), **given)

    assert (first["stored"], second["stored"], second["duplicates"]) == (10, 0, 10)
    assert len(history(nodes)) == 10


def test_a_value_written_twice_in_one_batch_is_gone_once_it_changes(nodes: Nodes) -> None:
    """A value that one batch holds twice is one record, and after a change no current memory holds it."""
    twice = [{"role": "user", "content": text} for text in ("Plan is Basic", "Plan is Basic")]
    nodes.remember(twice, customer_id=CUSTOMER, kind="semantic", attribute="plan")
    nodes.remember("Plan is Pro", customer_id=CUSTOMER, attribute="plan")

    assert nodes.texts("", customer_id=CUSTOMER) == ["Plan is Pro"]
    assert [m["text"] for m in history(nodes) if m["is_current"]] == ["Plan is Pro"]
    assert len(history(nodes)) == 2


def test_of_several_values_in_one_batch_the_last_holds(nodes: Nodes) -> None:
    """The order within a list of messages decides."""
    values = [{"role": "user", "content": f"Plan is {name}"} for name in ("Basic", "Pro", "Team")]
    answer = nodes.remember(values, customer_id=CUSTOMER, kind="semantic", attribute="plan")

    assert (answer["stored"], answer["superseded"]) == (3, 2)
    assert nodes.texts("", customer_id=CUSTOMER) == ["Plan is Team"]


# --- the answer ---------------------------------------------------------------------------------


def test_the_answer_says_what_became_of_each_statement(nodes: Nodes) -> None:
    """Created, duplicate of which, updated, superseding which, superseded, skipped and why."""

    def plan(text: str, occurred_at: str) -> Any:
        return nodes.remember(text, customer_id=CUSTOMER, attribute="plan", occurred_at=occurred_at)

    created = plan("Plan is Basic", "2024-01-01")
    duplicate = plan("Plan is Basic", "2024-01-01")
    updated = plan("Plan is Basic", "2024-02-01")
    changed = plan("Plan is Pro", "2024-03-01")
    late = plan("Plan is Trial", "2023-12-01")
    skipped = nodes.remember(
        [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "   "},
            {"role": "user", "content": "The parcel came on Monday"},
        ],
        customer_id=CUSTOMER,
    )

    told = [answer["memories"][0] for answer in (created, duplicate, updated, changed, late)]
    assert [m["action"] for m in told] == ["created", "duplicate", "updated", "created", "superseded"]
    assert told[1]["memory_id"] == told[0]["memory_id"]
    assert told[3]["supersedes"] == [told[2]["memory_id"]]
    assert told[4]["is_current"] is False
    assert [(a["stored"], a["duplicates"]) for a in (created, duplicate)] == [(1, 0), (0, 1)]
    assert (changed["stored"], changed["superseded"], late["superseded"]) == (1, 1, 1)
    assert [(m["action"], m.get("index"), m.get("reason")) for m in skipped["memories"][1:]] == [
        ("skipped", 0, "role_not_kept"),
        ("skipped", 1, "empty"),
    ]
    assert (skipped["stored"], skipped["skipped"]) == (1, 2)
    assert nodes.texts("", customer_id=CUSTOMER, kinds="semantic") == ["Plan is Pro"]


def test_every_answer_has_its_text_and_its_json_with_the_same_outputs(nodes: Nodes) -> None:
    """Each of the four nodes answers a sentence, a JSON object and variables that say the same."""
    answers = [
        nodes.remember("Prefers mornings", customer_id=CUSTOMER),
        nodes.recall("mornings", customer_id=CUSTOMER),
        nodes.forget(query="mornings", customer_id=CUSTOMER),
        nodes.link(customer_id=CUSTOMER, conversation_id="conv-1"),
    ]

    for answer in answers:
        assert answer.text.endswith(".")
        assert answer.json == [{"text": answer.text, **answer.variables}]
        assert answer["customer_id"] == CUSTOMER


def test_an_agents_words_are_no_fact_about_the_customer(nodes: Nodes) -> None:
    """What the agent says is kept as something that happened, never as a value of the customer's slot."""
    nodes.remember(
        [
            {"role": "user", "content": "I am on the Basic plan"},
            {"role": "assistant", "content": "You could try the Pro plan"},
        ],
        customer_id=CUSTOMER,
        kind="semantic",
        attribute="plan",
    )

    assert nodes.texts("", customer_id=CUSTOMER, kinds="semantic") == ["I am on the Basic plan"]
    agent = [m for m in history(nodes) if m["role"] == "agent"]
    assert [(m["kind"], m["attribute"]) for m in agent] == [("episodic", "")]


def test_messages_come_as_text_or_as_a_list(nodes: Nodes) -> None:
    """The same messages as JSON text and as a list are the same memories."""
    messages = [{"role": "user", "content": "My parcel is late"}, {"role": "assistant", "content": "Sorry!"}]
    given: dict[str, Any] = {"customer_id": CUSTOMER, "conversation_id": "conv-1"}
    nodes.remember(json.dumps(messages), **given)

    assert nodes.remember(messages, **given)["duplicates"] == 2
    assert {(m["text"], m["role"]) for m in history(nodes)} == {
        ("My parcel is late", "customer"),
        ("Sorry!", "agent"),
    }


# --- forgetting a value -------------------------------------------------------------------------


@pytest.mark.parametrize("newer_first", [False, True])
def test_a_superseded_value_does_not_return_when_the_newer_is_forgotten(
    nodes: Nodes, newer_first: bool
) -> None:
    """After the newer value is forgotten the slot is empty, whatever the order of arrival was."""
    values = [("Plan is Basic", "2024-01-01"), ("Plan is Pro", "2024-06-01")]
    ids = {}
    for text, occurred_at in reversed(values) if newer_first else values:
        answer = nodes.remember(text, customer_id=CUSTOMER, attribute="plan", occurred_at=occurred_at)
        ids[text] = answer["memories"][0]["memory_id"]

    nodes.forget(customer_id=CUSTOMER, memory_ids=ids["Plan is Pro"], action="delete")

    assert nodes.texts("", customer_id=CUSTOMER) == []
    assert nodes.texts("plan basic", customer_id=CUSTOMER, min_score=0) == []
    assert [(m["text"], m["is_current"]) for m in history(nodes)] == [("Plan is Basic", False)]


def test_after_a_value_was_forgotten_only_a_newer_one_is_current(nodes: Nodes) -> None:
    """A late arrival from before the forgotten value stays history; what the customer says anew holds."""
    nodes.remember("Plan is Pro", customer_id=CUSTOMER, attribute="plan", occurred_at="2024-06-01")
    found = nodes.recall("", customer_id=CUSTOMER)["memories"][0]["memory_id"]
    nodes.forget(customer_id=CUSTOMER, memory_ids=[found], action="delete")

    late = nodes.remember("Plan is Basic", customer_id=CUSTOMER, attribute="plan", occurred_at="2024-05-01")
    assert late["memories"][0]["is_current"] is False
    assert nodes.texts("", customer_id=CUSTOMER) == []

    anew = nodes.remember("Plan is Basic", customer_id=CUSTOMER, attribute="plan")
    assert anew["memories"][0]["is_current"] is True
    assert nodes.texts("", customer_id=CUSTOMER) == ["Plan is Basic"]


def test_a_fact_whose_time_is_over_is_not_recalled(nodes: Nodes) -> None:
    """Expired is left out of recall, and saying it again makes it known again."""
    nodes.remember("Has a voucher", customer_id=CUSTOMER, expires_in_days=0)
    assert nodes.texts("", customer_id=CUSTOMER) == []

    assert nodes.remember("Has a voucher", customer_id=CUSTOMER, expires_in_days=30)["stored"] == 1
    assert nodes.texts("", customer_id=CUSTOMER) == ["Has a voucher"]


# --- odd text -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "kept"),
    [
        ("Likes \x00teal\x07", "Likes teal"),
        ("Likes <|endoftext|> teal", "Likes <|endoftext|> teal"),
        ("喜欢 🍵 \u202e茶", None),
        ("%s {0} ${x} {{#a#}} \\u0000", None),
        ("\ufffd\ufffe is no letter", None),
    ],
    ids=["control", "special token", "emoji", "placeholders", "no letter"],
)
def test_odd_characters_are_cleaned_and_stored(nodes: Nodes, content: str, kept: str | None) -> None:
    """Text no store or model can take is cleaned; it is stored and found, and no call fails."""
    assert nodes.remember(content, customer_id=CUSTOMER)["stored"] == 1
    assert nodes.texts(content, customer_id=CUSTOMER) == [kept or content]
    assert nodes.texts("", customer_id=CUSTOMER) == [kept or content]


@pytest.mark.parametrize("surrogate", ["\\ud83d", "\\udc00", "\\udc00\\ud83d"])
def test_half_a_character_in_a_message_is_left_out(nodes: Nodes, surrogate: str) -> None:
    """A lone surrogate, as JSON text can hold one, neither fails the call nor reaches the store."""
    answer = nodes.remember(f'[{{"role": "user", "content": "Likes {surrogate}teal"}}]', customer_id=CUSTOMER)

    assert answer["stored"] == 1
    assert nodes.texts("teal", customer_id=CUSTOMER) == ["Likes teal"]


def test_a_message_that_is_empty_once_cleaned_is_skipped_and_the_others_are_kept(nodes: Nodes) -> None:
    """One message of control characters does not stop its neighbours."""
    answer = nodes.remember(
        '[{"role": "user", "content": "\\u0000\\ud800"}, {"role": "user", "content": "The lamp is broken"}]',
        customer_id=CUSTOMER,
    )

    assert (answer["stored"], answer["skipped"]) == (1, 1)
    assert nodes.texts("", customer_id=CUSTOMER) == ["The lamp is broken"]


def test_a_message_of_200_kb_is_split_found_by_any_part_and_forgotten_whole(nodes: Nodes) -> None:
    """A long text is one memory: any of its sentences finds it once, and forgetting leaves no part."""
    sentences = [
        f"On day {n} the courier of line {n * 7919 % 100_000} left parcel P-{n:05d} at the door."
        for n in range(2_900)
    ]
    text = " ".join(sentences)
    assert len(text) > 200_000

    answer = nodes.remember(text, customer_id=CUSTOMER)
    assert answer["stored"] == 1
    memory_id = answer["memories"][0]["memory_id"]
    for n in (3, 1_450, 2_890):
        found = nodes.recall(f"parcel P-{n:05d}", customer_id=CUSTOMER)["memories"]
        assert [m["memory_id"] for m in found] == [memory_id]
        assert f"P-{n:05d}" in found[0]["text"]
    assert nodes.remember(text, customer_id=CUSTOMER)["duplicates"] == 1

    gone = nodes.forget(customer_id=CUSTOMER, memory_ids=memory_id, action="delete")
    assert (gone["matched"], gone["deleted"]) == (1, 1)
    assert nodes.recall("parcel P-01450", customer_id=CUSTOMER, min_score=0)["found"] == 0


def test_an_unusable_moment_is_refused_before_anything_is_stored(nodes: Nodes) -> None:
    """Nonsense as a time is the caller's to correct."""
    with pytest.raises(PluginFailure) as failure:
        nodes.remember("Likes teal", customer_id=CUSTOMER, occurred_at="the day before last")

    assert failure.value.code == "parameter_invalid"
    assert nodes.texts("", customer_id=CUSTOMER) == []
