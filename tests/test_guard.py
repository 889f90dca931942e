"""The guard holds: nothing of the engine and no endpoint reads or writes without a scope and a key that may.

The first half looks at the code: it fails when somebody adds a function or a route that goes past the guard.
The second half plays whoever has a limited key and wants more, through the real process.
"""

import ast
import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import pytest
import yaml

from development.chroma_server import ChromaServer
from development.daemon import PluginProcess
from development.places import PROJECT
from dify.keys import Right, Within
from dify.nodes import NODES
from dify.routes import ROUTES, Route
from memory.chroma import Chroma
from memory.clock import Deadline
from memory.namespace import Namespace
from memory.settings import ChromaSettings
from tests.conftest import Json
from tests.endpoints.conftest import KEY, Api, message, ticket
from tests.test_architecture import MODULES

# --- the engine: a scope comes first ------------------------------------------------------------

TREES = {
    name: ast.parse(path.read_text(encoding="utf-8"))
    for name, path in MODULES.items()
    if name.partition(".")[0] in {"memory", "dify"}
}
MEMORY = {name: tree for name, tree in TREES.items() if name.startswith("memory")}

SCOPED = {"Scope", "Caller", "Resolved", "Writing"}
"""What says whose memory a call is about: a scope, what one is resolved from, or what carries one."""
TOOLS = {"Embedder", "LanguageModel", "Limits"}
"""What may stand before it beside the handles of the store."""

WITHOUT_SCOPE: Mapping[str, str] = {
    # below the scopes: rows and collections, which only the modules of RAW_READERS may use
    "memory.chroma.Chroma": "knows rows, not customers",
    "memory.chroma_connection.Connection": "knows requests, not customers",
    "memory.chroma_connection.Connections": "knows connections, not customers",
    "memory.namespace.Namespace": "what a namespace remembers of itself, and names of collections",
    "memory.embedding.remembered.NamespaceEmbedders": "which embedding model a namespace has",
    "memory.embedding.remembered._Checked": "makes vectors",
    "memory.store.MemoryStore.write_all": "each row comes with its own scope",
    "memory.store.MemoryStore.erase_all": "each row comes with its own scope",
    # what scopes are resolved from
    "memory.links.LinkStore.find": "finds whose a conversation is; checks the limits",
    "memory.links.LinkStore.find_all": "the same for an import, which checks the limits link by link",
    "memory.links.LinkStore.claim": "a link carries its scope",
    "memory.links.LinkStore.claim_all": "a link carries its scope",
    "memory.links.LinkStore.put": "a link carries its scope",
    "memory.links.LinkStore.erase": "a link carries its scope",
    "memory.ledger.Ledger.find": "finds whose a ticket is; checks the limits",
    "memory.ledger.Ledger.find_all": "the same for an import, which checks the limits ticket by ticket",
    "memory.ledger.Ledger.put": "an entry carries its scope",
    "memory.ledger.Ledger.complete": "an entry carries its scope",
    "memory.ledger.Ledger.erase": "keys of entries that were found within the limits",
    "memory.identity.out_of_reach_among": "keeps links from being made; each carries its scope",
    # tickets, each of which names its customer
    "memory.engine.Engine.import_tickets": "a ticket names its customer; the importer checks the limits",
    "memory.engine.Engine.forget_ticket": "the ledger's entry carries the scope and is checked",
    "memory.importing.Importer.run": "a ticket names its customer; the importer checks the limits",
    "memory.administration.Administration.find_import": "the ledger's entry is checked",
    # the namespace as a whole, for an admin's key without limits
    "memory.administration.Administration.describe": "counts only",
    "memory.administration.Administration.expire": "each customer's in their own scope; counts only",
    "memory.administration.Administration.back_up": "every row as it is",
    "memory.administration.Administration.restore": "each row's scope is checked against its id",
    "memory.administration.Administration.find_receipts": "hashes and counts only",
    "memory.administration.Administration.preview_merge": "two customers an administrator names; counts only",
    "memory.administration.Administration.merge": "two customers an administrator names",
    "memory.administration.Administration.undo_merge": "the alias carries both scopes",
    "memory.merging.Merging": "says whose an id is: identity asks it, and checks the limits of what it says",
    "memory.aliases.AliasStore": "says whose an id is; an alias carries both scopes",
    "memory.unmerging.move_back": "the alias carries both scopes",
    "memory.unmerging.renewed": "the link comes with the scopes it moves between",
    "memory.learners.Learners": "hands on a store and a scope that it is given",
    "memory.backup.back_up": "every row as it is",
    "memory.backup.count": "counts only",
    "memory.restoring.Restore": "each row's scope is checked against its id",
    "memory.restoring._Writer": "each row's scope is checked against its id",
    "memory.chroma_attempts.run": "runs a request that it is given",
    "memory.readback.still_there": "counts only; takes the connection and the collection first",
    # erasures, each of which carries its scope
    "memory.epochs.Epochs": "an erasure carries its scope; what the call wrote is known by scope",
    "memory.companions.Companions.erase_older": "takes the key of a scope",
    "memory.erasing.Erasing.conclude": "an erasure carries its scope",
    "memory.erasing.Erasing.erase_older_companions": "takes the key of a scope",
    "memory.erasing.Erasing.is_at": "reads nothing",
    "memory.erasing.Erasing.settle": "each of the call's scopes by itself",
    "memory.erasing.Erasing.watched": "each of the call's scopes by itself",
    "memory.ledger.Ledger.erase_customer": "takes the key of a scope",
    "memory.links.LinkStore.erase_customer": "takes the key of a scope",
    "memory.receipts.Receipts.add": "hashes and counts only",
    "memory.receipts.Receipts.has": "hashes and counts only",
    "memory.tombstones.Tombstones.message": "makes a hash",
    "memory.tombstones.Tombstones.slot": "makes a hash",
    "memory.tombstones.Tombstones.of_statements": "hashes that a scope went into",
    "memory.barring.Barring.admit": "what was read for the batch, each ticket with its scope",
    "memory.barring.Barring.is_touched": "what was read for the batch, each ticket with its scope",
    "memory.resharding.Resharding": "every row as it is, for an operator at the server itself",
    "memory.repairing.Repair": "the same",
    "memory.upkeep.describe": "counts only",
    "memory.upkeep.expire": "each customer's in their own scope; counts only",
    "memory.audit.Audit": "holds no memory and no plain id",
}
"""What reaches the store and takes no scope first: a function or a whole class, each with its reason."""

