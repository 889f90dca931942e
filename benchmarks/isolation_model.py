"""What a memory of several customers has to hold after any calls: a model of a few dictionaries.

One worker's customers, in the order of its calls. It knows nothing of how the plugin does it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

type Owner = tuple[str, str]
"""("customer", id), or ("conversation", id) for one that is linked to nobody."""


@dataclass
class Said:
    """One statement. `at` is the number of the call that recorded it; `time` when it was so."""

    text: str
    at: int
    slot: str = ""
    time: int = 0
    conversation: str = ""
    case: str = ""
    ticket: str = ""


@dataclass(frozen=True)
class Linked:
    """Whose a conversation is, in which case, since which call."""

    customer: str
    case: str
    at: int


@dataclass
class Imported:
    """Whose a ticket is, what it said, since which call. One that lost a message is spent: not sent again.

    What was forgotten before the call `restored_at` may come from it.
    """

    customer: str
    conversation: str
    texts: tuple[str, ...]
    at: int
    restored_at: int = 0
    is_spent: bool = False


@dataclass
class Merged:
    """Into whom a customer was merged, who answers for it now, and what came from it."""

    into: str
    target: str
    merge_id: str
    at: int
    texts: frozenset[str]
    ends: frozenset[tuple[str, int]]
    conversations: frozenset[str]
    tickets: frozenset[str]


@dataclass
class Model:
    """The state of one worker's customers."""

    said: dict[Owner, dict[str, Said]] = field(default_factory=dict)
    ends: dict[Owner, set[tuple[str, int]]] = field(default_factory=dict)
    links: dict[str, Linked] = field(default_factory=dict)
    tickets: dict[str, Imported] = field(default_factory=dict)
    merged: dict[str, Merged] = field(default_factory=dict)
    barred: dict[str, int] = field(default_factory=dict)
    """Customers, by id, and the call up to which all they said was erased."""
    gone: dict[str, int] = field(default_factory=dict)
    """Tickets that were forgotten as a whole, and the call that did."""

    # --- asking ----------------------------------------------------------------------------------

    def answering(self, customer: str) -> str:
        """The customer who answers for an id."""
        return self.merged[customer].target if customer in self.merged else customer

    def owner(self, customer: str, conversation: str = "") -> Owner:
        """Whose memory a call with these ids is about."""
        if conversation in self.links:
            return "customer", self.answering(self.links[conversation].customer)
        return ("customer", self.answering(customer)) if customer else ("conversation", conversation)

    def of(self, owner: Owner) -> dict[str, Said]:
        """All that is known of one, by text."""
        return self.said.setdefault(owner, {})

    def shown(self, owner: Owner) -> dict[str, bool]:
        """All texts with whether each is current."""
        return {s.text: self._is_current(owner, s) for s in self.of(owner).values()}

    def conversations(self, customer: str) -> set[str]:
        """The conversations of a customer."""
        return {c for c, link in self.links.items() if link.customer == self.answering(customer)}

    def admitted(self, ticket: str, customer: str, written: Mapping[str, int]) -> tuple[str, ...]:
        """What of a ticket's texts was not forgotten; each is given with the call it was written in."""
        known = self.tickets.get(ticket)
        restored_at = known.restored_at if known else 0
        ids = (customer, self.answering(customer))
        until = max(self.gone.get(ticket, -1), *(self.barred.get(each, -1) for each in ids))
        return tuple(text for text, at in written.items() if until <= restored_at or at > until)

    def is_of_another(self, ticket: str, conversation: str, customer: str) -> bool:
        """Whether a ticket's conversation is a customer's to whom an import may not write it."""
        link, entry = self.links.get(conversation), self.tickets.get(ticket)
        if link is None or link.customer == self.answering(customer):
            return False
        return entry is None or entry.customer != link.customer

    def _is_current(self, owner: Owner, said: Said) -> bool:
        if not said.slot:
            return True
        newest = max(s.time for s in self.of(owner).values() if s.slot == said.slot)
        ended = max((t for slot, t in self.ends.get(owner, set()) if slot == said.slot), default=0)
        return said.time == newest > ended

    # --- telling ---------------------------------------------------------------------------------

    def remember(self, said: Said, customer: str, conversation: str) -> None:
        """A statement under these ids; a conversation that is nobody's becomes the customer's."""
        if customer and conversation and conversation not in self.links:
            self.link(customer, conversation, said.case, said.at)
        owner = self.owner(customer, conversation)
        link = self.links.get(conversation)
        case = said.case or (link.case if link else "")
        self.of(owner).setdefault(said.text, replace(said, conversation=conversation, case=case))

    def link(self, customer: str, conversation: str, case: str, at: int) -> None:
        """A conversation becomes a customer's, with what was said in it; another one's changes hands."""
        customer = self.answering(customer)
        new: Owner = ("customer", customer)
        there = self.links.get(conversation)
        old: Owner = ("customer", there.customer) if there else ("conversation", conversation)
        if there and there.customer == customer:
            if case and case != there.case:
                self.links[conversation] = replace(there, case=case)
                for said in self.of(new).values():
                    if said.conversation == conversation:
                        said.case = case
            return
        self.links[conversation] = Linked(customer, case, at)
        going = [s for s in self.of(old).values() if not there or s.conversation == conversation]
        self._move(going, old, new)
        for said in going:
            said.case = case or said.case
        if not there:
            self.ends.setdefault(new, set()).update(self.ends.pop(old, set()))

    def tell_ticket(
        self,
        ticket: str,
        conversation: str,
        customer: str,
        texts: tuple[str, ...],
        at: int,
        *,
        is_restored: bool = False,
    ) -> None:
        """A ticket is imported, or again with other texts."""
        if conversation not in self.links:
            self.link(customer, conversation, "", at)
        customer = self.answering(customer)
        mine = self.of(("customer", customer))
        known = self.tickets.get(ticket)
        for text in known.texts if known else ():
            mine.pop(text, None)
        for text in texts:
            mine[text] = Said(text, at, conversation=conversation, ticket=ticket)
        restored_at = at if is_restored else known.restored_at if known else 0
        self.tickets[ticket] = Imported(customer, conversation, texts, at, restored_at)

    # --- forgetting ------------------------------------------------------------------------------

    def forget(self, owner: Owner, means: Callable[[Said], bool], *, is_by_id: bool = False) -> int:
        """Statements go; a slot whose current value goes holds nothing from then on."""
        going = [s for s in self.of(owner).values() if means(s)]
        for said in going:
            if said.slot and self._is_current(owner, said):
                self.ends.setdefault(owner, set()).add((said.slot, said.time))
            if said.ticket in self.tickets:
                self.tickets[said.ticket].is_spent = True
                if not is_by_id:
                    del self.tickets[said.ticket]
        for said in going:
            del self.of(owner)[said.text]
        return len(going)

    def forget_everything(self, owner: Owner, at: int) -> int:
        """One customer as a whole, with links, tickets and the ids that led to it."""
        gone = len(self.said.pop(owner, {}))
        self.ends.pop(owner, None)
        kind, name = owner
        if kind == "customer":
            self.links = {c: link for c, link in self.links.items() if link.customer != name}
            self.barred |= {c: at for c in (name, *self.merged) if self.answering(c) == name}
            self.gone |= {t: at for t, entry in self.tickets.items() if entry.customer == name}
            self.merged = {c: m for c, m in self.merged.items() if m.target != name}
            self.tickets = {t: entry for t, entry in self.tickets.items() if entry.customer != name}
        return gone

    def forget_ticket(self, ticket: str, at: int) -> None:
        """What was imported from a ticket."""
        self.gone[ticket] = at
        entry = self.tickets.pop(ticket)
        for text in entry.texts:
            self.of(("customer", entry.customer)).pop(text, None)

    # --- merging ---------------------------------------------------------------------------------

    def merge(self, customer: str, into: str, merge_id: str, at: int) -> None:
        """Two that are nobody's aliases become one."""
        old, new = ("customer", customer), ("customer", into)
        self.merged[customer] = Merged(
            into,
            into,
            merge_id,
            at,
            frozenset(self.of(old)),
            frozenset(self.ends.get(old, set())),
            frozenset(c for c, link in self.links.items() if link.customer == customer),
            frozenset(t for t, entry in self.tickets.items() if entry.customer == customer),
        )
        self._move(list(self.of(old).values()), old, new)
        self.ends.setdefault(new, set()).update(self.ends.pop(old, set()))
        self._hand_over(self.links, customer, into)
        for ticket in self.tickets.values():
            if ticket.customer == customer:
                ticket.customer = into
        for each in self.merged.values():
            if each.target == customer:
                each.target = into

    def can_undo(self, customer: str) -> bool:
        """Whether the merge of this customer is the last on its way."""
        merged = self.merged[customer]
        return merged.target == merged.into and merged.into not in self.merged

    def undo(self, customer: str) -> None:
        """What came with a merge and is still there goes back."""
        merged = self.merged.pop(customer)
        old, new = ("customer", customer), ("customer", merged.into)
        staying = {
            t
            for t, entry in self.tickets.items()
            if entry.customer == merged.into and (t not in merged.tickets or entry.at > merged.at)
        }
        going = [
            s
            for s in self.of(new).values()
            if s.text in merged.texts and s.at <= merged.at and s.ticket not in staying
        ]
        held = {self.tickets[ticket].conversation for ticket in staying}
        self._move(going, new, old)
        ends = self.ends.setdefault(new, set()) & merged.ends
        self.ends[new] -= ends
        self.ends.setdefault(old, set()).update(ends)
        self._hand_over(
            {
                c: link
                for c, link in self.links.items()
                if c in merged.conversations and link.at <= merged.at and c not in held
            },
            merged.into,
            customer,
        )
        for name, ticket in self.tickets.items():
            if ticket.customer == merged.into and name in merged.tickets and name not in staying:
                ticket.customer = customer
        leads = {c: m.into for c, m in self.merged.items()}
        for each in self.merged.values():
            if each.target == merged.into and _leads_to(each.into, customer, leads):
                each.target = customer

    def _hand_over(self, links: dict[str, Linked], customer: str, to: str) -> None:
        changed = {c: replace(link, customer=to) for c, link in links.items() if link.customer == customer}
        self.links.update(changed)

    def _move(self, said: Iterable[Said], old: Owner, new: Owner) -> None:
        for each in said:
            self.of(new)[each.text] = self.of(old).pop(each.text)


def _leads_to(customer: str, wanted: str, leads: dict[str, str]) -> bool:
    while customer != wanted and customer in leads:
        customer = leads[customer]
    return customer == wanted
