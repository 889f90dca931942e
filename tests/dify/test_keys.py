"""The settings `api_key` and `api_keys`: what they mean, and that what is wrong is told by its place only."""

import json
from typing import Any

import pytest

from dify.keys import Key, Right, Within, authenticate, read_keys
from dify.web_errors import ApiKeysInvalid, Unauthorized
from memory.errors import Forbidden
from memory.limits import Limits

A = "kH3-a-long-random-text"
B = "p9Q-another-random-text"
EVERYTHING = frozenset(Right)


def keys_of(api_keys: Any, api_key: str = "") -> dict[str, Key]:
    """The keys of these settings, by name."""
    return {key.name: key for key in read_keys({"api_key": api_key, "api_keys": api_keys})}


def test_the_single_key_has_every_right_and_no_limit() -> None:
    """A set-up from before there were several keys works as it did."""
    (key,) = read_keys({"api_key": "short"})
    assert (key.name, key.rights, key.limits) == ("api_key", EVERYTHING, Limits())


@pytest.mark.parametrize("empty", [{}, {"api_key": "", "api_keys": ""}, {"api_key": None}, {"api_key": "  "}])
def test_without_a_key_nobody_has_one(empty: dict[str, Any]) -> None:
    """Nothing a caller sends is right then."""
    assert read_keys(empty) == []
    for text in ("", " ", "None"):
        with pytest.raises(Unauthorized):
            authenticate({"authorization": f"Bearer {text}"}, empty)


LINES = f"helpdesk {A} write customer_prefix=acme- source=zendesk{{}}reports  {B}  read,erase"
OBJECTS = {
    "helpdesk": {"key": A, "rights": ["write"], "customer_prefix": "acme-", "source": "zendesk"},
    "reports": {"key": B, "rights": "read, erase"},
}


@pytest.mark.parametrize(
    "written",
    [
        *(LINES.format(between) for between in ("\n", "\r\n", ";", " ; ", "\n\n")),
        json.dumps(OBJECTS),
        json.dumps(OBJECTS, indent=2),
    ],
)
def test_keys_are_read_from_lines_and_from_json(written: str) -> None:
    """Both ways of writing them mean the same."""
    keys = keys_of(written, "the-administrators")
    assert list(keys) == ["api_key", "helpdesk", "reports"]
    assert keys["helpdesk"].rights == {Right.WRITE}
    assert keys["helpdesk"].limits == Limits(customer_prefix="acme-", source="zendesk")
    assert keys["reports"].rights == {Right.READ, Right.ERASE}
    assert not keys["reports"].limits


def test_a_key_is_found_by_its_text_and_shows_none_of_it() -> None:
    """Whichever place it has in the list; its text and digest are in no representation."""
    settings = {"api_key": "main", "api_keys": LINES.format(";")}
    for text, name in (("main", "api_key"), (A, "helpdesk"), (B, "reports")):
        for headers in ({"authorization": f"Bearer {text}"}, {"x-api-key": text}):
            key = authenticate(headers, settings)
            assert key is not None
            assert key.name == name
            assert text not in repr(key)
            assert "digest" not in repr(key)


@pytest.mark.parametrize("text", [A[:-1], A + "x", A.upper(), f"{A} {B}", "helpdesk", "", "main\x00"])
def test_anything_else_is_a_wrong_key(text: str) -> None:
    """A beginning, a longer text, another case, a name: none will do."""
    with pytest.raises(Unauthorized):
        authenticate({"authorization": f"Bearer {text}"}, {"api_key": "main", "api_keys": LINES.format(";")})


def test_a_request_without_a_key_has_none() -> None:
    """That is for the route to decide."""
    assert authenticate({}, {"api_key": "main"}) is None


