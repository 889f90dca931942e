"""The paths of the HTTP endpoints, what each does, and the tables that say so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dify import answers, nodes
from dify.backups import Load, download, read_backup
from dify.calls import Call, Result
from dify.exports import Export
from dify.imports import Import, read_import, seconds_allowed
from dify.keys import WEBHOOK, Key, Right, Within
from dify.metrics import SERVICES, circuits, metrics, uptime_seconds
from dify.opening import open_audit
from dify.parameters import Parameters
from dify.version import VERSION
from dify.web_errors import NotFound, Unauthorized
from memory.audit import Asked
from memory.call_log import counted, logged, streamed
from memory.clock import system_clock
from memory.errors import ParameterMissing
from memory.forgetting import Phase, Reach
from memory.identity import Caller
from memory.listing import DEFAULT_PAGE, PAGE_RANGE, Page
from memory.records import Kind
from memory.scope import checked_id

type Handler = Callable[[Call], Result]


@dataclass(frozen=True, slots=True)
class Route:
    """What one path does with one method, and who may.

    Attributes:
        handler: does the work; its name is the verb in the audit.
        right: which right a key needs; None lets everybody in, with a key and without.
        within: what it is about. Unless it says otherwise, no key with a limit may.
        takes_signatures: whether a helpdesk's signed delivery does without a key; the handler checks it.
    """

    handler: Handler
    right: Right | None
    within: Within = Within.NAMESPACE
    takes_signatures: bool = False

    def admit(self, key: Key | None) -> None:
        """Make sure that who has this key, None for none, may call it.

        Raises:
            Unauthorized: it needs a key.
            Forbidden: this key may not.
        """
        if self.right is None:
            return
        if key is not None:
            key.check(self.right, self.within)
        elif not self.takes_signatures:
            raise Unauthorized


# --- memories -----------------------------------------------------------------------------------


def remember(call: Call) -> Result:
    """POST /memories: remember, as the node does."""
    return Result(nodes.remember(call.engine(), call.fields(), None).outputs)


def recall(call: Call) -> Result:
    """POST /recall: recall, as the node does."""
    return Result(nodes.recall(call.engine(), call.fields(), None).outputs)


def list_memories(call: Call) -> Result:
    """GET /memories: a page of what is known of a customer."""
    query = Parameters(call.query)
    page = Page(
        limit=query.whole_number("limit", DEFAULT_PAGE, low=PAGE_RANGE[0], high=PAGE_RANGE[1]),
        cursor=query.text("cursor"),
        kinds=query.choices("kind", Kind),
        include_superseded=query.boolean("include_superseded"),
    )
    memories, cursor, resolved = call.engine().administration.list_memories(_caller(query), page)
    return Result(
        {
            "memories": [answers.brief(memory) for memory in memories],
            "cursor": cursor or None,
            "customer_id": resolved.scope.customer_id,
            "linked": resolved.is_linked,
        }
    )


def forget(call: Call) -> Result:
    """DELETE /memories: forget, a preview unless dry_run is false."""
    query = Parameters(call.query)
    asked = {
        **call.query,
        "scope": _reach(query),
        "action": Phase.PREVIEW if query.boolean("dry_run", True) else Phase.DELETE,
    }
    call.deed.is_change = asked["action"] is Phase.DELETE
    if call.key is not None and not call.deed.is_change:
        call.key.check(Right.READ, Within.CUSTOMER)  # a preview shows what is there
    return Result(nodes.forget(call.engine(), Parameters(asked), None).outputs)


def _reach(query: Parameters) -> Reach:
    """What a deletion is about; it has to be said."""
    if query.texts("memory_ids") or query.raw("query") is not None:
        return Reach.MATCHING
    if query.boolean("everything"):
        return Reach.EVERYTHING
    if query.identifier("case_id") is not None:
        return Reach.CASE
    if query.identifier("conversation_id") is not None:
        return Reach.CONVERSATION
    if query.raw("before") is not None:
        return Reach.EVERYTHING
    raise ParameterMissing(name="memory_ids, conversation_id, case_id, before or everything")


# --- links --------------------------------------------------------------------------------------


def link_conversation(call: Call) -> Result:
    """PUT /links: link a conversation, as the node does."""
    return Result(nodes.link_conversation(call.engine(), call.fields(), None).outputs)


def get_links(call: Call) -> Result:
    """GET /links: who a conversation belongs to, or which conversations a customer has."""
    links = call.engine().administration.find_links(_caller(Parameters(call.query)))
    return Result({"links": [answers.link(link) for link in links]})


# --- tickets ------------------------------------------------------------------------------------


def import_tickets(call: Call) -> Result:
    """POST /tickets/import: import past tickets, or take a helpdesk's signed delivery."""
    has_key = call.key is not None
    work = read_import(call.query, call.headers, call.body, call.settings, is_authorized=has_key)
    run = Import(call.engine(), work)
    call.deed.who = call.deed.who or WEBHOOK
    call.deed.is_change = not work.is_dry
    call.deed.tickets = run.tickets
    if call.wants_lines:
        return Result(lines=run.lines())
    for _ in run.steps():
        pass
    report = run.report()
    return Result(report, 200 if report["complete"] else 206)


