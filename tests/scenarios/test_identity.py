"""Whose memory a call is about: ids of every sort, isolation, and conversations that find their customer."""

import json
from collections.abc import Callable, Collection, Sequence

import pytest

from development.daemon import PluginFailure, ToolAnswer
from memory.about import About
from memory.chroma import Chroma
from memory.chroma_rows import Row
from memory.clock import Deadline
from memory.links import Link, LinkStore
from memory.moving import move
from memory.namespace import Namespace
from memory.records import Memory
from memory.scope import Scope, conversation_scope, customer_scope, hashed
from memory.settings import ChromaSettings
from memory.store import MemoryStore, Stored
from tests.conftest import Json, Nodes

ADA, GRACE = "ada@example.com", "grace@example.com"

type Call = Callable[[Nodes, Json], ToolAnswer]

EVERY_NODE: dict[str, Call] = {
    "remember": lambda nodes, ids: nodes.remember("Likes teal", **ids),
    "recall": lambda nodes, ids: nodes.recall("Likes teal", **ids),
    "recall recent": lambda nodes, ids: nodes.recall("", include_superseded=True, limit=100, **ids),
    "preview matching": lambda nodes, ids: nodes.forget(query="Likes teal", **ids),
    "preview everything": lambda nodes, ids: nodes.forget(scope="everything", **ids),
    "erase everything": lambda nodes, ids: nodes.forget(scope="everything", action="delete", **ids),
    "link": lambda nodes, ids: nodes.link(**ids),
}


class Inside:
    """The store of a namespace, seen from inside, to check it and to bring it into a state a crash leaves."""

    def __init__(self, credentials: Json) -> None:
        settings = ChromaSettings(url=credentials["chroma_url"], namespace=credentials["namespace"])
        self.namespace = Namespace(Chroma(settings, Deadline.after(60.0)), settings)
        self.links = LinkStore(self.namespace)

    @property
    def about(self) -> About:
        """What the namespace remembers."""
        about = self.namespace.about()
        assert about is not None
        return about

    @property
    def store(self) -> MemoryStore:
        """Its memories."""
        return MemoryStore(self.namespace, self.about)

    def texts(self, scope: Scope) -> list[str]:
        """All texts of a scope, history included, in order of the alphabet; without signs to read it anew."""
        return sorted(m.text for m in self.store.everything(scope) if m.ends_one or not m.ends_slot)


@pytest.fixture
def inside(credentials: Json) -> Inside:
    """The test's namespace from inside."""
    return Inside(credentials)


def refused(call: Callable[[], object]) -> str:
    """The code a call is refused with."""
    with pytest.raises(PluginFailure) as failure:
        call()
    return failure.value.code


def refused_with(call: Call, nodes: Nodes, ids: Json) -> str:
    """The code a node refuses these ids with; "" if it does not."""
    try:
        call(nodes, ids)
    except PluginFailure as failure:
        return failure.code
    return ""


# --- no customer, odd ids -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "customer_id", [None, "", "   ", "\t\n", "*", "%", "null", "None", "{{customer}}", "{{#start.id#}}"]
)
def test_without_a_usable_customer_no_node_touches_any_memory(nodes: Nodes, customer_id: str | None) -> None:
    """Nothing, blanks, wildcards and unfilled variables are refused; they never mean everybody."""
    nodes.remember("Likes teal", customer_id=ADA)

    codes = {
        name: refused_with(call, nodes, {"customer_id": customer_id}) for name, call in EVERY_NODE.items()
    }
    assert codes == dict.fromkeys(EVERY_NODE, "id_invalid" if customer_id else "customer_missing")
    assert nodes.texts("", customer_id=ADA) == ["Likes teal"]


ODD_IDS = [
    "test_user",
    "test_user1",
    "Test_User",
    "a",
    "a%",
    "a*",
    "a b",
    "a  b",
    "%61",
    "a&b=c",
    "../a",
    "a/b",
    "a:b",
    "a+b@example.com",
    "a?x=1#y",
    "a'; DROP TABLE customers; --",
    '{"$ne": ""}',
    '"a"',
    "Zoë",
    "张伟",
    "👩🏽‍💻",
    "x" * 300,
    "x" * 299 + "y",
    42,
    "042",
    "scope",
]


