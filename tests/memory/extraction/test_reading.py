"""The JSON in a model's answer is found, whatever stands around it, or the answer is refused."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.extraction.reading import UnreadableAnswer, read_items

ITEM: dict[str, Any] = {"text": "Uses [PostgreSQL] {16}", "kind": "semantic", "confidence": 0.9, "message": 0}
OTHER: dict[str, Any] = {"text": 'Says "hi", twice', "kind": "episodic", "confidence": 0.8, "message": 1}
BOTH = json.dumps({"facts": [ITEM, OTHER]})
NESTED = {**ITEM, "text": "Nested", "more": {"a": [1, {"b": []}]}}


@pytest.mark.parametrize(
    "answer",
    [
        BOTH,
        json.dumps([ITEM, OTHER]),
        json.dumps({"facts": [ITEM, OTHER]}, indent=2),
        f"```json\n{BOTH}\n```",
        f"```\n{BOTH}\n```",
        f"~~~JSON\n{BOTH}",
        f"Sure! Here is what I found:\n\n{BOTH}\n\nLet me know if you need more.",
        f"Of {{the}} messages [0] and [1] say something:\n{BOTH}",
        f"The marks [card ending 1111] and {{password}} were left out. {BOTH} (see [1])",
        f'<think>Maybe {{"facts": []}}? No: [{{"text": "wrong"}}] is wrong.</think>\n{BOTH}',
        f'<THINKING>\n{{"facts": [{{"text": "wrong"}}]}}\n</THINKING>{BOTH}',
        f'<reasoning>{{"text": "wrong"}}</reasoning>```json\n{BOTH}\n```',
        '{"facts": [' + json.dumps(ITEM) + ", " + json.dumps(OTHER) + ",]}",
        '{"facts": [' + json.dumps(ITEM)[:-1] + ",\n}, " + json.dumps(OTHER)[:-1] + " , }, ], }",
        json.dumps({"memories": [ITEM, OTHER]}),
        json.dumps({"items": [ITEM, OTHER]}),
        json.dumps({"note": "none", "results": [ITEM, OTHER]}),
        json.dumps({"answer": {"facts": [ITEM, OTHER]}}),
        "\ufeff" + BOTH,
        BOTH + BOTH,
    ],
    ids=[
        "plain",
        "bare list",
        "indented",
        "fence",
        "fence without language",
        "open fence",
        "prose around",
        "prose with braces",
        "prose with marks",
        "thinking with braces",
        "thinking in capitals",
        "reasoning and fence",
        "trailing comma",
        "trailing commas everywhere",
        "key memories",
        "key items",
        "key results beside a note",
        "nested object",
        "byte order mark",
        "said twice",
    ],
)
def test_items_are_found_whatever_stands_around_them(answer: str) -> None:
    """Fences, prose, thinking and trailing commas leave the same two items."""
    assert read_items(answer) == [ITEM, OTHER]


@pytest.mark.parametrize("tag", ["think", "thinking", "reasoning"])
def test_a_draft_before_the_end_of_thinking_is_no_answer(tag: str) -> None:
    """Some servers leave out the tag that opens the thinking; what stands before its end is a draft."""
    answer = f'Maybe {{"facts": [{{"text": "wrong"}}]}}, or [] instead?</{tag}>\n{BOTH}'

    assert read_items(answer) == [ITEM, OTHER]


def test_a_tag_inside_a_fact_is_part_of_the_fact() -> None:
    """A customer may speak of thinking tags; the answer around them stays readable."""
    fact = {**ITEM, "text": "Writes prompts with <think> in them"}

    assert read_items(json.dumps({"facts": [fact, OTHER]})) == [fact, OTHER]


@pytest.mark.parametrize("wrap", ['{{"facts": {0}', "{0}", "```json\n{0}", 'Here: {{"facts": {0}'])
@pytest.mark.parametrize(
    "cut",
    ['{"text": "Third', '{"text": "Third", "more": {"a": [1', "{", "", '{"text": "Third"'],
)
def test_a_list_that_was_cut_off_keeps_its_whole_items(wrap: str, cut: str) -> None:
    """All items before the cut are kept, those with lists and objects of their own too."""
    listed = "[" + ", ".join(map(json.dumps, (ITEM, NESTED, OTHER))) + ", " + cut

    assert read_items(wrap.format(listed)) == [ITEM, NESTED, OTHER]


@given(st.integers(1, 6), st.data())
def test_a_list_cut_off_anywhere_keeps_each_whole_item(count: int, data: st.DataObject) -> None:
    """Wherever the cut falls, the items that end before it are kept and no half one is made up."""
    items = [{**ITEM, "text": f"Fact {number} [a], {{b}}"} for number in range(count)]
    text = json.dumps({"facts": items})
    ends = [text.index(json.dumps(item)) + len(json.dumps(item)) for item in items]
    cut = data.draw(st.integers(ends[0], len(text)))

    assert read_items(text[:cut]) == items[: sum(end <= cut for end in ends)]


def test_a_single_object_is_one_item() -> None:
    """A model that lists nothing but names one fact means that fact."""
    assert read_items(json.dumps(ITEM)) == [ITEM]
    assert read_items(f"The fact is:\n```json\n{json.dumps(ITEM)}\n```") == [ITEM]


@pytest.mark.parametrize(
    "answer", ['{"facts": []}', "[]", "```json\n[]\n```", "<think>[1]</think>{'facts'}: {\"facts\": [ ]}"]
)
def test_an_empty_list_is_an_answer(answer: str) -> None:
    """That there is nothing to keep is no failure."""
    assert read_items(answer) == []


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "   \n",
        "I could not find anything worth keeping.",
        "I'm sorry, I can't help with that.",
        '{"error": "rate limit"}',
        '{"facts": null}',
        '{"facts": "none"}',
        '{"facts": {"text": ',
        "[1, 2, 3]",
        '["Likes teal"]',
        "null",
        "true",
        "42",
        '{"facts": [{"text": "half',
        '<think>{"facts": [{"text": "only thought"}]}</think>',
        '<think>{"facts": [{"text": "never finished thinking"}]}',
        "[[[[",
        "}}]]",
    ],
)
def test_nonsense_is_refused(answer: str) -> None:
    """What holds no list of items is refused, never read as "nothing to keep"."""
    with pytest.raises(UnreadableAnswer):
        read_items(answer)


SIZE = 200_000
HOSTILE = {
    "open brackets": "[" * SIZE,
    "open objects": '{"a":' * (SIZE // 5),
    "empty objects": "[" + "{}," * (SIZE // 3),
    "brackets and quotes": '["' * (SIZE // 2),
    "one endless text": '{"a":"' + "x" * SIZE,
    "endless texts": ('{"a":"' + "x" * 900) * (SIZE // 906),
    "thinking that never ends": "<think>" * (SIZE // 7),
    "thinking ended by another": "<think></thinking>" * (SIZE // 18),
    "commas": "[," * (SIZE // 2),
    "commas and blanks": "[{" + "," + " " * SIZE,
    "blanks between commas": "[" + ", " * (SIZE // 2),
    "backslashes": '[{"a":"' + "\\" * SIZE,
    "a number": "[" + "9" * SIZE,
    "lists of one": "[{}" * (SIZE // 3),
    "cut off after thousands": '{"facts": [' + '{"text":"a"},' * (SIZE // 13) + '{"te',
    "trailing commas": '{"facts": [' + '{"text":"a",},' * (SIZE // 14),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_answer_of_200_kb_costs_little(name: str) -> None:
    """No answer makes reading expensive: processor time stays within a small bound."""
    started = time.process_time()
    try:
        items = read_items(HOSTILE[name])
    except UnreadableAnswer:
        items = []
    took = time.process_time() - started

    assert all(isinstance(item, dict) for item in items)
    assert took < 5.0


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)


@given(st.text(max_size=200) | _json.map(json.dumps) | st.text('[]{}",:\\ <think/>facts0', max_size=120))
def test_any_answer_gives_items_or_is_refused(answer: str) -> None:
    """There is no third way out, whatever the model says."""
    try:
        items = read_items(answer)
    except UnreadableAnswer:
        return
    assert isinstance(items, list)


@given(st.text(max_size=120))
def test_any_text_of_a_fact_survives(text: str) -> None:
    """What a fact says, braces and quotes included, comes back as it was."""
    item = {**ITEM, "text": text}

    assert read_items(f"Here you are:\n```json\n{json.dumps({'facts': [item]})}\n```") == [item]
