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


def test_chinese_is_pairs_of_characters_and_each_of_them() -> None:
    """A word may be two of them or one."""
    pairs, characters = {"收货": 1, "货地": 1, "地址": 1}, {"收": 1, "货": 1, "地": 1, "址": 1}
    assert dict(terms("收货地址")) == {**pairs, **characters}
    assert terms("妈妈")["妈"] == 2


@pytest.mark.parametrize("text", ["ねこ", "고양이", "แมว"])
def test_single_characters_of_other_scripts_are_no_terms(text: str) -> None:
    """They are letters or syllables, which are in everything."""
    assert all(len(term) == 2 for term in terms(text))


@pytest.mark.parametrize(
    ("question", "rest"),
    [
        ("请问我的猫叫什么?", {"我的", "的猫", "猫叫", "我", "的", "猫", "叫"}),
        ("什么时候开门", {"开门", "开", "门"}),
        ("為什麼遲到", {"遲到", "遲", "到"}),
        ("他住在哪里呢", {"他住", "住在", "他", "住", "在"}),
        ("order 10482 到了吗", {"order", "10482", "到了", "到", "了"}),
    ],
)
def test_chinese_words_of_questions_count_for_nothing(question: str, rest: set[str]) -> None:
    """And no pair of characters reaches across them."""
    assert set(terms(question)) == rest


def test_a_text_of_nothing_but_such_words_keeps_them() -> None:
    """It is something that was said."""
    assert set(terms("什么时候")) == {"什么", "么时", "时候"}