def test_every_odd_id_is_one_customer_of_its_own(nodes: Nodes) -> None:
    """Ids are opaque: each finds exactly what was stored under it, in every way to read."""
    for n, customer_id in enumerate(ODD_IDS):
        nodes.remember(f"Colour number {n}", customer_id=customer_id, attribute="colour")

    for n, customer_id in enumerate(ODD_IDS):
        found = nodes.recall("colour number", customer_id=customer_id, min_score=0, limit=100)
        preview = nodes.forget(customer_id=customer_id, scope="everything")
        assert [m["text"] for m in found["memories"]] == [f"Colour number {n}"]
        assert [m["text"] for m in preview["receipt"]["memories"]] == [f"Colour number {n}"]
        assert found["customer_id"] == str(customer_id)


def test_every_odd_conversation_id_is_one_conversation_of_its_own(nodes: Nodes) -> None:
    """The same for conversations that are linked to nobody, which are no customers of that name either."""
    for n, conversation_id in enumerate(ODD_IDS):
        nodes.remember(f"Colour number {n}", conversation_id=conversation_id)

    for n, conversation_id in enumerate(ODD_IDS):
        assert nodes.texts("", conversation_id=conversation_id) == [f"Colour number {n}"]
        assert nodes.texts("", customer_id=conversation_id) == []


def test_a_number_and_its_digits_are_the_same_customer(nodes: Nodes) -> None:
    """42 and "42" name one customer, as builders' variables come in either type."""
    nodes.remember("Likes teal", customer_id=42)

    assert nodes.texts("", customer_id="42") == ["Likes teal"]


@pytest.mark.parametrize("field", ["customer_id", "conversation_id"])
@pytest.mark.parametrize("value", [{"a": 1}, {}, ["ada@example.com"], [], True, False, 4.5], ids=repr)
def test_an_id_that_is_no_text_is_refused(nodes: Nodes, field: str, value: object) -> None:
    """An object, a list, a truth value or a fraction is no id, and no other id is taken in its place."""
    chatflow = nodes.within("conv-1")

    codes = {name: refused_with(call, chatflow, {field: value}) for name, call in EVERY_NODE.items()}
    assert codes == dict.fromkeys(EVERY_NODE, "id_invalid")


def test_the_number_zero_is_a_conversation_like_any_other(nodes: Nodes) -> None:
    """A conversation id of 0 is not taken for a missing one, with the session's in its place."""
    nodes.within("conv-1").remember("Likes teal", conversation_id=0)

    assert nodes.texts("", conversation_id="0") == ["Likes teal"]
    assert nodes.texts("", conversation_id="conv-1") == []


@pytest.mark.parametrize("customer_id", ["x" * 513, "a\x00b", "a\nb", "a\x1b[2J"])
def test_an_id_too_long_or_with_control_characters_is_refused(nodes: Nodes, customer_id: str) -> None:
    """Such an id is refused rather than cut or cleaned into another one."""
    assert refused(lambda: nodes.remember("Likes teal", customer_id=customer_id)) == "id_invalid"
    assert refused(lambda: nodes.recall("teal", customer_id=customer_id)) == "id_invalid"


@pytest.mark.parametrize(
    "metadata",
    [
        {"customer_id": GRACE},
        {"Customer_ID ": GRACE},
        {"conversation_id": "conv-9"},
        {"case_id": "case-9"},
        {"scope": "x"},
        {"namespace": "other"},
    ],
)
def test_metadata_cannot_say_whose_a_memory_is(nodes: Nodes, metadata: Json) -> None:
    """Identity keys in metadata are refused, as an object and as JSON text, and nothing is stored."""
    for given in (metadata, json.dumps(metadata)):
        call = lambda given=given: nodes.remember("Likes teal", customer_id=ADA, metadata=given)  # noqa: E731
        assert refused(call) == "metadata_invalid"

    assert nodes.texts("", customer_id=ADA) == []
    assert nodes.texts("", customer_id=GRACE) == []


def test_metadata_comes_back_and_changes_nothing_else(nodes: Nodes) -> None:
    """Values named like columns of the store stay the user's own."""
    metadata = {"source": "survey", "kind": "procedural", "slot": "x", "is_current": False, "score": 4.5}
    nodes.remember("Likes teal", customer_id=ADA, metadata=metadata)

    found = nodes.recall("teal", customer_id=ADA)["memories"][0]
    assert found["metadata"] == metadata
    assert (found["kind"], found["is_current"]) == ("semantic", True)


