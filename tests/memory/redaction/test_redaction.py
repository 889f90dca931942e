"""Redaction of texts: the table of cases, both ways, and what holds for every text."""

from __future__ import annotations

from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.redaction import DEFAULT_TYPES, MARKS, Redaction, RedactionType, redact
from memory.redaction.cards import has_issuer_prefix
from tests.memory.redaction import cases

EVERY_TYPE = frozenset(RedactionType)
REDACTED = (
    *cases.CARDS,
    *cases.SECURITY_CODES,
    *cases.BANK,
    *cases.PASSWORDS,
    *cases.CODES,
    *cases.KEYS,
    *cases.TOKENS,
    *cases.SSNS,
)
KEPT = (
    *cases.NO_CARDS,
    *cases.NO_SECURITY_CODES,
    *cases.NO_BANK,
    *cases.NO_PASSWORDS,
    *cases.NO_CODES,
    *cases.NO_KEYS,
    *cases.NO_SSNS,
    *cases.PLAIN,
)


@pytest.mark.parametrize("case", REDACTED, ids=[ascii(case.text[:40]) for case in REDACTED])
def test_secret_becomes_its_mark(case: cases.Case) -> None:
    """Each secret is replaced by its mark, and the rest of the text is the very same."""
    assert redact(case.text).text == case.expected


@pytest.mark.parametrize("text", KEPT, ids=[ascii(text[:40]) for text in KEPT])
def test_harmless_text_stays(text: str) -> None:
    """A text without a secret comes back as it was, with nothing counted."""
    assert redact(text) == Redaction(text, {})


@pytest.mark.parametrize("case", cases.CONTACTS, ids=[ascii(case.text[:40]) for case in cases.CONTACTS])
def test_contact_detail_goes_only_when_asked(case: cases.Case) -> None:
    """An e-mail address, phone number or postal address stays by default and goes when switched on."""
    assert redact(case.text).text == case.text
    assert redact(case.text, types=EVERY_TYPE).text == case.expected


@pytest.mark.parametrize("text", cases.NO_CONTACTS, ids=ascii)
def test_what_is_no_contact_detail_stays(text: str) -> None:
    """What only resembles a contact detail stays with every type switched on."""
    assert redact(text, types=EVERY_TYPE).text == text


@pytest.mark.parametrize("case", [*REDACTED, *cases.CONTACTS], ids=lambda case: ascii(case.text[:40]))
def test_redacting_twice_changes_nothing(case: cases.Case) -> None:
    """A redacted text has nothing left to redact."""
    once = redact(case.text, types=EVERY_TYPE).text
    assert redact(once, types=EVERY_TYPE) == Redaction(once, {})


@pytest.mark.parametrize("case", REDACTED, ids=[ascii(case.text[:40]) for case in REDACTED])
def test_nothing_is_found_when_nothing_is_asked(case: cases.Case) -> None:
    """Without types the text stays, whatever it holds."""
    assert redact(case.text, types=frozenset()) == Redaction(case.text, {})


def test_table_has_enough_cases_both_ways() -> None:
    """The table does not shrink below what was promised of it."""
    assert len(REDACTED) >= 150
    assert len(KEPT) >= 150
    assert all(case.text != case.expected for case in (*REDACTED, *cases.CONTACTS))


def test_contact_details_are_off_by_default() -> None:
    """All secrets are looked for by default, and no contact detail is."""
    assert {RedactionType.EMAIL, RedactionType.PHONE, RedactionType.POSTAL_ADDRESS} == (
        EVERY_TYPE - DEFAULT_TYPES
    )


def test_counts_tell_how_many_of_each_type() -> None:
    """Counts are by type, of what was newly replaced, without zeros."""
    text = "4111111111111111 and 5555555555554444, password: hunter2, was [password]"
    assert redact(text).counts == {"payment_card": 2, "password": 1}


def test_each_type_has_its_mark() -> None:
    """Every type has a mark, and no two types share one."""
    assert set(MARKS) == EVERY_TYPE
    assert len(set(MARKS.values())) == len(EVERY_TYPE)


@pytest.mark.parametrize("mark", [mark.format("1234") for mark in MARKS.values()])
def test_mark_is_never_taken_for_a_secret(mark: str) -> None:
    """A mark stays after every word that announces a secret."""
    for label in ("password: ", "my password is ", "OTP ", "cvv ", "api_key=", "密码是", "验证码"):
        assert redact(label + mark, types=EVERY_TYPE).text == label + mark


LEAD = "\nBut now to my own matter, which is a somewhat long story:"
SECRETS = f"{LEAD}\n my card 4111 1111 1111 1111\n my password is hunter2\n"
HIDDEN = f"{LEAD}\n my card [card ending 1111]\n my password is [password]\n"


