"""Two ids that are one person: merged with a preview, answered for under both ids, and undone."""

import json
from collections.abc import Callable
from urllib.parse import quote

import pytest

from tests.conftest import Json
from tests.endpoints.conftest import Api, message, ticket

ADA, OLD = "ada@example.com", "crm/42: Ada"


def remember(api: Api, customer_id: str, content: str, **more: object) -> Json:
    """Remember something of a customer, and give the answer."""
    answer: Json = api.post("/memories", {"customer_id": customer_id, "content": content, **more})
    return answer


def merge(api: Api, old: str = OLD, into: str = ADA, **more: object) -> Json:
    """Merge for real, unless told otherwise."""
    answer: Json = api.post("/merge", {"from": old, "into": into, "dry_run": False, **more})
    return answer


def known(api: Api, customer_id: str) -> dict[str, bool]:
    """All texts of a customer, history included, with whether each is current."""
    listed = api.get(f"/memories?customer_id={quote(customer_id, safe='')}&include_superseded=true&limit=500")
    assert listed["cursor"] is None
    return {m["text"]: m["is_current"] for m in listed["memories"]}


def links(api: Api, customer_id: str) -> list[str]:
    """The conversations of a customer."""
    listed = api.get(f"/links?customer_id={quote(customer_id, safe='')}")["links"]
    return sorted(link["conversation_id"] for link in listed)


@pytest.fixture
def two(api: Api) -> Api:
    """Two customers with facts, history, a shared statement, conversations and a ticket each."""
    plan: Json = {"attribute": "plan"}
    remember(api, OLD, "Plan is Basic", occurred_at="2024-01-01", **plan)
    remember(api, OLD, "Plan is Pro", occurred_at="2024-06-01", conversation_id="conv-old", **plan)
    remember(api, ADA, "Plan is Trial", occurred_at="2024-03-01", **plan)
    remember(api, OLD, "Lives in Oslo", occurred_at="2023-01-01", attribute="home")
    remember(api, ADA, "Lives in Bergen", occurred_at="2024-01-01", attribute="home")
    remember(api, OLD, "Likes teal")
    remember(api, ADA, "Likes teal")
    remember(api, OLD, "Call in the morning", kind="procedural")
    remember(api, ADA, "Owns a bicycle", conversation_id="conv-ada")
    for ticket_id, customer in (("1", OLD), ("2", ADA)):
        sent = {"tickets": [ticket(ticket_id, customer, message(1, f"Ticket {ticket_id} came"))]}
        assert api.post("/tickets/import", sent)["complete"]
    remember(api, "somebody else", "Drives a van")
    return api


TOGETHER = {
    "Plan is Basic": False,
    "Plan is Trial": False,
    "Plan is Pro": True,
    "Lives in Oslo": False,
    "Lives in Bergen": True,
    "Likes teal": True,
    "Call in the morning": True,
    "Owns a bicycle": True,
    "Ticket 1 came": True,
    "Ticket 2 came": True,
}
OLDS = {
    "Plan is Basic": False,
    "Plan is Pro": True,
    "Lives in Oslo": True,
    "Likes teal": True,
    "Call in the morning": True,
    "Ticket 1 came": True,
}
ADAS = {
    "Plan is Trial": True,
    "Lives in Bergen": True,
    "Likes teal": True,
    "Owns a bicycle": True,
    "Ticket 2 came": True,
}


def test_a_preview_says_what_would_move_and_moves_nothing(two: Api) -> None:
    """Counts by kind, what both have, links, tickets, and whose value wins where both have one."""
    preview = two.post("/merge", {"from": OLD, "into": ADA})

    assert preview == {
        "dry_run": True,
        "merge_id": None,
        "from": OLD,
        "into": ADA,
        "memories": 5,
        "kinds": {"episodic": 1, "procedural": 1, "semantic": 3},
        "shared": 1,
        "links": 2,
        "tickets": 1,
        "slots": [
            {"subject": "", "attribute": "home", "wins": "into"},
            {"subject": "", "attribute": "plan", "wins": "from"},
        ],
        "memory_ids": [],
    }
    assert (known(two, OLD), known(two, ADA)) == (OLDS, ADAS)


