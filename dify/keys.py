"""The keys of the endpoint: who may do what, and about whom."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from dify.web_errors import ApiKeysInvalid, Unauthorized
from memory.errors import Forbidden, IdInvalid
from memory.limits import UNLIMITED, Limits
from memory.scope import checked_id

MAIN_KEY_NAME = "api_key"
"""What the key of the setting `api_key` is called; it has every right and no limit."""
NODE = "node"
WEBHOOK = "webhook"
MIN_KEY_LENGTH = 16
MAX_KEYS = 100

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
_RESERVED = {MAIN_KEY_NAME, NODE, WEBHOOK}
_FIELDS = {"key", "rights", "customer_prefix", "source"}


class Right(StrEnum):
    """What a key may do. None of them includes another."""

    READ = "read"
    WRITE = "write"
    """Remember, import, link."""
    ERASE = "erase"
    ADMIN = "admin"
    """What is about the namespace as a whole."""


class Within(StrEnum):
    """What a route is about, and so which limits it can keep to."""

    NAMESPACE = "namespace"
    """All of it: no key with a limit may."""
    CUSTOMER = "customer"
    """One customer, of whatever source: a key that is limited to a source may not."""
    TICKET = "ticket"
    """Tickets, each of one customer and one source."""


@dataclass(frozen=True, slots=True)
class Key:
    """One key, without its text.

    Attributes:
        name: what it is called in the audit and in logs.
        rights: what it may do.
        limits: about whom.
        digest: SHA-256 of its text.
    """

    name: str
    rights: frozenset[Right]
    limits: Limits
    digest: bytes = field(repr=False)

    def check(self, right: Right, within: Within) -> None:
        """Make sure that the key may call a route.

        Raises:
            Forbidden: it has not the right, or the route cannot keep to its limits.
        """
        if right not in self.rights:
            raise Forbidden(reason=f"it has not the right {right}")
        if self.limits and within is Within.NAMESPACE:
            raise Forbidden(reason="it is limited, and this is about the whole namespace")
        if self.limits.source and within is not Within.TICKET:
            raise Forbidden(reason="it is limited to the tickets of one source")

    def may(self, right: Right, within: Within) -> bool:
        """Whether `check` lets it pass."""
        try:
            self.check(right, within)
        except Forbidden:
            return False
        return True


def authenticate(headers: Mapping[str, str], settings: Mapping[str, Any]) -> Key | None:
    """Whose key a request carries.

    Args:
        headers: names in lower case.
        settings: the endpoint's settings.

    Returns:
        The key; None if the request carries none.

    Raises:
        Unauthorized: it carries a wrong one.
        ApiKeysInvalid: the setting `api_keys` cannot be used, so nobody gets in.
    """
    keys = read_keys(settings)
    sent = headers.get("authorization", "")
    scheme, _, text = sent.partition(" ")
    if scheme.casefold() != "bearer":
        text = headers.get("x-api-key", "")
    if not text and not sent:
        return None
    digest = _digest(text.strip())
    found: Key | None = None
    for key in keys:  # all of them, so that the time says nothing of which one it was
        if hmac.compare_digest(key.digest, digest):
            found = key
    if found is None:
        raise Unauthorized
    return found


def read_keys(settings: Mapping[str, Any]) -> list[Key]:
    """The keys of the settings `api_key` and `api_keys`.

    `api_keys` is a JSON object, or one key a line, with line breaks or semicolons between::

        {"helpdesk": {"key": "…", "rights": "write", "customer_prefix": "acme-", "source": "zendesk"}}

        helpdesk …key… write customer_prefix=acme- source=zendesk
        reports  …key… read,erase

    Args:
        settings: the endpoint's settings.

    Returns:
        The keys; none where both settings are empty.

    Raises:
        ApiKeysInvalid: with the place, never with what stands there.
    """
    keys = []
    main = str(settings.get("api_key") or "").strip()
    if main:
        keys.append(Key(MAIN_KEY_NAME, frozenset(Right), UNLIMITED, _digest(main)))
    text = settings.get("api_keys") or ""
    if not isinstance(text, str):
        raise ApiKeysInvalid(reason="it must be text", where="at its beginning")
    for number, (name, fields) in enumerate(_described(text.strip()), 1):
        try:
            keys.append(_key(name, fields, keys))
        except _Fault as fault:
            raise ApiKeysInvalid(reason=fault.reason, where=f"in key {number}") from None
    if len(keys) > MAX_KEYS:
        raise ApiKeysInvalid(reason=f"there may be {MAX_KEYS} keys", where="at its end")
    return keys


class _Fault(Exception):
    """What is wrong with one key; its reason is fixed text."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


