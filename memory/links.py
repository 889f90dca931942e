"""Links: which customer, and which case, a conversation belongs to."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from memory.chroma import PAGE
from memory.chroma_rows import Row
from memory.limits import Limits
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
        epoch: the customer's when the link was made; see `memory.epochs`.
        trail: shards its memories lay in before, whose files may still hold their words.
    """

    conversation_id: str
    customer_id: str
    case_id: str = ""
    linked_at: float
    is_moving: bool = False
    moves_from: str = ""
    epoch: int = 0
    trail: tuple[int, ...] = ()

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

    @property
    def limits(self) -> Limits:
        """Which part of the namespace may be touched."""
        return self._namespace.limits

    def find(self, conversation_id: str) -> Link | None:
        """The link of a conversation; None if it has none.

        Raises:
            Forbidden: it is of a customer outside the limits of this call.
        """
        link = self.find_all([conversation_id]).get(conversation_id)
        if link is not None:
            self.limits.check_customer(link.customer_id)
        return link

    def find_all(self, conversation_ids: Iterable[str]) -> dict[str, Link]:
        """The links of many conversations, by conversation; those without one are left out."""
        wanted = set(conversation_ids)
        ids = sorted(map(link_id, wanted))
        links = map(_from_row, self._namespace.chroma.get(self._namespace.links, ids=ids))
        return {link.conversation_id: link for link in links if link.conversation_id in wanted}

    def of_customer(self, scope: Scope) -> list[Link]:
        """All links of a customer, in the order they were made; none for a provisional scope.

        Raises:
            Forbidden: the customer is outside the limits of this call.
        """
        self.limits.check_customer(scope.customer_id)
        if scope.is_provisional:
            return []
        rows = self._namespace.chroma.get(self._namespace.links, where={"customer": scope.key})
        links = [link for link in map(_from_row, rows) if link.customer_id == scope.customer_id]
        return sorted(links, key=lambda link: (link.linked_at, link.conversation_id))

    def pages_of(self, scope: Scope, *, after: str = "") -> Iterator[list[tuple[str, Link]]]:
        """A customer's links with the ids of their rows, in pages ordered by these; see `of_customer`."""
        where = {"customer": scope.key}
        ids = [] if scope.is_provisional else self._namespace.chroma.ids(self._namespace.links, where=where)
        ids = [i for i in ids if i > after]
        for start in range(0, len(ids), PAGE):
            rows = self._namespace.chroma.get(self._namespace.links, ids=ids[start : start + PAGE])
            links = ((row.row_id, _from_row(row)) for row in rows)
            yield sorted(
                ((row_id, link) for row_id, link in links if link.customer_id == scope.customer_id),
                key=lambda pair: pair[0],
            )

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
        """Delete links, overwritten first."""
        rows = [(link_id(link.conversation_id), link.scope.key) for link in links]
        self._namespace.wipe(self._namespace.links, rows, _COLUMNS)

    def erase_customer(self, scope_key: str, *, before_epoch: int) -> int:
        """Delete the links of a customer that were made before an epoch.

        Returns:
            How many there were.
        """
        found = self._namespace.chroma.get(self._namespace.links, where={"customer": scope_key})
        links = {row.row_id: _from_row(row) for row in found}
        going = {row_id: link for row_id, link in links.items() if link.epoch < before_epoch}
        self._namespace.wipe(self._namespace.links, [(row_id, scope_key) for row_id in going], _COLUMNS)
        return sum(1 for link in going.values() if link.customer_id)


def is_sound(row: Row) -> bool:
    """Whether a row is a link whose id, customer and customer's key agree."""
    link = _from_row(row)
    is_named = bool(link.conversation_id and link.customer_id)
    right = _to_row(link)
    is_own = row.row_id == right.row_id and row.columns.get("customer") == right.columns["customer"]
    return is_named and is_own


def link_id(conversation_id: str) -> str:
    """The row id of a conversation's link."""
    return hashed("link", conversation_id)


def _to_row(link: Link) -> Row:
    row_id = link_id(link.conversation_id)
    columns: Columns = {
        "customer_id": link.customer_id,
        "customer": link.scope.key,
        "epoch": link.epoch or None,
    }
    told = {
        "conversation_id": link.conversation_id,
        "case_id": link.case_id,
        "linked_at": float(link.linked_at),
        "is_moving": link.is_moving,
        "moves_from": link.moves_from,
        "trail": link.trail,
    }
    columns["told"] = json.dumps(told, ensure_ascii=False, separators=(",", ":"))
    return Row(row_id, "", columns, unsearched_vector(row_id))


def _from_row(row: Row) -> Link:
    told = json.loads(row.columns.get("told") or "{}")
    return Link(
        conversation_id=told.get("conversation_id", ""),
        customer_id=str(row.columns.get("customer_id", "")),
        case_id=told.get("case_id", ""),
        linked_at=told.get("linked_at", 0.0),
        is_moving=told.get("is_moving", False),
        moves_from=told.get("moves_from", ""),
        epoch=int(row.columns.get("epoch", 0)),
        trail=tuple(told.get("trail", ())),
    )


_COLUMNS = tuple(_to_row(Link(conversation_id="", customer_id="", linked_at=0.0)).columns)