@pytest.mark.parametrize(
    "piece",
    [
        "1",
        "4 ",
        "0-",
        "a",
        "x'",
        "a@",
        "eyJ",
        "eyJaaaaaaa-",
        "DE89 ",
        "-----BEGIN ",
        "://a:",
        '"',
        "\u200b",
        "password is wrong ",
        "Password=;",
        "token ",
        "[password]",
        "\n> ",
        "[card ending ",
    ],
    ids=ascii,
)
def test_long_hostile_text_is_answered_right(piece: str) -> None:
    """200 kB made to set pattern matching back still give up the secret in them, and only it."""
    filler = piece * (200_000 // len(piece))
    assert redact(filler + SECRETS).text == filler + HIDDEN


def luhn_digit(digits: str) -> str:
    """The check digit that makes a card number of these digits."""
    doubled = (sum(divmod(2 * int(d), 10)) if i % 2 == 0 else int(d) for i, d in enumerate(reversed(digits)))
    return str(-sum(doubled) % 10)


SCHEMES = (("4", 16), ("4", 13), ("4", 19), ("51", 16), ("2221", 16), ("34", 15), ("37", 15), ("36", 14))
MORE_SCHEMES = (("6011", 16), ("65", 16), ("3530", 16), ("62", 16), ("62", 19), ("2200", 16), ("6759", 16))
SEPARATORS = ("", " ", "-", ".", "\u00a0", "\u2009", "\u200b", "\u2011", "  ", " - ", "\u3000", "_")
SCRIPTS = ("0123456789", "０１２３４５６７８９", "٠١٢٣٤٥٦٧٨٩", "०१२३४५६७८९")


@st.composite
def written_cards(draw: st.DrawFn) -> tuple[str, str]:
    """A valid card in one style of writing, and its last four digits."""
    prefix, length = draw(st.sampled_from(SCHEMES + MORE_SCHEMES))
    size = length - len(prefix) - 1
    body = prefix + draw(st.text("0123456789", min_size=size, max_size=size))
    number = body + luhn_digit(body)
    group = draw(st.sampled_from((1, 2, 3, 4, 5, 19)))
    separator = draw(st.sampled_from(SEPARATORS))
    script = draw(st.sampled_from(SCRIPTS))
    groups = [number[i : i + group] for i in range(0, length, group)]
    if len(groups) == 2 and separator == ".":
        separator = " "  # two groups and a dot are a decimal number
    written = separator.join(groups).translate(str.maketrans("0123456789", script))
    if group >= 3 and draw(st.booleans()):
        written = written.replace(separator, "\n", 1) if separator else written
    return written, number[-4:]


@given(written_cards(), st.sampled_from(("{}", "it is {}.", "（{}）", "卡{}请", "a\n{}\nb", '"{}"')))
@settings(max_examples=600, deadline=None)
def test_valid_card_is_redacted_in_every_style(card: tuple[str, str], frame: str) -> None:
    """A valid card goes, whatever its digits, groups, separators and line breaks."""
    written, ending = card
    assert redact(frame.format(written)).text == frame.format(f"[card ending {ending}]")


@given(st.text("0123456789", min_size=1, max_size=40))
@settings(max_examples=600, deadline=None)
def test_number_with_a_wrong_check_digit_stays(digits: str) -> None:
    """A string of digits that is no card stays, also right after the word card."""
    wrong = digits + str((int(luhn_digit(digits)) + 1) % 10)
    assert redact(wrong).text == wrong
    assert redact(f"card {wrong}").text == f"card {wrong}"


@given(st.text("0123456789", min_size=12, max_size=18))
@settings(max_examples=300, deadline=None)
def test_number_without_an_issuer_prefix_stays(digits: str) -> None:
    """A number with a right check digit stays when no scheme issues it and no card is spoken of."""
    number = digits + luhn_digit(digits)
    expected = f"[card ending {number[-4:]}]" if has_issuer_prefix(number) else number
    assert redact(number).text == expected


PIECES = tuple(
    chain(
        (case.text for case in REDACTED if len(case.text) < 60),
        (
            "password",
            " is ",
            ": ",
            "密码",
            "验证码",
            " 4111",
            " 1111",
            " code",
            " login ",
            " cvv",
            "123",
            "482913",
        ),
        (
            "[",
            "]",
            '"',
            "“",
            "\n",
            "\u200b",
            " ",
            ".",
            ",",
            "https://",
            "@",
            "or ",
            "?",
            "\ue000",
            "[password]",
        ),
    )
)


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
@settings(max_examples=600, deadline=None)
def test_redaction_of_any_mixture_is_final(text: str) -> None:
    """Whatever stands side by side, redacting the result again changes nothing."""
    once = redact(text, types=EVERY_TYPE).text
    assert redact(once, types=EVERY_TYPE) == Redaction(once, {})


@given(st.text())
@settings(max_examples=300, deadline=None)
def test_every_string_is_answered(text: str) -> None:
    """No string of any characters is an error, and what is counted is what changed."""
    result = redact(text, types=EVERY_TYPE)
    assert bool(result.counts) == (result.text != text)
