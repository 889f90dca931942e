"""What was forgotten is not imported again; what is said anew is."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.conftest import Json
from tests.endpoints.conftest import Api, message, ticket


def statuses(report: Json) -> Json:
    """The counts of a report that are not zero."""
    return {status: n for status, n in report["tickets"].items() if n}


def imported(api: Api, *tickets: Json, query: str = "") -> Json:
    """Import tickets; the counts."""
    return statuses(api.post(f"/tickets/import{query}", {"tickets": list(tickets)}))


def later(number: int, text: str) -> Json:
    """A message that is written after whatever was forgotten so far."""
    at = datetime.now(UTC) + timedelta(minutes=1)
    return {**message(number, text), "created_at": at.isoformat()}


def delete(api: Api, query: str) -> Any:
    """Forget for good."""
    answer = api.send("DELETE", f"/memories?{query}&dry_run=false")
    assert answer.status == 200, answer.body
    return answer.json()


def test_a_forgotten_ticket_stays_forgotten_and_its_new_messages_come(api: Api) -> None:
    """The same again, changed or not, in a dry run too; a later message is imported by itself."""
    one = ticket("1", "A", message(1, "First"), message(2, "Second"))
    other = ticket("2", "A", message(1, "Other"))
    imported(api, one, other)
    answer = api.send("DELETE", "/tickets?source=shop&ticket_id=1").json()
    assert (answer["deleted"], answer["receipt"]["scope"]) == (2, "ticket")

    assert imported(api, one, other, query="?dry_run=true") == {"forgotten": 1, "unchanged": 1}
    assert imported(api, one, other) == {"forgotten": 1, "unchanged": 1}
    assert imported(api, {**one, "status": "closed"}) == {"forgotten": 1}
    assert api.texts("A") == ["Other"]
    assert api.error("GET", "/tickets?source=shop&ticket_id=1") == (404, "not_found")
    grown = {**one, "messages": [*one["messages"], later(3, "Said anew")]}
    assert imported(api, grown) == {"imported": 1}
    assert imported(api, grown) == {"unchanged": 1}
    assert api.texts("A") == ["Other", "Said anew"]


def test_a_forgotten_message_stays_forgotten_when_its_ticket_changes(api: Api) -> None:
    """Its neighbours in the ticket are kept, its answer goes along, and it may be remembered again."""
    answered = {**message(2, "We are sorry"), "role": "agent"}
    one = ticket("1", "A", message(1, "First"), answered, message(3, "Third"))
    imported(api, one)
    (first,) = [m for m in api.get("/memories?customer_id=A")["memories"] if m["text"] == "First"]
    delete(api, f"customer_id=A&memory_ids={first['memory_id']}")

    assert imported(api, one) == {"unchanged": 1}
    assert imported(api, {**one, "status": "closed"}) == {"replaced": 1}
    assert api.texts("A") == ["Third"]
    assert imported(api, ticket("2", "A", message(1, "First"))) == {"imported": 1}
    assert api.texts("A") == ["Third"]
    api.post("/memories", {"customer_id": "A", "content": "First"})
    assert api.texts("A") == ["Third", "First"]


def test_after_an_erasure_old_tickets_stay_out_and_the_customer_starts_anew(api: Api) -> None:
    """Also old tickets that were never imported; other customers' are imported; what is said now is."""
    one, two = ticket("1", "A", message(1, "First")), ticket("2", "A", message(2, "Never imported"))
    imported(api, one)
    delete(api, "customer_id=A&everything=true")

    assert imported(api, one, two, ticket("3", "B", message(1, "Others"))) == {"forgotten": 2, "imported": 1}
    assert (api.texts("A"), api.texts("B")) == ([], ["Others"])
    assert api.get("/links?customer_id=A")["links"] == []
    api.post("/memories", {"customer_id": "A", "content": "Said anew"})
    assert imported(api, ticket("4", "A", later(1, "Asked anew"))) == {"imported": 1}
    assert sorted(api.texts("A")) == ["Asked anew", "Said anew"]


def test_what_was_forgotten_comes_back_when_it_is_asked_for(api: Api) -> None:
    """With restore it is imported, stays so when its ticket changes, and may be forgotten again."""
    one, two = ticket("1", "A", message(1, "First")), ticket("2", "B", message(1, "Others"))
    imported(api, one, two)
    delete(api, "customer_id=A&everything=true")

    assert imported(api, one, two, query="?restore=true") == {"imported": 1, "unchanged": 1}
    assert api.texts("A") == ["First"]
    assert imported(api, {**one, "status": "closed"}) == {"replaced": 1}
    assert api.texts("A") == ["First"]
    delete(api, "customer_id=A&everything=true")
    assert imported(api, one) == {"forgotten": 1}


@pytest.mark.parametrize("reach", ["conversation_id=shop:1", "case_id=case-1"])
def test_a_forgotten_conversation_or_case_is_not_imported_again(api: Api, reach: str) -> None:
    """Its ticket stays out, its neighbour comes again."""
    one = ticket("1", "A", message(1, "First"), case_id="case-1")
    two = ticket("2", "A", message(1, "Second"), case_id="case-2")
    imported(api, one, two)
    delete(api, f"customer_id=A&{reach}")

    assert imported(api, one, {**two, "status": "closed"}) == {"forgotten": 1, "replaced": 1}
    assert api.texts("A") == ["Second"]


def test_receipts_are_listed_for_who_has_the_key(api: Api) -> None:
    """Newest first, for one customer through the keyed hash, without an id or a word."""
    api.settings["hash_key"] = "a-key-for-receipts"
    for customer in ("anna-7", "bert-7"):
        api.post("/memories", {"customer_id": customer, "content": "Likes teal"})
        delete(api, f"customer_id={customer}&everything=true")

    listed = api.get("/receipts")["receipts"]
    assert [r["counts"]["semantic"] for r in listed] == [1, 1]
    assert api.get("/receipts?customer_id=anna-7") == {"receipts": [listed[1]], "cursor": None}
    assert api.get("/receipts?limit=1") == {"receipts": [listed[0]], "cursor": "1"}
    assert not any(word in str(listed) for word in ("anna", "bert", "teal"))
    assert api.error("GET", "/receipts", key="wrong")[0] == 401
    api.settings["hash_key"] = ""
    assert api.error("GET", "/receipts?customer_id=anna-7") == (500, "setting_invalid")
