"""Whatever the history of a slot, it holds one value or none, and always the right one.

Random histories run through two engines on a real Chroma; what has to hold afterwards is worked out by a
model of a few lines. Facts arrive as a language model states them, so that one batch can touch several slots
at several times.
"""

import itertools
import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from development.chroma_server import ChromaServer
from memory.content import Note, Statement
from memory.embedding import Embedder, EmbedderIdentity, Source
from memory.embedding.model import Vector
from memory.engine import Engine
from memory.extraction.model import Completion
from memory.forgetting import Phase, Reach, Request
from memory.identity import Caller
from memory.recalling import Question
from memory.records import Kind, Memory, Role
from memory.settings import ChromaSettings

SEQUENCES = 400
MAX_STEPS = 4
SLOTS = ("plan", "home")
TIMES = tuple(range(1, 9))
START = datetime(2024, 1, 1, tzinfo=UTC).timestamp()
CONVERSATIONS = ("", "", "", "c1")


@dataclass(frozen=True)
class Fact:
    """A value of a slot at a time; None says that the slot holds nothing any more."""

    slot: str
    value: str | None
    time: int

    @property
    def text(self) -> str:
        """The sentence that states it."""
        return f"{self.slot} is {self.value}"

    def item(self) -> dict[str, object]:
        """It as a language model lists it."""
        return {
            "text": self.text,
            "kind": "semantic",
            "attribute": self.slot,
            "when": f"2024-01-01T00:00:{self.time:02d}Z",
            "still_true": self.value is not None,
            "confidence": 1.0,
            "message": 0,
        }


@dataclass(frozen=True)
class Tell:
    """A batch of facts, by one of two writers, in one of the customer's conversations."""

    facts: tuple[Fact, ...]
    writer: int
    conversation: str


@dataclass(frozen=True)
class Forget:
    """Forgetting one value by its id: what the slot holds, or what it held."""

    slot: str
    is_current: bool
    writer: int


@dataclass(frozen=True)
class ForgetConversation:
    """Forgetting what was said in one conversation."""

    conversation: str
    writer: int


type Step = Tell | Forget | ForgetConversation


# --- what has to hold ---------------------------------------------------------------------------


@dataclass
class Truth:
    """The model: the values that are known, and up to when each slot was ended."""

    facts: dict[tuple[str, int], tuple[str, str]] = field(default_factory=dict)
    ends: dict[str, set[int]] = field(default_factory=dict)

    def current(self, slot: str) -> Fact | None:
        """The newest value, unless the slot was ended at that time or later."""
        times = [time for name, time in self.facts if name == slot]
        ended = max(self.ends.get(slot, set()), default=0)
        if not times or max(times) <= ended:
            return None
        return Fact(slot, self.facts[slot, max(times)][0], max(times))

    def tell(self, step: Tell) -> None:
        """A fact that is known already keeps the conversation it was told in first."""
        for fact in step.facts:
            if fact.value is None:
                self.ends.setdefault(fact.slot, set()).add(fact.time)
            else:
                self.facts.setdefault((fact.slot, fact.time), (fact.value, step.conversation))

    def drop(self, keys: Sequence[tuple[str, int]]) -> None:
        """Values go; a slot that held one of them holds nothing from then on."""
        for slot in SLOTS:
            held = self.current(slot)
            if held is not None and (slot, held.time) in keys:
                self.ends.setdefault(slot, set()).add(held.time)
        for key in keys:
            self.facts.pop(key, None)

    def forget(self, step: Forget) -> Fact | None:
        """Forget the current value of a slot, or its oldest one that is history; the value that went."""
        held = self.current(step.slot)
        old = sorted(t for s, t in self.facts if s == step.slot and (held is None or t != held.time))
        if step.is_current:
            gone = held
        else:
            gone = Fact(step.slot, self.facts[step.slot, old[0]][0], old[0]) if old else None
        if gone is not None:
            self.drop([(gone.slot, gone.time)])
        return gone

    def forget_conversation(self, conversation: str) -> None:
        """Forget all values told in it."""
        self.drop([key for key, (_, where) in self.facts.items() if where == conversation])