type _Fields = tuple[tuple[str, Any], ...]
"""An object, its names in order."""


def _described(text: str) -> Iterable[tuple[str, Any]]:
    """Name and fields of each key, unchecked."""
    if not text.startswith("{"):
        lines = (line.split() for line in re.split(r"[\n\r;]", text))
        return [(words[0], _line_fields(words[1:])) for words in lines if words]
    try:
        # Pairs instead of dictionaries, so that a name that stands there twice is noticed.
        described = json.loads(text, object_pairs_hook=tuple)
    except json.JSONDecodeError as error:
        where = f"at line {error.lineno}, column {error.colno}"
        raise ApiKeysInvalid(reason="it is no JSON object", where=where) from None
    except (ValueError, RecursionError):
        raise ApiKeysInvalid(reason="it is no JSON object", where="at its beginning") from None
    pairs: Iterable[tuple[str, Any]] = described
    return pairs


def _line_fields(words: Sequence[str]) -> _Fields:
    named = [("key", words[0])] if words else []
    named += [("rights", words[1])] if len(words) > 1 else []
    for word in words[2:]:
        name, _, value = word.partition("=")
        named.append((name, value))
    return tuple(named)


def _key(name: str, fields: Any, before: Sequence[Key]) -> Key:
    """One key, checked.

    Raises:
        _Fault: something of it cannot be used. A field of another name is refused too, since it may be a
            limit that was misspelt.
    """
    if not isinstance(fields, tuple):
        raise _Fault("it must be an object with key and rights")
    values = dict(fields)
    if not set(values) <= _FIELDS or len(values) < len(fields):
        raise _Fault("it may have key, rights, customer_prefix and source, each once")
    if not _NAME.fullmatch(name):
        raise _Fault("its name must be up to 40 letters, digits, dots, hyphens or underscores")
    if name.casefold() in _RESERVED | {key.name.casefold() for key in before}:
        raise _Fault("its name is taken")
    text = values.get("key")
    if not isinstance(text, str) or len(text) < MIN_KEY_LENGTH or not re.fullmatch(r"[!-~]+", text):
        raise _Fault(f"its key must be at least {MIN_KEY_LENGTH} printable ASCII characters without blanks")
    digest = _digest(text)
    if any(key.digest == digest for key in before):
        raise _Fault("its key is another one's too")
    limits = Limits(_limit(values, "customer_prefix"), _limit(values, "source"))
    return Key(name, _rights(values.get("rights")), limits, digest)


def _rights(value: Any) -> frozenset[Right]:
    words = [word.strip() for word in value.split(",")] if isinstance(value, str) else value
    try:
        rights = frozenset(Right(word) for word in words)
    except (TypeError, ValueError):
        rights = frozenset()
    if not rights:
        raise _Fault("its rights must be some of " + ", ".join(Right))
    return rights


def _limit(values: Mapping[str, Any], name: str) -> str:
    """A limit; an empty one is refused, since it would be none."""
    if name not in values:
        return ""
    value = values[name]
    try:
        is_id = isinstance(value, str) and bool(value) and checked_id(name, value) == value
    except IdInvalid:
        is_id = False
    if not is_id or "*" in value:
        raise _Fault(f"its {name} must be plain text, and not empty")
    return str(value)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
