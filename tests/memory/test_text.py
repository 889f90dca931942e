"""Cleaning, comparing and splitting of texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.text import PART_LENGTH, clean, digest, one_line, split


def _letters(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize(
    ("given_text", "expected"),
    [
        ("  order 10482 \n", "order 10482"),
        ("a\x00b\x07c\x7fd", "abcd"),
        ("line one\nline\ttwo", "line one\nline\ttwo"),
        ("smile \ud83d end", "smile  end"),
        ("\udfff", ""),
        ("Cafe\u0301", "Café"),
        ("<|endoftext|>", "<|endoftext|>"),
        ("👩\u200d👧", "👩\u200d👧"),
        ("\x00 \x01", ""),
        ("你好", "你好"),
    ],
)
def test_cleaning_drops_what_cannot_be_stored_and_nothing_else(given_text: str, expected: str) -> None:
    """Control characters and lone surrogates go, letters are composed, the ends are trimmed."""
    assert clean(given_text) == expected


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_cleaned_text_is_clean(text: str) -> None:
    """Whatever comes in, the result can be encoded, and cleaning it again changes nothing."""
    cleaned = clean(text)
    assert cleaned.encode("utf-8").decode("utf-8") == cleaned
    assert clean(cleaned) == cleaned
    assert "\x00" not in cleaned


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Likes tea", " Likes \n tea "),
        ("Café", "Cafe\u0301"),
        ("a\u00a0b", "a b"),
        ("", "   "),
    ],
)
def test_equal_statements_have_one_digest(one: str, other: str) -> None:
    """White space and Unicode composition make no difference."""
    assert digest(one) == digest(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("10 mg", "5 mg"),
        ("US", "us"),
        ("allowed", "not allowed"),
        ("I like dogs", "I like cats"),
        ("Yes.", "Yes?"),
        ("ab", "a b"),
        ("October 15", "October 16"),
    ],
)
def test_similar_is_not_equal(one: str, other: str) -> None:
    """Case, digits, punctuation and words tell statements apart."""
    assert digest(one) != digest(other)


def test_a_digest_is_short_hexadecimal() -> None:
    """A digest has 32 hexadecimal digits, also of text that cannot be encoded."""
    assert len(digest("x")) == 32
    assert int(digest("\ud800"), 16) >= 0


def test_one_line_holds_no_line_break() -> None:
    """Every run of white space, exotic line breaks included, becomes one blank."""
    assert one_line(" a\r\n\tb\u2028c\u2029d\x85e ") == "a b c d e"


@given(
    st.text(alphabet=st.sampled_from("ab .!?。！\n\u3000你好"), max_size=300),
    st.integers(min_value=1, max_value=40),
)
def test_parts_hold_every_character_within_the_length(text: str, length: int) -> None:
    """Joined, the parts have every character but white space; none is empty or too long."""
    parts = split(text, length=length)
    assert _letters("".join(parts)) == _letters(text)
    assert all(0 < len(part) <= length for part in parts)
    assert all(part.strip() for part in parts)


@given(st.text(max_size=5_000))
def test_any_text_is_split_without_loss(text: str) -> None:
    """With the usual length too, nothing but white space is lost."""
    parts = split(text)
    assert _letters("".join(parts)) == _letters(text)
    assert all(len(part) <= PART_LENGTH for part in parts)


@given(st.lists(st.text(alphabet="abcdefgh", min_size=1, max_size=6), min_size=1, max_size=200))
def test_words_stay_whole(words: list[str]) -> None:
    """A cut falls between words where a blank is near enough."""
    text = " ".join(words)
    assert " ".join(split(text, length=30)).split() == words


def test_a_long_text_is_cut_at_sentence_ends() -> None:
    """Each part but the last ends where a sentence ends."""
    sentence = "The parcel was opened by customs. "
    parts = split(sentence * 200)
    assert len(parts) > 1
    assert all(part.endswith("customs.") for part in parts)


def test_a_chinese_text_is_cut_at_sentence_ends() -> None:
    """Scripts without blanks are cut after their own full stop."""
    parts = split("包裹被海关打开了。" * 400)
    assert len(parts) > 1
    assert all(part.endswith("。") for part in parts)


def test_a_text_without_any_gap_is_cut_at_the_length() -> None:
    """200 kB of one word is cut all the same."""
    assert [len(part) for part in split("x" * 200_000)] == [PART_LENGTH] * 100


@pytest.mark.parametrize("text", ["", "  \n ", " " * 5_000])
def test_blank_text_has_no_parts(text: str) -> None:
    """Where there is nothing to store there is no part."""
    assert split(text) == []


def test_a_short_text_is_one_part_as_it_is() -> None:
    """Up to the length nothing is touched."""
    text = "x" * PART_LENGTH
    assert split(text) == [text]