RAW_READERS = {
    "memory.store": "the memories, each checked again",
    "memory.links": "the links",
    "memory.ledger": "the imports",
    "memory.audit": "the audit",
    "memory.aliases": "who answers for a merged id, and ids of what a merge moved",
    "memory.backup": "every row as it is, for an administrator",
    "memory.restoring": "the same the other way round, each row checked",
    "memory.epochs": "how far erasures are",
    "memory.readback": "counts what should be gone",
    "memory.receipts": "hashes and counts of erasures",
    "memory.tombstones": "hashes of what was forgotten",
    "memory.namespace": "what a namespace remembers of itself",
    "memory.upkeep": "counts, and whom expired rows belong to",
    "memory.resharding": "every row as it is, from one collection to another, for an operator",
    "memory.repairing": "the same, and whether a row can be read and found",
}
"""Modules that read and write rows below the scopes, each with what it keeps there."""
RAW_VERBS = {"get", "nearest", "put", "add", "change", "delete", "drop", "count", "metadata", "create"}
RAW_VERBS |= {"amend", "rename"}


def names_in(annotation: ast.expr | None) -> set[str]:
    """The names an annotation is made of, whether quoted or not."""
    if annotation is None:
        return set()
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        annotation = ast.parse(annotation.value, mode="eval").body
    return {node.id for node in ast.walk(annotation) if isinstance(node, ast.Name)}


def arguments_of(function: ast.FunctionDef) -> list[ast.arg]:
    """All parameters apart from `self` and `cls`, those by name included."""
    every = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    every += [a for a in (function.args.vararg, function.args.kwarg) if a]
    return [argument for argument in every if argument.arg not in {"self", "cls"}]


def called_in(function: ast.FunctionDef) -> set[str]:
    """The plain names of what a function calls."""
    calls = (node.func for node in ast.walk(function) if isinstance(node, ast.Call))
    return {func.id for func in calls if isinstance(func, ast.Name)}