def test_both_ids_answer_for_one_customer_after_a_merge(two: Api) -> None:
    """Every memory once, with its history; slots settled; links and tickets too; the neighbour untouched."""
    done = merge(two)

    assert (done["dry_run"], done["memories"], done["shared"]) == (False, 5, 1)
    assert (done["links"], done["tickets"], len(done["memory_ids"])) == (2, 1, 6)
    assert known(two, ADA) == known(two, OLD) == TOGETHER
    assert links(two, ADA) == links(two, OLD) == ["conv-ada", "conv-old", "shop:1", "shop:2"]
    entry = two.get("/tickets?source=shop&ticket_id=1")
    assert (entry["customer_id"], set(entry["memory_ids"]) <= set(done["memory_ids"])) == (ADA, True)
    assert known(two, "somebody else") == {"Drives a van": True}
    listed = two.get(f"/memories?customer_id={quote(OLD, safe='')}")
    assert listed["customer_id"] == ADA
    assert {m["text"]: m["occurred_at"] for m in listed["memories"]}["Plan is Pro"] == "2024-06-01T00:00:00Z"


def test_the_answer_of_a_merge_holds_no_content(two: Api) -> None:
    """Ids and numbers only, so that it can be kept in a log."""
    text = json.dumps(merge(two))
    assert [word for word in ("Plan", "Oslo", "teal", "plan", "home") if word in text] == []


def test_nothing_is_embedded_again(plugin_requests: Callable[[], int], two: Api) -> None:
    """The vectors move as they are; recall by meaning finds what came over."""
    before = plugin_requests()
    merge(two)
    assert plugin_requests() == before
    found = two.post("/recall", {"customer_id": OLD, "query": "Call in the morning"})
    assert (found["memories"][0]["text"], found["memories"][0]["score"]) == ("Call in the morning", 1.0)


@pytest.fixture
def plugin_requests(api: Api) -> Callable[[], int]:
    """How often the plugin asked Dify for an embedding; the namespace uses a model of the workspace."""
    chosen = {"provider": "example/models/models", "model": "embed-1", "model_type": "text-embedding"}
    api.settings["embedding_model"] = chosen
    return lambda: len(api.process.workspace.requests)


EVERY_WAY: dict[str, Callable[[Api], object]] = {
    "remember": lambda api: remember(api, OLD, "Said later"),
    "remember in a new conversation": lambda api: remember(
        api, OLD, "Said later", conversation_id="conv-new"
    ),
    "remember in an old conversation": lambda api: remember(
        api, OLD, "Said later", conversation_id="conv-old"
    ),
    "remember by the conversation": lambda api: api.post(
        "/memories", {"content": "Said later", "conversation_id": "conv-old"}
    ),
    "remember in the other's conversation": lambda api: remember(
        api, OLD, "Said later", conversation_id="conv-ada"
    ),
    "the new id in the old one's conversation": lambda api: remember(
        api, ADA, "Said later", conversation_id="conv-old"
    ),
    "link": lambda api: [
        api.post("/memories", {"content": "Said later", "conversation_id": "conv-free"}),
        api.send("PUT", "/links", {"customer_id": OLD, "conversation_id": "conv-free"}),
    ],
    "import": lambda api: api.post(
        "/tickets/import", {"tickets": [ticket("3", OLD, message(2, "Said later"))]}
    ),
}


@pytest.mark.parametrize("way", EVERY_WAY)
def test_what_is_written_under_the_old_id_is_the_new_customers(two: Api, way: str) -> None:
    """In every verb, link and import."""
    merge(two)
    EVERY_WAY[way](two)

    assert known(two, ADA) == known(two, OLD) == {**TOGETHER, "Said later": True}
    assert two.post("/recall", {"customer_id": OLD, "query": "Said later"})["customer_id"] == ADA
    assert two.post("/recall", {"customer_id": ADA, "query": "Said later"})["memories"][0]["score"] == 1.0


def test_an_unchanged_ticket_of_the_old_id_stays_unchanged(two: Api) -> None:
    """An export sent again after a merge changes nothing; a changed one replaces what came from it."""
    merge(two)
    sent = {"tickets": [ticket("1", OLD, message(1, "Ticket 1 came"))]}
    assert two.post("/tickets/import", sent)["tickets"]["unchanged"] == 1
    sent = {"tickets": [ticket("1", OLD, message(1, "Ticket 1 changed"))]}
    assert two.post("/tickets/import", sent)["tickets"]["replaced"] == 1
    expected = {k: v for k, v in TOGETHER.items() if k != "Ticket 1 came"} | {"Ticket 1 changed": True}
    assert known(two, ADA) == expected


