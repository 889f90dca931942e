"""What a call to remember was given, as statements; and the user's own metadata."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.content import (
    MAX_CONTENT_LENGTH,
    MAX_MESSAGES,
    MAX_METADATA_KEYS,
    MAX_METADATA_LENGTH,
    Skipped,
    Statement,
    read_content,
    read_metadata,
)
from memory.errors import ContentInvalid, ContentTooLarge, MetadataInvalid
from memory.records import Kind, Role

MESSAGES = [
    {"role": "system", "content": "You are a helpful agent."},
    {"role": "user", "content": "My order 10482 has not arrived."},
    {"role": "assistant", "content": "You could try the Pro plan."},
    {"role": "tool", "content": '{"status": "lost"}'},
    {"role": "user", "content": "  "},
]
STATEMENTS = [
    Statement("My order 10482 has not arrived.", Role.CUSTOMER, Kind.EPISODIC, 1),
    Statement("You could try the Pro plan.", Role.AGENT, Kind.EPISODIC, 2),
]
SKIPPED = [Skipped(0, "role_not_kept"), Skipped(3, "role_not_kept"), Skipped(4, "empty")]


def test_text_is_one_fact_of_the_customers() -> None:
    """A sentence is the customer's and holds, unless another kind is asked for."""
    assert read_content(" Likes tea ", kind=None) == (
        [Statement("Likes tea", Role.CUSTOMER, Kind.SEMANTIC, 0)],
        [],
    )
    (rule,), _ = read_content("Call her Dr. Weber", kind=Kind.PROCEDURAL)
    assert rule.kind is Kind.PROCEDURAL


@pytest.mark.parametrize(
    "content",
    [
        MESSAGES,
        tuple(MESSAGES),
        {"messages": MESSAGES},
        json.dumps(MESSAGES),
        json.dumps({"messages": MESSAGES}),
        "\n  " + json.dumps(MESSAGES, indent=2) + "\n",
    ],
    ids=["list", "tuple", "object", "JSON list", "JSON object", "JSON with blanks"],
)
def test_messages_are_one_statement_each(content: object) -> None:
    """In any of their shapes, each message keeps its role and place; what is not kept is told."""
    assert read_content(content, kind=None) == (STATEMENTS, SKIPPED)


@pytest.mark.parametrize("kind", list(Kind))
def test_what_an_agent_says_is_no_fact_about_the_customer(kind: Kind) -> None:
    """The kind asked for is given to the customer's words only; an agent's are what happened."""
    statements, _ = read_content(MESSAGES, kind=kind)
    assert [(s.role, s.kind) for s in statements] == [(Role.CUSTOMER, kind), (Role.AGENT, Kind.EPISODIC)]


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("user", Role.CUSTOMER),
        ("customer", Role.CUSTOMER),
        ("human", Role.CUSTOMER),
        (" User ", Role.CUSTOMER),
        ("assistant", Role.AGENT),
        ("agent", Role.AGENT),
        ("ai", Role.AGENT),
        ("bot", Role.AGENT),
        ("ASSISTANT", Role.AGENT),
    ],
)
def test_roles_go_by_their_usual_names(name: str, role: Role) -> None:
    """The names of the common frameworks lead to the two roles."""
    (statement,), skipped = read_content([{"role": name, "content": "hello"}], kind=None)
    assert statement.role is role
    assert skipped == []


@pytest.mark.parametrize("name", ["system", "tool", "developer", "function", "", "users"])
def test_other_roles_are_not_kept(name: str) -> None:
    """Words that are neither the customer's nor the agent's are left out, and told."""
    assert read_content([{"role": name, "content": "hello"}], kind=None) == (
        [],
        [Skipped(0, "role_not_kept")],
    )


def test_content_parts_count_by_their_text() -> None:
    """Of a message in parts the texts are kept, and pictures are not."""
    parts = [
        {"type": "text", "text": "It is broken:"},
        {"type": "image_url", "image_url": "x"},
        {"text": "here"},
    ]
    (statement,), _ = read_content([{"role": "user", "content": parts}], kind=None)
    assert statement.text == "It is broken:\nhere"


@pytest.mark.parametrize("content", [None, "", " \n", "\x00", []])
def test_nothing_to_remember_stores_nothing(content: object) -> None:
    """Empty content gives no statement, and no error."""
    statements, _ = read_content(content, kind=None)
    assert statements == []


@pytest.mark.parametrize(
    "text",
    [
        "[1, 2, 3]",
        '["a", "b"]',
        "{not json",
        "[see the attachment]",
        '{"order": 10482}',
        "[]",
        '{"messages": []}',
        '[{"role": "user"}]',
        '[{"role": "user", "content": "a"}, 5]',
        "[" * 100_000,
    ],
    ids=lambda text: text[:30],
)
def test_text_that_only_looks_like_messages_stays_text(text: str) -> None:
    """A customer may write brackets; nothing of it is lost."""
    (statement,), _ = read_content(text, kind=None)
    assert statement.text == text


@pytest.mark.parametrize(
    "content",
    [
        5,
        True,
        {"text": "a"},
        [1],
        ["text"],
        [None],
        [{"content": "a"}],
        [{"role": 5, "content": "a"}],
        [{"role": "user", "content": 5}],
        [{"role": "user", "content": {"text": "a"}}],
        {"messages": "text"},
    ],
    ids=repr,
)
def test_content_of_another_shape_is_refused(content: object) -> None:
    """The error says what is expected and repeats nothing of the content."""
    with pytest.raises(ContentInvalid):
        read_content(content, kind=None)