def handles_in(trees: Mapping[str, ast.Module]) -> set[str]:
    """Names of the classes that lead to the store: the connection's, and whatever is built from one."""
    handles = {"Chroma", "Connection"}
    classes = [node for tree in trees.values() for node in tree.body if isinstance(node, ast.ClassDef)]
    size = 0
    while size < len(handles):
        size = len(handles)
        for each in classes:
            for part in each.body:
                if isinstance(part, ast.AnnAssign) and names_in(part.annotation) & handles:
                    handles.add(each.name)
                if isinstance(part, ast.FunctionDef) and part.name == "__init__":
                    taken = {name for a in arguments_of(part) for name in names_in(a.annotation)}
                    if (taken | called_in(part)) & handles:
                        handles.add(each.name)
    return handles


def functions_of(trees: Mapping[str, ast.Module]) -> Iterator[tuple[str, str, ast.FunctionDef]]:
    """Every public function and method: dotted name, name of its class or "", definition. No properties."""
    for module, tree in trees.items():
        for node in tree.body:
            members = node.body if isinstance(node, ast.ClassDef) else [node]
            owner = node.name if isinstance(node, ast.ClassDef) else ""
            for each in members:
                if not isinstance(each, ast.FunctionDef) or each.name.startswith("_"):
                    continue
                if not any(ast.unparse(d) == "property" for d in each.decorator_list):
                    yield ".".join(filter(None, (module, owner, each.name))), owner, each


def unguarded(trees: Mapping[str, ast.Module]) -> set[str]:
    """Public functions and methods that can reach the store and do not take first whose memory it is."""
    handles = handles_in(trees)
    found = set()
    for name, owner, function in functions_of(trees):
        taken = [(argument, names_in(argument.annotation)) for argument in arguments_of(function)]
        reaches = owner in handles or (called_in(function) & handles)
        if not reaches and not any(names & handles for _, names in taken):
            continue
        rest = [names for _, names in taken if not names & (handles | TOOLS)]
        if not rest or not rest[0] & SCOPED:
            found.add(name)
    return found


def is_excused(name: str) -> bool:
    """Whether a function, or its class, is on the list."""
    return name in WITHOUT_SCOPE or name.rpartition(".")[0] in WITHOUT_SCOPE


def test_whatever_reaches_the_store_takes_the_scope_first() -> None:
    """Every public function and method of the engine, apart from the list with its reasons."""
    assert {name for name in unguarded(MEMORY) if not is_excused(name)} == set()


def test_the_list_of_exceptions_holds_nothing_that_is_none() -> None:
    """What takes a scope by now, or is no more, is taken off."""
    needed = unguarded(MEMORY)
    assert {e for e in WITHOUT_SCOPE if not any(n == e or n.startswith(f"{e}.") for n in needed)} <= {
        "memory.chroma_connection.Connections",
        "memory.store.MemoryStore.write_all",
        "memory.store.MemoryStore.erase_all",
    }


@pytest.mark.parametrize(
    "added",
    [
        "def leak(store: MemoryStore, customer_id: str) -> list[Memory]: ...",
        "def leak(store: 'MemoryStore', *, customer_id: str, scope: Scope) -> list[Memory]: ...",
        "def leak(namespace: Namespace | None = None) -> None: ...",
        "def leak(customer_id: str) -> None:\n    MemoryStore(1, 2).live(3)",
        "class Report:\n"
        "    def __init__(self, store: MemoryStore) -> None: ...\n"
        "    def leak(self, customer_id: str) -> str: ...",
        "class Report:\n"
        "    def __init__(self, settings: ChromaSettings) -> None:\n"
        "        self.rows = Chroma(settings)\n"
        "    def leak(self) -> str: ...",
        "class Report:\n    links: LinkStore\n    def leak(self, scopes: int, scope: Scope) -> str: ...",
    ],
)
def test_an_unguarded_function_would_be_found(added: str) -> None:
    """The rule sees what somebody might add: by function, by class, by name, late or without any."""
    found = unguarded({**MEMORY, "memory.added": ast.parse(added)})
    assert {name.rpartition(".")[2] for name in found if name.startswith("memory.added")} == {"leak"}


