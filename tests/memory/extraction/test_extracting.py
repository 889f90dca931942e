"""One extraction: asked once, once more after nonsense, and a visible failure then."""

import json
from collections.abc import Callable
from datetime import UTC
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.errors import ExtractionFailed, LanguageModelRateLimited
from memory.extraction.extracting import extract
from memory.extraction.model import Completion, Extraction, KnownSlot, Message
from memory.extraction.prompt import MAX_SLOTS, SYSTEM
from memory.records import Role

SENT = 1_709_373_600.0
SAID = [Message("I moved to PostgreSQL", Role.CUSTOMER, SENT), Message("Great!", Role.AGENT, SENT + 60)]
ITEM: dict[str, Any] = {
    "text": "Uses PostgreSQL.",
    "kind": "semantic",
    "attribute": "database",
    "confidence": 0.9,
    "message": 0,
}
ANSWER = json.dumps({"facts": [ITEM]})


class Script:
    """A language model that follows a script and notes what it was asked."""

    def __init__(self, *steps: str | Exception) -> None:
        self._steps = list(steps)
        self.asked: list[tuple[str, str]] = []

    def complete(self, system: str, user: str) -> Completion:
        """See `memory.extraction.model.LanguageModel`."""
        self.asked.append((system, user))
        step = self._steps.pop(0)
        if isinstance(step, Exception):
            raise step
        return Completion(step, 100)


def run(
    model: Script, messages: list[Message] | None = None, known: list[KnownSlot] | None = None
) -> Extraction:
    """Extract with the usual settings."""
    return extract(model, SAID if messages is None else messages, known or [], min_confidence=0.6, zone=UTC)


def test_a_good_answer_is_asked_for_once() -> None:
    """The rules go as the system's words, the messages as the user's, and the tokens are told."""
    model = Script(ANSWER)
    result = run(model)

    assert [fact.text for fact in result.facts] == ["Uses PostgreSQL."]
    assert (result.rejected, result.tokens) == ((), 100)
    assert [system for system, _ in model.asked] == [SYSTEM]
    assert "I moved to PostgreSQL" in model.asked[0][1]


def test_nothing_to_keep_is_a_normal_answer() -> None:
    """It is not asked again."""
    model = Script('{"facts": []}')

    assert run(model) == Extraction((), (), 100)
    assert len(model.asked) == 1


def test_after_nonsense_it_is_asked_once_more() -> None:
    """With the same messages and a reminder of the form; both answers are paid for."""
    model = Script("I found some facts!", ANSWER)
    result = run(model)

    assert (len(result.facts), result.tokens) == (1, 200)
    first, second = (user for _, user in model.asked)
    assert second.startswith(first)
    assert second != first


def test_nonsense_twice_is_a_failure() -> None:
    """It is not asked a third time, and the failure may be tried again."""
    model = Script("Nothing.", "Really nothing.", ANSWER)

    with pytest.raises(ExtractionFailed) as failure:
        run(model)
    assert failure.value.retryable
    assert len(model.asked) == 2


def test_a_failure_of_the_service_is_passed_on_at_once() -> None:
    """Only nonsense is asked about again; waiting is the caller's business."""
    model = Script(LanguageModelRateLimited(model="m"), ANSWER)

    with pytest.raises(LanguageModelRateLimited):
        run(model)
    assert len(model.asked) == 1


@pytest.mark.parametrize("messages", [[], [Message("Try Pro", Role.AGENT, SENT)] * 3])
def test_without_a_message_of_the_customer_nobody_is_asked(messages: list[Message]) -> None:
    """An agent's words hold no facts, so they cost nothing."""
    model = Script()

    assert run(model, messages) == Extraction((), (), 0)
    assert model.asked == []


def test_slots_that_are_not_shown_cannot_be_named() -> None:
    """A number beyond the list that was shown is unknown, though the customer has so many."""
    known = [KnownSlot("", f"attribute {number}", "Value.") for number in range(MAX_SLOTS + 5)]
    items = [{**ITEM, "slot": MAX_SLOTS}, {**ITEM, "slot": MAX_SLOTS + 1}]
    result = run(Script(json.dumps(items)), known=known)

    assert [fact.attribute for fact in result.facts] == [f"attribute {MAX_SLOTS - 1}"]
    assert [item.reason for item in result.rejected] == ["unknown_slot"]


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(ITEM)), inner),
    max_leaves=10,
)
_broken: st.SearchStrategy[Callable[[str], str]] = st.sampled_from(
    [
        lambda text: text,
        lambda text: f"```json\n{text}\n```",
        lambda text: f"<think>{text}</think>{text}",
        lambda text: text[: len(text) * 2 // 3],
        lambda text: text.replace("}", ",}"),
        lambda text: f"Here {{it}} is: {text}",
    ]
)
_answers = st.text(max_size=60) | st.builds(
    lambda items, broken: broken(
        json.dumps({"facts": [{**ITEM, **i} if isinstance(i, dict) else i for i in items]})
    ),
    st.lists(_json, max_size=4),
    _broken,
)


@given(_answers, _answers)
def test_any_answer_gives_facts_and_reasons_or_the_failure(first: str, second: str) -> None:
    """Whatever a model says, there are sound facts, reasons against the others, or one documented error."""
    model = Script(first, second)
    try:
        result = run(model)
    except ExtractionFailed:
        assert len(model.asked) == 2
        return
    assert result.tokens == 100 * len(model.asked)
    assert all(fact.text and SAID[fact.message].role is Role.CUSTOMER for fact in result.facts)
    assert all(item.reason for item in result.rejected)
