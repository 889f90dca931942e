"""Links: which customer, and which case, a conversation belongs to."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memory.chroma import Row
from memory.namespace import Namespace, unsearched_vector
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
        return self.find_all([conversation_id]).get(conversation_id)

    def find_all(self, conversation_ids: Iterable[str]) -> dict[str, Link]:
        """The links of many conversations, by conversation; those without one are left out."""
        wanted = set(conversation_ids)
        ids = sorted(map(_link_id, wanted))
        links = map(_from_row, self._namespace.chroma.get(self._namespace.links, ids=ids))
        return {link.conversation_id: link for link in links if link.conversation_id in wanted}

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
        return self.claim_all([link]).get(link.conversation_id, link)

    def claim_all(self, links: Sequence[Link]) -> dict[str, Link]:
        """As `claim`, for many conversations, each named once."""
        if not links:
            return {}
        self._namespace.chroma.add(self._namespace.links, [_to_row(link) for link in links])
        return self.find_all(link.conversation_id for link in links)

    def put(self, *links: Link) -> None:
        """Write links over the ones that were there."""
        self._namespace.chroma.put(self._namespace.links, [_to_row(link) for link in links])

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
    return Row(row_id, "", columns, unsearched_vector(row_id))


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