def test_a_guarded_function_is_let_pass() -> None:
    """The rule is not just against everything."""
    added = ast.parse("def count(store: MemoryStore, scope: Scope, limit: int) -> int: ...")
    assert not any(n.startswith("memory.added") for n in unguarded({**MEMORY, "memory.added": added}))


def raw_calls(tree: ast.Module) -> Iterator[str]:
    """Calls that read or write rows below the scopes: `….chroma.get(…)` and the like."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in RAW_VERBS
        ):
            owner = ast.unparse(node.func.value)
            if owner.rpartition(".")[2] in {"chroma", "_chroma"}:
                yield ast.unparse(node.func)


def test_rows_are_read_and_written_in_few_places() -> None:
    """Only the modules that keep something there do; the edge never does."""
    assert {name for name, tree in TREES.items() if any(raw_calls(tree))} == set(RAW_READERS)


# --- the endpoints: a key that may, and a customer who was found out ------------------------------

OPEN = {("GET", "/health")}
"""Routes that answer without a key; they know nothing of anybody."""
SIGNED = {("POST", "/tickets/import")}
"""Routes that take a signed delivery instead of a key."""
ALL_ROUTES = [(method, path, route) for path, methods in ROUTES.items() for method, route in methods.items()]
ROUTE_IDS = [f"{method} {path}" for method, path, _ in ALL_ROUTES]


def definition(module: str, name: str) -> ast.FunctionDef:
    """A function of a module."""
    (found,) = (n for n in TREES[module].body if isinstance(n, ast.FunctionDef) and n.name == name)
    return found


def attributes_called(function: ast.FunctionDef) -> set[str]:
    """What a function calls, as dotted text with arguments left out."""
    return {ast.unparse(node.func) for node in ast.walk(function) if isinstance(node, ast.Call)}


@pytest.mark.parametrize(("method", "path", "route"), ALL_ROUTES, ids=ROUTE_IDS)
def test_every_route_says_which_right_it_needs(method: str, path: str, route: Route) -> None:
    """What changes something needs more than `read`; what is about everything is an admin's."""
    assert (route.right is None) == ((method, path) in OPEN)
    assert route.takes_signatures == ((method, path) in SIGNED)
    if route.right is None:
        return
    if route.within is Within.NAMESPACE:
        assert route.right is Right.ADMIN
    if method == "DELETE":
        assert route.right is Right.ERASE
    if method == "PUT":
        assert route.right is Right.WRITE


@pytest.mark.parametrize(("method", "path", "route"), ALL_ROUTES, ids=ROUTE_IDS)
def test_every_route_about_a_customer_goes_through_identity(method: str, path: str, route: Route) -> None:
    """Its handler resolves a caller, itself or by a node; a ticket's goes by the ledger or the importer."""
    handler = definition("dify.routes", route.handler.__name__)
    called = attributes_called(handler)
    if route.within is Within.CUSTOMER:
        by_node = {f"nodes.{name}" for name in NODES}
        assert called & ({"_caller"} | by_node), path
        assert any("call.engine()" in call or call == "call.engine" for call in called)
    elif route.within is Within.TICKET:
        assert any("engine()" in call or call == "call.engine" for call in called), method
    assert "open_engine" not in called


@pytest.mark.parametrize("node", NODES)
def test_every_node_goes_through_identity(node: str) -> None:
    """What it hands to the engine first is a caller whose ids were checked."""
    function = definition("dify.nodes", node)
    assert "_caller" in attributes_called(function)
    to_engine = [
        call
        for call in ast.walk(function)
        if isinstance(call, ast.Call) and ast.unparse(call.func).startswith("engine.")
    ]
    assert to_engine
    assert all(ast.unparse(call.args[0]) == "caller" for call in to_engine)


