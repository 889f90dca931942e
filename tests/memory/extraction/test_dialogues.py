"""The replay set of dialogues: sound in itself, shown to a model whole, read back whatever the wrapping."""

import json
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from benchmarks.dialogues import TRAPS, Dialogue, ExpectedFact, Material, alternatives, contains, load
from memory.extraction.extracting import extract
from memory.extraction.model import Completion, Extraction, KnownSlot, Message
from memory.extraction.prompt import MAX_MESSAGE_LENGTH, MAX_SLOTS, SYSTEM
from memory.extraction.times import resolve_time
from memory.records import Role
from memory.redaction.engine import redact

DIALOGUES = load()
FACTS = [(dialogue, fact) for dialogue in DIALOGUES for fact in dialogue.facts]
TOLD_DAYS = [(dialogue, fact) for dialogue, fact in FACTS if fact.words]
MIN_CONFIDENCE = 0.6

type Item = dict[str, Any]
type Told = tuple[str, str, str, str, bool, int, float]
"""Text, kind, subject, attribute, whether it is still so, message, time."""


class ScriptedModel:
    """A language model that gives one answer, once, and keeps what it was asked."""

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.asked: list[tuple[str, str]] = []

    def complete(self, system: str, user: str) -> Completion:
        """The answer; asking again is an error."""
        self.asked.append((system, user))
        assert len(self.asked) == 1, "the first answer was not understood"
        return Completion(self.answer, 7)


def named(dialogue: Dialogue) -> str:
    return dialogue.id


def named_fact(value: object) -> str:
    return value.id if isinstance(value, Dialogue) else str(getattr(value, "words", value))


every_dialogue = pytest.mark.parametrize("dialogue", DIALOGUES, ids=named)


def replay(dialogue: Dialogue, answer: str) -> tuple[Extraction, ScriptedModel]:
    """Extract from a dialogue with a model that gives this answer."""
    model = ScriptedModel(answer)
    material = Material.of(dialogue)
    extraction = extract(
        model, material.messages, material.known, min_confidence=MIN_CONFIDENCE, zone=dialogue.zone
    )
    return extraction, model


def right_item(fact: ExpectedFact) -> Item:
    """A fact as a right model writes it: a known slot by its number only, the day resolved."""
    is_known = fact.slot is not None
    return {
        "text": fact.text,
        "kind": fact.kind,
        "about_customer": True,
        "subject": "" if is_known else fact.subject,
        "attribute": "" if is_known else fact.attribute,
        "slot": fact.slot,
        "when": fact.when.isoformat() if fact.when else None,
        "still_true": fact.still_true,
        "confidence": 0.9,
        "message": fact.message,
    }


def right_facts(dialogue: Dialogue) -> list[Told]:
    """What extraction makes of a right answer; a day without a time has the time of its message."""
    told: list[Told] = []
    for fact in dialogue.facts:
        sent = dialogue.messages[fact.message].sent_at.astimezone(dialogue.zone)
        moment = datetime.combine(dialogue.day_of(fact), sent.timetz())
        still, message, at = fact.still_true, fact.message, moment.timestamp()
        told.append((fact.text, fact.kind, fact.subject, fact.attribute, still, message, at))
    return told


def read_facts(extraction: Extraction) -> list[Told]:
    return [
        (f.text, f.kind, f.subject, f.attribute, f.is_still_so, f.message, f.occurred_at)
        for f in extraction.facts
    ]


# --- the set itself -----------------------------------------------------------------------------


def test_the_set_is_large_and_in_two_languages() -> None:
    """There are over 66 dialogues, three in five of them English, each with an id of its own."""
    ids = {dialogue.id for dialogue in DIALOGUES}
    english = sum(dialogue.language == "en" for dialogue in DIALOGUES)

    assert len(ids) == len(DIALOGUES) >= 66
    assert 0.55 <= english / len(DIALOGUES) <= 0.65
    assert all(dialogue.id.startswith(f"{dialogue.language}-") for dialogue in DIALOGUES)


@pytest.mark.parametrize("trap", TRAPS)
def test_every_trap_is_laid_in_both_languages(trap: str) -> None:
    """Each kind of trap occurs three times at least, and in either language."""
    laid = [dialogue.language for dialogue in DIALOGUES if trap in dialogue.traps]

    assert len(laid) >= 3
    assert set(laid) == {"en", "zh"}


