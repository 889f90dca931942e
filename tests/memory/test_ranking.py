"""Scores lie between 0 and 1, and words, meaning and what was said around a memory add up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.corpus import Corpus
from memory.periods import mentions
from memory.ranking import AGENT_SHARE, EXACT, RECENCY_BOOST, score
from memory.records import Kind, Memory, Role

NOISE = 0.1


def _row(text: str, number: int = 0, **columns: object) -> Memory:
    row = {
        "memory_id": f"{number:04d}",
        "text": text,
        "kind": Kind.EPISODIC,
        "occurred_at": 0.0,
        "recorded_at": 0.0,
        **columns,
    }
    return Memory(**row)  # type: ignore[arg-type]


def _rows(texts: list[str], **columns: object) -> list[Memory]:
    return [_row(text, number, **columns) for number, text in enumerate(texts)]


@given(
    st.text(alphabet="abc 12-.你好", min_size=1, max_size=20),
    st.lists(
        st.tuples(st.text(max_size=10), st.floats(-1.0001, 1.0001), st.sampled_from(["", "c"])), max_size=6
    ),
    st.floats(0.0, 0.95),
)
def test_a_total_is_a_share(query: str, found: list[tuple[str, float, str]], noise: float) -> None:
    """All parts are from 0 to 1, also for vectors that point away or round above 1."""
    rows = [_row(text, i, conversation_id=c) for i, (text, _, c) in enumerate(found)]
    scores = score(query, Corpus(rows), [cosine for _, cosine, _ in found], noise=noise, case_id="x")
    assert len(scores) == len(found)
    for s in scores:
        assert all(0.0 <= part <= 1.0 for part in (s.total, s.dense, s.lexical, s.recency, s.case, s.current))


def test_each_row_needs_its_similarity() -> None:
    """A list of another length is a mistake that is not passed over."""
    with pytest.raises(ValueError, match="similarity"):
        score("tea", Corpus(_rows(["tea", "coffee"])), [1.0], noise=NOISE)


def test_words_and_meaning_count_the_same() -> None:
    """All of the one is worth as much as all of the other; the very text has all of both."""
    rows = _rows(["tea", "coffee"])
    by_words, by_meaning = score("tea", Corpus(rows), [0.0, 1.0], noise=NOISE)
    assert by_words.total == pytest.approx(by_meaning.total, abs=RECENCY_BOOST)
    assert EXACT.total == 1.0


def test_the_best_memory_is_as_relevant_as_its_parts_say() -> None:
    """A question that hardly fits gives a low best score, though something is always the best."""
    rows = _rows(["the parcel was late", "green tea is best"])
    close = score("late parcel", Corpus(rows), [0.8, 0.1], noise=NOISE)
    far = score("violin lessons", Corpus(rows), [0.2, 0.1], noise=NOISE)
    assert close[0].total == pytest.approx((close[0].dense + close[0].lexical) / 2)
    assert far[0].total < 0.1 < close[0].total


@pytest.mark.parametrize(
    ("query", "texts"),
    [
        (
            "Where is order A-4471-X?",
            ["order A-4471-X was sent", "order A-4471-Y was sent", "where is my order"],
        ),
        ("order 10482", ["Order 10482: refund", "Order 10483: refund", "order order order"]),
        ("crash in v1.6", ["v1.6 freezes", "crash in v1.9", "crash in the app"]),
        ("error 0x80070057", ["saw 0x80070057", "error error error", "error 0x80070005"]),
        ("write to foy@example.com", ["foy@example.com bounced", "bob@example.com bounced", "write to me"]),
        ("订单A-4471-X在哪里", ["订单A-4471-X已发货", "订单A-4471-Y已发货", "订单在哪里"]),
    ],
)
@pytest.mark.parametrize("conversation_id", ["", "c"], ids=["apart", "in one conversation"])
def test_the_text_with_the_identifier_comes_first(query: str, texts: list[str], conversation_id: str) -> None:
    """The exact token beats more words in common, even where meaning cannot tell the texts apart."""
    rows = _rows(texts, conversation_id=conversation_id)
    first, *others = [s.total for s in score(query, Corpus(rows), [0.9] * len(texts), noise=NOISE)]
    assert first > max(others)


def test_the_noise_of_the_model_is_no_meaning() -> None:
    """What every text has in common with the query counts for nothing, and equal texts for all."""
    rows = _rows(["tea", "coffee"])
    assert [s.dense for s in score("water", Corpus(rows), [0.7, 1.0], noise=0.7)] == pytest.approx([0.0, 1.0])


def test_among_memories_no_nearer_than_noise_the_nearer_ones_come_first() -> None:
    """They have no part in how relevant the best is, but the upper half of them keeps its order."""
    rows = _rows(["a", "b", "c", "d", "e"])
    scores = score("z", Corpus(rows), [0.02, 0.06, 0.12, 0.09, 0.01], noise=NOISE)
    order = sorted(range(len(rows)), key=lambda i: -scores[i].total)
    assert order[:2] == [2, 3]
    assert [s.dense > 0.0 for s in scores] == [False, False, True, False, False]


def test_what_was_said_around_a_memory_counts() -> None:
    """The answer to a question about a colour is found by the question before it."""
    talk = _rows(["Which colour shall the sofa have?", "The blue one please."], conversation_id="c")
    other = _row("The blue one please.", 9, conversation_id="d")
    found = score("colour of the sofa", Corpus([*talk, other]), [0.3, 0.2, 0.2], noise=NOISE)
    assert found[1].lexical > found[2].lexical == 0.0
    assert found[1].dense > found[2].dense


def test_boosts_decide_between_equals_only() -> None:
    """Newer, of the case, a current value: each is a little better, and none beats relevance."""
    rows = [
        _row("likes tea", 1),
        _row("likes tea", 2, occurred_at=9.0, case_id="x", slot="s"),
        _row("likes green tea at four", 3, occurred_at=1.0),
    ]
    old, raised, best = score("green tea at four", Corpus(rows), [0.3, 0.3, 0.8], noise=NOISE, case_id="x")
    assert (raised.recency, raised.case, raised.current) == (1.0, 1.0, 1.0)
    assert old.total < raised.total < best.total
    assert (old.dense, old.lexical) == pytest.approx((raised.dense, raised.lexical))


def test_an_agents_words_count_a_little_less() -> None:
    """Of two equal texts the customer's own comes first."""
    rows = [_row("a blue sofa", 1, role=Role.AGENT), _row("a blue sofa", 2)]
    agent, customer = score("sofa", Corpus(rows), [0.5, 0.5], noise=NOISE)
    assert agent.total == pytest.approx(AGENT_SHARE * customer.total, abs=RECENCY_BOOST)
    assert (agent.dense, agent.lexical) == (customer.dense, customer.lexical)


def test_a_time_in_the_question_counts_as_a_word() -> None:
    """Of two equal texts the one of that month comes first."""
    march, april = 1_710_000_000.0, 1_713_000_000.0
    rows = [
        _row("the parcel was late", 1, occurred_at=march),
        _row("the parcel was late", 2, occurred_at=april),
    ]
    asked = "late parcel in March"
    in_march, in_april = score(
        asked, Corpus(rows), [0.5, 0.5], noise=NOISE, mentions=mentions(asked, now=april)
    )
    assert in_march.total > in_april.total


def test_no_memories_have_no_scores() -> None:
    """An empty memory is no error."""
    assert score("tea", Corpus([]), [], noise=NOISE) == []
