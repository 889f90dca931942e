"""Whose memory a call is about: ids checked, and the scope every read and write starts from.

A `Scope` can be made here only, by `customer_scope` and `conversation_scope`, which `memory.identity`
and `memory.links` alone may call (a test holds this). No other code can name a customer to the store.
"""

import hashlib
import hmac
import re
import unicodedata
from dataclasses import dataclass, field

from memory.errors import IdInvalid

MAX_ID_LENGTH = 512

# What an unbound variable looks like by the time it reaches a node. As ids these would put all
# customers of a flow into one memory.
_UNFILLED = {"null", "none", "undefined", "nan", "nil"}
_WILDCARDS = {"*", "%"}
_PLACEHOLDER = re.compile(r"\{\{.*\}\}|\{#.*#\}|\$\{.*\}", re.DOTALL)

_SEAL = object()


@dataclass(frozen=True, slots=True)
class Scope:
    """One customer's memory, or the provisional one of a conversation that is not linked yet.

    Attributes:
        customer_id: the customer; "" for a provisional scope.
        conversation_id: the conversation of a provisional scope; "" for a customer's.
        key: what the store filters the live memories by; 32 hexadecimal digits.
        history_key: the same for what is superseded and for the marks that end a slot, so that a search
            by `key` never meets them.
    """

    customer_id: str
    conversation_id: str
    key: str = field(repr=False)
    history_key: str = field(repr=False)
    _seal: object = field(repr=False, compare=False)

    def __post_init__(self) -> None:
        if self._seal is not _SEAL:
            raise TypeError("a Scope comes from identity resolution only")

    @property
    def is_provisional(self) -> bool:
        """Whether no customer is known yet."""
        return not self.customer_id

    def shard(self, shards: int) -> int:
        """Which of the namespace's collections holds this scope, 0 up to `shards` - 1."""
        return shard_of(self.key, shards)


def customer_scope(customer_id: str) -> Scope:
    """The scope of a customer whose id has been checked."""
    return _scope("customer", customer_id=customer_id, conversation_id="")


def conversation_scope(conversation_id: str) -> Scope:
    """The provisional scope of a conversation that is linked to nobody."""
    return _scope("conversation", customer_id="", conversation_id=conversation_id)


def _scope(owner: str, *, customer_id: str, conversation_id: str) -> Scope:
    name = customer_id or conversation_id
    return Scope(
        customer_id=customer_id,
        conversation_id=conversation_id,
        key=hashed("scope", owner, name),
        history_key=hashed("history", owner, name),
        _seal=_SEAL,
    )


def shard_of(key: str, shards: int) -> int:
    """Which of so many collections holds the scope with this key."""
    return int(key[:12], 16) % shards


def hashed(*parts: str) -> str:
    """32 hexadecimal digits of SHA-256 over the parts, each with its length, so that no two lists of
    parts run together into the same bytes.
    """
    return hashlib.sha256(_encoded(parts)).hexdigest()[:32]


def keyed_hash(key: str, *parts: str) -> str:
    """As `hashed`, under a secret, so that nobody without it can try out what the parts may have been.

    Args:
        key: the secret, not empty.
        parts: what is hashed; the first says what it is, such as "customer".

    Returns:
        32 hexadecimal digits of HMAC-SHA-256.
    """
    return hmac.new(key.encode("utf-8", "surrogatepass"), _encoded(parts), "sha256").hexdigest()[:32]


def _encoded(parts: tuple[str, ...]) -> bytes:
    data = [part.encode("utf-8", "surrogatepass") for part in parts]
    return b"".join(b"%d:%b" % (len(each), each) for each in data)


def checked_id(name: str, value: object) -> str:
    """An id as opaque text, or "" when none is given.

    White space at both ends is dropped, since builders' templates leave it; nothing else is changed:
    upper and lower case, blanks inside, "%", "*" inside and emoji are part of the id. A whole number
    is taken as its digits.

    Args:
        name: what the id is called, for the message.
        value: text, a whole number, or None.

    Returns:
        The id; "" for None and for the empty text.

    Raises:
        IdInvalid: blank text, "*", a variable that was not filled in ("null", "{{customer}}"),
            over 512 characters, control characters, or a value that is no text.
    """
    if value is None or value == "":
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        if abs(value) >= 10**MAX_ID_LENGTH:
            raise IdInvalid(name=name, reason=f"it is longer than {MAX_ID_LENGTH} characters")
        value = str(value)
    if not isinstance(value, str):
        raise IdInvalid(name=name, reason="it must be text")
    text = value.strip()
    if all(unicodedata.category(c) in {"Cf", "Zs"} for c in text):
        raise IdInvalid(name=name, reason="it is blank")
    if text in _WILDCARDS:
        raise IdInvalid(name=name, reason="a wildcard names nobody")
    if text.casefold() in _UNFILLED or _PLACEHOLDER.fullmatch(text):
        raise IdInvalid(name=name, reason="it looks like a variable that was not filled in")
    if len(text) > MAX_ID_LENGTH:
        raise IdInvalid(name=name, reason=f"it is longer than {MAX_ID_LENGTH} characters")
    if any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or 0xD800 <= ord(c) < 0xE000 for c in text):
        raise IdInvalid(name=name, reason="it holds control characters")
    return text