def test_some_dialogues_hold_nothing_to_keep_and_some_a_lot() -> None:
    """A careful person keeps nothing of eight dialogues at least, and four facts or more of four."""
    counts = [len(dialogue.facts) for dialogue in DIALOGUES]

    assert counts.count(0) >= 8
    assert sum(count >= 4 for count in counts) >= 4


@every_dialogue
def test_messages_follow_each_other_in_the_customers_zone(dialogue: Dialogue) -> None:
    """The times go up, and their offsets are those of the dialogue's zone."""
    times = [line.sent_at for line in dialogue.messages]

    assert times == sorted(times)
    assert all(time.utcoffset() == time.astimezone(dialogue.zone).utcoffset() for time in times)


@every_dialogue
def test_tags_and_facts_agree(dialogue: Dialogue) -> None:
    """A tagged trap shows in the facts: a withdrawal ends a value, a correction takes a known slot."""
    facts, traps = dialogue.facts, set(dialogue.traps)
    sent = [dialogue.messages[fact.message].sent_at.date() for fact in facts]
    borders = [
        (fact.when.year, fact.when.month) != (day.year, day.month)
        for fact, day in zip(facts, sent, strict=True)
        if fact.when
    ]

    assert traps <= TRAPS.keys()
    assert ("withdrawn" in traps) == any(not fact.still_true for fact in facts)
    assert ("date_border" in traps) == any(borders)
    assert "correction" not in traps or any(fact.slot for fact in facts)
    assert "relative_date" not in traps or any(fact.words for fact in facts)


@pytest.mark.parametrize(("dialogue", "fact"), FACTS, ids=named_fact)
def test_a_fact_is_what_the_customer_said(dialogue: Dialogue, fact: ExpectedFact) -> None:
    """It cites a customer's message that holds each of its values, and so does its own text."""
    line = dialogue.messages[fact.message]

    assert line.role == "customer"
    assert fact.is_told_by(fact.text)
    for value in fact.value_contains:
        assert any(contains(line.text, each) for each in alternatives(value))


@pytest.mark.parametrize(("dialogue", "fact"), FACTS, ids=named_fact)
def test_a_fact_is_told_by_no_other_text(dialogue: Dialogue, fact: ExpectedFact) -> None:
    """Its values tell it from the dialogue's other facts, so that a score is no matter of chance."""
    others = [other.text for other in dialogue.facts if other is not fact]

    assert not [text for text in others if fact.is_told_by(text)]


@pytest.mark.parametrize(("dialogue", "fact"), FACTS, ids=named_fact)
def test_a_slot_is_named_once(dialogue: Dialogue, fact: ExpectedFact) -> None:
    """Numbered slots are known ones by their names; new ones are not; what happened has none."""
    names = [(slot.subject, slot.attribute) for slot in dialogue.known]
    name = (fact.subject, fact.attribute)

    assert (name in names) == (fact.slot is not None)
    assert fact.slot is None or names[fact.slot - 1] == name
    assert fact.kind == "semantic" or not fact.attribute


@every_dialogue
def test_what_is_forbidden_is_there_to_fall_for(dialogue: Dialogue) -> None:
    """Each forbidden string stands in a message or a known value, and in no fact expected."""
    there = [line.text for line in dialogue.messages] + [slot.value for slot in dialogue.known]

    assert dialogue.violated(there) == dialogue.forbidden
    assert dialogue.violated(fact.text for fact in dialogue.facts) == []


@pytest.mark.parametrize(("dialogue", "fact"), TOLD_DAYS, ids=named_fact)
def test_a_told_day_is_said_and_lies_in_the_year_before(dialogue: Dialogue, fact: ExpectedFact) -> None:
    """The words for a day stand in its message, and the day is at most a year before it."""
    line = dialogue.messages[fact.message]

    assert contains(line.text, fact.words or "?")
    assert fact.when is not None
    assert timedelta(0) <= line.sent_at.date() - fact.when < timedelta(366)


@every_dialogue
def test_addresses_are_invented(dialogue: Dialogue) -> None:
    """Every e-mail and web address is at example.com."""
    text = " ".join(
        [line.text for line in dialogue.messages]
        + [slot.value for slot in dialogue.known]
        + [fact.text for fact in dialogue.facts]
    )
    hosts = re.findall(r"(?:@|https?://)([\w.-]+)", text)

    assert all(host.removesuffix(".").endswith("example.com") for host in hosts)


