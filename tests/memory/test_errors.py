"""Every failure has a code, a status, a row in the README and a place in the drawn tree."""

import inspect
import re
import string

import pytest

from development.places import PROJECT
from dify.failures import HTTP_STATUS
from memory import errors
from memory.errors import MemoryFault, RequestError, ServiceError, SetupError

GROUPS = [RequestError, SetupError, ServiceError]
_CLASSES = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, MemoryFault)]
LEAVES = [c for c in _CLASSES if not c.__subclasses__()]


def _details(leaf: type[MemoryFault]) -> dict[str, str]:
    """A value for each placeholder of a class's template."""
    names = [name for _, name, _, _ in string.Formatter().parse(leaf.template) if name]
    return dict.fromkeys(names, "value")


@pytest.mark.parametrize("leaf", LEAVES)
def test_a_failure_has_a_code_and_a_sentence(leaf: type[MemoryFault]) -> None:
    """Code in snake case, message as one or more sentences, both in what Dify shows."""
    fault = leaf(**_details(leaf))
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", leaf.code)
    assert re.fullmatch(r"\S.*\.", fault.message)
    assert str(fault).startswith(fault.message)
    assert str(fault).endswith(f"[{leaf.code}]")
    assert "Trying again" in str(fault) or not fault.retryable


def test_no_two_failures_share_a_code() -> None:
    """A code names one failure, among those of the engine and those of the endpoints together."""
    everything = {*LEAVES, *HTTP_STATUS}
    assert len({leaf.code for leaf in everything}) == len(everything) > 20


@pytest.mark.parametrize("leaf", LEAVES)
def test_a_failure_says_who_acts(leaf: type[MemoryFault]) -> None:
    """Each is the caller's, the administrator's or nobody's; only the last may pass by waiting."""
    (group,) = [group for group in GROUPS if issubclass(leaf, group)]
    assert leaf.retryable == (group is ServiceError and leaf is not errors.InternalError)


@pytest.mark.parametrize("leaf", LEAVES)
def test_a_failure_has_a_status(leaf: type[MemoryFault]) -> None:
    """The caller's are answered with 4xx, a service's with 429 or 5xx; only what a call could choose
    otherwise is 400 or 409 among the administrator's.
    """
    status = HTTP_STATUS[leaf]
    if issubclass(leaf, RequestError):
        assert 400 <= status < 500
    elif issubclass(leaf, ServiceError):
        assert status == 429 or 500 <= status < 600
    else:
        assert status in {400, 409} or 500 <= status < 600
    assert status != 404


def test_no_status_is_for_a_failure_that_does_not_exist() -> None:
    """The table names leaves of the tree and nothing else."""
    assert [each.__name__ for each in HTTP_STATUS if not issubclass(each, MemoryFault)] == []
    assert [each.__name__ for each in HTTP_STATUS if each.__subclasses__()] == []


@pytest.mark.parametrize("leaf", LEAVES)
def test_a_failure_has_a_row_in_the_readme(leaf: type[MemoryFault]) -> None:
    """Whoever meets a code finds it in the table of the README."""
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    rows = [line for line in readme.splitlines() if line.startswith("|")]
    assert [row for row in rows if f"`{leaf.code}`" in row]


@pytest.mark.parametrize("each", list(dict.fromkeys([*_CLASSES, *HTTP_STATUS])))
def test_no_failure_is_a_value_error(each: type[MemoryFault]) -> None:
    """The plugin SDK would turn a ValueError of an endpoint into a 404 that shows its text."""
    assert not issubclass(each, ValueError)


def test_the_tree_drawn_names_every_failure() -> None:
    """The docstring's tree has each leaf once, under the class it derives from, and no other."""
    drawn: dict[str, str] = {}
    group = ""
    for line in inspect.getdoc(errors).splitlines():  # type: ignore[union-attr]
        if not re.match(r"\s+[│├└]", line):
            continue
        names = re.findall(r"[├└]──\s+(\w+)", line)
        if names and names[0] in {g.__name__ for g in GROUPS}:
            group = names[0]
            continue
        for name in names:
            assert name not in drawn
            drawn[name] = group
    assert drawn == {leaf.__name__: leaf.__base__.__name__ for leaf in LEAVES}  # type: ignore[union-attr]


def test_every_failure_has_a_docstring_of_its_own() -> None:
    """What a class is for is said where it is defined."""
    assert [c.__name__ for c in _CLASSES if not c.__dict__.get("__doc__")] == []
