"""What has expired is gone for good; what stands is told to a prompt without being asked."""

import json
import uuid
from datetime import datetime, timedelta
from typing import Any

import pytest

from development.chat_server import ChatServer
from development.chroma_server import ChromaServer
from memory.content import Note, Statement
from memory.embedding import Embedder, EmbedderIdentity
from memory.embedding.builtin import BuiltinEmbedder
from memory.engine import Engine
from memory.identity import Caller
from memory.policy import SECONDS_A_DAY, Policy
from memory.recalling import Question
from memory.records import Kind, Role
from memory.settings import ChromaSettings
from memory.tokens import estimate
from tests.conftest import Json, Nodes
from tests.endpoints.conftest import KEY, Api, message, ticket

ADA = "ada@example.com"
START = 1_700_000_000.0


@pytest.fixture
def api(nodes: Nodes) -> Api:
    """The endpoints on the nodes' namespace."""
    return Api(nodes.process, {**nodes.credentials, "api_key": KEY})


def with_form(nodes: Nodes, **fields: Any) -> Nodes:
    """The nodes with other fields in the form."""
    return Nodes(nodes.process, {**nodes.credentials, **fields})


def rows(api: Api) -> int:
    """How many rows the namespace holds, in whatever state."""
    return int(api.get("/health")["rows"])


# --- expires_in_days ----------------------------------------------------------------------------


def test_what_has_expired_is_never_read_again(nodes: Nodes, api: Api) -> None:
    """Neither by its own text, nor in a listing, a preview or the context, nor as history."""
    nodes.remember("Has a voucher", customer_id=ADA, expires_in_days=0, attribute="voucher")
    nodes.remember("Drives a van", customer_id="grace@example.com")

    assert nodes.recall("Has a voucher", customer_id=ADA, min_score=0)["found"] == 0
    assert nodes.recall("", customer_id=ADA, include_superseded=True)["found"] == 0
    assert nodes.recall("Has a voucher", customer_id=ADA)["context"] == ""
    assert nodes.forget(query="Has a voucher", customer_id=ADA)["matched"] == 0
    assert api.get(f"/memories?customer_id={ADA}&include_superseded=true")["memories"] == []


def test_the_next_write_for_a_customer_removes_what_has_expired_for_good(nodes: Nodes, api: Api) -> None:
    """All parts of it, and only this customer's."""
    nodes.remember("Has a voucher. " * 400, customer_id=ADA, expires_in_days=0)
    nodes.remember("Has a coupon", customer_id="grace@example.com", expires_in_days=0)
    assert rows(api) > 3

    nodes.remember("Drives a van", customer_id=ADA)
    assert rows(api) == 2


def test_upkeep_removes_what_has_expired_of_everybody_and_counts_it_by_kind(nodes: Nodes, api: Api) -> None:
    """Of customers and of conversations alike; what lasts longer stays, and a second run finds nothing."""
    over: Json = {"expires_in_days": 0}
    nodes.remember("Drives a van", customer_id="grace@example.com", expires_in_days=30)
    nodes.remember("Has a voucher. " * 400, customer_id=ADA, **over)
    nodes.remember("Call in the morning", customer_id="alan@example.com", kind="procedural", **over)
    nodes.remember(
        [{"role": "user", "content": f"Message {n}"} for n in range(3)], conversation_id="c1", **over
    )
    nodes.remember("Is on Basic", customer_id="grace@example.com", attribute="plan", **over)

    assert api.post("/maintenance/expire", {}) == {
        "expired": 6,
        "kinds": {"semantic": 2, "procedural": 1, "episodic": 3},
        "sources": {"": 6},
        "audit_expired": 0,
    }
    nothing = {"expired": 0, "kinds": {}, "sources": {}, "audit_expired": 0}
    assert api.post("/maintenance/expire", {}) == nothing
    assert nodes.texts("", customer_id="grace@example.com") == ["Drives a van"]
    assert nodes.texts("", conversation_id="c1") == []


def test_upkeep_of_a_namespace_nothing_was_stored_in_finds_nothing(api: Api) -> None:
    """It starts no namespace either."""
    nothing = {"expired": 0, "kinds": {}, "sources": {}, "audit_expired": 0}
    assert api.post("/maintenance/expire", {}) == nothing
    assert api.get("/health")["embedder"] is None