# --- how it runs --------------------------------------------------------------------------------


class Tiny:
    """An embedding model of two dimensions: quick, and what a slot holds does not depend on it."""

    def __init__(self) -> None:
        self.identity = EmbedderIdentity(Source.DIFY, "test", "tiny")

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """See `memory.embedding.Embedder`."""
        return [[1.0, len(text) / 100] for text in texts]

    def embed_query(self, text: str) -> Vector:
        """See `memory.embedding.Embedder`."""
        return [1.0, 0.0]

    def chosen(self) -> EmbedderIdentity | None:
        """See `memory.embedding.EmbedderChoice`."""
        return self.identity

    def open(self, identity: EmbedderIdentity) -> Embedder:
        """See `memory.embedding.EmbedderChoice`."""
        return self


class Saying:
    """A language model that lists the facts it is given."""

    def __init__(self) -> None:
        self.facts: Sequence[Fact] = ()

    def complete(self, system: str, user: str) -> Completion:
        """See `memory.extraction.model.LanguageModel`."""
        return Completion(json.dumps({"facts": [fact.item() for fact in self.facts]}), 1)


class Writers:
    """Two engines on one namespace, with a clock that goes on with every look at it."""

    def __init__(self, chroma: ChromaSettings) -> None:
        ticks = itertools.count(1)
        self.model = Saying()
        self.engines = [
            Engine(
                chroma,
                Tiny(),
                language_model=self.model,
                clock=lambda: START + 86_400.0 + next(ticks),
            )
            for _ in range(2)
        ]

    def run(self, customer_id: str, steps: Sequence[Step], truth: Truth) -> None:
        """Run the steps for a customer, and the model beside them."""
        for step in steps:
            engine = self.engines[step.writer]
            if isinstance(step, Tell):
                self.model.facts = step.facts
                caller = Caller.checked(
                    customer_id, f"{customer_id}-{step.conversation}" if step.conversation else None
                )
                engine.remember(
                    caller, [Statement("As listed.", Role.CUSTOMER, Kind.EPISODIC, 0)], Note(extracts=True)
                )
                truth.tell(step)
            elif isinstance(step, Forget):
                gone = truth.forget(step)
                if gone is not None:
                    self._forget_one(engine, customer_id, gone)
            else:
                caller = Caller.checked(customer_id, f"{customer_id}-{step.conversation}")
                engine.forget(caller, Request(reach=Reach.CONVERSATION, phase=Phase.DELETE))
                truth.forget_conversation(step.conversation)

    def _forget_one(self, engine: Engine, customer_id: str, gone: Fact) -> None:
        known = {(m.attribute, m.occurred_at): m for m in self.known(customer_id)}
        memory = known[gone.slot, START + gone.time]
        answer = engine.forget(
            Caller.checked(customer_id), Request(phase=Phase.DELETE, memory_ids=(memory.memory_id,))
        )
        assert answer.deleted == 1

    def known(self, customer_id: str) -> list[Memory]:
        """Everything a recall shows, history included."""
        question = Question(limit=100, include_superseded=True)
        return [hit.memory for hit in self.engines[0].recall(Caller.checked(customer_id), question).hits]


@pytest.fixture(scope="module")
def chroma_settings(chroma: ChromaServer) -> ChromaSettings:
    """A namespace that hundreds of customers share."""
    return ChromaSettings(
        url=chroma.url, namespace=f"h{uuid.uuid4().hex[:12]}", shards=32, timeout_seconds=240.0
    )


# --- random histories ---------------------------------------------------------------------------


