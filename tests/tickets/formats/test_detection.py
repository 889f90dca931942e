"""How a format is found."""

import json

import pytest

from tests.tickets.fixtures import CASES
from tickets.errors import TicketFormatError
from tickets.formats import FORMATS, detect_format, find_format
from tickets.reader import read_tickets


def test_every_fixture_matches_its_own_format_only() -> None:
    """No format claims another's tickets."""
    for case in CASES:
        if case.suffix == ".json":
            payload = json.loads(case.read_bytes())
            assert [each.name for each in FORMATS if each.matches(payload)] == [case.parent.name]


def test_ambiguous_keys_ask_for_the_format() -> None:
    """A ticket with the keys of two helpdesks is not guessed."""
    payload = [{"id": 1, "requester_id": 2, "comments": [], "description_text": "Hello"}]
    with pytest.raises(TicketFormatError) as caught:
        detect_format([payload])
    assert (caught.value.code, caught.value.path) == ("format_ambiguous", "format")


@pytest.mark.parametrize("payload", [{}, [], [1, None, "x"], {"tickets": [{"subject": "x"}]}, 3, None])
def test_unknown_keys_ask_for_the_format(payload: object) -> None:
    """What looks like no helpdesk is not guessed either."""
    with pytest.raises(TicketFormatError, match="format_undetected"):
        detect_format([payload])


def test_explicit_format_wins_over_the_keys() -> None:
    """The importer knows better than the keys."""
    body = b"""[{"id": 1, "requester_id": 2, "comments": [], "description_text": "Hello",
                 "description": "Hello", "created_at": "2024-05-01T08:00:00Z"}]"""
    assert [each.source for each in read_tickets(body, format="Freshdesk ") if hasattr(each, "source")] == [
        "freshdesk"
    ]
    assert [each.source for each in read_tickets(body, format="zendesk") if hasattr(each, "source")] == [
        "zendesk"
    ]


def test_unknown_format_name_is_refused() -> None:
    """A name that is in no table is an error, not a guess."""
    with pytest.raises(TicketFormatError, match="format_unknown"):
        find_format("osticket")


def test_broken_first_ticket_does_not_hide_the_format() -> None:
    """Detection looks at more than the first ticket."""
    payload = {"tickets": [None, {}, {"requester_id": 1, "via": {}}]}
    assert detect_format([payload]).name == "zendesk"
