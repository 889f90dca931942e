"""Whatever a request holds: an answer in JSON, no 5xx, no exception's text."""

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.endpoints.conftest import KEY, Api

ROUTES = ["/tickets/import", "/tickets", "/memories", "/recall", "/links", "/audit", "/health", "/", "/x"]
NAMES = [
    "customer_id",
    "conversation_id",
    "case_id",
    "content",
    "query",
    "limit",
    "kinds",
    "kind",
    "cursor",
    "memory_ids",
    "before",
    "since",
    "everything",
    "dry_run",
    "metadata",
    "occurred_at",
    "expires_in_days",
    "attribute",
    "max_tokens",
    "min_score",
    "format",
    "timezone",
    "source",
    "ticket_id",
    "customer_field",
    "customer_map",
    "relink",
    "tickets",
    "messages",
]
EXCEPTION_WORDS = (b"Traceback", b"Error(", b"Exception", b'File \\"', b"site-packages", b"object at 0x")

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=40)
    | st.sampled_from(["A", "2024-03-01", "true", "semantic", "zendesk", "canonical", "*", "-1", "1e400"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=8,
)
objects = st.dictionaries(st.sampled_from(NAMES), values, max_size=6)
tickets = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "ticket_id": st.sampled_from(["1", 2, None]) | values,
            "customer_id": st.sampled_from(["A", 7]) | values,
            "subject": st.text(max_size=20) | values,
            "messages": st.lists(
                st.fixed_dictionaries(
                    {},
                    optional={
                        "message_id": st.sampled_from(["1", "2"]) | values,
                        "role": st.sampled_from(["customer", "agent"]) | values,
                        "created_at": st.sampled_from(["2024-03-01T10:00:00Z", 1709287200]) | values,
                        "text": st.text(max_size=60) | values,
                        "html": st.sampled_from(["<p>Hi<br>", "<b"]) | values,
                        "public": values,
                    },
                ),
                max_size=3,
            )
            | values,
        },
    )
    | values,
    max_size=3,
)
bodies = (
    st.binary(max_size=60)
    | objects.map(lambda value: json.dumps(value).encode())
    | tickets.map(lambda value: json.dumps({"tickets": value}).encode())
    | values.map(lambda value: json.dumps(value).encode())
)
query_values = st.text(
    alphabet=st.characters(min_codepoint=0x21, max_codepoint=0x7E, exclude_characters="#&= "), max_size=20
) | st.sampled_from(["A", "2024-03-01", "true", "-1", "%00", "%ff", "%F0%9F%8D%B5", "semantic"])
queries = st.dictionaries(st.sampled_from(NAMES), query_values, max_size=4)
headers = st.sampled_from(
    [
        {},
        {"Accept": "application/x-ndjson"},
        {"Content-Type": "text/csv"},
        {"Content-Type": "application/json; charset=latin-1"},
        {"Content-Type": "application/x-ndjson"},
    ]
)


@settings(
    max_examples=2_000,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(
    method=st.sampled_from(["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS"]),
    path=st.sampled_from(ROUTES),
    query=queries,
    body=bodies,
    header=headers,
)
def test_no_request_makes_a_server_error(
    api: Api, method: str, path: str, query: dict[str, str], body: bytes, header: dict[str, str]
) -> None:
    """2,000 requests of every shape: below 500, JSON, and none of an exception's words."""
    target = path + ("?" + "&".join(f"{k}={v}" for k, v in query.items()) if query else "")
    answer = api.send(method, target, body, headers=header, key=KEY)
    assert 200 <= answer.status < 500, (method, target, body, answer.body)
    lines: list[Any] = [json.loads(line) for line in answer.body.splitlines()]
    assert lines
    assert not any(word in answer.body for word in EXCEPTION_WORDS)