def test_the_old_ids_ticket_can_be_forgotten(two: Api) -> None:
    """By its number, as before."""
    merge(two)
    gone = two.send("DELETE", "/tickets?source=shop&ticket_id=1").json()
    assert (gone["deleted"], gone["verified"]) == (1, True)
    assert known(two, ADA) == {k: v for k, v in TOGETHER.items() if k != "Ticket 1 came"}


def test_a_merge_done_again_changes_nothing(two: Api) -> None:
    """The same list, and nothing twice."""
    assert merge(two) == merge(two)
    assert known(two, ADA) == TOGETHER


def test_an_undone_merge_leaves_both_as_they_were(two: Api) -> None:
    """Memories with their ids, history, links and ledger; what both had stays with both."""
    ids = {c: two.get(f"/memories?customer_id={quote(c, safe='')}")["memories"] for c in (OLD, ADA)}
    done = merge(two)
    undone = two.post("/merge/undo", {"merge_id": done["merge_id"]})

    assert (undone["undone"], undone["memory_ids"]) == (True, done["memory_ids"])
    assert (known(two, OLD), known(two, ADA)) == (OLDS, ADAS)
    assert (links(two, OLD), links(two, ADA)) == (["conv-old", "shop:1"], ["conv-ada", "shop:2"])
    for customer, memories in ids.items():
        listed = two.get(f"/memories?customer_id={quote(customer, safe='')}")["memories"]
        by_id = {m["memory_id"]: m for m in listed}
        assert by_id == {m["memory_id"]: m for m in memories}
    assert two.get("/tickets?source=shop&ticket_id=1")["customer_id"] == OLD
    assert two.error("POST", "/merge/undo", {"merge_id": done["merge_id"]}) == (404, "not_found")


def test_what_was_said_since_a_merge_stays_when_it_is_undone(two: Api) -> None:
    """And what was forgotten since is gone from both."""
    done = merge(two)
    remember(two, OLD, "Said under the old id", conversation_id="conv-later")
    remember(two, ADA, "Said under the new id")
    rule = next(
        m for m in two.get(f"/memories?customer_id={ADA}")["memories"] if m["text"] == "Call in the morning"
    )
    two.send("DELETE", f"/memories?customer_id={ADA}&memory_ids={rule['memory_id']}&dry_run=false")
    two.post("/merge/undo", {"merge_id": done["merge_id"]})

    assert known(two, OLD) == {k: v for k, v in OLDS.items() if k != "Call in the morning"}
    assert known(two, ADA) == {**ADAS, "Said under the old id": True, "Said under the new id": True}
    assert "conv-later" in links(two, ADA)
    remember(two, OLD, "Said after the undoing")
    assert known(two, OLD)["Said after the undoing"]
    assert "Said after the undoing" not in known(two, ADA)


def test_a_value_forgotten_by_the_old_customer_stays_forgotten(api: Api) -> None:
    """An older value of the slot, known to the other or imported later, does not come back to life."""
    told = remember(api, OLD, "Plan is Pro", attribute="plan", occurred_at="2024-06-01")
    gone = told["memories"][0]["memory_id"]
    api.send("DELETE", f"/memories?customer_id={quote(OLD, safe='')}&memory_ids={gone}&dry_run=false")
    remember(api, ADA, "Plan is Basic", attribute="plan", occurred_at="2024-01-01")
    done = merge(api)
    assert known(api, ADA) == {"Plan is Basic": False}
    api.post("/merge/undo", {"merge_id": done["merge_id"]})
    assert known(api, ADA) == {"Plan is Basic": True}
    remember(api, OLD, "Plan is Trial", attribute="plan", occurred_at="2024-02-01")
    assert known(api, OLD) == {"Plan is Trial": False}


def test_chains_lead_to_the_last_and_are_undone_from_the_end(api: Api) -> None:
    """A into B, B into C: A is C; undoing the second makes A and B one again."""
    for customer in "ABC":
        remember(api, customer, f"Said by {customer}")
    first = merge(api, "A", "B")
    second = merge(api, "B", "C")
    everything = {f"Said by {customer}": True for customer in "ABC"}
    assert known(api, "A") == known(api, "B") == known(api, "C") == everything
    assert api.error("POST", "/merge/undo", {"merge_id": first["merge_id"]}) == (409, "merge_conflict")

    api.post("/merge/undo", {"merge_id": second["merge_id"]})
    assert known(api, "A") == known(api, "B") == {"Said by A": True, "Said by B": True}
    assert known(api, "C") == {"Said by C": True}
    api.post("/merge/undo", {"merge_id": first["merge_id"]})
    assert [known(api, c) for c in "ABC"] == [{f"Said by {c}": True} for c in "ABC"]


