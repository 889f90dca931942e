"""Identity resolution: from the ids of a call to the one scope it may touch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memory.errors import ConversationMismatch, CustomerMissing, ParameterMissing
from memory.limits import Limits, out_of_reach
from memory.links import Link, LinkStore
from memory.moving import move
from memory.scope import Scope, checked_id, conversation_scope, customer_scope
from memory.signposts import is_looking, looking
from memory.store import MemoryStore

if TYPE_CHECKING:
    from memory.merging import Merging


@dataclass(frozen=True, slots=True)
class Caller:
    """The ids a call came with, checked; "" for those it came without."""

    customer_id: str
    conversation_id: str
    case_id: str

    @classmethod
    def checked(
        cls, customer_id: object = None, conversation_id: object = None, case_id: object = None
    ) -> Caller:
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


def is_out_of_reach(limits: Limits, store: MemoryStore, scope: Scope) -> bool:
    """Whether a conversation that is linked to nobody holds what a limited call must not take over.

    Linking would bring it to a customer within the limits, where it could be read; whose it is, nobody knows.
    """
    if not limits.customer_prefix:
        return False
    is_live = any(not memory.ends_slot for memory in store.live(scope))
    return is_live or bool(store.history(scope, limit=1))


def out_of_reach_among(
    limits: Limits, store: MemoryStore, wanted: Mapping[str, Link], found: Mapping[str, Link]
) -> set[str]:
    """The conversations that a limited call may not link.

    Args:
        limits: of the call.
        store: the namespace's memories.
        wanted: by conversation, the links to be made.
        found: those that are there already.

    Returns:
        Those of customers outside the limits, and those of nobody that hold something.
    """
    others = {c for c, link in found.items() if not limits.admits_customer(link.customer_id)}
    free = {c: link.old_scope for c, link in wanted.items() if c not in found}
    return others | {c for c, scope in free.items() if is_out_of_reach(limits, store, scope)}


class Identity:
    """Resolves and links the conversations of one namespace.

    Args:
        links: the namespace's links.
        store: the namespace's memories, moved when a link says so; None where nothing was ever stored.
        merging: says who answers for the id of a customer that was merged with another.
    """

    def __init__(self, links: LinkStore, store: MemoryStore | None, merging: Merging) -> None:
        self._links = links
        self._store = store
        self._merging = merging

    def resolve(self, caller: Caller) -> Resolved:
        """Find out whose memory a call is about; a move that was cut short is finished first.

        Whether a customer was merged with another is asked only where it matters: the first read of the
        scope tells, by a signpost, and the call starts again (see `memory.signposts`).

        Raises:
            Forbidden: the customer is outside the limits of this call, or none is known where it has some.
            ConversationMismatch: the conversation is linked to a customer other than the one given.
        """
        self._check(caller)
        link = self._find(caller.conversation_id) if caller.conversation_id else None
        if link is not None:
            caller, link = self._answering(caller, link)
            if caller.customer_id and caller.customer_id != link.customer_id:
                raise ConversationMismatch
            link, _ = self._finish_move(link)
            scope = link.scope
        elif caller.customer_id:
            owner = self._merging.settle(caller.customer_id) if is_looking() else caller.customer_id
            self._links.limits.check_customer(owner)
            scope = customer_scope(owner)
        else:
            scope = conversation_scope(caller.conversation_id)
            self._links.limits.check_customer(scope.customer_id)
        case_id = caller.case_id or (link.case_id if link else "")
        return Resolved(scope, caller.conversation_id, case_id, link)

    def resolve_to_write(self, caller: Caller, *, now: float) -> Resolved:
        """As `resolve`, and a conversation without a link is linked to the customer given with it."""
        resolved = self.resolve(caller)
        if resolved.link or not caller.conversation_id or resolved.scope.is_provisional:
            return resolved
        linked = self._claim(replace(caller, customer_id=resolved.scope.customer_id), now=now)
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
            Forbidden: one of the customers is outside the limits of this call.
            ConversationMismatch: it is another customer's, and `relink` is not set.
        """
        self._check(caller)
        if not caller.conversation_id:
            raise ParameterMissing(name="conversation_id")
        linked = self._link(caller, relink=relink, now=now)
        owner = self._merging.owner(linked.link.customer_id)  # it may have been merged meanwhile
        return replace(linked, link=self._owned(linked.link, owner))

    def _link(self, caller: Caller, *, relink: bool, now: float) -> Linked:
        link = self._find(caller.conversation_id)
        if link is None:
            if not caller.customer_id:
                raise ParameterMissing(name="customer_id")
            owner = self._merging.settle(caller.customer_id)
            self._links.limits.check_customer(owner)
            return self._claim(replace(caller, customer_id=owner), now=now)
        caller, link = self._answering(caller, link)
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
                epoch=self._opened(customer_scope(caller.customer_id)),
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
        """After a write: move it if the conversation was linked meanwhile, or the customer merged.

        Returns:
            The scope it is in now.
        """
        if resolved.scope.is_provisional:
            link = self._find(resolved.conversation_id)
            if link is None:
                return resolved
            link, _ = self._finish_move(replace(link, is_moving=True))
            resolved = replace(resolved, scope=link.scope, link=link)
        owner = self._merging.owner(resolved.scope.customer_id)
        if owner == resolved.scope.customer_id:
            return resolved
        return replace(resolved, scope=customer_scope(owner))

    def gather(self, scope: Scope) -> list[Link]:
        """Bring home what is a customer's and still lies elsewhere, before all of it is erased.

        That is what a move or a merge cut short left behind, and what a write that was under way while its
        conversation was linked left in the conversation's own memory.

        Returns:
            The customer's links.
        """
        self._merging.gather(scope)
        own = self._links.of_customer(scope)
        for link in own:
            self._finish_move(link)
            leftover = replace(link, is_moving=True, moves_from="")
            if self._store is not None and self._store.everything(leftover.old_scope):
                self._finish_move(leftover)
        return own

    def _check(self, caller: Caller) -> None:
        """Before anything is looked up: the customer that is named has to be within the limits."""
        if caller.customer_id:
            self._links.limits.check_customer(caller.customer_id)

    def _claim(self, caller: Caller, *, now: float) -> Linked:
        wanted = conversation_scope(caller.conversation_id)
        if self._store is not None and is_out_of_reach(self._links.limits, self._store, wanted):
            raise out_of_reach()
        link = self._links.claim(
            Link(
                conversation_id=caller.conversation_id,
                customer_id=caller.customer_id,
                case_id=caller.case_id,
                linked_at=now,
                is_moving=True,
                epoch=self._opened(customer_scope(caller.customer_id)),
            )
        )
        if link.customer_id != caller.customer_id:
            caller, link = self._answering(caller, link)
        if link.customer_id != caller.customer_id:
            raise ConversationMismatch
        link, moved = self._finish_move(link, is_new=True)
        return Linked(link, "", moved)

    def _find(self, conversation_id: str) -> Link | None:
        """The link of a conversation. One that an erasure of its customer has overtaken is deleted."""
        link = self._links.find(conversation_id)
        if link is None or not link.is_moving or self._store is None:
            return link
        self._store.epochs.look([link.scope])
        if link.epoch >= self._store.epochs.epoch(link.scope):
            return link
        self._links.erase([link])
        return None

    def _opened(self, scope: Scope) -> int:
        """The epoch to make a link in."""
        return self._store.opened(scope) if self._store is not None else 0

    def _answering(self, caller: Caller, link: Link) -> tuple[Caller, Link]:
        """Both with the customers who answer for theirs; asked only where it may matter."""
        given, linked = caller.customer_id, link.customer_id
        if is_looking():
            given = self._merging.settle(given) if given else ""
            if given != linked:
                linked = self._merging.settle(linked)
        elif given not in {"", linked}:
            owners = self._merging.owners([given, linked])
            given, linked = owners[given], owners[linked]
        for owner in filter(None, (given, linked)):
            self._links.limits.check_customer(owner)
        return replace(caller, customer_id=given), self._owned(link, linked)

    def _owned(self, link: Link, owner: str) -> Link:
        """The link with who answers for its customer, and written so where it was made under an old id."""
        if owner == link.customer_id:
            return link
        link = replace(link, customer_id=owner, epoch=self._opened(customer_scope(owner)))
        self._links.put(link)
        return link

    def _finish_move(self, link: Link, *, is_new: bool = False) -> tuple[Link, int]:
        """Bring a conversation's memories to where its link says, and note that they have arrived."""
        if not link.is_moving:
            return link, 0
        moved = 0
        if self._store is not None:
            for old in self._old_scopes(link):
                with looking():  # who reads the customer's memory next asks about merges
                    moved += move(
                        self._store,
                        old,
                        link.scope,
                        conversation_id=link.conversation_id,
                        case_id=link.case_id,
                    )
                old_shard = self._store.shard(old)
                # A move that was begun by an earlier call may have left something there, too.
                if old_shard in self._store.wiped or not is_new:
                    link = replace(link, trail=tuple(sorted({*link.trail, old_shard})))
        arrived = replace(link, is_moving=False, moves_from="")
        stored = self._links.find(link.conversation_id)
        is_ours = stored is not None and stored.customer_id == link.customer_id
        if stored is not None and is_ours and (stored.is_moving or stored.trail != link.trail):
            self._links.put(arrived)
        return arrived, moved

    def _old_scopes(self, link: Link) -> list[Scope]:
        """Where a conversation's memories come from; also who answers for that customer since a merge."""
        owner = self._merging.owner(link.moves_from) if link.moves_from else ""
        if owner in {link.moves_from, link.customer_id}:
            return [link.old_scope]
        return [link.old_scope, customer_scope(owner)]
