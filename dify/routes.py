"""The paths of the HTTP endpoints, what each does, and the tables that say so."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dify import answers, nodes
from dify.imports import Import, read_import
from dify.opening import Selected, open_engine
from dify.parameters import Parameters
from dify.settings import selected_model
from dify.web_errors import BodyInvalid, NotFound, Unauthorized
from memory.engine import Engine
from memory.errors import ParameterMissing
from memory.forgetting import Phase, Reach
from memory.identity import Caller
from memory.listing import DEFAULT_PAGE, PAGE_RANGE, Page
from memory.records import Kind

if TYPE_CHECKING:
    from dify_plugin.core.runtime import Session


@dataclass(frozen=True, slots=True)
class Call:
    """One request.

    Attributes:
        query: first value of each query parameter.
        headers: names in lower case.
        body: as it came.
        settings: the endpoint's settings.
        session: the way back into Dify.
    """

    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = field(repr=False)
    settings: Mapping[str, Any] = field(repr=False)
    session: Session | None = field(repr=False)

    def engine(self) -> Engine:
        """An engine for this call."""
        selected = Selected(
            selected_model(self.settings, "embedding_model"), selected_model(self.settings, "llm")
        )
        return open_engine(self.settings, selected, self.session)

    def fields(self) -> Parameters:
        """The body as a JSON object.

        Raises:
            BodyInvalid: it is none.
        """
        try:
            value = json.loads(self.body or b"{}")
        except (ValueError, RecursionError):
            raise BodyInvalid from None
        if not isinstance(value, dict):
            raise BodyInvalid
        return Parameters(value)


@dataclass(frozen=True, slots=True)
class Result:
    """The answer: a JSON body, or lines that are sent as they come."""

    body: Any = None
    status: int = 200
    lines: Iterator[Mapping[str, Any]] | None = None


type Handler = Callable[[Call, bool], Result]


def with_key(handler: Callable[[Call], Result]) -> Handler:
    """A handler that answers only who has the key."""

    def guarded(call: Call, is_authorized: bool) -> Result:
        if not is_authorized:
            raise Unauthorized
        return handler(call)

    return guarded


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
    memories, cursor, resolved = call.engine().list_memories(_caller(query), page)
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


def put_link(call: Call) -> Result:
    """PUT /links: link a conversation, as the node does."""
    return Result(nodes.link_conversation(call.engine(), call.fields(), None).outputs)


def get_links(call: Call) -> Result:
    """GET /links: who a conversation belongs to, or which conversations a customer has."""
    links = call.engine().links(_caller(Parameters(call.query)))
    return Result({"links": [answers.link(link) for link in links]})


# --- tickets ------------------------------------------------------------------------------------


def import_tickets(call: Call, is_authorized: bool) -> Result:
    """POST /tickets/import: import past tickets, or take a helpdesk's signed delivery."""
    work = read_import(call.query, call.headers, call.body, call.settings, is_authorized=is_authorized)
    run = Import(call.engine(), work)
    if "application/x-ndjson" in call.headers.get("accept", ""):
        return Result(lines=run.lines())
    for _ in run.steps():
        pass
    report = run.report()
    return Result(report, 200 if report["complete"] else 206)


def get_ticket(call: Call) -> Result:
    """GET /tickets: what was imported from a ticket, when, and as which memories."""
    source, ticket_id = _ticket(call)
    entry = call.engine().imported(source, ticket_id)
    if entry is None:
        raise NotFound(what="ticket")
    return Result(answers.ticket(entry))


def forget_ticket(call: Call) -> Result:
    """DELETE /tickets: forget what was imported from a ticket."""
    source, ticket_id = _ticket(call)
    entry = call.engine().forget_ticket(source, ticket_id)
    if entry is None:
        raise NotFound(what="ticket")
    return Result({"source": source, "ticket_id": ticket_id, "deleted": entry.memories, "verified": True})


def _ticket(call: Call) -> tuple[str, str]:
    query = Parameters(call.query)
    for name in ("source", "ticket_id"):
        if query.raw(name) is None:
            raise ParameterMissing(name=name)
    return query.text("source"), query.text("ticket_id")


# --- upkeep -------------------------------------------------------------------------------------


def expire(call: Call) -> Result:
    """POST /maintenance/expire: delete for good what has expired."""
    expired = call.engine().expire()
    return Result({"expired": sum(expired.values()), "kinds": expired})


# --- health -------------------------------------------------------------------------------------


def health(call: Call, is_authorized: bool) -> Result:
    """GET /health: that the plugin is there; with the key also server, namespace, embedder, counts."""
    if not is_authorized:
        return Result({"status": "ok"})
    return Result({"status": "ok", **call.engine().describe()})


def _caller(query: Parameters) -> Caller:
    return Caller.checked(query.identifier("customer_id"), query.identifier("conversation_id"))


ROUTES: Mapping[str, Mapping[str, Handler]] = {
    "/tickets/import": {"POST": import_tickets},
    "/tickets": {"GET": with_key(get_ticket), "DELETE": with_key(forget_ticket)},
    "/memories": {
        "GET": with_key(list_memories),
        "POST": with_key(remember),
        "DELETE": with_key(forget),
    },
    "/recall": {"POST": with_key(recall)},
    "/links": {"GET": with_key(get_links), "PUT": with_key(put_link)},
    "/maintenance/expire": {"POST": with_key(expire)},
    "/health": {"GET": health},
}
"""Path and method → handler. Ids travel in the query or the body, since they may hold slashes."""
