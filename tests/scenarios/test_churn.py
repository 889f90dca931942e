"""Small customers among thousands of memories that come and go in the same collection."""

from development.chroma_server import ChromaServer
from memory.identity import Caller, scope_of_customer
from memory.recalling import Question
from memory.records import row_id
from memory.repairing import Condition, Repair
from memory.store import Stored
from tests.scenarios.engines import HashChoice, Place, rows_of, vector_of

SMALL = [f"small-{n}" for n in range(30)]
ROUNDS = 12
BATCH = 500


def passing(customer_id: str, number: int) -> list[Stored]:
    """Memories of a customer who is gone again soon."""
    return rows_of(customer_id, [f"Passing {customer_id} {number} {each}" for each in range(BATCH)])


def test_a_small_customers_memories_are_found_after_heavy_churn(chroma: ChromaServer, namespace: str) -> None:
    """Of thirty customers with three memories, each is found by its own words, by recall and by the index.

    Six thousand other memories were written beside them and erased, each vector overwritten before, twice
    over what the server keeps in its log.
    """
    place = Place(chroma.url, namespace, shards=1)
    said = {
        customer_id: [f"{customer_id} likes {each}" for each in ("tea", "lamps", "trains")]
        for customer_id in SMALL
    }
    for customer_id, texts in said.items():
        place.remember(customer_id, *texts)
    store = place.store
    for number in range(ROUNDS):
        scope = scope_of_customer(f"passing-{number % 3}")
        memories = passing(scope.customer_id, number)
        place.namespace.chroma.renew()
        store.write(scope, memories)
        store.nearest(scope, vector_of("anything"), limit=1)
        store.erase(scope, [memory for memory, _ in memories])
    place.namespace.chroma.renew()
    collection = place.namespace.memories(0)
    assert place.namespace.chroma.count(collection) == len(SMALL) * 3
    for customer_id, texts in said.items():
        scope = scope_of_customer(customer_id)
        ids = {m.text: row_id(m.memory_id, m.part) for m in store.live(scope)}
        for text in texts:
            near = store.nearest(scope, vector_of(text), limit=10)
            assert near.keys() == set(ids.values())
            assert next(iter(near)) == ids[text]
            hits = place.engine.recall(Caller.checked(customer_id), Question(query=text, min_score=0.0)).hits
            assert hits[0].memory.text == text
            assert len(hits) == 3
    assert Repair(place.settings, HashChoice()).examine(collection).condition is Condition.SOUND
