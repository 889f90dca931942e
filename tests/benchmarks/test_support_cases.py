"""The support cases are what the material makes, well formed, and each question's evidence is right."""

import re
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks.support_cases.cases import CATEGORIES, DATA, Case, Message, Question, load
from benchmarks.support_cases.generate import MATERIAL, ROUTINES, generate
from memory.redaction import redact
from tests.benchmarks.wording import content, holds, holds_identifier, is_chinese, is_near

CASES = load()
CASE_OF = {case.customer_id: case for case in CASES}
QUESTIONS = [question for case in CASES for question in case.questions]
MESSAGES = {message.message_id: message for case in CASES for message in case.messages}
DAY = timedelta(days=1)
LEAST = {
    "fact": 60,
    "changed": 36,
    "identifier": 45,
    "paraphrase": 40,
    "cross_language": 25,
    "time": 30,
    "context": 30,
    "no_answer": 45,
}
"""Questions a category has at least."""
MONTHS = ["january", "february", "march", "april", "may", "june", "july"]
MONTHS += ["august", "september", "october", "november", "december"]
CHINESE_MONTHS = [
    "一月",
    "二月",
    "三月",
    "四月",
    "五月",
    "六月",
    "七月",
    "八月",
    "九月",
    "十月",
    "十一月",
    "十二月",
]


def of(category: str, where: Callable[[Question], bool] = lambda question: True) -> pytest.MarkDecorator:
    """A test for each question of a category."""
    chosen = [question for question in QUESTIONS if question.category == category and where(question)]
    return pytest.mark.parametrize("question", chosen, ids=lambda question: question.question_id)


def evidence(question: Question) -> list[Message]:
    return [MESSAGES[message_id] for message_id in question.evidence]


def lures(question: Question) -> list[Message]:
    return [MESSAGES[message_id] for message_id in question.lures]


def before(message: Message) -> list[Message]:
    """The messages of the conversation up to this one, which is left out."""
    for case in CASES:
        for conversation in case.conversations:
            if message in conversation.messages:
                return list(conversation.messages[: conversation.messages.index(message)])
    raise LookupError(message.message_id)


def other_messages(question: Question) -> list[Message]:
    """The messages of the customer that are no evidence."""
    messages = CASE_OF[question.customer_id].messages
    return [message for message in messages if message.message_id not in question.evidence]


def month_named(text: str) -> int | None:
    """The month that a text names; None for none or several."""
    named = [n for n, month in enumerate(MONTHS, start=1) if re.search(rf"\b{month}\b", text.casefold())]
    chinese = [n for n, month in enumerate(CHINESE_MONTHS, start=1) if month in text]
    named += chinese[-1:]  # "十二月" holds "二月" as well
    return named[0] if len(named) == 1 else None


# --- the set ------------------------------------------------------------------------------------


def test_the_files_are_what_the_material_makes() -> None:
    """Whoever changes the material, or a rule, writes the data again."""
    assert {path.name: path.read_text("utf-8") for path in DATA.iterdir()} == generate()


def test_the_set_is_as_large_as_it_says() -> None:
    """Forty customers of both languages, each with several conversations over months."""
    assert Counter(case.language for case in CASES) == {"en": 24, "zh": 16}
    for case in CASES:
        assert 5 <= len(case.conversations) <= 8, case.customer_id
        assert 30 <= len(case.messages) <= 70, case.customer_id
        assert case.messages[-1].at - case.messages[0].at > timedelta(days=180), case.customer_id


def test_each_category_has_its_questions() -> None:
    """None of the categories is told from a handful."""
    counts = Counter(question.category for question in QUESTIONS)
    assert counts.keys() == CATEGORIES.keys() == LEAST.keys()
    assert {name: count for name, count in counts.items() if count < LEAST[name]} == {}


def test_the_whole_is_small() -> None:
    """Material and data stay within 600 kB."""
    files = [path for folder in (MATERIAL, DATA) for path in folder.iterdir()]
    assert sum(path.stat().st_size for path in files) <= 600_000


def test_ids_are_unique() -> None:
    """An id names one thing."""
    conversations = [each.conversation_id for case in CASES for each in case.conversations]
    for ids in (
        [case.customer_id for case in CASES],
        conversations,
        [message.message_id for case in CASES for message in case.messages],
        [question.question_id for question in QUESTIONS],
    ):
        assert len(ids) == len(set(ids))


def test_no_question_is_asked_twice_of_a_customer() -> None:
    """The same words count once."""
    asked = [(question.customer_id, question.text.casefold(), question.since) for question in QUESTIONS]
    assert len(asked) == len(set(asked))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.customer_id)
def test_messages_are_in_the_order_of_time(case: Case) -> None:
    """Each message of a conversation is later than the one before; all times have a zone."""
    starts = [conversation.messages[0].at for conversation in case.conversations]
    assert starts == sorted(starts)
    for conversation in case.conversations:
        assert all(message.at.tzinfo and message.text.strip() for message in conversation.messages)
        assert all(one.at < other.at for one, other in pairwise(conversation.messages))


