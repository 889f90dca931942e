"""Whatever comes in, only results or this package's own error come out."""

import copy
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.tickets.fixtures import CASES
from tickets.errors import TicketFormatError
from tickets.formats import FORMAT_NAMES
from tickets.model import ParseOptions, Ticket, TicketProblem, content_hash
from tickets.reader import read_tickets

KEYS = sorted(
    {
        key
        for case in CASES
        if case.suffix == ".json"
        for key in json.dumps(json.loads(case.read_bytes())).split('"')
        if key.replace("_", "").isalpha()
    }
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["2024-05-01T08:00:00Z", "customer", "<p>x</p>", "> x", "\ud800", "\0", "x@y"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=25,
)
PAYLOADS = {case: json.loads(case.read_bytes()) for case in CASES if case.suffix == ".json"}


def check_code(code: str) -> None:
    """A code is a word of ours, never a piece of the input."""
    assert code.replace("_", "").isalpha() or code == "encoding_not_utf8"


def check(body: bytes | str, name: str | None) -> None:
    """Read a body, and let only what is promised pass."""
    options = ParseOptions(include_private=True, timezone="Asia/Tokyo", customer_field="a.0.b")
    try:
        results = list(read_tickets(body, format=name, options=options))
    except TicketFormatError as error:
        check_code(error.code)
        return
    for result in results:
        assert isinstance(result, Ticket | TicketProblem)
        if isinstance(result, Ticket):
            assert content_hash(result)
            assert all(message.text.isprintable() or message.text.encode() for message in result.messages)


@settings(max_examples=200, deadline=None)
@given(body=st.binary(max_size=200), name=st.sampled_from([None, *FORMAT_NAMES]))
def test_any_bytes_give_results_or_a_format_error(body: bytes, name: str | None) -> None:
    """Bytes without meaning raise nothing else."""
    check(body, name)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(value=VALUES, name=st.sampled_from([None, *FORMAT_NAMES]))
def test_any_json_gives_results_or_a_format_error(value: object, name: str | None) -> None:
    """JSON with the right keys and the wrong values raises nothing else."""
    check(json.dumps(value), name)
    check("\n".join([json.dumps(value)] * 2), name)


def places(value: object) -> list[tuple[object, object]]:
    """List every container with each of its keys or positions."""
    found: list[tuple[object, object]] = []
    stack = [value]
    while stack:
        each = stack.pop()
        if isinstance(each, dict):
            found.extend((each, key) for key in each)
            stack.extend(each.values())
        elif isinstance(each, list):
            found.extend((each, position) for position in range(len(each)))
            stack.extend(each)
    return found


@settings(max_examples=500, deadline=None)
@given(case=st.sampled_from(sorted(PAYLOADS)), data=st.data())
def test_any_single_wrong_value_gives_results_or_a_format_error(case: object, data: st.DataObject) -> None:
    """A real export with one value replaced by anything raises nothing else."""
    payload = copy.deepcopy(PAYLOADS[case])  # type: ignore[index]
    container, key = data.draw(st.sampled_from(places(payload)))
    container[key] = data.draw(VALUES)  # type: ignore[index]
    check(json.dumps(payload), case.parent.name)  # type: ignore[attr-defined]


@settings(max_examples=200, deadline=None)
@given(text=st.text(alphabet='ticket_id,;\t"\n\rbodyrole', max_size=200))
def test_any_rows_give_results_or_a_format_error(text: str) -> None:
    """Tables without sense raise nothing else."""
    check("ticket_id,message_id,role,body,created_at,customer_id\n" + text, None)


@pytest.mark.parametrize("name", FORMAT_NAMES)
def test_deep_nesting_is_no_crash(name: str) -> None:
    """Nesting that the JSON reader still takes is also taken by the formats."""
    for depth in (500, 900, 3000):
        document = '{"content":[' * depth + "]}" * depth
        check(f'{{"fields":{{"reporter":{document},"description":{document}}},"key":"a"}}', name)
