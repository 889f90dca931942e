"""Links: which customer, and which case, a conversation belongs to."""

from collections.abc import Sequence
from dataclasses import dataclass

from memory.chroma import Row
from memory.namespace import Namespace
from memory.records import Columns
from memory.scope import Scope, conversation_scope, customer_scope, hashed


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A conversation's customer.

    Attributes:
        conversation_id, customer_id: who belongs to whom.
        case_id: the matter the conversation is part of; "" for none.
        linked_at: seconds since 1970.
        is_moving: whether the conversation's memories are still on their way to this customer. Set with
            the link and cleared when they have arrived, so that a move cut short is finished by the next
            call that meets the link.
        moves_from: the customer they come from; "" for the conversation's own provisional memory.

    """

    conversation_id: str
    customer_id: str
    case_id: str = ""
    linked_at: float
    is_moving: bool = False
    moves_from: str = ""

    @property
    def scope(self) -> Scope:
        """The scope of the customer."""
        return customer_scope(self.customer_id)

    @property
    def old_scope(self) -> Scope:
        """The scope the conversation's memories come from."""
        if self.moves_from:
            return customer_scope(self.moves_from)
        return conversation_scope(self.conversation_id)


class LinkStore:
    """The links of one namespace.

    Args:
        namespace: where they lie.

    """

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace

    def find(self, conversation_id: str) -> Link | None:
        """The link of a conversation; None if it has none."""
        rows = self._namespace.chroma.get(self._namespace.links, ids=[_link_id(conversation_id)])
        links = [link for link in map(_from_row, rows) if link.conversation_id == conversation_id]
        return links[0] if links else None

    def of_customer(self, scope: Scope) -> list[Link]:
        """All links of a customer, in the order they were made; none for a provisional scope."""
        if scope.is_provisional:
            return []
        rows = self._namespace.chroma.get(self._namespace.links, where={"customer": scope.key})
        return [link for link in map(_from_row, rows) if link.customer_id == scope.customer_id]

    def claim(self, link: Link) -> Link:
        """Link a conversation that has no link yet; of several callers at once, one wins.

        Returns:
            The link that is there now, which may be another caller's.

        """
        self._namespace.chroma.add(self._namespace.links, [_to_row(link)])
        return self.find(link.conversation_id) or link

    def put(self, link: Link) -> None:
        """Write a link over the one that was there."""
        self._namespace.chroma.put(self._namespace.links, [_to_row(link)])

    def erase(self, links: Sequence[Link]) -> None:
        """Delete links."""
        self._namespace.chroma.delete(
            self._namespace.links, [_link_id(link.conversation_id) for link in links]
        )


def _link_id(conversation_id: str) -> str:
    return hashed("link", conversation_id)


def _to_row(link: Link) -> Row:
    row_id = _link_id(link.conversation_id)
    columns: Columns = {
        "conversation_id": link.conversation_id,
        "customer_id": link.customer_id,
        "customer": link.scope.key,
        "case_id": link.case_id or None,
        "linked_at": float(link.linked_at),
        "is_moving": True if link.is_moving else None,
        "moves_from": link.moves_from or None,
    }
    # The store wants a vector for every row; links are never searched by it. One that differs from row
    # to row keeps the index from piling them all on one point.
    vector = [int(row_id[i : i + 4], 16) / 65_535 + 0.01 for i in (0, 4)]
    return Row(row_id, "", columns, vector)


def _from_row(row: Row) -> Link:
    columns = row.columns
    return Link(
        conversation_id=str(columns.get("conversation_id", "")),
        customer_id=str(columns.get("customer_id", "")),
        case_id=str(columns.get("case_id", "")),
        linked_at=float(columns.get("linked_at", 0.0)),
        is_moving=bool(columns.get("is_moving", False)),
        moves_from=str(columns.get("moves_from", "")),
    )