def test_upkeep_needs_the_key(api: Api) -> None:
    """Nobody deletes without it."""
    assert api.error("POST", "/maintenance/expire", {}, key=None)[1] == "unauthorized"


def test_when_a_memory_expires_is_told(nodes: Nodes) -> None:
    """The date is in the answer, that many days after it was recorded."""
    memory = nodes.remember("Has a voucher", customer_id=ADA, expires_in_days="1.5")["memories"][0]
    recorded, expires = (datetime.fromisoformat(memory[name]) for name in ("recorded_at", "expires_at"))

    assert abs(expires - recorded - timedelta(days=1.5)) <= timedelta(seconds=1)


def test_extracted_facts_expire_too(nodes: Nodes) -> None:
    """Expiry holds for whatever the call stores; an expired value is not shown to the model."""
    with ChatServer() as chat:
        item = {
            "text": "Is on Basic.",
            "kind": "semantic",
            "attribute": "plan",
            "confidence": 1,
            "message": 0,
        }
        chat.say(json.dumps([item]), "[]")
        reading = with_form(nodes, llm_base_url=chat.url, llm_model="test-chat")
        given: Json = {"customer_id": ADA, "mode": "extract"}
        assert reading.remember("Basic", **given, expires_in_days=0)["stored"] == 1
        reading.remember("Hello", **given)

        assert "Basic" not in chat.asked[1].user
    assert nodes.recall("", customer_id=ADA)["found"] == 0


# --- retention by kind --------------------------------------------------------------------------


def test_retention_by_kind_counts_from_when_it_was_so(nodes: Nodes) -> None:
    """An old event goes, an old fact and a rule stay; a kind without a setting is kept for ever."""
    kept = with_form(nodes, retention_days_episodic="30", retention_days_semantic=36_500)
    old: Json = {"customer_id": ADA, "occurred_at": "2020-01-01"}
    for kind in ("episodic", "semantic", "procedural"):
        kept.remember(f"An old {kind}", kind=kind, **old)
    answer = kept.remember("A new event", kind="episodic", customer_id=ADA)

    assert sorted(kept.texts("", customer_id=ADA)) == ["A new event", "An old procedural", "An old semantic"]
    memory = answer["memories"][0]
    occurred, expires = (datetime.fromisoformat(memory[name]) for name in ("occurred_at", "expires_at"))
    assert expires - occurred == timedelta(days=30)


def test_the_earlier_of_retention_and_the_call_counts(nodes: Nodes) -> None:
    """A call can shorten what the administrator allows, and never lengthen it."""
    kept = with_form(nodes, retention_days_semantic=10)
    days = {}
    for asked in (5, 50):
        memory = kept.remember(f"For {asked}", customer_id=ADA, expires_in_days=asked)["memories"][0]
        recorded, expires = (datetime.fromisoformat(memory[name]) for name in ("recorded_at", "expires_at"))
        days[asked] = round((expires - recorded) / timedelta(days=1), 3)

    assert days == {5: 5.0, 50: 10.0}


@pytest.mark.parametrize("empty", [None, "", "  "])
def test_an_empty_retention_keeps_for_ever(nodes: Nodes, empty: str | None) -> None:
    """A field nobody filled in deletes nothing."""
    kept = with_form(nodes, retention_days_semantic=empty)
    memory = kept.remember("Likes teal", customer_id=ADA, occurred_at="1990-01-01")["memories"][0]

    assert memory["expires_at"] is None
    assert kept.texts("", customer_id=ADA) == ["Likes teal"]


def test_imported_messages_are_kept_as_long_as_their_kind(api: Api) -> None:
    """A ticket of years ago leaves nothing behind where events are kept for a month."""
    short = Api(api.process, {**api.settings, "retention_days_episodic": 30})
    short.post("/tickets/import", {"tickets": [ticket("1", "A", message(1, "The lid is broken"))]})
    assert short.get("/memories?customer_id=A")["memories"] == []

    assert short.post("/maintenance/expire", {})["kinds"] == {"episodic": 1}
    assert rows(short) == 0


# --- as time goes by ----------------------------------------------------------------------------


class Builtin:
    """The built-in embedding model, the only choice."""

    def chosen(self) -> EmbedderIdentity | None:
        """Nothing was chosen."""
        return None

    def open(self, identity: EmbedderIdentity) -> Embedder:
        """The built-in model."""
        return BuiltinEmbedder()