def test_halves_are_alike() -> None:
    """Both parts have the same languages, and of each category nearly as many questions in each language."""
    tune, held_out = load(part="tune"), load(part="held_out")
    assert {*tune, *held_out} == {*CASES}
    assert [Counter(case.language for case in part) for part in (tune, held_out)] == [{"en": 12, "zh": 8}] * 2
    counts = [
        Counter((case.language, question.category) for case in part for question in case.questions)
        for part in (tune, held_out)
    ]
    assert all(abs(counts[0][key] - counts[1][key]) <= 2 for key in counts[0] | counts[1])


def test_redaction_leaves_every_text_as_it_is() -> None:
    """Nothing in the set looks like a secret, so that the memory holds what the question is about."""
    texts = [message.text for message in MESSAGES.values()] + [question.text for question in QUESTIONS]
    assert [text for text in texts if redact(text).text != text] == []


# --- the questions ------------------------------------------------------------------------------


def test_evidence_and_lures_are_the_customers_own_messages() -> None:
    """Evidence exists, is of the same customer, and was said by the customer; a lure is no evidence."""
    for question in QUESTIONS:
        own = {m.message_id for m in CASE_OF[question.customer_id].messages if m.role == "customer"}
        assert {*question.evidence, *question.lures} <= own, question.question_id
        assert not {*question.evidence} & {*question.lures}, question.question_id
        assert bool(question.evidence) == (question.category != "no_answer"), question.question_id


def test_languages_of_questions_are_told_right() -> None:
    """A question with Chinese in it is Chinese; one in a Chinese case without is English or bare."""
    for question in QUESTIONS:
        has_chinese = re.search(r"[\u3400-\u9fff]", question.text) is not None
        is_bare = question.identifier == question.text
        expected = "zh" if has_chinese else CASE_OF[question.customer_id].language if is_bare else "en"
        assert question.language == expected, question.question_id


def test_fields_belong_to_their_categories() -> None:
    """Bounds are for times, identifiers for identifiers, absent words for what has no answer."""
    for question in QUESTIONS:
        assert (question.since is None) == (question.until is None), question.question_id
        assert question.since is None or question.category == "time", question.question_id
        assert (question.identifier is not None) == (question.category == "identifier"), question.question_id
        assert bool(question.absent) == (question.category == "no_answer"), question.question_id
        assert not question.is_far or question.category == "no_answer", question.question_id
        assert not question.lures or question.category in {"changed", "time"}, question.question_id


@of("changed")
def test_what_changed_is_answered_by_the_newest_statement(question: Question) -> None:
    """The older statements are named, and all of them are older."""
    newest = min(message.at for message in evidence(question))
    assert lures(question)
    assert all(message.at < newest for message in lures(question))


@of("identifier")
def test_an_identifier_is_in_the_evidence_and_nowhere_else(question: Question) -> None:
    """Neither another message nor a subject holds it, the question does."""
    identifier = question.identifier or ""
    case = CASE_OF[question.customer_id]
    assert holds_identifier(question.text, identifier)
    assert all(holds_identifier(message.text, identifier) for message in evidence(question))
    assert not any(holds_identifier(message.text, identifier) for message in other_messages(question))
    assert not any(holds_identifier(each.subject, identifier) for each in case.conversations)


@of("identifier")
def test_another_message_has_nearly_the_same_identifier(question: Question) -> None:
    """Whoever does not compare exactly finds the wrong one."""
    identifier = question.identifier or ""
    length = len(identifier)
    pieces = (
        (message.text, message.text[start : start + length])
        for message in other_messages(question)
        for start in range(len(message.text) - length + 1)
    )
    assert any(is_near(identifier, piece) and holds_identifier(text, piece) for text, piece in pieces)


@of("paraphrase")
def test_a_paraphrase_shares_no_content_with_the_evidence(question: Question) -> None:
    """Only meaning leads there."""
    assert content(question.text)
    assert [content(question.text) & content(message.text) for message in evidence(question)] == [set()]


@of("cross_language")
def test_a_question_is_in_another_language_than_its_evidence(question: Question) -> None:
    """Chinese about English, or the reverse."""
    assert all(is_chinese(question.text) != is_chinese(message.text) for message in evidence(question))


@of("context")
def test_what_leads_to_the_evidence_is_said_before_it(question: Question) -> None:
    """The agent wrote just before, and what was said up to there has more of the question than the answer."""
    [message] = evidence(question)
    earlier = before(message)
    assert earlier[-1].role == "agent"
    asked = content(question.text)
    shared = asked & content(message.text)
    assert len(shared) < max(1, len(asked & content(" ".join(each.text for each in earlier[-3:]))))


@of("time", lambda question: question.since is not None)
def test_bounds_hold_the_evidence_and_keep_the_lures_out(question: Question) -> None:
    """Both with a day's distance."""
    assert question.since
    assert question.until
    since, until = question.since, question.until
    assert all(since + DAY <= message.at.date() <= until - DAY for message in evidence(question))
    assert all(not since - DAY <= message.at.date() <= until + DAY for message in lures(question))
    assert lures(question)


