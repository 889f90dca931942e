"""One test over all formats and situations, and the table of formats."""

from pathlib import Path

import pytest

from tests.tickets.fixtures import CASES, DATA, case_name, describe, load_expected
from tickets.formats import FORMAT_NAMES, FORMATS
from tickets.reader import read_tickets

SITUATIONS = {
    "plain",
    "private_note",
    "agent_reply",
    "missing_customer",
    "zoneless_time",
    "html_quoted_history",
    "newest_first",
    "twice_in_one_file",
}


@pytest.mark.parametrize("explicit", [True, False], ids=["named", "detected"])
@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_export_becomes_the_expected_tickets(case: Path, explicit: bool) -> None:
    """Every situation of every format gives what its expected file says, named or detected."""
    options, expected = load_expected(case)
    name = case.parent.name if explicit else None
    results = read_tickets(case.read_bytes(), format=name, options=options)
    assert describe(results) == expected


@pytest.mark.parametrize("name", FORMAT_NAMES)
def test_every_format_has_every_situation(name: str) -> None:
    """No format lacks a situation that all helpdesks know."""
    present = {path.name.partition(".")[0] for path in (DATA / name).iterdir()}
    assert present >= SITUATIONS


def test_format_names_are_unique() -> None:
    """A name leads to one format."""
    assert len(set(FORMAT_NAMES)) == len(FORMATS)
