"""One rule for whom a ticket is about."""

import json
from collections.abc import Mapping

import pytest

from tickets.model import ParseOptions, Ticket, TicketProblem
from tickets.reader import read_tickets


def read_one(user: Mapping[str, object], options: ParseOptions, **ticket: object) -> Ticket | TicketProblem:
    """Read a Zendesk ticket whose requester is this user."""
    page = {
        "tickets": [
            {
                "id": 1,
                "requester_id": 501,
                "via": {},
                "description": "Hello, it is me.",
                "created_at": "2024-05-01T08:00:00Z",
                **ticket,
            }
        ],
        "users": [{"id": 501, **user}],
    }
    (result,) = read_tickets(json.dumps(page), options=options)
    return result


def customer_of(user: Mapping[str, object], options: ParseOptions, **ticket: object) -> str | None:
    """Give the customer of such a ticket."""
    result = read_one(user, options, **ticket)
    assert isinstance(result, Ticket)
    return result.customer_id


ANN = {"external_id": "Shop-Ann", "email": "Ann@Example.com"}


def test_external_id_comes_before_the_vendors_and_the_address() -> None:
    """External id, else the vendor's user id; case is kept."""
    assert customer_of(ANN, ParseOptions()) == "Shop-Ann"
    assert customer_of({"email": "Ann@Example.com"}, ParseOptions()) == "501"


def test_explicit_field_comes_first() -> None:
    """`customer_field` reaches into lists by id or position, and falls back to the rule."""
    fields = [{"id": 7, "value": "crm-1"}, {"id": 8, "value": 42}]
    for path, expected in [
        ("custom_fields.7.value", "crm-1"),
        ("custom_fields.8.value", "42"),
        ("custom_fields.1.value", "42"),
        ("custom_fields.9.value", "Shop-Ann"),
        ("nothing.here", "Shop-Ann"),
    ]:
        options = ParseOptions(customer_field=path)
        assert customer_of(ANN, options, custom_fields=fields) == expected


@pytest.mark.parametrize("value", [True, 1.5, ["a"], {"id": "a"}, "a\0b", "\ud800", "x" * 1001])
def test_customer_of_a_wrong_kind_is_a_problem(value: object) -> None:
    """An id is text or a whole number; nothing is guessed out of something else."""
    options = ParseOptions(customer_field="crm")
    result = read_one(ANN, options, crm=value)
    expected = TicketProblem(code="customer_id_invalid", path="tickets[0].crm", ticket_id="1")
    assert result == expected


@pytest.mark.parametrize("key", ["Shop-Ann", "501", "ann@example.com", "ANN@example.com"])
def test_map_knows_every_identifier_of_a_customer(key: str) -> None:
    """`customer_map` may name a customer by any of the ids, addresses in any case."""
    assert customer_of(ANN, ParseOptions(customer_map={key: "crm-1"})) == "crm-1"


def test_map_does_not_confuse_opaque_ids_by_case() -> None:
    """Only addresses are compared without case."""
    assert customer_of(ANN, ParseOptions(customer_map={"shop-ann": "crm-1"})) == "Shop-Ann"


def test_map_applies_to_the_explicit_field_alone() -> None:
    """What the importer named is looked up, and no other identifier of the ticket."""
    options = ParseOptions(customer_field="crm", customer_map={"a": "b", "501": "c"})
    assert customer_of(ANN, options, crm="a") == "b"
    assert customer_of(ANN, options, crm="other") == "other"
