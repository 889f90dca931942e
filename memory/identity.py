"""Identity resolution: from the ids of a call to the one scope it may touch."""

from dataclasses import dataclass, replace

from memory.errors import ConversationMismatch, CustomerMissing, ParameterMissing
from memory.links import Link, LinkStore
from memory.moving import move
from memory.scope import Scope, checked_id, conversation_scope, customer_scope
from memory.store import MemoryStore


@dataclass(frozen=True, slots=True)
class Caller:
    """The ids a call came with, checked; "" for those it came without."""

    customer_id: str
    conversation_id: str
    case_id: str

    @classmethod
    def checked(
        cls, customer_id: object = None, conversation_id: object = None, case_id: object = None
    ) -> "Caller":
        """The ids as opaque text.

        Raises:
            IdInvalid: one of them cannot be an id.
            CustomerMissing: there is neither a customer nor a conversation.
        """
        caller = cls(
            checked_id("customer_id", customer_id),
            checked_id("conversation_id", conversation_id),
            checked_id("case_id", case_id),
        )
        if not caller.customer_id and not caller.conversation_id:
            raise CustomerMissing
        return caller


@dataclass(frozen=True, slots=True)
class Resolved:
    """Whose memory a call is about.

    Attributes:
        scope: what every read and write starts from.
        conversation_id: the conversation of the call; "" for none.
        case_id: the case given, else the conversation's; "" for none.
        link: the conversation's link, if it has one.
    """

    scope: Scope
    conversation_id: str
    case_id: str
    link: Link | None

    @property
    def is_linked(self) -> bool:
        """Whether the customer is known."""
        return not self.scope.is_provisional


@dataclass(frozen=True, slots=True)
class Linked:
    """What linking a conversation did."""

    link: Link
    previous_customer_id: str
    moved: int


def scope_of_customer(customer_id: object) -> Scope:
    """The scope of a customer that is named outright, as in an import.

    Raises:
        IdInvalid: it cannot be an id.
        CustomerMissing: there is none.
    """
    return customer_scope(Caller.checked(customer_id).customer_id)


def scope_of_owner(customer_id: str, conversation_id: str) -> Scope:
    """The scope a stored row says it belongs to, for upkeep of the whole namespace."""
    return customer_scope(customer_id) if customer_id else conversation_scope(conversation_id)


class Identity:
    """Resolves and links the conversations of one namespace.

    Args:
        links: the namespace's links.
        store: the namespace's memories, moved when a link says so; None where nothing was ever stored.
    """

    def __init__(self, links: LinkStore, store: MemoryStore | None) -> None:
        self._links = links
        self._store = store

    def resolve(self, caller: Caller) -> Resolved:
        """Find out whose memory a call is about; a move that was cut short is finished first.

        Raises:
            ConversationMismatch: the conversation is linked to a customer other than the one given.
        """
        link = self._links.find(caller.conversation_id) if caller.conversation_id else None
        if link is not None:
            if caller.customer_id and caller.customer_id != link.customer_id:
                raise ConversationMismatch
            link, _ = self._finish_move(link)
            scope = link.scope
        elif caller.customer_id:
            scope = customer_scope(caller.customer_id)
        else:
            scope = conversation_scope(caller.conversation_id)
        case_id = caller.case_id or (link.case_id if link else "")
        return Resolved(scope, caller.conversation_id, case_id, link)

    def resolve_to_write(self, caller: Caller, *, now: float) -> Resolved:
        """As `resolve`, and a conversation without a link is linked to the customer given with it."""
        resolved = self.resolve(caller)
        if resolved.link or not caller.conversation_id or resolved.scope.is_provisional:
            return resolved
        linked = self._claim(caller, now=now)
        return Resolved(
            linked.link.scope,
            caller.conversation_id,
            caller.case_id or linked.link.case_id,
            linked.link,
        )

    def link(self, caller: Caller, *, relink: bool, now: float) -> Linked:
        """Link a conversation to a customer, and to a case if one is given.

        Its provisional memory becomes the customer's. With `relink`, a conversation of another customer
        changes hands together with what was remembered in it. Doing it again changes nothing.

        Args:
            caller: conversation and customer; the customer may be left out to set the case of a
                conversation that has one.
            relink: whether a conversation may be taken from another customer.
            now: seconds since 1970.

        Raises:
            ParameterMissing: no conversation, or no customer for one that has none yet.
            ConversationMismatch: it is another customer's, and `relink` is not set.
        """
        if not caller.conversation_id:
            raise ParameterMissing(name="conversation_id")
        link = self._links.find(caller.conversation_id)
        if link is None:
            if not caller.customer_id:
                raise ParameterMissing(name="customer_id")
            return self._claim(caller, now=now)
        link, moved = self._finish_move(link)
        previous = ""
        if caller.customer_id and caller.customer_id != link.customer_id:
            if not relink:
                raise ConversationMismatch
            previous = link.customer_id
            link = replace(
                link,
                customer_id=caller.customer_id,
                case_id=caller.case_id,
                linked_at=now,
                is_moving=True,
                moves_from=previous,
            )
            self._links.put(link)
        elif caller.case_id and caller.case_id != link.case_id:
            link = replace(link, case_id=caller.case_id, is_moving=True, moves_from=link.customer_id)
            self._links.put(link)
        else:
            # What a crash, or a call under way while the link was made, left behind.
            link = replace(link, is_moving=True, moves_from="")
        link, now_moved = self._finish_move(link)
        return Linked(link, previous, moved + now_moved)

    def follow(self, resolved: Resolved) -> Resolved:
        """After a write into a provisional scope: if the conversation was linked meanwhile, move it.

        Returns:
            The scope the conversation has now.
        """
        if not resolved.scope.is_provisional:
            return resolved
        link = self._links.find(resolved.conversation_id)
        if link is None:
            return resolved
        link, _ = self._finish_move(replace(link, is_moving=True))
        return replace(resolved, scope=link.scope, link=link)

    def gather(self, scope: Scope) -> list[Link]:
        """Bring home what is a customer's and still lies elsewhere, before all of it is erased.

        That is what a move cut short left behind, and what a write that was under way while its
        conversation was linked left in the conversation's own memory.

        Returns:
            The customer's links.
        """
        own = self._links.of_customer(scope)
        for link in own:
            self._finish_move(link)
            leftover = replace(link, is_moving=True, moves_from="")
            if self._store is not None and self._store.everything(leftover.old_scope):
                self._finish_move(leftover)
        return own

    def _claim(self, caller: Caller, *, now: float) -> Linked:
        link = self._links.claim(
            Link(
                conversation_id=caller.conversation_id,
                customer_id=caller.customer_id,
                case_id=caller.case_id,
                linked_at=now,
                is_moving=True,
            )
        )
        if link.customer_id != caller.customer_id:
            raise ConversationMismatch
        link, moved = self._finish_move(link)
        return Linked(link, "", moved)

    def _finish_move(self, link: Link) -> tuple[Link, int]:
        """Bring a conversation's memories to where its link says, and note that they have arrived."""
        if not link.is_moving:
            return link, 0
        moved = 0
        if self._store is not None:
            moved = move(
                self._store,
                link.old_scope,
                link.scope,
                conversation_id=link.conversation_id,
                case_id=link.case_id,
            )
        arrived = replace(link, is_moving=False, moves_from="")
        stored = self._links.find(link.conversation_id)
        if stored is not None and stored.is_moving and stored.customer_id == link.customer_id:
            self._links.put(arrived)
        return arrived, moved