# --- isolation ----------------------------------------------------------------------------------


def test_no_way_to_read_shows_another_customers_memories(nodes: Nodes) -> None:
    """Recall and previews of every scope, with the other's very text and ids, find nothing."""
    theirs = nodes.remember("Likes teal", customer_id=GRACE, conversation_id="conv-g", case_id="case-1")
    ids = [theirs["memories"][0]["memory_id"]]
    nodes.remember("Owns a bicycle", customer_id=ADA, conversation_id="conv-a", case_id="case-2")
    own = {"customer_id": ADA}

    for answer in (
        nodes.recall("Likes teal", min_score=0, limit=100, include_superseded=True, **own),
        nodes.recall("", limit=100, **own),
    ):
        assert [m["text"] for m in answer["memories"]] == ["Owns a bicycle"]
        assert "teal" not in answer["context"]
    assert nodes.recall("", case_id="case-1", **own)["found"] == 0
    assert nodes.forget(query="Likes teal", scope="matching", **own)["matched"] == 0
    assert nodes.forget(scope="case", case_id="case-1", **own)["matched"] == 0
    assert nodes.forget(scope="everything", **own)["matched"] == 1
    by_id = nodes.forget(memory_ids=ids, **own)
    assert (by_id["matched"], by_id["receipt"]["not_found"]) == (0, ids)
    assert nodes.forget(memory_ids=ids, action="delete", **own)["deleted"] == 0
    assert nodes.texts("", customer_id=GRACE) == ["Likes teal"]


def test_a_row_that_is_not_the_customers_is_dropped_though_the_store_returns_it(
    nodes: Nodes, inside: Inside
) -> None:
    """Each record is checked again after the store answered: one that is filed wrongly is never shown."""
    nodes.remember("Owns a bicycle", customer_id=ADA)
    scope = customer_scope(ADA)
    collection = inside.namespace.memories(scope.shard(inside.about.shards))
    stranger = Row(
        hashed("stranger"),
        "Likes teal",
        {"scope": scope.key, "customer_id": GRACE, "kind": "semantic", "occurred_at": 1.0},
        [1.0] + [0.0] * 511,
    )
    inside.namespace.chroma.put(collection, [stranger])
    raw = inside.namespace.chroma.get(collection, where={"scope": scope.key})
    assert len(raw) == 2

    assert nodes.texts("Likes teal", customer_id=ADA, min_score=0) == ["Owns a bicycle"]
    assert nodes.texts("", customer_id=ADA) == ["Owns a bicycle"]
    assert nodes.forget(customer_id=ADA, scope="everything")["matched"] == 1
    assert nodes.forget(customer_id=ADA, memory_ids=stranger.row_id)["matched"] == 0


def test_namespaces_on_one_server_do_not_see_each_other(nodes: Nodes) -> None:
    """The same customer in two namespaces has two memories."""
    other = Nodes(
        nodes.process, {**nodes.credentials, "namespace": f"{nodes.credentials['namespace']}-m0001"}
    )
    nodes.remember("Likes teal", customer_id=ADA)
    other.remember("Owns a bicycle", customer_id=ADA)

    assert nodes.texts("", customer_id=ADA) == ["Likes teal"]
    assert other.texts("", customer_id=ADA) == ["Owns a bicycle"]


# --- conversations ------------------------------------------------------------------------------


def test_a_conversation_linked_to_nobody_sees_its_own_memory_only(nodes: Nodes) -> None:
    """An unlinked conversation remembers for itself, and each answer says that no customer is known."""
    nodes.remember("Likes teal", customer_id=ADA)
    told = nodes.within("conv-1").remember("Owns a bicycle")
    nodes.within("conv-2").remember("Drives a van")

    found = nodes.within("conv-1").recall("")
    assert [m["text"] for m in found["memories"]] == ["Owns a bicycle"]
    assert (told["linked"], told["customer_id"]) == (False, "")
    assert (found["linked"], found["customer_id"]) == (False, "")
    assert nodes.texts("", customer_id=ADA) == ["Likes teal"]


def test_a_conversation_used_with_its_customer_is_linked_from_then_on(nodes: Nodes) -> None:
    """After one remember with both ids the conversation alone leads to the customer."""
    nodes.within("conv-1").remember("Likes teal", customer_id=ADA)

    found = nodes.within("conv-1").recall("")
    assert (found["linked"], found["customer_id"], found["found"]) == (True, ADA, 1)