@every_dialogue
def test_redaction_has_nothing_left_to_remove(dialogue: Dialogue) -> None:
    """The messages are as extraction gets them: redacted, and no number in them is taken for a secret."""
    for line in dialogue.messages:
        assert redact(line.text).text == line.text


# --- what the model is shown ----------------------------------------------------------------------


@every_dialogue
def test_the_prompt_shows_every_message_with_its_time(dialogue: Dialogue) -> None:
    """Each message is one line: its number, the customer's time, whose it is, and all of its words."""
    _, model = replay(dialogue, '{"facts": []}')
    lines = model.asked[0][1].splitlines()[-len(dialogue.messages) :]

    for number, (line, shown) in enumerate(zip(dialogue.messages, lines, strict=True)):
        assert shown.startswith(f"[{number}] ")
        assert line.sent_at.strftime("%A %Y-%m-%d %H:%M") in shown
        assert ("CUSTOMER:" if line.role == "customer" else "AGENT (context only):") in shown
        assert shown.endswith(" ".join(line.text.split()))


@every_dialogue
def test_no_message_makes_lines_of_its_own(dialogue: Dialogue) -> None:
    """The material has a line for each slot and message and its headings, whatever the messages hold."""
    _, model = replay(dialogue, '{"facts": []}')
    headings = ["Known values:", ""] if dialogue.known else []

    expected = len(headings) + len(dialogue.known) + 1 + len(dialogue.messages)
    assert len(model.asked[0][1].splitlines()) == expected


@every_dialogue
def test_the_prompt_shows_known_values_by_number(dialogue: Dialogue) -> None:
    """Known values are numbered from 1 with name and value; ids and the rules' place stay out."""
    _, model = replay(dialogue, '{"facts": []}')
    system, user = model.asked[0]

    for number, slot in enumerate(dialogue.known, start=1):
        name = " / ".join(filter(None, (slot.subject, slot.attribute)))
        assert f"{number}. {name}: {slot.value}" in user.splitlines()
    assert dialogue.id not in user
    assert not re.search(r"[0-9a-f]{32}|[0-9a-f]{8}-[0-9a-f]{4}-", user)
    assert system == SYSTEM


def test_the_prompt_is_bounded_whatever_is_known_and_said() -> None:
    """Of 500 long values and 100,000 characters some 20,000 are shown; an unseen slot is not accepted."""
    unseen = {"text": "A", "kind": "semantic", "slot": MAX_SLOTS + 1, "confidence": 1, "message": 0}
    model = ScriptedModel(json.dumps([unseen]))
    known = [KnownSlot("", f"attribute {i}", f"value {i} " * 500) for i in range(500)]
    messages = [Message("word " * 20_000, Role.CUSTOMER, 1_700_000_000.0)]

    answer = extract(model, messages, known, min_confidence=MIN_CONFIDENCE, zone=DIALOGUES[0].zone)

    user = model.asked[0][1]
    assert len(user) < MAX_MESSAGE_LENGTH + MAX_SLOTS * 250 + 200
    assert user.count("\n") == MAX_SLOTS + 3
    assert "attribute 0: value 0" in user
    assert f"attribute {MAX_SLOTS}:" not in user
    assert [each.reason for each in answer.rejected] == ["unknown_slot"]


# --- what a right model answers ---------------------------------------------------------------------


def _pretty(items: list[Item]) -> str:
    return json.dumps({"facts": items}, ensure_ascii=False, indent=2)


def _with_trailing_commas(items: list[Item]) -> str:
    rows = "".join(json.dumps(item, ensure_ascii=False)[:-1] + ",},\n" for item in items)
    return '{"facts": [' + rows + "],}"


def _cut_off(items: list[Item]) -> str:
    whole = ", ".join(json.dumps(item, ensure_ascii=False) for item in items)
    return '{"facts": [' + whole + ', {"text": "The customer has {one'