def test_handlers_are_called_behind_the_check_only() -> None:
    """One place calls a handler, after the key was checked; one place each opens an engine for a call."""

    def users(name: str) -> set[str]:
        return {
            f"{module}.{function.name}"
            for module, tree in TREES.items()
            for function in ast.walk(tree)
            if isinstance(function, ast.FunctionDef)
            and any(call.rpartition(".")[2] == name for call in attributes_called(function))
        }

    assert users("handler") == {"dify.web._noted"}
    text = ast.unparse(definition("dify.web", "_noted"))
    assert 0 < text.index("route.admit(call.key)") < text.index("route.handler(call)")
    assert users("open_engine") == {"dify.calls.engine", "dify.replies._answer"}
    assert users("Engine") == {"dify.opening.open_engine"}
    assert users("read_keys") == {"dify.keys.authenticate"}


def test_every_endpoint_that_dify_shows_is_a_route() -> None:
    """And the other way round: nothing answers that is not in the table."""
    group = yaml.safe_load((PROJECT / "endpoints/customer_memory.yaml").read_text(encoding="utf-8"))
    files = [yaml.safe_load((PROJECT / name).read_text(encoding="utf-8")) for name in group["endpoints"]]
    shown = {(each["method"], each["path"]) for each in files if not each.get("hidden")}
    assert shown == {(method, path) for method, path, _ in ALL_ROUTES}
    assert {each["extra"]["python"]["source"] for each in files} == {"endpoints/api.py"}


# --- the hostile trial ----------------------------------------------------------------------------

ACME = "acme-key-of-a-limited-caller"
IMPORTER = "importer-key-of-one-source"
SECRET = "Zebra"
"""In everything that is not the limited caller's."""
OTHERS = ["acme", "acmebank-1", "ACME-1", "other", "acme\u2010 1", "xacme-1"]
"""Customers whose names look like the prefix, and are not within it."""


@dataclass
class Trial:
    """A namespace with the memories of several customers, and a caller who may see those of `acme-` only."""

    api: Api
    victims: dict[str, list[str]] = field(default_factory=dict)
    before: Json = field(default_factory=dict)

    def attempt(self, method: str, path: str, body: Any = None, *, key: str = ACME, **query: str) -> Any:
        """Try something with a limited key, and make sure that the answer says nothing of the others."""
        text = "&".join(f"{name}={quote(value, safe='')}" for name, value in query.items())
        answer = self.api.send(method, f"{path}?{text}" if text else path, body, key=key)
        assert SECRET.encode() not in answer.body, (method, path, query, body)
        assert all(ids not in answer.body.decode() for every in self.victims.values() for ids in every)
        return answer

    def refused(self, method: str, path: str, body: Any = None, *, key: str = ACME, **query: str) -> None:
        """Try what has to be refused as forbidden."""
        answer = self.attempt(method, path, body, key=key, **query)
        assert (answer.status, answer.json()["error"]["code"]) == (403, "forbidden"), (path, query, body)

    def everything(self) -> Json:
        """All rows the store holds of the namespace, with their vectors; the audit's left out."""
        settings = ChromaSettings(
            url=self.api.settings["chroma_url"], namespace=self.api.settings["namespace"]
        )
        namespace = Namespace(Chroma(settings, Deadline.after(120.0)), settings)
        about = namespace.about()
        assert about is not None
        collections = [namespace.memories(shard, about.generation) for shard in range(about.shards)]
        rows: Json = {}
        for collection in [*collections, namespace.links, namespace.ledger]:
            for row in namespace.chroma.get(collection, with_vectors=True):
                rows[f"{collection}/{row.row_id}"] = (row.text, row.columns, list(row.vector or ()))
        return rows


@pytest.fixture(scope="module")
def filled(plugin: PluginProcess, chroma: ChromaServer) -> Trial:
    """The trial, filled in once: nothing that is tried may change it."""
    keys = {
        "acme": {"key": ACME, "rights": "read,write,erase,admin", "customer_prefix": "acme-"},
        "importer": {"key": IMPORTER, "rights": "read,write,erase,admin", "source": "desk"},
    }
    settings = {"chroma_url": chroma.url, "namespace": f"guard{uuid.uuid4().hex[:12]}", "api_key": KEY}
    trial = Trial(Api(plugin, {**settings, "api_keys": json.dumps(keys)}))
    send = trial.api.post
    send("/memories", {"customer_id": "acme-1", "conversation_id": "conv-of-ours", "content": "Prefers tea"})
    send("/memories", {"conversation_id": "conv-nobody", "content": f"{SECRET} of nobody"})
    tickets = [ticket("acme", "acme-1", message(1, "A kettle"), source="desk")]
    for name in OTHERS:
        told = send(
            "/memories",
            {"customer_id": name, "conversation_id": f"conv-{name}", "content": f"{SECRET} of {name}"},
        )
        trial.victims[name] = [memory["memory_id"] for memory in told["memories"]]
        for source in ("shop", "desk"):
            words = message(1, f"{SECRET} of a ticket")
            tickets.append(ticket(f"t-{name}", name, words, source=source, subject=SECRET))
    assert send("/tickets/import", {"tickets": tickets})["tickets"]["imported"] == len(tickets)
    trial.before = trial.everything()
    assert len(trial.before) > 3 * len(tickets)
    return trial