def test_the_nodes_setting_goes_before_the_sessions_conversation(nodes: Nodes) -> None:
    """A conversation id set on the node is the one that counts."""
    nodes.within("conv-session").remember("Likes teal", conversation_id="conv-node")

    assert nodes.texts("", conversation_id="conv-node") == ["Likes teal"]
    assert nodes.texts("", conversation_id="conv-session") == []


def test_a_conversation_of_one_customer_cannot_be_used_with_another(nodes: Nodes) -> None:
    """It is refused with the reason, and neither customer's memory is read, written or erased."""
    nodes.remember("Owns a bicycle", customer_id=ADA, conversation_id="conv-1")
    nodes.remember("Drives a van", customer_id=GRACE)

    wrong = {"customer_id": GRACE, "conversation_id": "conv-1"}
    codes = {name: refused_with(call, nodes, wrong) for name, call in EVERY_NODE.items()}
    assert codes == dict.fromkeys(EVERY_NODE, "conversation_of_another_customer")
    assert nodes.texts("", customer_id=ADA) == ["Owns a bicycle"]
    assert nodes.texts("", customer_id=GRACE) == ["Drives a van"]
    assert nodes.recall("", conversation_id="conv-1")["customer_id"] == ADA


def test_a_refused_remember_does_not_settle_the_embedding_model(nodes: Nodes) -> None:
    """A call refused for its conversation writes nothing at all, so the next one may still choose a model."""
    nodes.link(customer_id=ADA, conversation_id="conv-1")
    wrong = {"customer_id": GRACE, "conversation_id": "conv-1"}
    assert refused(lambda: nodes.remember("Likes teal", **wrong)) == "conversation_of_another_customer"

    chosen = {"provider": "example/models/models", "model": "embed-1"}
    assert nodes.remember("Likes teal", customer_id=ADA, embedding_model=chosen)["stored"] == 1


# --- linking ------------------------------------------------------------------------------------


def test_linking_makes_a_conversations_memories_the_customers_and_moves_no_others(nodes: Nodes) -> None:
    """What was remembered before the customer was known is the customer's from then on."""
    nodes.within("conv-1").remember("Plan is Basic", attribute="plan")
    nodes.within("conv-1").remember("Plan is Pro", attribute="plan")
    nodes.within("conv-1").remember([{"role": "user", "content": "My lamp is broken"}])
    nodes.within("conv-2").remember("Drives a van")
    nodes.remember("Owns a bicycle", customer_id=ADA)

    linked = nodes.link(customer_id=ADA, conversation_id="conv-1")

    assert (linked["linked"], linked["customer_id"], linked["previous_customer_id"]) == (True, ADA, "")
    assert linked["moved"] == 3
    assert sorted(nodes.texts("", customer_id=ADA)) == ["My lamp is broken", "Owns a bicycle", "Plan is Pro"]
    assert sorted(nodes.texts("", conversation_id="conv-1")) == sorted(nodes.texts("", customer_id=ADA))
    everything = nodes.texts("", customer_id=ADA, include_superseded=True)
    assert everything.count("Plan is Basic") == 1
    assert nodes.texts("", conversation_id="conv-2") == ["Drives a van"]
    assert nodes.recall("", conversation_id="conv-2")["linked"] is False


def test_linking_twice_is_the_same_as_once(nodes: Nodes, inside: Inside) -> None:
    """The second link moves nothing and changes nothing."""
    nodes.within("conv-1").remember("Likes teal")
    first = nodes.link(customer_id=ADA, conversation_id="conv-1", case_id="case-1")
    stored = inside.store.everything(customer_scope(ADA))
    second = nodes.link(customer_id=ADA, conversation_id="conv-1", case_id="case-1")

    assert (first["moved"], second["moved"]) == (1, 0)
    assert second["previous_customer_id"] == ""
    assert inside.store.everything(customer_scope(ADA)) == stored