def get_ticket(call: Call) -> Result:
    """GET /tickets: what was imported from a ticket, when, and as which memories."""
    source, ticket_id = _ticket(call)
    entry = call.engine().administration.find_import(source, ticket_id)
    if entry is None:
        raise counted(NotFound(what="ticket"))
    return Result(answers.ticket(entry))


def forget_ticket(call: Call) -> Result:
    """DELETE /tickets: forget what was imported from a ticket."""
    source, ticket_id = _ticket(call)
    proof = call.engine().forget_ticket(source, ticket_id)
    if proof is None:
        raise counted(NotFound(what="ticket"))
    return Result(
        {
            "source": source,
            "ticket_id": ticket_id,
            "deleted": proof.deleted,
            "verified": True,
            "receipt": answers.receipt(proof),
        }
    )


def _ticket(call: Call) -> tuple[str, str]:
    query = Parameters(call.query)
    for name in ("source", "ticket_id"):
        if query.raw(name) is None:
            raise ParameterMissing(name=name)
    return query.text("source"), query.text("ticket_id")


# --- taking it elsewhere --------------------------------------------------------------------------


def export(call: Call) -> Result:
    """GET /export: everything about one customer, in pages or line by line."""
    query = Parameters(call.query)
    items, resolved, old_ids = call.engine().administration.export(_caller(query), query.text("cursor"))
    run = Export(items, resolved, old_ids, seconds_allowed(call.settings))
    if call.wants_lines:
        return Result(lines=streamed("export", run.lines()))
    with logged("export"):
        return Result(run.page())


def back_up(call: Call) -> Result:
    """GET /backup: the whole namespace as lines."""
    pages = call.engine().administration.back_up(Parameters(call.query).text("cursor"))
    return Result(lines=streamed("back_up", download(pages, seconds_allowed(call.settings))))


def restore(call: Call) -> Result:
    """POST /backup: load a backup, or a part of one, into an empty namespace."""
    lines = read_backup(call.headers, call.body)
    run = Load(call.engine().administration.restore(lines), seconds_allowed(call.settings))
    if call.wants_lines:
        return Result(lines=streamed("restore", run.lines()))
    with logged("restore"):
        for _ in run.steps():
            pass
    report = run.report()
    return Result(report, 200 if report["done"] else 206)


# --- merging ------------------------------------------------------------------------------------


def merge_customers(call: Call) -> Result:
    """POST /merge: make one customer of two, a preview unless dry_run is false."""
    fields = call.fields()
    ids = {name: checked_id(name, fields.identifier(name)) for name in ("from", "into")}
    if missing := [name for name, value in ids.items() if not value]:
        raise ParameterMissing(name=missing[0])
    administration = call.engine().administration
    call.deed.is_change = not fields.boolean("dry_run", True)
    act = administration.merge if call.deed.is_change else administration.preview_merge
    return Result(answers.merge(act(ids["from"], ids["into"])))


def undo_merge(call: Call) -> Result:
    """POST /merge/undo: move back what a merge moved and is still there."""
    if not (merge_id := call.fields().text("merge_id")):
        raise ParameterMissing(name="merge_id")
    merge = call.engine().administration.undo_merge(merge_id)
    if merge is None:
        raise counted(NotFound(what="merge"))
    return Result(answers.merge(merge) | {"undone": True})


