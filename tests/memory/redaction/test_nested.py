"""Redaction of JSON-like values."""

from __future__ import annotations

import pytest

from memory.redaction import Json, RedactedValue, RedactionType, redact_value

CARD = "4111 1111 1111 1111"


def test_strings_at_every_depth_are_redacted() -> None:
    """Strings in dicts and lists go, at any depth; keys, numbers and None stay."""
    value: Json = {"a": [{"b": f"pay with {CARD}"}, "my password is hunter2", 3, 1.5, True, None], "n": {}}
    assert redact_value(value) == RedactedValue(
        {
            "a": [{"b": "pay with [card ending 1111]"}, "my password is [password]", 3, 1.5, True, None],
            "n": {},
        },
        {"payment_card": 1, "password": 1},
    )


def test_value_itself_is_left_alone() -> None:
    """The caller's own value is not changed; it gets a copy."""
    value: Json = {"a": [CARD]}
    redact_value(value)
    assert value == {"a": [CARD]}


def test_counts_are_summed() -> None:
    """Findings of one type in several strings are one number."""
    assert redact_value([CARD, CARD, {"x": CARD}]).counts == {"payment_card": 3}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"password": "correct horse"}, {"password": "[password]"}),
        ({"userPassword": "sunshine"}, {"userPassword": "[password]"}),
        ({"API-Key": "abcd"}, {"API-Key": "[API key]"}),
        ({"access_token": "abcd"}, {"access_token": "[token]"}),
        ({"cvv": 123}, {"cvv": "[security code]"}),
        ({"pin": 4821}, {"pin": "[password]"}),
        ({"密码": "芝麻开门"}, {"密码": "[password]"}),
        ({"passwords": ["hunter2"]}, {"passwords": ["[password]"]}),
        ({"otp": "482913"}, {"otp": "[one-time code]"}),
        ({"sms_otp": "482913"}, {"sms_otp": "[one-time code]"}),
        ({"ssn": "536221234"}, {"ssn": "[SSN]"}),
        ({"card_number": 4111111111111111}, {"card_number": "[card ending 1111]"}),
        (4111111111111111, "[card ending 1111]"),
    ],
)
def test_key_tells_what_its_value_is(value: Json, expected: Json) -> None:
    """A value is redacted for the key it stands under, also when it is a number."""
    assert redact_value(value).value == expected


@pytest.mark.parametrize(
    "value",
    [
        {"order_number": "4111111111111111"},
        {"order_id": 4111111111111111},
        {"password": "", "token": None, "secret": True},
        {"password": "expired"},
        {"password": "[password]"},
        {"password_hint": "my dog"},
        {"max_tokens": 4096},
        {"4111111111111111": "a key is not a value"},
        {"customer_id": "c-1234567890", "created": 1715500000},
        {"email": "bob@example.com", "phone": "+1 415 555 0132"},
        "",
        [],
        {},
        None,
        0,
    ],
    ids=repr,
)
def test_harmless_value_stays(value: Json) -> None:
    """A value without a secret comes back equal, with nothing counted."""
    assert redact_value(value) == RedactedValue(value, {})


def test_types_are_passed_on() -> None:
    """Types switched on or off hold for every string of the value, and for what its keys tell."""
    value: Json = {"mail": "bob@example.com", "password": "hunter2"}
    result = redact_value(value, types=frozenset({RedactionType.EMAIL}))
    assert result == RedactedValue({"mail": "[email]", "password": "hunter2"}, {"email": 1})


def test_redacting_a_value_twice_changes_nothing() -> None:
    """A redacted value has nothing left to redact."""
    once = redact_value({"password": "hunter2", "text": f"{CARD} cvv 123", "cvv": 123}).value
    assert redact_value(once) == RedactedValue(once, {})