def test_a_moved_memory_meets_its_duplicate_and_its_slot(nodes: Nodes) -> None:
    """What was known already stays one record, and the newest value of a slot holds after the move."""
    nodes.remember("Likes teal", customer_id=ADA)
    nodes.remember("Plan is Basic", customer_id=ADA, attribute="plan", occurred_at="2024-01-01")
    nodes.within("conv-1").remember("Likes teal")
    nodes.within("conv-1").remember("Plan is Pro", attribute="plan", occurred_at="2024-02-01")

    linked = nodes.link(customer_id=ADA, conversation_id="conv-1")

    assert linked["moved"] == 1
    assert sorted(nodes.texts("", customer_id=ADA)) == ["Likes teal", "Plan is Pro"]
    assert len(nodes.texts("", customer_id=ADA, include_superseded=True)) == 3


def test_what_was_remembered_before_the_link_is_found_and_repeated_as_a_duplicate_after_it(
    nodes: Nodes,
) -> None:
    """The moved record has the id the customer's own statement would have."""
    nodes.within("conv-1").remember("Likes teal")
    nodes.link(customer_id=ADA, conversation_id="conv-1")

    assert nodes.remember("Likes teal", customer_id=ADA)["duplicates"] == 1


def test_a_relink_moves_the_conversations_memories_and_no_others(nodes: Nodes) -> None:
    """A conversation that changes hands takes what was said in it, with its history, and leaves the rest."""
    nodes.remember("Owns a bicycle", customer_id=ADA)
    nodes.remember("Plan is Basic", customer_id=ADA, conversation_id="conv-1", attribute="plan")
    nodes.remember("Plan is Pro", customer_id=ADA, conversation_id="conv-1", attribute="plan")
    nodes.remember("Drives a van", customer_id=GRACE)

    linked = nodes.link(customer_id=GRACE, conversation_id="conv-1", relink=True)

    assert (linked["customer_id"], linked["previous_customer_id"], linked["moved"]) == (GRACE, ADA, 2)
    assert nodes.texts("", customer_id=ADA, include_superseded=True) == ["Owns a bicycle"]
    assert sorted(nodes.texts("", customer_id=GRACE)) == ["Drives a van", "Plan is Pro"]
    assert "Plan is Basic" in nodes.texts("", customer_id=GRACE, include_superseded=True)
    assert nodes.recall("", conversation_id="conv-1")["customer_id"] == GRACE


def test_a_relink_does_not_end_what_the_new_customer_has(nodes: Nodes) -> None:
    """That one customer forgot a value is nothing to the slot of another customer a conversation goes to."""
    nodes.remember(
        "Plan is Basic",
        customer_id=ADA,
        conversation_id="conv-1",
        attribute="plan",
        occurred_at="2024-01-01",
    )
    gold = nodes.remember("Plan is Gold", customer_id=ADA, attribute="plan", occurred_at="2024-03-01")
    nodes.forget(customer_id=ADA, memory_ids=[gold["memories"][0]["memory_id"]], action="delete")
    nodes.remember("Plan is Silver", customer_id=GRACE, attribute="plan", occurred_at="2024-02-01")

    nodes.link(customer_id=GRACE, conversation_id="conv-1", relink=True)

    assert nodes.texts("", customer_id=GRACE) == ["Plan is Silver"]


def test_a_relink_there_and_back_restores_what_was(nodes: Nodes) -> None:
    """A conversation linked to the wrong customer and put right is as if nothing had happened."""
    nodes.remember("Likes teal", customer_id=ADA, conversation_id="conv-1")
    before = nodes.recall("", customer_id=ADA)["memories"]
    nodes.link(customer_id=GRACE, conversation_id="conv-1", relink=True)
    nodes.link(customer_id=ADA, conversation_id="conv-1", relink=True)

    assert nodes.recall("", customer_id=ADA)["memories"] == before
    assert nodes.texts("", customer_id=GRACE) == []


def test_a_link_needs_a_conversation_and_a_customer(nodes: Nodes) -> None:
    """Without either, it says which is needed."""
    assert refused(lambda: nodes.link(customer_id=ADA)) == "parameter_missing"
    assert refused(lambda: nodes.link(conversation_id="conv-1")) == "parameter_missing"


def test_a_link_made_before_anything_was_stored_holds(nodes: Nodes) -> None:
    """A conversation can be linked in a namespace that has no memory yet."""
    linked = nodes.link(customer_id=ADA, conversation_id="conv-1")
    nodes.within("conv-1").remember("Likes teal")

    assert linked["moved"] == 0
    assert nodes.texts("", customer_id=ADA) == ["Likes teal"]


