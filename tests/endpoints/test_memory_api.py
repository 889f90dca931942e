"""The memory API: remember, recall, list, forget and link over HTTP, each as its node does."""

from urllib.parse import quote

import pytest

from tests.endpoints.conftest import Api


def test_what_one_system_remembers_another_recalls(api: Api) -> None:
    """POST /memories, then POST /recall."""
    stored = api.post("/memories", {"customer_id": "A", "content": "Prefers tea to coffee"})
    assert (stored["stored"], stored["memories"][0]["action"]) == (1, "created")
    found = api.post("/recall", {"customer_id": "A", "query": "Prefers tea to coffee"})
    assert (found["found"], found["memories"][0]["score"]) == (1, 1.0)
    assert "Prefers tea to coffee" in found["context"]
    assert api.post("/recall", {"customer_id": "B", "query": "tea"})["found"] == 0


def test_listing_pages_to_the_end_though_memories_go_on_the_way(api: Api) -> None:
    """Every memory comes once; deleting one already listed shifts nothing."""
    messages = [{"role": "user", "content": f"Message number {i}"} for i in range(25)]
    api.post("/memories", {"customer_id": "A", "content": messages})
    seen: list[str] = []
    cursor = ""
    while True:
        page = api.get(f"/memories?customer_id=A&limit=7&cursor={cursor}")
        seen += [m["text"] for m in page["memories"]]
        first = page["memories"][0]["memory_id"]
        api.send("DELETE", f"/memories?customer_id=A&memory_ids={first}&dry_run=false")
        cursor = page["cursor"]
        if not cursor:
            break
    assert sorted(seen) == sorted(m["content"] for m in messages)


def test_listing_filters_by_kind_and_shows_history_on_request(api: Api) -> None:
    """Superseded values are listed only when asked for."""
    for content in ("Uses MySQL", "Uses PostgreSQL"):
        api.post("/memories", {"customer_id": "A", "content": content, "attribute": "database"})
    api.post("/memories", {"customer_id": "A", "content": "Payment failed", "kind": "episodic"})
    listed = api.get("/memories?customer_id=A&kind=semantic")["memories"]
    assert [m["text"] for m in listed] == ["Uses PostgreSQL"]
    listed = api.get("/memories?customer_id=A&include_superseded=true")["memories"]
    assert {m["text"]: m["is_current"] for m in listed} == {
        "Uses MySQL": False,
        "Uses PostgreSQL": True,
        "Payment failed": True,
    }


def test_deletion_is_a_preview_unless_told_otherwise(api: Api) -> None:
    """dry_run is true by default."""
    api.post("/memories", {"customer_id": "A", "content": "Prefers tea"})
    preview = api.send("DELETE", "/memories?customer_id=A&everything=true").json()
    assert (preview["matched"], preview["deleted"]) == (1, 0)
    gone = api.send("DELETE", "/memories?customer_id=A&everything=true&dry_run=false").json()
    assert (gone["deleted"], gone["receipt"]["verified"]) == (1, True)
    assert api.texts("A") == []


def test_deletion_has_to_say_what(api: Api) -> None:
    """A customer alone is not enough to delete all of it."""
    assert api.error("DELETE", "/memories?customer_id=A&dry_run=false") == (400, "parameter_missing")
    assert api.error("DELETE", "/memories?everything=true") == (400, "customer_missing")


def test_deletion_by_conversation_case_and_time(api: Api) -> None:
    """Each narrows to what it names."""
    for name, conversation, case, day in (
        ("one", "c1", "k1", "2024-03-01"),
        ("two", "c2", "k1", "2024-03-02"),
        ("three", "c3", "", "2024-03-03"),
    ):
        api.post(
            "/memories",
            {
                "customer_id": "A",
                "conversation_id": conversation,
                "case_id": case,
                "content": name,
                "kind": "episodic",
                "occurred_at": day,
            },
        )
    for query, matched in (
        ("conversation_id=c1", 1),
        ("case_id=k1", 2),
        ("before=2024-03-03", 2),
        ("everything=true", 3),
    ):
        answer = api.send("DELETE", f"/memories?customer_id=A&{query}").json()
        assert answer["matched"] == matched, query


def test_links_are_put_and_found_both_ways(api: Api) -> None:
    """By conversation and by customer; a conversation of another customer is a conflict."""
    put = api.send("PUT", "/links", {"conversation_id": "c/1", "customer_id": "A", "case_id": "k"})
    assert put.json()["linked"] is True
    assert api.get(f"/links?conversation_id={quote('c/1', safe='')}")["links"][0]["customer_id"] == "A"
    assert [link["case_id"] for link in api.get("/links?customer_id=A")["links"]] == ["k"]
    assert api.get("/links?customer_id=B")["links"] == []
    assert api.get("/links?conversation_id=unknown")["links"] == []
    body = {"conversation_id": "c/1", "customer_id": "B"}
    assert api.error("PUT", "/links", body) == (409, "conversation_of_another_customer")
    moved = api.send("PUT", "/links", {**body, "relink": True}).json()
    assert moved["previous_customer_id"] == "A"


@pytest.mark.parametrize("customer", ["a%", "a/b?c=d&e#f+g", "客户 七", "\U0001f375", "a" * 300, "x'\"y"])
def test_ids_travel_whole_in_the_query(api: Api, customer: str) -> None:
    """Whatever an id holds, it is that customer and no other."""
    api.post("/memories", {"customer_id": customer, "content": "Prefers tea"})
    api.post("/memories", {"customer_id": customer + "1", "content": "Prefers coffee"})
    assert api.texts(quote(customer, safe="")) == ["Prefers tea"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", (400, "customer_missing")),
        (b"[1, 2", (400, "body_invalid")),
        (b"[1, 2]", (400, "body_invalid")),
        (b"\xff\xfe", (400, "body_invalid")),
        (b"[" * 100_000, (400, "body_invalid")),
        (b'{"customer_id": ["A"]}', (400, "id_invalid")),
        (b'{"customer_id": " ", "content": "x"}', (400, "id_invalid")),
        (b'{"customer_id": "\\ud800", "content": "x"}', (400, "id_invalid")),
        (b'{"customer_id": "A", "content": 7}', (422, "content_invalid")),
        (b'{"customer_id": "A", "content": "x", "kind": "idea"}', (400, "parameter_invalid")),
        (b'{"customer_id": "A", "content": "x", "occurred_at": "soon"}', (400, "parameter_invalid")),
        (b'{"customer_id": "A", "content": "x", "metadata": {"case_id": "1"}}', (422, "metadata_invalid")),
    ],
)
def test_bad_body_gets_its_own_status_and_code(api: Api, body: bytes, expected: tuple[int, str]) -> None:
    """None of them is a 500, and nothing is stored."""
    assert api.error("POST", "/memories", body) == expected
    assert api.texts("A") == []
