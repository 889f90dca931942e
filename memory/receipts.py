"""Receipts: what an erasure took away, when, and how that was made sure of; neither content nor names."""

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass

from memory.chroma_rows import Row
from memory.errors import ParameterInvalid, SettingInvalid
from memory.namespace import Namespace, unsearched_vector
from memory.records import Kind
from memory.scope import Scope

HISTORY = "history"
LINKS, TICKETS, MARKS, ALIASES = "links", "ledger", "marks", "aliases"
TYPES = (*Kind, HISTORY, LINKS, TICKETS, MARKS, ALIASES)
"""What a receipt counts: current statements by kind, statements that were history, links of conversations,
entries of imported tickets, content-free marks that ended a slot, and old ids of a merged customer."""
VERIFIED = (
    "overwritten before it was deleted",
    "read back by id through a fresh connection",
    "read back by listing and by search through a fresh connection",
)
NOT_COVERED = (
    "backups of the Chroma server, and exports made before",
    "logs of the providers of embedding and language models",
    "Dify's own conversation history and logs",
)
FLUSHED = (
    "the files of the Chroma server, until its operator runs `chroma vacuum`; the log and the index file are "
    "prepared for it"
)
HOSTED = "the files of a hosted Chroma service, which its operator keeps and compacts"
PAGE_RANGE = (1, 500)


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """Proof of one erasure.

    Attributes:
        receipt_id: its name.
        customer_hash: HMAC-SHA256 of whom it was about, with the settings' `hash_key`; "" without one.
        scope: "everything", "conversation", "case", "matching" or "ticket".
        requested_at, completed_at: seconds since 1970.
        before, kinds: the bounds it had; None and empty for none.
        counts: how many of each of `TYPES` are gone.
        verified: how that was made sure of.
        not_covered: what it says nothing about.
    """

    receipt_id: str
    customer_hash: str
    scope: str
    requested_at: float
    completed_at: float
    before: float | None
    kinds: tuple[str, ...]
    counts: Mapping[str, int]
    verified: tuple[str, ...]
    not_covered: tuple[str, ...]

    @property
    def deleted(self) -> int:
        """How many statements are gone."""
        return sum(self.counts.get(name, 0) for name in (*Kind, HISTORY))


def customer_hash(key: str, scope: Scope) -> str:
    """A customer's name in receipts; "" without a key."""
    if not key:
        return ""
    owner = "conversation" if scope.is_provisional else "customer"
    name = f"{owner}:{scope.customer_id or scope.conversation_id}"
    return hmac.new(key.encode(), name.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


class Receipts:
    """The receipts of one namespace.

    Args:
        namespace: where they lie.
        key: the settings' `hash_key`.
    """

    def __init__(self, namespace: Namespace, key: str) -> None:
        self._namespace, self._key = namespace, key

    def customer_hash(self, scope: Scope) -> str:
        """See `customer_hash`."""
        return customer_hash(self._key, scope)

    def add(self, receipt: Receipt) -> Receipt:
        """Keep a receipt, unless it was kept before.

        Returns:
            The one that is kept.
        """
        chroma, name = self._namespace.chroma, self._namespace.receipts
        chroma.add(name, [_to_row(receipt)])
        return next(iter(map(_from_row, chroma.get(name, ids=[receipt.receipt_id]))), receipt)

    def has(self, receipt_id: str) -> bool:
        """Whether a receipt is kept."""
        return bool(self._namespace.chroma.get(self._namespace.receipts, ids=[receipt_id]))

    def page(self, scope: Scope | None, *, limit: int, cursor: str) -> tuple[list[Receipt], str]:
        """One page of receipts, newest first.

        Args:
            scope: only this customer's; None for all.
            limit: receipts at the most.
            cursor: where the page before ended; "" for the first.

        Returns:
            The receipts, and the cursor of the next page; "" after the last.

        Raises:
            SettingInvalid: a customer is asked for, and there is no key.
            ParameterInvalid: the cursor is none of ours.
        """
        chroma, name = self._namespace.chroma, self._namespace.receipts
        if scope is not None and not self._key:
            raise SettingInvalid(name="hash_key", expected="set, to find the receipts of a customer")
        if cursor and not (cursor.isascii() and cursor.isdigit()):
            raise ParameterInvalid(name="cursor", expected="the cursor of an earlier answer")
        if scope is not None:
            rows = chroma.get(name, where={"customer": self.customer_hash(scope)})
            end = min(int(cursor or len(rows)), len(rows))
            found = rows[max(0, end - limit) : end]
        else:
            end = chroma.count(name)
            end = min(int(cursor or end), end)
            start = max(0, end - limit)
            found = chroma.get(name, limit=end - start, offset=start) if end else []
        left = end - len(found)
        return [_from_row(row) for row in reversed(found)], str(left) if left > 0 and found else ""


def _to_row(receipt: Receipt) -> Row:
    document = {
        "receipt_id": receipt.receipt_id,
        "customer_hash": receipt.customer_hash,
        "scope": receipt.scope,
        "requested_at": receipt.requested_at,
        "completed_at": receipt.completed_at,
        "before": receipt.before,
        "kinds": list(receipt.kinds),
        "counts": dict(receipt.counts),
        "verified": list(receipt.verified),
        "not_covered": list(receipt.not_covered),
    }
    columns = {"customer": receipt.customer_hash, "completed_at": float(receipt.completed_at)}
    return Row(receipt.receipt_id, json.dumps(document), columns, unsearched_vector(receipt.receipt_id))


def _from_row(row: Row) -> Receipt:
    document = json.loads(row.text)
    for name in ("kinds", "verified", "not_covered"):
        document[name] = tuple(document[name])
    return Receipt(**document)