class Day:
    """The engine on a day: day 0 is the first."""

    def __init__(self, settings: ChromaSettings, policy: Policy | None = None) -> None:
        self._settings = settings
        self.policy = policy or Policy()
        self.day = 0.0
        self._caller = Caller.checked(ADA)

    @property
    def engine(self) -> Engine:
        """An engine whose clock shows that day."""
        return Engine(
            self._settings, Builtin(), policy=self.policy, clock=lambda: START + self.day * SECONDS_A_DAY
        )

    def remember(
        self, text: str, *, attribute: str = "", at: float | None = None, lasts: float | None = None
    ) -> None:
        """Remember a fact: of day `at`, for so many days."""
        note = Note(
            attribute=attribute,
            occurred_at=None if at is None else START + at * SECONDS_A_DAY,
            expires_in_seconds=None if lasts is None else lasts * SECONDS_A_DAY,
        )
        self.engine.remember(self._caller, [Statement(text, Role.CUSTOMER, Kind.SEMANTIC, 0)], note)

    def texts(self, *, history: bool = False) -> list[str]:
        """What is known on that day."""
        found = self.engine.recall(self._caller, Question(limit=100, include_superseded=history)).hits
        return sorted(hit.memory.text for hit in found)

    @property
    def rows(self) -> int:
        """How many rows the namespace holds."""
        return int(self.engine.administration.describe()["rows"] or 0)


@pytest.fixture
def life(chroma: ChromaServer) -> Day:
    """An engine on a fresh namespace, on its first day."""
    return Day(ChromaSettings(url=chroma.url, namespace=f"x{uuid.uuid4().hex[:12]}", shards=2))


def test_a_memory_is_known_to_its_last_day_and_not_after(life: Day) -> None:
    """It is read until its moment, then not, and the upkeep after that deletes it."""
    life.remember("Has a voucher", lasts=10)
    life.day = 9.999
    assert (life.texts(), life.engine.administration.expire().kinds) == (["Has a voucher"], {})

    life.day = 10
    assert (life.texts(), life.rows) == ([], 1)
    assert life.engine.administration.expire().kinds == {"semantic": 1}
    assert life.rows == 0


def test_said_again_a_fact_lasts_longer(life: Day) -> None:
    """The later end counts, and a fact that is then said without an end is kept for ever."""
    life.remember("Has a voucher", lasts=10)
    life.day = 5
    life.remember("Has a voucher", lasts=10)
    life.day = 12
    assert life.texts() == ["Has a voucher"]

    life.remember("Has a voucher")
    life.day = 10_000
    assert life.texts() == ["Has a voucher"]


@pytest.mark.parametrize("removal", ["a write", "upkeep"])
def test_a_value_that_expires_does_not_bring_back_the_one_before_it(life: Day, removal: str) -> None:
    """Neither at once, nor when a late arrival makes the slot be looked at again."""
    life.remember("Is on Basic", attribute="plan", at=0)
    life.remember("Is on a trial of Pro", attribute="plan", at=1, lasts=10)
    life.day = 20
    assert life.texts() == []
    if removal == "upkeep":
        assert life.engine.administration.expire().kinds == {"semantic": 1}
        assert life.texts() == []

    life.remember("Was on Free", attribute="plan", at=-5)
    assert life.texts() == []
    assert life.texts(history=True) == ["Is on Basic", "Was on Free"]


def test_a_new_value_after_an_expired_one_holds(life: Day) -> None:
    """The slot goes on as if nothing had been in it."""
    life.remember("Is on Basic", attribute="plan", lasts=10)
    life.day = 20
    life.remember("Is on Basic", attribute="plan")

    assert life.texts() == ["Is on Basic"]


def test_a_shorter_retention_holds_for_what_is_written_from_then_on(life: Day) -> None:
    """What an administrator allowed when it was written is kept; what comes later follows the new rule."""
    life.remember("Likes teal")
    life.policy = Policy(retention_days={Kind.SEMANTIC: 30})
    life.remember("Likes blue")
    life.day = 31

    assert life.texts() == ["Likes teal"]


# --- what a prompt is told without asking -------------------------------------------------------


