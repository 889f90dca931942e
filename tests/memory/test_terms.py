"""Terms: stems of the words that say something."""

import pytest

from memory.terms import terms


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("delivery deliveries", "deliveries delivery"),
        ("The cancelled subscription", "cancel my subscriptions"),
        ("I was charged twice", "charging twice"),
        ("ORDERS", "order"),
    ],
)
def test_inflected_words_have_a_term_in_common(one: str, other: str) -> None:
    """What is asked in one form is found in another."""
    assert set(terms(one)) & set(terms(other))
    assert set(terms(one)) - {"subscript"} <= set(terms(other)) | {"cancel", "subscript", "charg", "twice"}


def test_function_words_are_no_terms_unless_there_is_nothing_else() -> None:
    """A question of nothing but them can still be asked."""
    assert set(terms("When did I move to the flat?")) == {"move", "flat"}
    assert set(terms("Who are you?")) == {"who", "are", "you"}


@pytest.mark.parametrize("text", ["A-4471-X", "v1.6", "foy@example.com", "0x80070057"])
def test_identifiers_stay_whole(text: str) -> None:
    """No ending is cut off."""
    assert text.casefold() in terms(text)


def test_chinese_stays_pairs_of_characters() -> None:
    """Nothing is stemmed there."""
    assert dict(terms("收货地址")) == {"收货": 1, "货地": 1, "地址": 1}


@pytest.mark.parametrize(
    ("question", "rest"),
    [
        ("请问我的猫叫什么?", {"我的", "的猫", "猫叫"}),
        ("什么时候开门", {"开门"}),
        ("為什麼遲到", {"遲到"}),
        ("他住在哪里呢", {"他住", "住在"}),
        ("order 10482 到了吗", {"order", "10482", "到了"}),
    ],
)
def test_chinese_words_of_questions_count_for_nothing(question: str, rest: set[str]) -> None:
    """And no pair of characters reaches across them."""
    assert set(terms(question)) == rest


def test_a_text_of_nothing_but_such_words_keeps_them() -> None:
    """It is something that was said."""
    assert set(terms("什么时候")) == {"什么", "么时", "时候"}