@of("time", lambda question: question.since is None)
def test_a_time_in_words_is_that_of_the_evidence(question: Question) -> None:
    """The month named is that of the evidence and of no lure."""
    month = month_named(question.text)
    assert month
    assert lures(question)
    assert {message.at.month for message in evidence(question)} == {month}
    assert month not in {message.at.month for message in lures(question)}


def test_times_come_in_words_and_in_bounds() -> None:
    """Neither is left to a few questions, and each customer's months are of one year."""
    times = [question for question in QUESTIONS if question.category == "time"]
    assert sum(question.since is None for question in times) >= 15
    assert sum(question.since is not None for question in times) >= 15
    assert all(len({message.at.year for message in case.messages}) == 1 for case in CASES)


@of("no_answer")
def test_what_has_no_answer_was_never_spoken_of(question: Question) -> None:
    """No message, of the agent either, holds a word of the subject."""
    messages = other_messages(question)
    assert not any(holds(message.text, word) for message in messages for word in question.absent)


def test_most_of_what_has_no_answer_could_be_asked_of_a_support() -> None:
    """At least half is near the domain, so that a threshold is not calibrated on what is easy."""
    none = [question for question in QUESTIONS if question.category == "no_answer"]
    far = sum(question.is_far for question in none)
    assert far >= 20
    assert far <= len(none) / 2


# --- the checks and the generator themselves ------------------------------------------------------


def test_content_sees_through_endings_and_function_words() -> None:
    """What the checks above compare is what a reader would call the same word."""
    assert content("The lamps are leaking") & content("a lamp leaked") == {"lamp", "leak"}
    assert content("What did I do with it?") == set()
    assert content("面霜分层了") & content("我的面霜") == {"面霜"}


def test_an_identifier_is_no_part_of_a_longer_one() -> None:
    """v1.9 is neither v1.90 nor v1.9.1, but may end a sentence."""
    assert holds_identifier("It says v1.9.", "v1.9")
    assert holds_identifier("报错E-203了", "E-203")
    assert not holds_identifier("It says v1.90", "v1.9")
    assert not holds_identifier("It says v1.9.1", "v1.9")
    assert not holds_identifier("LYS-480216", "480216")


HEAD = "= en01 | lamps | Europe/London | tune\n# 2024-03-30 23:00 | Lamp\n"


def made(folder: Path, text: str) -> tuple[Case, ...]:
    """The cases of a material."""
    material, data = folder / "material", folder / "data"
    material.mkdir()
    data.mkdir()
    (material / ROUTINES).write_text("* thanks | About {item}\nc: Thanks for the {item}\n>> +2\na: Welcome\n")
    (material / "some.txt").write_text(text, "utf-8")
    for name, content_of_file in generate(material).items():
        (data / name).write_text(content_of_file, "utf-8")
    return load(data)


def test_a_material_becomes_a_case(tmp_path: Path) -> None:
    """Labels become ids, local times get their offset, a routine is filled in, conversations are in order."""
    text = (
        HEAD
        + "c lamp: It broke\na: Oh\n>> 2024-04-02 09:00\nc: Well\n! 2024-01-02 10:00 | thanks | item=lamp\n"
    )
    text += "? time | lamp | 2024-03-01..2024-03-31 | 什么坏了？\n? none | dog, cat | far | any pets?\n"
    [case] = made(tmp_path, text)
    thanks, lamp = case.conversations

    assert [(m.role, m.text) for m in thanks.messages] == [
        ("customer", "Thanks for the lamp"),
        ("agent", "Welcome"),
    ]
    assert thanks.subject == "About lamp"
    assert thanks.messages[1].at - thanks.messages[0].at > timedelta(days=1)
    assert [m.at.isoformat() for m in lamp.messages][::2] == [
        "2024-03-30T23:00:00+00:00",
        "2024-04-02T09:00:00+01:00",
    ]
    time, none = case.questions
    assert time.evidence == ("en01-c2-m01",)
    assert (time.language, str(time.since), str(time.until)) == ("zh", "2024-03-01", "2024-03-31")
    assert (none.evidence, none.absent, none.is_far) == ((), ("dog", "cat"), True)


@pytest.mark.parametrize(
    ("rest", "problem"),
    [
        ("c: It broke\n? fact | lamp | | What broke?\n", "no label lamp"),
        ("c lamp: It broke\nc lamp: Again\n", "the label lamp is there twice"),
        ("c lamp: It broke\n? guess | lamp | | What broke?\n", "no category guess"),
        ("customer: It broke\n", "customer: It broke"),
    ],
)
def test_a_wrong_line_is_refused(tmp_path: Path, rest: str, problem: str) -> None:
    """The material's mistakes are told, not guessed around."""
    with pytest.raises(ValueError, match=re.escape(problem)):
        made(tmp_path, HEAD + rest)
