"""Memories of many customers, generated: the same seed gives the same ones. No real people, no model."""

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from memory.embedding import Vector
from memory.identity import scope_of_customer
from memory.records import Kind, Memory, Role, in_scope
from memory.scope import Scope
from memory.store import Stored
from memory.text import digest

DIMENSION = 512
"""Length of a vector; that of the built-in embedder."""
NOISE = 0.1
"""How alike unrelated texts are, as a cosine."""
FEWEST, MOST = 5, 2_000
"""Memories of one customer."""
EXACT = 200
"""Memories of the customers that questions are asked of."""
TOPICS = 300
WORDS_A_TOPIC = 40
CONVERSATION = 6
"""Messages of one conversation."""
STARTED_AT = 1_700_000_000.0
_GLUE = [
    "the",
    "a",
    "of",
    "with",
    "and",
    "my",
    "our",
    "for",
    "is",
    "was",
    "on",
    "to",
    "it",
    "this",
    "that",
    "when",
    "please",
]
_SPREAD = 1.2
"""Length of what makes a vector differ from that of its topic, which has length 1."""


@dataclass(frozen=True, slots=True)
class Customer:
    """A customer and how many memories there are of it."""

    number: int
    memories: int

    @property
    def customer_id(self) -> str:
        """The opaque id."""
        return f"customer-{self.number:07d}"

    @property
    def scope(self) -> Scope:
        """Whose memory."""
        return scope_of_customer(self.customer_id)


def customers(memories: int, *, exact: int, seed: int = 0) -> list[Customer]:
    """Customers whose sizes follow Zipf's law, 5 to 2,000, among them some of exactly 200.

    Args:
        memories: of all of them together; 200 for each of `exact` and 2,005 more at the least.
        exact: how many have exactly 200, in no particular places.
        seed: another one gives other sizes.
    """
    rest = memories - exact * EXACT
    if rest < FEWEST + MOST:
        raise ValueError("too few memories for so many customers")
    chance = random.Random(seed)
    sizes = [EXACT] * exact
    while rest:
        # The share of customers with more than n memories falls as 1 / n does, which is Zipf's law.
        size = min(MOST, rest, int(FEWEST / (1.0 - chance.random())))
        if 0 < rest - size < FEWEST:
            continue
        sizes.append(size)
        rest -= size
    chance.shuffle(sizes)
    return [Customer(number, size) for number, size in enumerate(sizes)]


class Memories:
    """What is known of each customer, and questions about it.

    Args:
        seed: another one gives other texts and vectors.
    """

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        chance = random.Random(seed)
        syllables = [a + b for a in "bdfghklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er", "ol")]
        words = ["".join(chance.sample(syllables, chance.choice((2, 2, 3)))) for _ in range(3_000)]
        self._words = [chance.sample(words, WORDS_A_TOPIC) for _ in range(TOPICS)]
        topics = np.random.default_rng(seed).standard_normal((TOPICS, DIMENSION))
        self._topics = topics / np.linalg.norm(topics, axis=1, keepdims=True)

    def of(self, customer: Customer) -> list[Stored]:
        """All memories of a customer with their vectors, in the order they were said."""
        chance = random.Random(f"{self._seed} {customer.number}")
        topics = [chance.randrange(TOPICS) for _ in range(customer.memories)]
        vectors = self._vectors(topics, customer.number)
        began = STARTED_AT + chance.random() * 30_000_000
        return [
            (self._memory(customer, place, topic, began, chance), vector)
            for place, (topic, vector) in enumerate(zip(topics, vectors, strict=True))
        ]

    def more(self, customer: Customer, number: int) -> Stored:
        """One more memory of a customer, later than all of `of`; another number, another one."""
        chance = random.Random(f"{self._seed} {customer.number} more {number}")
        topic = chance.randrange(TOPICS)
        place = customer.memories + number * CONVERSATION
        memory = self._memory(customer, place, topic, STARTED_AT + 31_000_000, chance)
        return memory, self._vectors([topic], customer.number, 0, number)[0]

    def question(self, customer: Customer, number: int) -> tuple[str, Vector]:
        """A question about something the customer spoke of, with its vector; another number, another one."""
        chance = random.Random(f"{self._seed} {customer.number}")
        topics = [chance.randrange(TOPICS) for _ in range(customer.memories)]
        asking = random.Random(f"{self._seed} {customer.number} {number}")
        topic = asking.choice(topics)
        words = asking.sample(self._words[topic], 3)
        text = f"What did they say about {words[0]} and {words[1]} {words[2]} ({number})?"
        return text, self._vectors([topic], customer.number, 1 + number)[0]

    def _memory(
        self, customer: Customer, place: int, topic: int, began: float, chance: random.Random
    ) -> Memory:
        said = chance.choices(self._words[topic], k=chance.randint(6, 14))
        said += chance.choices(_GLUE, k=chance.randint(4, 10))
        chance.shuffle(said)
        text = f"{' '.join(said).capitalize()}, order {chance.randrange(10_000, 99_999)}."
        conversation = f"{customer.customer_id}-{place // CONVERSATION}"
        at = began + 86_400.0 * (place // CONVERSATION) + 60.0 * (place % CONVERSATION)
        memory = Memory(
            memory_id="",
            text=text,
            kind=Kind.EPISODIC,
            role=Role.AGENT if place % 3 == 2 else Role.CUSTOMER,
            conversation_id=conversation,
            occurred_at=at,
            recorded_at=at,
            basis=conversation,
            digest=digest(text),
        )
        return in_scope(memory, customer.scope)

    def _vectors(self, topics: Sequence[int], *numbers: int) -> list[list[float]]:
        chance = np.random.default_rng([self._seed, *numbers])
        noise = chance.standard_normal((len(topics), DIMENSION)) * (_SPREAD / DIMENSION**0.5)
        vectors = self._topics[topics] + noise
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        listed: list[list[float]] = vectors.astype(np.float32).tolist()
        return listed


def chunks(every: Sequence[Customer], memories: int) -> Iterator[list[Customer]]:
    """Customers in order, in groups of about so many memories."""
    ends = itertools.accumulate(customer.memories for customer in every)
    groups = itertools.groupby(zip(every, ends, strict=True), lambda pair: (pair[1] - 1) // memories)
    for _, group in groups:
        yield [customer for customer, _ in group]