SECRET = "S3CRET-that-must-not-show"
WRONG: dict[str, tuple[Any, str]] = {
    "no text": ({"a": 1}, "at its beginning"),
    "no rights": (f"a {SECRET}", "in key 1"),
    "an unknown right": (f"a {SECRET} read,{SECRET}x", "in key 1"),
    "empty rights": (json.dumps({"a": {"key": SECRET, "rights": []}}), "in key 1"),
    "rights that are a number": (json.dumps({"a": {"key": SECRET, "rights": 7}}), "in key 1"),
    "rights that are objects": (json.dumps({"a": {"key": SECRET, "rights": [{"a": [1]}]}}), "in key 1"),
    "a short key": ("a short-S3CRET read", "in key 1"),
    "a key with a blank": (json.dumps({"a": {"key": SECRET + " x", "rights": "read"}}), "in key 1"),
    "a key that is no text": (json.dumps({"a": {"key": 12345678901234567, "rights": "read"}}), "in key 1"),
    "name and key exchanged": (f"{SECRET * 3} a read", "in key 1"),
    "a name that is taken": (f"a {SECRET} read; A {SECRET}2 read", "in key 2"),
    "a name of ours": (f"a {SECRET} read; node {SECRET}2 read", "in key 2"),
    "the same key twice": (f"a {SECRET} read; b {SECRET} write", "in key 2"),
    "the single key again": ("a the-administrators read", "in key 1"),
    "a misspelt limit": (f"a {SECRET} read customer_prefx=acme-", "in key 1"),
    "an empty limit": (f"a {SECRET} read customer_prefix=", "in key 1"),
    "a limit of null": (json.dumps({"a": {"key": SECRET, "rights": "read", "source": None}}), "in key 1"),
    "a limit with a wildcard": (f"a {SECRET} read customer_prefix=acme-*", "in key 1"),
    "a limit with blanks": (
        json.dumps({"a": {"key": SECRET, "rights": "read", "customer_prefix": " acme-"}}),
        "in key 1",
    ),
    "a limit twice": (f"a {SECRET} read source=x source=y", "in key 1"),
    "lines run together": (f"a {SECRET} read source=xb {SECRET}2 read", "in key 1"),
    "a list": (json.dumps({"a": [{"key": SECRET}]}), "in key 1"),
    "a text": (json.dumps({"a": SECRET}), "in key 1"),
    "a field twice": (f'{{"a": {{"key": "{SECRET}", "key": "{SECRET}2", "rights": "read"}}}}', "in key 1"),
    "a name twice": (
        f'{{"a": {{"key": "{SECRET}", "rights": "read"}}, "a": {{"key": "{SECRET}2", "rights": "admin"}}}}',
        "in key 2",
    ),
    "broken JSON": (f'{{"a": {{"key": "{SECRET}",}}}}', "at line 1, column "),
    "deep JSON": ('{"a":' * 100_000, "at its beginning"),
    "too many": ("\n".join(f"k{i} {SECRET}{i} read" for i in range(101)), "at its end"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_cannot_be_used_is_told_by_its_place(wrong: str) -> None:
    """Code and position, never the content; one bad key lets nobody in, not even with a good one."""
    written, where = WRONG[wrong]
    settings = {"api_key": "the-administrators", "api_keys": written}
    with pytest.raises(ApiKeysInvalid) as failure:
        authenticate({"authorization": "Bearer the-administrators"}, settings)
    assert where in failure.value.message
    assert "S3CRET" not in str(failure.value)
    assert failure.value.__cause__ is None


@pytest.mark.parametrize("right", Right)
@pytest.mark.parametrize("within", Within)
@pytest.mark.parametrize(
    "limits", [Limits(), Limits("acme-"), Limits("", "zendesk"), Limits("acme-", "zendesk")]
)
def test_rights_and_limits_decide_together(right: Right, within: Within, limits: Limits) -> None:
    """Only the right itself will do, and no key with a limit goes where the limit cannot be kept."""
    keeps = {
        Within.NAMESPACE: not limits,
        Within.CUSTOMER: not limits.source,
        Within.TICKET: True,
    }
    assert Key("k", frozenset({right}), limits, b"").may(right, within) is keeps[within]
    for other in Right:
        assert not Key("k", EVERYTHING - {other}, limits, b"").may(other, within)
    with pytest.raises(Forbidden):
        Key("k", frozenset(), limits, b"").check(right, within)
