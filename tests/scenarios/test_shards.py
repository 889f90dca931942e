"""A namespace of one collection, and one of as many as there may be, serve every verb."""

import pytest

from development.chroma_server import ChromaServer
from memory.identity import Caller, scope_of_customer
from memory.settings import SHARDS_RANGE
from tests.scenarios.engines import Place, tickets_of

CUSTOMERS = [f"customer-{number}" for number in range(24)]
EXPORT = b"""{"tickets": [{"source": "shop", "ticket_id": "7", "customer_id": "customer-3", "subject": "Lid",
 "messages": [{"message_id": "1", "role": "customer", "created_at": "2026-03-01T10:00:00Z",
 "text": "The lid is broken."}]}]}"""


@pytest.mark.parametrize("shards", SHARDS_RANGE)
def test_a_namespace_of_the_fewest_and_the_most_collections(
    chroma: ChromaServer, namespace: str, shards: int
) -> None:
    """Written, found, linked, imported, counted, backed up, merged and erased; nobody meets another's."""
    place = Place(chroma.url, namespace, shards=shards)
    for customer_id in CUSTOMERS:
        place.remember(customer_id, f"Belongs to {customer_id}.")
    assert len({scope_of_customer(c).shard(shards) for c in CUSTOMERS}) == (1 if shards == 1 else 24)
    assert [place.texts(c) for c in CUSTOMERS] == [[f"Belongs to {c}."] for c in CUSTOMERS]

    place.remember("", "Said before.", conversation_id="c1")
    assert place.engine.link(Caller.checked("customer-1", "c1")).moved == 1
    place.engine.import_tickets(tickets_of(EXPORT))
    place.engine.administration.merge("customer-4", "customer-5")
    assert place.texts("customer-1") == ["Belongs to customer-1.", "Said before."]
    assert place.texts("customer-3") == ["Belongs to customer-3.", "The lid is broken."]
    assert place.texts("customer-4") == ["Belongs to customer-4.", "Belongs to customer-5."]

    assert place.engine.administration.describe()["shards"] == shards
    lines = [line for lines in place.engine.administration.back_up("") for line in lines]
    other = Place(chroma.url, f"{namespace}x", shards=2)
    for _ in other.engine.administration.restore(lines).steps():
        pass
    assert other.texts("customer-3") == place.texts("customer-3")

    place.erase("customer-1")
    assert place.texts("customer-1") == []
    place.engine.administration.expire()
    assert place.texts("customer-2") == ["Belongs to customer-2."]