def test_history_is_shown_with_its_dates(nodes: Nodes) -> None:
    """Since when each value held, since when it does not, and what took its place."""
    nodes.remember("Is on Basic", customer_id=ADA, attribute="plan", occurred_at="2024-01-01")
    nodes.remember("Is on Pro", customer_id=ADA, attribute="plan", occurred_at="2024-06-01")

    assert nodes.texts("plan", customer_id=ADA) == ["Is on Pro"]
    for query in ("plan", ""):
        answer = nodes.recall(query, customer_id=ADA, include_superseded=True)
        by_text = {m["text"]: m for m in answer["memories"]}
        assert set(by_text) == {"Is on Basic", "Is on Pro"}
        old, new = by_text["Is on Basic"], by_text["Is on Pro"]
        assert (old["is_current"], new["is_current"]) == (False, True)
        assert (old["occurred_at"], old["superseded_at"]) == ("2024-01-01T00:00:00Z", "2024-06-01T00:00:00Z")
        assert old["superseded_by"] == new["memory_id"]
        lines = answer["context"].splitlines()
        assert any("Is on Basic" in line and "no longer so since 2024-06-01" in line for line in lines)
        assert any("Is on Pro" in line and "no longer" not in line for line in lines)


def test_rules_and_current_values_are_in_the_context_without_being_asked(nodes: Nodes) -> None:
    """Whatever the query, under their own titles; events and history are not."""
    nodes.remember("Write, do not call", customer_id=ADA, kind="procedural")
    nodes.remember("Is on Basic", customer_id=ADA, attribute="plan")
    nodes.remember("Is on Pro", customer_id=ADA, attribute="plan")
    nodes.remember("The parcel came late", customer_id=ADA, kind="episodic")
    answer = nodes.recall("zebra crossing", customer_id=ADA, min_score=0.95)

    assert (answer["found"], answer["memories"]) == (0, [])
    context = answer["context"]
    assert context.index("How to treat this customer:") < context.index("Write, do not call")
    assert context.index("Facts:") < context.index("Is on Pro")
    assert "Is on Basic" not in context
    assert "parcel" not in context


def test_each_memory_is_in_the_context_once(nodes: Nodes) -> None:
    """A value that stands and also answers the query is not told twice."""
    nodes.remember("Is on Pro", customer_id=ADA, attribute="plan")

    assert nodes.recall("plan Pro", customer_id=ADA)["context"].count("Is on Pro") == 1


def test_what_stands_takes_half_of_the_budget_at_the_most_where_the_rest_is_wanted(nodes: Nodes) -> None:
    """Many rules and values leave room for the answers to the query, and the whole budget always holds."""
    rules = [{"role": "user", "content": f"Rule {n}: always mention the number {n} first"} for n in range(40)]
    nodes.remember(rules, customer_id=ADA, kind="procedural")
    events = [{"role": "user", "content": f"On day {n} the zebra lamp number {n} broke"} for n in range(40)]
    nodes.remember(events, customer_id=ADA)

    for budget in (50, 120, 300, 600, 2_000):
        answer = nodes.recall("zebra lamp broke", customer_id=ADA, limit=40, max_tokens=budget)
        context = answer["context"]
        assert estimate(context) <= budget
        standing = [line for line in context.splitlines() if "Rule " in line]
        told = [line for line in context.splitlines() if "zebra lamp" in line]
        if budget in (300, 600):
            assert standing
            assert told
            assert estimate("\n".join(standing)) <= budget / 2


def test_room_that_the_answers_leave_goes_to_what_stands(nodes: Nodes) -> None:
    """Half is a bound only while something else wants the room."""
    rules = [{"role": "user", "content": f"Rule {n}: always mention the number {n} first"} for n in range(40)]
    nodes.remember(rules, customer_id=ADA, kind="procedural")
    context = nodes.recall("zebra", customer_id=ADA, min_score=0.99, max_tokens=600)["context"]

    assert 500 < estimate(context) <= 600


def test_what_stands_respects_the_kinds_that_are_asked_for(nodes: Nodes) -> None:
    """A flow that wants events only gets events only."""
    nodes.remember("Write, do not call", customer_id=ADA, kind="procedural")
    nodes.remember("The parcel came late", customer_id=ADA, kind="episodic")

    assert "Write" not in nodes.recall("parcel", customer_id=ADA, kinds="episodic")["context"]
