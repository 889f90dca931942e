"""Scores lie between 0 and 1, the very words get the most, and an identifier decides."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.ranking import EXACT, Score, bm25, score

_texts = st.lists(st.text(alphabet="abc 12-.你好", max_size=20), max_size=8)
_queries = st.text(alphabet="abc 12-.你好", min_size=1, max_size=20)


@given(_queries, _texts)
def test_a_lexical_score_is_a_share(query: str, texts: list[str]) -> None:
    """One score a text, each from 0 to 1, whatever query and texts are."""
    scores = bm25(query, texts)
    assert len(scores) == len(texts)
    assert all(0.0 <= value <= 1.0 for value in scores)


@given(_queries, _texts)
def test_the_very_words_get_full_marks(query: str, texts: list[str]) -> None:
    """The text of the query itself scores 1 in any collection, and nothing scores above it."""
    scores = bm25(query, [*texts, query])
    if any(bm25(query, [query])):
        assert math.isclose(scores[-1], 1.0, abs_tol=1e-9)
    assert max(scores) <= scores[-1] + 1e-9


@given(_queries, _texts, st.randoms(use_true_random=False))
def test_the_order_of_texts_does_not_matter(query: str, texts: list[str], chance: object) -> None:
    """A text keeps its score wherever it stands."""
    places = list(range(len(texts)))
    chance.shuffle(places)  # type: ignore[attr-defined]
    scores = bm25(query, texts)
    shuffled = bm25(query, [texts[place] for place in places])
    assert all(math.isclose(shuffled[i], scores[place]) for i, place in enumerate(places))


@given(
    _queries,
    st.lists(st.tuples(st.text(max_size=10), st.floats(-1.0001, 1.0001)), max_size=6),
)
def test_a_total_is_a_share(query: str, found: list[tuple[str, float]]) -> None:
    """The score a caller sees is from 0 to 1, also for vectors that point away or round above 1."""
    scores = score(query, [text for text, _ in found], [cosine for _, cosine in found])
    assert len(scores) == len(found)
    assert all(0.0 <= s.total <= 1.0 and 0.0 <= s.dense <= 1.0 and 0.0 <= s.lexical <= 1.0 for s in scores)


def test_each_text_needs_its_similarity() -> None:
    """A list of another length is a mistake that is not passed over."""
    with pytest.raises(ValueError, match="zip"):
        score("tea", ["tea", "coffee"], [1.0])


def test_a_score_is_the_mean_of_words_and_meaning() -> None:
    """Both halves count the same, and the very text has all of both."""
    assert Score(dense=1.0, lexical=0.0).total == Score(dense=0.0, lexical=1.0).total == 0.5
    assert EXACT.total == 1.0


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
def test_the_text_with_the_identifier_comes_first(query: str, texts: list[str]) -> None:
    """The exact token beats more words in common, even where meaning cannot tell the texts apart."""
    first, *others = [s.total for s in score(query, texts, [0.9] * len(texts))]
    assert first > max(others)


@pytest.mark.parametrize(
    ("query", "fitting", "unrelated"),
    [
        ("delivery address", "Her delivery address is Lyon", "Likes green tea"),
        ("收货地址", "客户的收货地址在上海", "他喜欢喝绿茶"),
        ("配送先の住所", "配送先は大阪です", "緑茶が好きです"),
        ("배송지 주소", "배송지는 서울입니다", "녹차를 좋아합니다"),
    ],
)
def test_words_in_common_beat_none(query: str, fitting: str, unrelated: str) -> None:
    """A text that shares no word with the query has no lexical score, in any script."""
    found = bm25(query, [unrelated, fitting])
    assert found[0] == 0.0
    assert found[1] > 0.0


@pytest.mark.parametrize(("query", "texts"), [("?!", ["tea"]), ("tea", []), ("tea", ["", "…"])])
def test_no_words_give_no_score(query: str, texts: list[str]) -> None:
    """A query, a collection or texts without words score 0."""
    assert bm25(query, texts) == [0.0] * len(texts)


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    """Of two words of the query the one that few memories hold decides."""
    texts = ["order refund", *["order tea"] * 8]
    first, second, *_ = bm25("order refund tea order", texts)
    assert bm25("tea refund", texts)[0] > bm25("tea refund", texts)[1]
    assert first > 0.0
    assert second > 0.0
