"""What is kept of a customer between recalls never shows: recall finds what one that reads all anew finds."""

import random
from collections.abc import Callable

import pytest

from development.chroma_server import ChromaServer
from memory import searching
from memory.forgetting import Phase, Reach, Request
from memory.identity import Caller
from memory.known_rows import KnownRows
from memory.recalling import Question
from memory.searching import SEARCHES_BEFORE_VECTORS
from tests.scenarios.engines import Place

CUSTOMERS = ("ann", "bo", "cy")
WORDS = ["tea", "coffee", "parcel", "order", "lamp", "late", "refund", "street", "monday", "april", "blue"]
STEPS = 120

type Found = list[tuple[str, str, float]]


class Life:
    """A few customers to whom things happen at random.

    Args:
        place: their memory.
        chance: decides.
    """

    def __init__(self, place: Place, chance: random.Random) -> None:
        self._place, self._chance = place, chance
        self._ids: dict[str, list[str]] = {customer_id: [] for customer_id in CUSTOMERS}

    def go_on(self) -> None:
        """Something happens to somebody."""
        happens: dict[Callable[[str], None], int] = {
            self._says: 12,
            self._changes: 6,
            self._takes_back: 4,
            self._leaves: 1,
        }
        (what,) = self._chance.choices(list(happens), list(happens.values()))
        what(self._chance.choice(CUSTOMERS))

    def question(self) -> Question:
        """Anything."""
        with_history = self._chance.random() < 0.2
        return Question(query=self._text(), limit=50, min_score=0.0, include_superseded=with_history)

    def _text(self) -> str:
        return " ".join(self._chance.choices(WORDS, k=self._chance.randint(2, 6)))

    def _says(self, customer_id: str) -> None:
        texts = [self._text() for _ in range(self._chance.randint(1, 4))]
        told = self._place.remember(customer_id, *texts)
        self._ids[customer_id] += [outcome.memory.memory_id for outcome in told.outcomes]

    def _changes(self, customer_id: str) -> None:
        self._place.remember(customer_id, self._text(), attribute=self._chance.choice(WORDS[:3]))

    def _takes_back(self, customer_id: str) -> None:
        if ids := self._ids[customer_id]:
            memory_ids = (ids.pop(self._chance.randrange(len(ids))),)
            request = Request(reach=Reach.MATCHING, phase=Phase.DELETE, memory_ids=memory_ids)
            self._place.engine.forget(Caller.checked(customer_id), request)

    def _leaves(self, customer_id: str) -> None:
        self._place.erase(customer_id)
        self._ids[customer_id].clear()


@pytest.mark.parametrize("seed", [2, 3])
def test_a_recall_finds_what_one_without_any_memory_of_its_own_finds(
    chroma: ChromaServer, namespace: str, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """The same memories with the same scores, whatever was said, changed, taken back and erased between."""
    place, chance = Place(chroma.url, namespace, shards=1), random.Random(seed)  # noqa: S311 - not a secret
    life, kept = Life(place, chance), KnownRows()

    def found(customer_id: str, question: Question, known: KnownRows) -> Found:
        monkeypatch.setattr(searching, "known_rows", known)
        hits = place.engine.recall(Caller.checked(customer_id), question).hits
        return [(hit.memory.memory_id, hit.memory.text, hit.total) for hit in hits]

    for _ in range(STEPS):
        life.go_on()
        for _ in range(chance.choice([0, 1, SEARCHES_BEFORE_VECTORS + 2])):
            customer_id, question = chance.choice(CUSTOMERS), life.question()
            ours, anew = found(customer_id, question, kept), found(customer_id, question, KnownRows())
            assert {row[:2] for row in ours} == {row[:2] for row in anew}
            assert [row[2] for row in ours] == pytest.approx([row[2] for row in anew], abs=1e-3)