@pytest.fixture
def trial(filled: Trial) -> Iterator[Trial]:
    """The same for one test, after which the store holds what it held before, to the last bit."""
    yield filled
    assert filled.everything() == filled.before


BY_CUSTOMER: list[tuple[str, str, Json]] = [
    ("GET", "/memories", {}),
    ("POST", "/memories", {"content": "Planted"}),
    ("DELETE", "/memories", {"everything": "true", "dry_run": "false"}),
    ("DELETE", "/memories", {"everything": "true"}),
    ("DELETE", "/memories", {"query": "zebra"}),
    ("POST", "/recall", {"query": "zebra"}),
    ("GET", "/export", {}),
    ("GET", "/links", {}),
    ("PUT", "/links", {}),
    ("PUT", "/links", {"relink": True}),
]
"""Routes about a customer, each with what it needs beside the ids."""


def asked(trial: Trial, method: str, path: str, more: Json, **ids: str) -> None:
    """Ask for something that has to be refused, in the query or in the body, as the route takes it."""
    if method in {"POST", "PUT"}:
        trial.refused(method, path, {**more, **ids})
    else:
        trial.refused(method, path, None, **{**more, **ids})


@pytest.mark.parametrize(("method", "path", "more"), BY_CUSTOMER)
def test_a_limited_key_reaches_no_other_customer(trial: Trial, method: str, path: str, more: Json) -> None:
    """By the customer's id, with a conversation of one's own or of theirs, or by the conversation alone."""
    for name in OTHERS:
        link = {"conversation_id": "fresh"} if path == "/links" else {}
        asked(trial, method, path, more, customer_id=name, **link)
        asked(trial, method, path, more, customer_id=f" {name} ", **link)
        asked(trial, method, path, more, customer_id=name, conversation_id=f"conv-{name}")
        asked(trial, method, path, more, customer_id=name, conversation_id="conv-of-ours")
        asked(trial, method, path, more, customer_id="acme-1", conversation_id=f"conv-{name}")
        asked(trial, method, path, more, conversation_id=f"conv-{name}")


@pytest.mark.parametrize(("method", "path", "more"), BY_CUSTOMER[:6])
def test_a_limited_key_reaches_no_conversation_of_nobody(
    trial: Trial, method: str, path: str, more: Json
) -> None:
    """Whose it is, nobody knows: so it is not the prefix's, whether it holds something or not."""
    for conversation in ("conv-nobody", "conv-new"):
        asked(trial, method, path, more, conversation_id=conversation)


def test_a_limited_key_does_not_take_over_what_nobody_has(trial: Trial) -> None:
    """Linking would bring the memories of the conversation to where the key can read them."""
    own = {"customer_id": "acme-1", "conversation_id": "conv-nobody"}
    trial.refused("PUT", "/links", own)
    trial.refused("PUT", "/links", {**own, "relink": True, "case_id": "c"})
    trial.refused("POST", "/memories", {**own, "content": "Planted"})
    report = trial.attempt(
        "POST",
        "/tickets/import",
        {"tickets": [ticket("new", "acme-1", message(1, "Hi"), conversation_id="conv-nobody")]},
    ).json()
    assert [problem["code"] for problem in report["problems"]] == ["forbidden"]
    found = trial.attempt("POST", "/recall", {**own, "query": "zebra"}).json()
    assert all(memory["text"] in {"Prefers tea", "A kettle"} for memory in found["memories"])