# --- cases --------------------------------------------------------------------------------------


def test_a_case_spans_conversations_and_is_recalled_by_itself(nodes: Nodes) -> None:
    """Memories of two conversations of one case are found by it, with the matter of another left out."""
    nodes.within("conv-1").remember("The lamp arrived broken")
    nodes.link(customer_id=ADA, conversation_id="conv-1", case_id="case-1")
    nodes.link(customer_id=ADA, conversation_id="conv-2", case_id="case-1")
    nodes.within("conv-2").remember("The new lamp flickers")
    nodes.remember("The chair wobbles", customer_id=ADA, case_id="case-2")

    assert sorted(nodes.texts("", customer_id=ADA, case_id="case-1")) == [
        "The lamp arrived broken",
        "The new lamp flickers",
    ]
    assert nodes.texts("", customer_id=ADA, case_id="case-2") == ["The chair wobbles"]
    assert len(nodes.texts("", customer_id=ADA)) == 3


def test_setting_the_case_later_files_what_the_conversation_remembered(nodes: Nodes) -> None:
    """A case given to a linked conversation applies to its memories, without the customer being named."""
    nodes.remember("The lamp arrived broken", customer_id=ADA, conversation_id="conv-1")
    linked = nodes.link(conversation_id="conv-1", case_id="case-1")

    assert (linked["customer_id"], linked["case_id"]) == (ADA, "case-1")
    assert nodes.texts("", customer_id=ADA, case_id="case-1") == ["The lamp arrived broken"]


# --- a crash while moving -----------------------------------------------------------------------


class Crashed(Exception):
    """The process ended here."""


class CrashingStore(MemoryStore):
    """The real store, in a process that ends just before one of its steps."""

    def __init__(self, namespace: Namespace, about: About, before: str) -> None:
        super().__init__(namespace, about)
        self._before = before

    def _step(self, name: str) -> None:
        if name == self._before:
            raise Crashed

    def write(self, scope: Scope, memories: Sequence[Stored]) -> None:
        """As the real one."""
        self._step("write")
        super().write(scope, memories)

    def write_marks(self, scope: Scope, marks: Sequence[Memory]) -> None:
        """As the real one, which itself uses `write`."""
        self._step("write_marks")
        vector = [1.0] + [0.0] * (self.about.dimension - 1)
        super().write(scope, [(mark, vector) for mark in marks])

    def settle(self, scope: Scope, slot: str, *, without: Collection[str] = ()) -> list[Memory]:
        """As the real one."""
        self._step("settle")
        return super().settle(scope, slot, without=without)

    def erase(self, scope: Scope, memories: Sequence[Memory], *, leaves_sign: bool = False) -> None:
        """As the real one."""
        self._step("erase")
        super().erase(scope, memories, leaves_sign=leaves_sign)


def crash_while_moving(inside: Inside, link: Link, *, before: str) -> None:
    """Write a link and move what it names, in a process that ends before a step."""
    inside.links.put(link)
    with pytest.raises(Crashed):
        move(
            CrashingStore(inside.namespace, inside.about, before),
            link.old_scope,
            link.scope,
            conversation_id=link.conversation_id,
            case_id=link.case_id,
        )


crash_points = pytest.mark.parametrize("before", ["write", "write_marks", "settle", "erase"])


@crash_points
@pytest.mark.parametrize("node", ["recall", "remember", "forget", "link"])
def test_a_link_cut_short_is_finished_by_the_next_call(
    nodes: Nodes, inside: Inside, before: str, node: str
) -> None:
    """Wherever the crash was, one call of any node leaves each memory once, with the customer, settled."""
    given: Json = {"conversation_id": "conv-1"}
    nodes.remember("Plan is Basic", attribute="plan", occurred_at="2024-01-01", **given)
    nodes.remember("Plan is Pro", attribute="plan", occurred_at="2024-02-01", **given)
    nodes.remember("Likes teal", **given)
    nodes.remember("Plan is Trial", customer_id=ADA, attribute="plan", occurred_at="2023-12-01")
    link = Link(conversation_id="conv-1", customer_id=ADA, linked_at=1.0, is_moving=True)
    crash_while_moving(inside, link, before=before)

    {
        "recall": lambda: nodes.recall("", **given),
        "remember": lambda: nodes.remember("Likes teal", **given),
        "forget": lambda: nodes.forget(scope="everything", **given),
        "link": lambda: nodes.link(customer_id=ADA, **given),
    }[node]()

    assert inside.texts(conversation_scope("conv-1")) == []
    assert inside.texts(customer_scope(ADA)) == [
        "Likes teal",
        "Plan is Basic",
        "Plan is Pro",
        "Plan is Trial",
    ]
    assert sorted(nodes.texts("", customer_id=ADA)) == ["Likes teal", "Plan is Pro"]
    arrived = inside.links.find("conv-1")
    assert arrived is not None
    assert not arrived.is_moving


