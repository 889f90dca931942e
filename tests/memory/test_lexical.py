"""A lexical score is a share of the query's words, and an identifier decides."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.corpus import Corpus
from memory.lexical import WordMatch
from memory.records import Kind, Memory
from memory.terms import terms

_texts = st.lists(st.text(alphabet="abc 12-.你好", max_size=20), max_size=8)
_queries = st.text(alphabet="abc 12-.你好", min_size=1, max_size=20)


def bm25(query: str, texts: list[str]) -> list[float]:
    """The score of each text by its own words."""
    return [float(value) for value in WordMatch(terms(query), corpus(texts)).alone()]


def corpus(texts: list[str]) -> Corpus:
    """A memory for each text."""
    rows = [
        Memory(memory_id=f"{i:04d}", text=text, kind=Kind.EPISODIC, occurred_at=0.0, recorded_at=0.0)
        for i, text in enumerate(texts)
    ]
    return Corpus(rows)


@given(_queries, _texts)
def test_a_lexical_score_is_a_share(query: str, texts: list[str]) -> None:
    """One score a text, each from 0 to 1, whatever query and texts are."""
    scores = bm25(query, texts)
    assert len(scores) == len(texts)
    assert all(0.0 <= value <= 1.0 for value in scores)


@given(_queries, _texts, st.randoms(use_true_random=False))
def test_the_order_of_texts_does_not_matter(query: str, texts: list[str], chance: object) -> None:
    """A text keeps its score wherever it stands."""
    places = list(range(len(texts)))
    chance.shuffle(places)  # type: ignore[attr-defined]
    scores = bm25(query, texts)
    shuffled = bm25(query, [texts[place] for place in places])
    assert all(math.isclose(shuffled[i], scores[place]) for i, place in enumerate(places))


@pytest.mark.parametrize(
    ("query", "fitting", "unrelated"),
    [
        ("delivery address", "Her delivery address is Lyon", "Likes green tea"),
        ("收货地址", "客户的收货地址在上海", "他喜欢喝绿茶"),
        ("配送先の住所", "配送先は大阪です", "緑茶が好きです"),
        ("배송지 주소", "배송지는 서울입니다", "녹차를 좋아합니다"),
        ("delivered parcels", "The parcel is to be delivering soon", "Likes green tea"),
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
    rare, common, *_ = bm25("refund order", [texts[0], "order order", *texts[1:]])
    assert rare > common > 0.0


def test_a_word_nobody_said_is_missed() -> None:
    """A text with one of two words gets half of what one with both would."""
    texts = ["lessons on Monday", "tea"]
    assert bm25("violin lessons", texts)[0] < bm25("lessons", texts)[0]


def test_an_optional_word_is_not_missed_but_counts_where_it_stands() -> None:
    """A date in the query lowers no score, and still finds the text that names it."""
    texts = corpus(["the deadline is in october", "the deadline is soon"])
    named = WordMatch(terms("deadline october"), texts, optional={"octob"}).alone()
    missing = WordMatch(terms("deadline march"), texts, optional={"march"}).alone()
    assert named[0] > named[1]
    assert missing.tolist() == WordMatch(terms("deadline"), texts).alone().tolist()


def test_a_mark_counts_as_a_word() -> None:
    """A text with the property beats its twin without."""
    texts = corpus(["a parcel was late"] * 2)
    found = WordMatch(terms("parcel"), texts, marks=[(2.0, np.array([0.0, 1.0]))]).alone()
    assert found[1] > found[0] > 0.0