def test_the_error_holds_none_of_the_customers_words() -> None:
    """Only the place of the message is named."""
    with pytest.raises(ContentInvalid) as caught:
        read_content([{"role": "user", "content": "ok"}, {"content": "hunter2"}], kind=None)
    assert "hunter2" not in str(caught.value)
    assert "message 1" in caught.value.message


def test_a_million_characters_are_the_limit() -> None:
    """At the limit it is taken, over it refused, as text, as JSON and as messages."""
    (statement,), _ = read_content("x" * MAX_CONTENT_LENGTH, kind=None)
    assert len(statement.text) == MAX_CONTENT_LENGTH
    for content in (
        "x" * (MAX_CONTENT_LENGTH + 1),
        "[" + " " * MAX_CONTENT_LENGTH,
        [{"role": "user", "content": "x" * (MAX_CONTENT_LENGTH // 2 + 1)}] * 2,
    ):
        with pytest.raises(ContentTooLarge):
            read_content(content, kind=None)


def test_a_thousand_messages_are_the_limit() -> None:
    """At the limit they are taken, over it refused."""
    message = {"role": "user", "content": "hello"}
    statements, _ = read_content([message] * MAX_MESSAGES, kind=None)
    assert len(statements) == MAX_MESSAGES
    with pytest.raises(ContentTooLarge):
        read_content([message] * (MAX_MESSAGES + 1), kind=None)


@pytest.mark.parametrize("text", ["a\x00b", "a\ud800b", "<|endoftext|>", "x" * 200_000, "👍", "你好"])
def test_awkward_text_is_cleaned_and_kept(text: str) -> None:
    """Text that cannot be stored as it is loses what cannot be stored, no more."""
    (statement,), _ = read_content([{"role": "user", "content": text}], kind=None)
    assert statement.text == text.replace("\x00", "").replace("\ud800", "")


@given(
    st.lists(
        st.fixed_dictionaries(
            {"role": st.sampled_from(["user", "assistant", "system", "x"]), "content": st.text(max_size=5)}
        ),
        max_size=8,
    )
)
def test_every_message_is_kept_or_told(messages: list[dict[str, str]]) -> None:
    """No message disappears: its index is among the statements or among the skipped."""
    statements, skipped = read_content(messages, kind=None)
    indexes = [s.index for s in statements] + [s.index for s in skipped]
    assert sorted(indexes) == list(range(len(messages)))
    assert [s.index for s in statements] == sorted(s.index for s in statements)


# --- metadata -----------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [None, "", {}, "{}"])
def test_no_metadata_is_empty(value: object) -> None:
    """Nothing given is nothing kept."""
    assert read_metadata(value) == {}


@pytest.mark.parametrize("as_text", [False, True])
def test_metadata_is_a_flat_object(as_text: bool) -> None:
    """Texts, numbers and booleans are kept as they are; what is null is left out."""
    value: Any = {"source": " survey ", "score": 4, "ratio": 0.5, "vip": True, "gone": None}
    expected = {"source": "survey", "score": 4, "ratio": 0.5, "vip": True}
    kept = read_metadata(json.dumps(value) if as_text else value)
    assert kept == expected
    assert [type(v) for v in kept.values()] == [type(v) for v in expected.values()]


@pytest.mark.parametrize(
    "value",
    [
        "not json",
        "[1]",
        "5",
        "null",
        '"text"',
        "[" * 100_000,
        5,
        ["a"],
        {"": "a"},
        {" ": "a"},
        {5: "a"},
        {"a": {"b": 1}},
        {"a": ["b"]},
        {"a": float("nan")},
        {"a": float("inf")},
        '{"a": NaN}',
        {"a": b"bytes"},
        {f"key{i}": i for i in range(MAX_METADATA_KEYS + 1)},
        {"a": "x" * MAX_METADATA_LENGTH},
    ],
    ids=lambda value: repr(value)[:30],
)
def test_metadata_of_another_shape_is_refused(value: object) -> None:
    """Nested, unnamed, unreadable, endless or not a number: an error of ours."""
    with pytest.raises(MetadataInvalid):
        read_metadata(value)


@pytest.mark.parametrize(
    "key",
    [
        "customer_id",
        "conversation_id",
        "case_id",
        "scope",
        "namespace",
        "memory_id",
        "Customer_ID",
        " customer_id ",
        "customer_id\x00",
    ],
)
@pytest.mark.parametrize("value", ["B", None])
def test_metadata_names_no_identity(key: str, value: str | None) -> None:
    """Whose memory it is comes from the node alone, however the key is spelt."""
    with pytest.raises(MetadataInvalid) as caught:
        read_metadata({key: value})
    assert "decided by the node" in caught.value.message


def test_the_largest_metadata_is_kept() -> None:
    """At the limit of keys nothing is refused."""
    value = {f"key{i}": i for i in range(MAX_METADATA_KEYS)}
    assert read_metadata(value) == value


def test_metadata_errors_hold_no_values() -> None:
    """What the user attached does not come back in the message."""
    with pytest.raises(MetadataInvalid) as caught:
        read_metadata({"note": ["hunter2"]})
    assert "hunter2" not in str(caught.value)


def test_metadata_keys_and_values_are_cleaned() -> None:
    """What cannot be stored is dropped from keys and values."""
    assert read_metadata({"a\x00": "b\ud800", "c": "d\x00"}) == {"a": "b", "c": "d"}


def test_a_key_of_nothing_that_can_be_stored_is_refused() -> None:
    """A key that is empty once cleaned is an empty key."""
    with pytest.raises(MetadataInvalid):
        read_metadata({"\x00": "a"})


def test_a_huge_number_is_refused_or_kept_as_it_is() -> None:
    """Beyond 64 bits a whole number comes back as the same number."""
    assert read_metadata({"n": 2**63}) == {"n": 2**63}