def test_merging_into_an_alias_goes_to_its_target(api: Api) -> None:
    """And no ring can be made."""
    for customer in "ABC":
        remember(api, customer, f"Said by {customer}")
    merge(api, "A", "B")
    assert merge(api, "C", "A")["into"] == "B"
    assert known(api, "C") == {f"Said by {customer}": True for customer in "ABC"}
    ring = {"from": "B", "into": "A", "dry_run": False}
    assert api.error("POST", "/merge", ring) == (400, "customers_same")
    other = {"from": "A", "into": "D", "dry_run": False}
    assert api.error("POST", "/merge", other) == (409, "merge_conflict")
    assert api.error("POST", "/merge", {**other, "dry_run": True}) == (409, "merge_conflict")


@pytest.mark.parametrize("body", [{"into": "B"}, {"from": "A"}, {}])
def test_a_merge_needs_two_customers(api: Api, body: Json) -> None:
    """Each is said by name."""
    assert api.error("POST", "/merge", body) == (400, "parameter_missing")


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_customer_is_not_merged_with_itself(api: Api, dry_run: bool) -> None:
    """42 and "42" are one id."""
    body = {"from": 42, "into": " 42 ", "dry_run": dry_run}
    assert api.error("POST", "/merge", body) == (400, "customers_same")


def test_a_merge_before_anything_was_remembered_holds(api: Api) -> None:
    """Two customers of whom only links are known, or nothing."""
    api.send("PUT", "/links", {"customer_id": OLD, "conversation_id": "conv-old"})
    assert merge(api)["links"] == 1
    remember(api, OLD, "Said later")
    assert known(api, ADA) == {"Said later": True}
    assert links(api, ADA) == ["conv-old"]


def test_an_export_of_a_merged_customer_tells_all_and_the_old_id(two: Api) -> None:
    """Under either id; after an undo each has its own again."""
    done = merge(two)
    by_old, by_new = (two.get(f"/export?customer_id={quote(c, safe='')}") for c in (OLD, ADA))
    assert {m["text"]: m["is_current"] for m in by_old["memories"]} == TOGETHER
    assert (by_old["customer_id"], by_old["aliases"]) == (ADA, [OLD])
    assert [link["customer_id"] for link in by_old["links"]] == [ADA] * 4
    assert sorted(entry["ticket_id"] for entry in by_old["tickets"]) == ["1", "2"]
    assert {**by_old, "exported_at": ""} == {**by_new, "exported_at": ""}

    two.post("/merge/undo", {"merge_id": done["merge_id"]})
    again = two.get(f"/export?customer_id={quote(OLD, safe='')}")
    assert (again["customer_id"], again["aliases"]) == (OLD, [])
    assert {m["text"]: m["is_current"] for m in again["memories"]} == OLDS


def test_erasing_the_customer_frees_the_old_id(two: Api) -> None:
    """Under either id; afterwards both start anew, each for itself, and the merge cannot be undone."""
    done = merge(two)
    gone = two.send("DELETE", f"/memories?customer_id={quote(OLD, safe='')}&everything=true&dry_run=false")
    assert gone.json()["deleted"] == len(TOGETHER)

    assert (known(two, OLD), known(two, ADA), links(two, OLD), links(two, ADA)) == ({}, {}, [], [])
    assert two.error("POST", "/merge/undo", {"merge_id": done["merge_id"]}) == (404, "not_found")
    remember(two, OLD, "A new start")
    assert (known(two, OLD), known(two, ADA)) == ({"A new start": True}, {})


def test_a_conversation_taken_over_since_a_merge_stays_where_it_is(two: Api) -> None:
    """What left the customer after the merge is not fetched back by undoing it."""
    done = merge(two)
    moved = two.send(
        "PUT", "/links", {"customer_id": "somebody else", "conversation_id": "conv-old", "relink": True}
    )
    assert moved.json()["previous_customer_id"] == ADA
    two.post("/merge/undo", {"merge_id": done["merge_id"]})
    assert known(two, "somebody else") == {"Drives a van": True, "Plan is Pro": True}
    assert known(two, OLD) == {k: v for k, v in OLDS.items() if k != "Plan is Pro"} | {"Plan is Basic": True}