@crash_points
def test_a_relink_cut_short_is_finished_by_the_next_call(nodes: Nodes, inside: Inside, before: str) -> None:
    """The same for a conversation that changes hands."""
    given: Json = {"conversation_id": "conv-1"}
    nodes.remember("Owns a bicycle", customer_id=ADA)
    nodes.remember("Plan is Basic", customer_id=ADA, attribute="plan", **given)
    nodes.remember("Plan is Pro", customer_id=ADA, attribute="plan", **given)
    link = Link(conversation_id="conv-1", customer_id=GRACE, linked_at=1.0, is_moving=True, moves_from=ADA)
    crash_while_moving(inside, link, before=before)

    assert nodes.texts("", **given) == ["Plan is Pro"]
    assert inside.texts(customer_scope(ADA)) == ["Owns a bicycle"]
    assert inside.texts(customer_scope(GRACE)) == ["Plan is Basic", "Plan is Pro"]


@crash_points
def test_erasing_a_customer_erases_what_a_crash_left_on_its_way_to_them(
    nodes: Nodes, inside: Inside, before: str
) -> None:
    """An erasure by customer alone leaves nothing in the conversation's own memory, and no link."""
    nodes.remember("Likes teal", conversation_id="conv-1", attribute="colour")
    link = Link(conversation_id="conv-1", customer_id=ADA, linked_at=1.0, is_moving=True)
    crash_while_moving(inside, link, before=before)

    nodes.forget(customer_id=ADA, scope="everything", action="delete")

    assert inside.texts(conversation_scope("conv-1")) == []
    assert inside.texts(customer_scope(ADA)) == []
    assert inside.links.find("conv-1") is None


@pytest.mark.parametrize("before", ["write", "erase"])
def test_erasing_a_customer_erases_what_a_crash_left_with_the_customer_before(
    nodes: Nodes, inside: Inside, before: str
) -> None:
    """A conversation taken over by a customer who is then erased does not fall back to the one before."""
    nodes.remember("Likes teal", customer_id=ADA, conversation_id="conv-1")
    nodes.remember("Owns a bicycle", customer_id=ADA)
    link = Link(conversation_id="conv-1", customer_id=GRACE, linked_at=1.0, is_moving=True, moves_from=ADA)
    crash_while_moving(inside, link, before=before)

    nodes.forget(customer_id=GRACE, scope="everything", action="delete")

    assert inside.texts(customer_scope(GRACE)) == []
    assert inside.texts(customer_scope(ADA)) == ["Owns a bicycle"]


def test_erasing_a_customer_erases_what_a_crashed_write_left_in_a_linked_conversation(
    nodes: Nodes, inside: Inside
) -> None:
    """A write that began before the link and died after it leaves rows behind; the erasure takes them too."""
    nodes.remember("Likes teal", conversation_id="conv-1")
    inside.links.put(Link(conversation_id="conv-1", customer_id=ADA, linked_at=1.0))

    nodes.forget(customer_id=ADA, scope="everything", action="delete")

    assert inside.texts(conversation_scope("conv-1")) == []
    assert nodes.texts("", conversation_id="conv-1") == []


def test_linking_again_brings_what_a_crashed_write_left_in_the_conversation(
    nodes: Nodes, inside: Inside
) -> None:
    """Rows a dead write left in the conversation's own memory are the customer's after the next link."""
    nodes.remember("Likes teal", conversation_id="conv-1")
    inside.links.put(Link(conversation_id="conv-1", customer_id=ADA, linked_at=1.0))

    linked = nodes.link(customer_id=ADA, conversation_id="conv-1")

    assert linked["moved"] == 1
    assert nodes.texts("", customer_id=ADA) == ["Likes teal"]
    assert inside.texts(conversation_scope("conv-1")) == []
