"""Words of a text in any script, with identifiers kept whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.tokenizer import is_identifier, tokens


@pytest.mark.parametrize(
    ("text", "identifier"),
    [
        ("Where is order A-4471-X?", "a-4471-x"),
        ("It broke with v1.6.", "v1.6"),
        ("v1.9 is fine", "v1.9"),
        ("Write to Foy.Li+shop@example.com, please", "foy.li+shop@example.com"),
        ("See #10482!", "10482"),
        ("(order:10482)", "order:10482"),
        ("Error E_CONN_42 again", "e_conn_42"),
        ("on 2026-03-01 at noon", "2026-03-01"),
        ("serial SN/2024/0007,", "sn/2024/0007"),
        ("host 10.0.0.1 is down", "10.0.0.1"),
        ("订单A-4471-X已发货", "a-4471-x"),
        ("注文番号はA-4471-Xです", "a-4471-x"),
        ("주문 A-4471-X를 확인", "a-4471-x"),
        ("Ａ－４４７１－Ｘ", "a-4471-x"),
        ("It's 0x80070057 again", "0x80070057"),
    ],
)
def test_an_identifier_is_one_token(text: str, identifier: str) -> None:
    """Order numbers, versions, addresses and codes are found whole, whatever stands around them."""
    assert identifier in tokens(text)
    assert is_identifier(identifier) or "@" in identifier


@pytest.mark.parametrize(
    ("one", "other"),
    [("v1.6", "v1.9"), ("A-4471-X", "A-4471-Y"), ("#10482", "#10483"), ("a@example.com", "b@example.com")],
)
def test_neighbouring_identifiers_differ(one: str, other: str) -> None:
    """Two identifiers that share pieces have tokens of their own."""
    assert set(tokens(one)) != set(tokens(other))


def test_the_pieces_of_an_identifier_are_found_too() -> None:
    """Whoever remembers only the digits finds the order."""
    assert set(tokens("A-4471-X")) == {"a", "4471", "x", "a-4471-x"}


def test_each_occurrence_counts() -> None:
    """Counting tokens gives term frequencies, of identifiers too."""
    found = tokens("v1.6 tea Tea TEA v1.6")
    assert found.count("tea") == 3
    assert found.count("v1.6") == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("你好我是", ["你好", "好我", "我是"]),
        ("你好，我是 Foy", ["foy", "你好", "我是"]),
        ("茶", ["茶"]),
        ("カメラ", ["カメ", "メラ"]),
        ("ｶﾒﾗ", ["カメ", "メラ"]),
        ("안녕하세요", ["안녕", "녕하", "하세", "세요"]),
        ("佐々木", ["佐々", "々木"]),
        ("二〇二六年", ["二〇", "〇二", "二六", "六年"]),
        ("𠮷野家", ["𠮷野", "野家"]),
    ],
)
def test_scripts_without_blanks_give_pairs(text: str, expected: list[str]) -> None:
    """Chinese, Japanese and Korean are cut into pairs of neighbours, a lone character staying one."""
    assert sorted(tokens(text)) == sorted(expected)


def test_decomposed_korean_is_the_same_korean() -> None:
    """Hangul typed as single letters gives the tokens of whole syllables."""
    decomposed = "\u1112\u1161\u11ab\u1100\u1173\u11af"
    assert tokens(decomposed) == tokens("한글") == ["한글"]


def test_korean_words_share_tokens_with_their_inflections() -> None:
    """A noun is found under the particle that follows it."""
    assert set(tokens("배송지")) <= set(tokens("배송지를"))


def test_thai_gives_pairs_with_its_vowel_signs() -> None:
    """Thai is cut into pairs too; its signs above and below count as characters."""
    assert tokens("สินค้า") == ["สิ", "ิน", "นค", "ค้", "้า"]
    assert set(tokens("สินค้า")) <= set(tokens("ผมยังไม่ได้รับสินค้าที่สั่งซื้อไป"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("नमस्ते", ["नमस्ते"]),
        ("ऑर्डर अभी", ["ऑर्डर", "अभी"]),
        ("கடவுச்சொல்", ["கடவுச்சொல்"]),
        ("শুভেচ্ছা", ["শুভেচ্ছা"]),
    ],
)
def test_words_written_with_vowel_signs_stay_whole(text: str, expected: list[str]) -> None:
    """In Hindi, Tamil and Bengali a vowel sign is part of the word, not its end."""
    assert tokens(text) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("STRASSE", "straße"),
        ("Café", "Cafe\u0301"),
        ("ＡＢＣ", "abc"),
        ("ﬁle", "FILE"),
        ("Ⅳ", "iv"),
        ("ПРИВЕТ", "привет"),
        ("Σίσυφος", "ΣΊΣΥΦΟΣ"),
    ],
)
def test_case_and_forms_do_not_matter(one: str, other: str) -> None:
    """Two ways of writing one word give one token."""
    assert tokens(one) == tokens(other) != []


@pytest.mark.parametrize("text", ["", " \n", "?!…", "---", "。、", "👍🎉", "_"])
def test_text_without_words_has_no_tokens(text: str) -> None:
    """Blanks, punctuation and pictures are no words."""
    assert tokens(text) == []


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        ("v1", True),
        ("10482", True),
        ("a-4471-x", True),
        ("５5", True),
        ("5", False),
        ("tea", False),
        ("你好", False),
        ("", False),
    ],
)
def test_a_token_with_digits_names_one_thing(token: str, expected: bool) -> None:
    """One digit alone is a number like any other; longer ones count as identifiers."""
    assert is_identifier(token) is expected


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_any_text_has_tokens_that_are_its_own(text: str) -> None:
    """No text breaks it; tokens are never empty, hold no blank, and folding them again changes nothing."""
    found = tokens(text)
    assert all(token and not any(c.isspace() for c in token) for token in found)
    assert found == tokens(text)


@given(st.text(alphabet="ab 1-.你好안녕ก", max_size=30), st.text(alphabet="ab 1-.你好안녕ก", max_size=30))
def test_tokens_of_a_text_are_those_of_its_lines(one: str, other: str) -> None:
    """A line break parts words, so that two texts joined by one have the tokens of both."""
    assert sorted(tokens(f"{one}\n{other}")) == sorted(tokens(one) + tokens(other))


@given(st.text(st.characters(codec="ascii")))
def test_plain_text_has_the_same_words_beside_other_scripts(text: str) -> None:
    """The quick way for plain letters finds what the one for all scripts finds."""
    assert sorted(tokens(f"{text} \u4f60\u597d")) == sorted([*tokens(text), "\u4f60\u597d"])
