"""Named keys through the real endpoint: each does what its rights say, and none of them shows."""

import json
from typing import Any

import pytest

from dify.keys import Right
from tests.endpoints.conftest import KEY, Api, message, ticket

KEYS = {right: f"key-for-{right}-{'x' * 12}" for right in Right}
EVERY_KEY = "key-for-all-but-admin-xx"

CALLS: list[tuple[Right, str, str, Any]] = [
    (Right.READ, "POST", "/recall", {"customer_id": "A", "query": "tea"}),
    (Right.READ, "GET", "/memories?customer_id=A", None),
    (Right.READ, "GET", "/links?customer_id=A", None),
    (Right.READ, "GET", "/tickets?source=shop&ticket_id=1", None),
    (Right.WRITE, "POST", "/memories", {"customer_id": "A", "content": "Prefers coffee"}),
    (Right.WRITE, "POST", "/tickets/import", {"tickets": [ticket("2", "A", message(1, "Hello"))]}),
    (Right.WRITE, "PUT", "/links", {"customer_id": "A", "conversation_id": "c"}),
    (Right.ERASE, "DELETE", "/memories?customer_id=A&everything=true&dry_run=false", None),
    (Right.ERASE, "DELETE", "/tickets?source=shop&ticket_id=1", None),
    (Right.ADMIN, "POST", "/maintenance/expire", None),
    (Right.ADMIN, "GET", "/audit", None),
    (Right.ADMIN, "GET", "/metrics", None),
]


@pytest.fixture
def keyed(api: Api) -> Api:
    """The endpoint with a key for each right and something to find."""
    lines = [f"{right} {key} {right}" for right, key in KEYS.items()]
    api.settings["api_keys"] = "\n".join([*lines, f"every {EVERY_KEY} read,write,erase"])
    api.post("/memories", {"customer_id": "A", "content": "Prefers tea"})
    api.post("/tickets/import", {"tickets": [ticket("1", "A", message(1, "Hello"))]})
    return api


@pytest.mark.parametrize(("right", "method", "path", "body"), CALLS)
def test_a_route_wants_its_own_right(keyed: Api, right: Right, method: str, path: str, body: Any) -> None:
    """Every other right is refused before anything is done; then the right one finds it all still there."""
    before = keyed.texts("A")
    for other in Right:
        if other is not right:
            assert keyed.error(method, path, body, key=KEYS[other]) == (403, "forbidden")
    if right is not Right.ADMIN:
        assert keyed.error(method, path, body, key=KEYS[right] + "x") == (401, "unauthorized")
    assert keyed.texts("A") == before
    assert keyed.send(method, path, body, key=KEYS[right]).status == 200


def test_a_preview_wants_the_right_to_read_too(keyed: Api) -> None:
    """It shows memories; who may only erase learns nothing by it."""
    for path in ("/memories?customer_id=A&everything=true", "/memories?customer_id=A&query=tea&dry_run=true"):
        assert keyed.error("DELETE", path, key=KEYS[Right.ERASE]) == (403, "forbidden")
        assert keyed.error("DELETE", path, key=KEYS[Right.READ]) == (403, "forbidden")
        shown = keyed.send("DELETE", path, key=EVERY_KEY).json()
        assert shown["receipt"]["memories"]


def test_health_tells_an_admin_only(keyed: Api) -> None:
    """Every key is told that the plugin is there."""
    assert "rows" in keyed.send("GET", "/health", key=KEYS[Right.ADMIN]).json()
    for right in (Right.READ, Right.WRITE, Right.ERASE):
        assert keyed.send("GET", "/health", key=KEYS[right]).json() == {"status": "ok"}


@pytest.mark.parametrize(
    ("method", "path", "body"), [(m, p, b) for _, m, p, b in CALLS] + [("GET", "/health", None)]
)
def test_settings_that_cannot_be_read_let_nobody_in(api: Api, method: str, path: str, body: Any) -> None:
    """Not even with the key that would be right; the answer has the place and none of the content."""
    api.settings["api_keys"] = (
        "good a-key-that-would-be-right read,write,erase,admin; bad SECRET-SECRET-SECRET raed"
    )
    for key in (KEY, "a-key-that-would-be-right", "SECRET-SECRET-SECRET", None):
        answer = api.send(method, path, body, key=key)
        assert (answer.status, answer.json()["error"]["code"]) == (500, "api_keys_invalid")
        assert "in key 2" in answer.json()["error"]["message"]
        assert b"SECRET" not in answer.body
        assert b"would-be-right" not in answer.body


def test_no_key_is_in_an_answer_or_a_log(keyed: Api) -> None:
    """Neither a right one, nor a wrong one, nor one that was sent where it does not belong."""
    wrong = "a-wrong-key-that-somebody-sent"
    told: list[bytes] = []
    for _, method, path, body in CALLS:
        for key in (*KEYS.values(), wrong):
            told.append(keyed.send(method, path, body, key=key).body)
    keyed.settings["api_keys"] = f"a {KEYS[Right.READ]} read; a {EVERY_KEY} read"
    told += [keyed.send("GET", "/audit", key=key).body for key in (KEY, wrong)]
    output = b"\n".join(told) + json.dumps([keyed.process.stdout, keyed.process.stderr]).encode()
    for key in (KEY, *KEYS.values(), EVERY_KEY, wrong):
        assert key.encode() not in output