def test_a_limited_key_gives_no_conversation_away(trial: Trial) -> None:
    """Neither to another customer nor under another's case."""
    for name in OTHERS:
        own = {"customer_id": name, "conversation_id": "conv-of-ours"}
        trial.refused("PUT", "/links", {**own, "relink": True})
        trial.refused("PUT", "/links", {"conversation_id": f"conv-{name}", "case_id": "mine"})


def test_ids_of_anothers_memories_open_nothing(trial: Trial) -> None:
    """Named under a customer of one's own, they are not found."""
    ids = ",".join(trial.victims["other"])
    for dry_run in ("true", "false"):
        path = f"/memories?customer_id=acme-1&memory_ids={ids}&dry_run={dry_run}"
        told = trial.api.send("DELETE", path, key=ACME).json()
        assert (told["matched"], told["deleted"], told["receipt"]["memories"]) == (0, 0, [])
        assert told["receipt"]["not_found"] == trial.victims["other"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/memories?customer_id=acme-1&customer_id=other", None),
        ("GET", "/memories?customer_id=acme-1&case_id=other&kind=all", None),
        ("GET", "/memories?customer_id=acme-1&conversation_id=&limit=500&include_superseded=true", None),
        ("POST", "/recall?customer_id=other", {"customer_id": "acme-1", "query": "zebra other"}),
        ("POST", "/recall", {"customer_id": "acme-1", "case_id": "other", "query": "zebra"}),
        ("POST", "/recall", {"customer_id": ["acme-1", "other"], "query": "zebra"}),
        ("POST", "/recall", {"customer_id": {"$ne": "acme-1"}, "query": "zebra"}),
        ("POST", "/recall", {"customer_id": "acme-*", "query": "zebra"}),
        ("POST", "/recall", {"customer_id": "acme-1\x00other", "query": "zebra"}),
        ("POST", "/recall", {"customer_id": "*", "query": "zebra"}),
        ("POST", "/recall", {"customer_id": "", "conversation_id": "", "query": "zebra"}),
        ("DELETE", "/memories?customer_id=acme-1&case_id=other&dry_run=false", None),
        ("DELETE", "/memories?customer_id=acme-1&conversation_id=conv-x&dry_run=false", None),
        ("GET", "/links?customer_id=acme-1&customer_id=other", None),
    ],
)
def test_no_shape_of_an_id_opens_anything(trial: Trial, method: str, path: str, body: Any) -> None:
    """Another's ids where one's own belong; what is about one's own customer finds that one's own only."""
    assert trial.api.send(method, path, body, key=ACME).status < 500
    trial.attempt(method, path, body)


def test_a_limited_key_reaches_no_other_ticket(trial: Trial) -> None:
    """Neither to see nor to forget one."""
    for name in OTHERS:
        for source in ("shop", "desk"):
            trial.refused("GET", "/tickets", source=source, ticket_id=f"t-{name}")
            trial.refused("DELETE", "/tickets", source=source, ticket_id=f"t-{name}")


def imports(name: str) -> list[tuple[Json, str]]:
    """Tickets that a key limited to acme- must not import, with what goes into the query."""
    own = message(1, "Planted")
    return [
        (ticket("new", name, own), ""),
        (ticket(f"t-{name}", "acme-1", own), ""),
        (ticket(f"t-{name}", name, own), ""),
        (ticket("new", "acme-1", own, conversation_id=f"conv-{name}"), ""),
        (ticket("new", "acme-1", own, conversation_id=f"shop:t-{name}"), ""),
        (ticket("new", "acme-1", own), "customer_map=" + quote(json.dumps({"acme-1": name}))),
        (ticket("new", "acme-1", own, subject=name), "customer_field=subject"),
    ]


@pytest.mark.parametrize("dry_run", ["true", "false"])
def test_a_limited_key_imports_no_ticket_of_another(trial: Trial, dry_run: str) -> None:
    """Nor takes one over, nor takes another's conversation; the ticket fails by itself, with the code."""
    for name in OTHERS:
        for row, query in imports(name):
            path = f"/tickets/import?dry_run={dry_run}&{query}"
            report = trial.api.post(path, {"tickets": [row]}, key=ACME)
            codes = [problem["code"] for problem in report["problems"]]
            is_mapped = bool(query) and not codes
            assert codes == ["forbidden"] or (is_mapped and report["memories"]["stored"] == 0), (row, query)
            assert report["tickets"]["failed"] == 1


