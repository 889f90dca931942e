"""What a call to remember was given: plain text or a list of messages, as statements to store."""

import json
import math
from dataclasses import dataclass
from datetime import UTC, tzinfo

from memory.errors import ContentInvalid, ContentTooLarge, MetadataInvalid
from memory.records import Kind, Metadata, Role
from memory.text import clean

MAX_CONTENT_LENGTH = 1_000_000
"""Characters in one call."""
MAX_MESSAGES = 1_000
"""Messages in one call."""
MAX_METADATA_KEYS = 32
MAX_METADATA_LENGTH = 4_000
"""Characters of the metadata as JSON."""

_ROLES = {
    "user": Role.CUSTOMER,
    "customer": Role.CUSTOMER,
    "human": Role.CUSTOMER,
    "assistant": Role.AGENT,
    "agent": Role.AGENT,
    "ai": Role.AGENT,
    "bot": Role.AGENT,
}
_IDENTITY_KEYS = {"customer_id", "conversation_id", "case_id", "scope", "namespace", "memory_id"}


@dataclass(frozen=True, slots=True)
class Statement:
    """One thing to remember.

    Attributes:
        text: cleaned text, never empty.
        role: whose words it is.
        kind: what sort of memory it becomes.
        index: its position in the content, from 0.
        subject, attribute: the slot of a fact of the customer's; attribute "" for none.
        occurred_at: when it was so, seconds since 1970; None for now.
        is_still_so: False where a slot's value is said to hold no longer, and no other is named.
        origin: id of the ticket's message it comes from; "" for none.
    """

    text: str
    role: Role
    kind: Kind
    index: int
    subject: str = ""
    attribute: str = ""
    occurred_at: float | None = None
    is_still_so: bool = True
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Skipped:
    """One item that is not stored, and why.

    The reason is `empty`; `role_not_kept` for system and tool messages; or for an extracted fact one of
    `malformed`, `unknown_message`, `unknown_slot`, `about_somebody_else`, `low_confidence`,
    `not_the_customers_words`, `no_longer_true` and `too_many`.
    """

    index: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What a call to remember says beside its statements.

    Attributes:
        attribute: the slot of the customer's own facts; "" for none.
        occurred_at: when they were so, seconds since 1970; None for now.
        expires_in_seconds: from now; None for what the policy says.
        metadata: the user's own.
        extracts: whether a language model picks the facts worth keeping, instead of keeping all as it is.
        zone: the customer's time zone, for words such as "yesterday".
    """

    attribute: str = ""
    occurred_at: float | None = None
    expires_in_seconds: float | None = None
    metadata: Metadata | None = None
    extracts: bool = False
    zone: tzinfo = UTC


def read_content(content: object, *, kind: Kind | None) -> tuple[list[Statement], list[Skipped]]:
    """Take content apart into statements.

    Plain text is one statement of the customer's, a fact unless `kind` says otherwise. Of messages each is
    one statement: the customer's words get `kind`, or are episodic; an agent's are episodic always, since
    what an agent says is no fact about the customer.

    Args:
        content: text; a list of `{"role", "content"}`; or such a list as JSON text.
        kind: the kind asked for; None for the usual one.

    Returns:
        What to store, and what not and why.

    Raises:
        ContentInvalid: content of another shape.
        ContentTooLarge: over a million characters or a thousand messages.
    """
    messages = _messages(content)
    if messages is None:
        if content is not None and not isinstance(content, str):
            raise ContentInvalid(reason="it is neither")
        text = clean(_sized(content or ""))
        if not text:
            return [], [Skipped(0, "empty")]
        return [Statement(text, Role.CUSTOMER, kind or Kind.SEMANTIC, 0)], []
    if len(messages) > MAX_MESSAGES:
        raise ContentTooLarge(limit=f"{MAX_CONTENT_LENGTH} in {MAX_MESSAGES} messages")
    statements: list[Statement] = []
    skipped: list[Skipped] = []
    for index, message in enumerate(messages):
        role, text = _read_message(message, index)
        if role is None:
            skipped.append(Skipped(index, "role_not_kept"))
        elif not text:
            skipped.append(Skipped(index, "empty"))
        else:
            is_customer = role is Role.CUSTOMER
            chosen = (kind or Kind.EPISODIC) if is_customer else Kind.EPISODIC
            statements.append(Statement(text, role, chosen, index))
    _sized("".join(statement.text for statement in statements))
    return statements, skipped


def _messages(content: object) -> list[object] | None:
    """The list of messages, if that is what content is; JSON text that is no such list stays text."""
    if isinstance(content, list | tuple):
        return list(content)
    if isinstance(content, dict) and isinstance(content.get("messages"), list):
        return list(content["messages"])
    if not isinstance(content, str) or not content.lstrip().startswith(("[", "{")):
        return None
    try:
        parsed = json.loads(_sized(content))
    except (ValueError, RecursionError):
        return None
    if isinstance(parsed, dict):
        parsed = parsed.get("messages")
    if isinstance(parsed, list) and parsed and all(_looks_like_message(m) for m in parsed):
        return parsed
    return None


def _looks_like_message(item: object) -> bool:
    return isinstance(item, dict) and "role" in item and ("content" in item or "text" in item)


def _read_message(message: object, index: int) -> tuple[Role | None, str]:
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise ContentInvalid(reason=f"message {index} has no role")
    content = message.get("content", message.get("text"))
    if isinstance(content, list):  # OpenAI's content parts: the text ones count
        content = "\n".join(
            part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)
        )
    if content is not None and not isinstance(content, str):
        raise ContentInvalid(reason=f"message {index} has no text")
    return _ROLES.get(message["role"].strip().casefold()), clean(content or "")


def _sized(text: str) -> str:
    if len(text) > MAX_CONTENT_LENGTH:
        raise ContentTooLarge(limit=MAX_CONTENT_LENGTH)
    return text


def read_metadata(value: object) -> Metadata:
    """The user's own metadata: a flat object of texts, numbers and booleans; None values are left out.

    Args:
        value: a mapping, a mapping as JSON text, or nothing.

    Raises:
        MetadataInvalid: anything else, a key that names an identity, or too much of it.
    """
    if value in (None, "", {}):
        return {}
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise MetadataInvalid(reason="it is not JSON") from None
    if not isinstance(value, dict):
        raise MetadataInvalid(reason="it is not an object")
    kept: Metadata = {}
    for name, item in value.items():
        key = clean(name) if isinstance(name, str) else ""
        if not key:
            raise MetadataInvalid(reason="a key is empty")
        if key.casefold() in _IDENTITY_KEYS:
            raise MetadataInvalid(reason=f"{key.casefold()} is decided by the node, not by metadata")
        if item is None:
            continue
        if not isinstance(item, str | int | float | bool) or _is_nan(item):
            raise MetadataInvalid(reason="a value is neither text, number nor boolean")
        kept[key] = clean(item) if isinstance(item, str) else item
    if len(kept) > MAX_METADATA_KEYS or len(json.dumps(kept)) > MAX_METADATA_LENGTH:
        raise MetadataInvalid(
            reason=f"it has over {MAX_METADATA_KEYS} keys or {MAX_METADATA_LENGTH} characters"
        )
    return kept


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