@st.composite
def _histories(draw: st.DrawFn) -> list[Step]:
    """Steps on few slots; every time of a slot has one value, which may be told again."""
    values = {
        (slot, time): draw(st.sampled_from(["red", "teal", "blue", None])) for slot in SLOTS for time in TIMES
    }
    facts = st.builds(
        lambda slot, time: Fact(slot, values[slot, time], time),
        st.sampled_from(SLOTS),
        st.sampled_from(TIMES),
    )
    writers = st.integers(0, 1)
    tells = st.builds(
        Tell,
        st.lists(facts, min_size=1, max_size=3, unique=True).map(tuple),
        writers,
        st.sampled_from(CONVERSATIONS),
    )
    steps: st.SearchStrategy[Step] = st.one_of(
        tells,
        tells,
        tells,
        st.builds(Forget, st.sampled_from(SLOTS), st.booleans(), writers),
        st.builds(ForgetConversation, st.just("c1"), writers),
    )
    return [draw(tells), *draw(st.lists(steps, min_size=1, max_size=MAX_STEPS - 1))]


_customers: Iterator[str] = (f"customer-{number}" for number in itertools.count())


@settings(
    max_examples=SEQUENCES,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(steps=_histories(), chance=st.randoms(use_true_random=False))
def test_a_slot_holds_the_right_value_after_any_history(
    chroma_settings: ChromaSettings, steps: list[Step], chance: Random
) -> None:
    """One current value or none, the one the model names, and the same for the facts in another order."""
    writers = Writers(chroma_settings)
    customer_id, truth = next(_customers), Truth()
    writers.run(customer_id, steps, truth)
    expect(writers, customer_id, truth)
    told = [step for step in steps if isinstance(step, Tell)]
    if len(told) == len(steps):
        facts = [fact for step in told for fact in step.facts]
        chance.shuffle(facts)
        half = len(facts) // 2
        halves = [Tell(tuple(part), n, "") for n, part in enumerate((facts[:half], facts[half:])) if part]
        other = next(_customers)
        writers.run(other, halves, Truth())
        expect(writers, other, truth)


def expect(writers: Writers, customer_id: str, truth: Truth) -> None:
    """What a recall shows is what the model says: every value there is, and which of them hold."""
    known = writers.known(customer_id)
    held = {slot: truth.current(slot) for slot in SLOTS}
    shown = {slot: [m.text for m in known if m.is_current and m.attribute == slot] for slot in SLOTS}
    assert shown == {slot: [] if fact is None else [fact.text] for slot, fact in held.items()}
    assert sorted((m.attribute, m.occurred_at - START) for m in known) == sorted(truth.facts)


def test_a_value_told_in_a_forgotten_conversation_does_not_bring_back_an_older_one(
    chroma_settings: ChromaSettings,
) -> None:
    """Also where a fact that arrives late makes the slot be looked at again."""
    writers, customer_id, truth = Writers(chroma_settings), next(_customers), Truth()
    steps: list[Step] = [
        Tell((Fact("plan", "red", 3),), 0, ""),
        Tell((Fact("plan", "teal", 5),), 1, "c1"),
        ForgetConversation("c1", 0),
        Tell((Fact("plan", "blue", 1),), 1, ""),
    ]

    writers.run(customer_id, steps, truth)
    assert truth.current("plan") is None
    expect(writers, customer_id, truth)


def test_a_withdrawal_told_in_a_forgotten_conversation_goes_with_it(chroma_settings: ChromaSettings) -> None:
    """Nothing of the conversation is left, and what it had ended is no value again."""
    writers, customer_id = Writers(chroma_settings), next(_customers)
    steps: list[Step] = [
        Tell((Fact("plan", "red", 3),), 0, ""),
        Tell((Fact("plan", None, 5),), 1, "c1"),
        ForgetConversation("c1", 0),
        Tell((Fact("plan", "blue", 1),), 1, ""),
    ]

    writers.run(customer_id, steps, Truth())
    assert [m for m in writers.known(customer_id) if m.is_current] == []


def test_a_value_withdrawn_twice_in_one_batch_ends_once(chroma_settings: ChromaSettings) -> None:
    """A language model may list the same withdrawal for two messages; the batch is stored all the same."""
    writers, customer_id, truth = Writers(chroma_settings), next(_customers), Truth()
    steps: list[Step] = [
        Tell((Fact("plan", "red", 3),), 0, ""),
        Tell((Fact("plan", None, 5), Fact("plan", None, 5)), 1, ""),
    ]

    writers.run(customer_id, steps, truth)
    expect(writers, customer_id, truth)