def test_a_key_of_one_source_reaches_that_sources_tickets_only(trial: Trial) -> None:
    """No memory, no link, no other source."""
    for method, path, more in BY_CUSTOMER:
        ids = {"customer_id": "acme-1", "conversation_id": "conv-of-ours"}
        if method in {"POST", "PUT"}:
            trial.refused(method, path, {**more, **ids}, key=IMPORTER)
        else:
            trial.refused(method, path, None, key=IMPORTER, **more, **ids)
    for name in OTHERS:
        trial.refused("GET", "/tickets", key=IMPORTER, source="shop", ticket_id=f"t-{name}")
        trial.refused("DELETE", "/tickets", key=IMPORTER, source="shop", ticket_id=f"t-{name}")
    rows = [ticket("new", "acme-1", message(1, "Planted")), ticket("t-other", "other", message(1, "Planted"))]
    for query in ("", "?source=desk"):
        report = trial.api.post(f"/tickets/import{query}", {"tickets": rows}, key=IMPORTER)
        assert [problem["code"] for problem in report["problems"]] == ["forbidden", "forbidden"]


@pytest.mark.parametrize("key", [ACME, IMPORTER])
def test_a_limited_key_is_told_nothing_of_the_namespace(trial: Trial, key: str) -> None:
    """Not even with the right of an admin: counts and the audit are about everybody."""
    for method, path, route in ALL_ROUTES:
        if route.within is Within.NAMESPACE and route.right is not None:
            trial.refused(method, path, {}, key=key)
    assert trial.attempt("GET", "/health", key=key).json() == {"status": "ok"}


def test_every_route_was_tried() -> None:
    """A route somebody adds has to be tried too, or be about the namespace as a whole."""
    tried = {(method, path) for method, path, _ in BY_CUSTOMER}
    tried |= {("GET", "/tickets"), ("DELETE", "/tickets"), ("POST", "/tickets/import")}
    assert {(m, p) for m, p, route in ALL_ROUTES if route.within is not Within.NAMESPACE} == tried


def test_a_limited_key_does_what_it_may(plugin: PluginProcess, credentials: Json) -> None:
    """Within the limits everything works; the refusals above are not of everything."""
    keys = f"acme {ACME} read,write,erase customer_prefix=acme-; desk {IMPORTER} read,write,erase source=desk"
    api = Api(plugin, {**credentials, "api_key": KEY, "api_keys": keys})
    own = {"customer_id": "acme-1", "conversation_id": "c"}
    assert api.post("/memories", {**own, "content": "Prefers tea"}, key=ACME)["stored"] == 1
    assert api.post("/recall", {"conversation_id": "c", "query": "tea"}, key=ACME)["found"] == 1
    assert api.send("PUT", "/links", {**own, "customer_id": "acme-2", "relink": True}, key=ACME).status == 200
    report = api.post(
        "/tickets/import",
        {"tickets": [ticket("1", "acme-1", message(1, "Hi")), ticket("2", "other", message(1, "Hi"))]},
        key=ACME,
    )
    assert (report["tickets"]["imported"], report["tickets"]["failed"]) == (1, 1)
    assert report["problems"] == [{"ticket_id": "2", "code": "forbidden", "path": ""}]
    assert api.send("GET", "/tickets?source=shop&ticket_id=1", key=ACME).status == 200
    assert api.send("DELETE", "/tickets?source=shop&ticket_id=1", key=ACME).status == 200
    gone = api.send("DELETE", "/memories?customer_id=acme-2&everything=true&dry_run=false", key=ACME)
    assert gone.json()["deleted"] == 1
    desk = {"tickets": [ticket("9", "anybody", message(1, "Hi"), source="desk")]}
    assert api.post("/tickets/import", desk, key=IMPORTER)["tickets"]["imported"] == 1
    assert api.send("DELETE", "/tickets?source=desk&ticket_id=9", key=IMPORTER).status == 200
    assert api.send("GET", "/health", key=KEY).json()["tickets"] == 0