THOUGHT = (
    'The {customer} said [1] and maybe {"text": "a draft"}, so {"facts": [{"text": "a draft", '
    '"kind": "semantic", "confidence": 0.9, "message": 0}]} was my first idea, or {"facts": []}?'
)
WRAPPINGS: dict[str, Callable[[list[Item]], str]] = {
    "plain": lambda items: json.dumps({"facts": items}),
    "fence": lambda items: f"```json\n{_pretty(items)}\n```",
    "prose": lambda items: f"Here is what {{I}} would keep [1]:\n\n{_pretty(items)}\n\nAnything [else] {{?}}",
    "thinking": lambda items: f"<think>\n{THOUGHT}\n</think>\n\n{_pretty(items)}",
    "thinking without its opening": lambda items: f"{THOUGHT}\n</think>\n\n{_pretty(items)}",
    "trailing commas": _with_trailing_commas,
    "bare list": lambda items: json.dumps(items, ensure_ascii=False),
}


@pytest.mark.parametrize("wrapping", WRAPPINGS)
@every_dialogue
def test_a_right_answer_gives_the_facts_however_it_is_wrapped(dialogue: Dialogue, wrapping: str) -> None:
    """Texts, kinds, slots and times are those a careful person would keep, at the first asking."""
    items = [right_item(fact) for fact in dialogue.facts]

    extraction, _ = replay(dialogue, WRAPPINGS[wrapping](items))

    assert read_facts(extraction) == right_facts(dialogue)
    assert extraction.rejected == ()
    assert extraction.tokens == 7


@pytest.mark.parametrize("dialogue", [d for d in DIALOGUES if d.facts], ids=named)
def test_an_answer_cut_off_keeps_its_whole_items(dialogue: Dialogue) -> None:
    """All items before the one that was cut are kept, not only the first."""
    items = [right_item(fact) for fact in dialogue.facts]

    extraction, _ = replay(dialogue, _cut_off(items))

    assert read_facts(extraction) == right_facts(dialogue)


@pytest.mark.parametrize(("dialogue", "fact"), TOLD_DAYS, ids=named_fact)
def test_the_customers_words_for_a_day_give_that_day(dialogue: Dialogue, fact: ExpectedFact) -> None:
    """A model that passes on the customer's words has the day found, in the customer's zone."""
    sent_at = dialogue.messages[fact.message].sent_at.timestamp()

    seconds = resolve_time(fact.words, sent_at, zone=dialogue.zone)

    assert datetime.fromtimestamp(seconds, dialogue.zone).date() == fact.when


# --- what a wrong model answers -----------------------------------------------------------------------


def wrong_items(dialogue: Dialogue) -> list[tuple[Item | str, str]]:
    """Items that do not hold, each with the reason it is left out for."""
    asked = next(i for i, line in enumerate(dialogue.messages) if line.role == "customer")
    fallen_for = " ".join(dialogue.forbidden) or "The customer likes everything."
    base = {"text": fallen_for, "kind": "semantic", "attribute": "plan", "confidence": 0.99, "message": asked}
    without_text = {name: value for name, value in base.items() if name != "text"}
    wrong: list[tuple[Item | str, str]] = [
        (base | {"slot": len(dialogue.known) + 1}, "unknown_slot"),
        (base | {"slot": 0}, "unknown_slot"),
        (base | {"about_customer": False}, "about_somebody_else"),
        (base | {"confidence": MIN_CONFIDENCE - 0.01}, "low_confidence"),
        (base | {"message": len(dialogue.messages)}, "unknown_message"),
        (base | {"message": -1}, "unknown_message"),
        (base | {"attribute": "", "still_true": False}, "no_longer_true"),
        (base | {"kind": "opinion"}, "malformed"),
        (base | {"confidence": 7}, "malformed"),
        (without_text, "malformed"),
        (fallen_for, "malformed"),
    ]
    agents = [i for i, line in enumerate(dialogue.messages) if line.role == "agent"]
    return wrong + [(base | {"message": i}, "not_the_customers_words") for i in agents]


@every_dialogue
def test_wrong_items_are_left_out_one_by_one(dialogue: Dialogue) -> None:
    """Among right items, each wrong one is told with its place and reason, and takes none with it."""
    wrong = wrong_items(dialogue)
    right = [right_item(fact) for fact in dialogue.facts]
    items: list[Item | str] = []
    rejected = []
    for index, (item, reason) in enumerate(wrong):
        rejected.append((len(items), reason))
        items += [item, *right[index : index + 1]]

    extraction, _ = replay(dialogue, json.dumps({"facts": items}))

    assert read_facts(extraction) == right_facts(dialogue)
    assert [(each.item, each.reason) for each in extraction.rejected] == rejected
    assert dialogue.violated(fact.text for fact in extraction.facts) == []