# --- upkeep -------------------------------------------------------------------------------------


def expire(call: Call) -> Result:
    """POST /maintenance/expire: delete for good what has expired."""
    expired = call.engine().administration.expire()
    entries = open_audit(call.settings).expire(now=system_clock())
    return Result(
        {
            "expired": sum(expired.kinds.values()),
            "kinds": dict(expired.kinds),
            "sources": dict(expired.sources),
            "audit_expired": entries,
        }
    )


def list_audit(call: Call) -> Result:
    """GET /audit: who did what and when, newest first."""
    query = Parameters(call.query)
    low, high = PAGE_RANGE
    asked = Asked(
        limit=query.whole_number("limit", DEFAULT_PAGE, low=low, high=high),
        cursor=query.text("cursor"),
        who=query.text("key"),
        verb=query.text("verb"),
    )
    entries, cursor = open_audit(call.settings).page(asked, now=system_clock())
    return Result({"entries": list(map(answers.audit_entry, entries)), "cursor": cursor or None})


# --- receipts -----------------------------------------------------------------------------------


def list_receipts(call: Call) -> Result:
    """GET /receipts: a page of the receipts of erasures, newest first."""
    query = Parameters(call.query)
    customer_id = query.identifier("customer_id")
    receipts, cursor = call.engine().administration.find_receipts(
        customer_id,
        limit=query.whole_number("limit", DEFAULT_PAGE, low=PAGE_RANGE[0], high=PAGE_RANGE[1]),
        cursor=query.text("cursor"),
    )
    return Result({"receipts": [answers.receipt(each) for each in receipts], "cursor": cursor or None})


# --- how it is ----------------------------------------------------------------------------------


def read_metrics(_call: Call) -> Result:
    """GET /metrics: what this process did and how long it took, for Prometheus."""
    return Result(text=metrics.text())


def health(call: Call) -> Result:
    """GET /health: that the plugin is there; an admin also gets details of process, server and namespace."""
    if call.key is None or not call.key.may(Right.ADMIN, Within.NAMESPACE):
        return Result({"status": "ok"})
    process = {
        "version": VERSION,
        "uptime_seconds": round(uptime_seconds(), 1),
        "open_circuits": dict.fromkeys(SERVICES, 0)
        | Counter(name for name, is_open in circuits() if is_open),
    }
    return Result({"status": "ok", **process, **call.engine().administration.describe()})


def _caller(query: Parameters) -> Caller:
    return Caller.checked(query.identifier("customer_id"), query.identifier("conversation_id"))


ROUTES: Mapping[str, Mapping[str, Route]] = {
    "/tickets/import": {
        "POST": Route(import_tickets, Right.WRITE, Within.TICKET, takes_signatures=True),
    },
    "/tickets": {
        "GET": Route(get_ticket, Right.READ, Within.TICKET),
        "DELETE": Route(forget_ticket, Right.ERASE, Within.TICKET),
    },
    "/memories": {
        "GET": Route(list_memories, Right.READ, Within.CUSTOMER),
        "POST": Route(remember, Right.WRITE, Within.CUSTOMER),
        "DELETE": Route(forget, Right.ERASE, Within.CUSTOMER),
    },
    "/recall": {"POST": Route(recall, Right.READ, Within.CUSTOMER)},
    "/links": {
        "GET": Route(get_links, Right.READ, Within.CUSTOMER),
        "PUT": Route(link_conversation, Right.WRITE, Within.CUSTOMER),
    },
    "/export": {"GET": Route(export, Right.READ, Within.CUSTOMER)},
    "/backup": {"GET": Route(back_up, Right.ADMIN), "POST": Route(restore, Right.ADMIN)},
    "/merge": {"POST": Route(merge_customers, Right.ADMIN)},
    "/merge/undo": {"POST": Route(undo_merge, Right.ADMIN)},
    "/receipts": {"GET": Route(list_receipts, Right.ADMIN)},
    "/maintenance/expire": {"POST": Route(expire, Right.ADMIN)},
    "/audit": {"GET": Route(list_audit, Right.ADMIN)},
    "/metrics": {"GET": Route(read_metrics, Right.ADMIN)},
    "/health": {"GET": Route(health, None)},
}
"""Path and method → route. Ids travel in the query or the body, since they may hold slashes."""
