"""The test in front of a pattern lets every match of it through, and asks for no stem in vain."""

from __future__ import annotations

import importlib
import pkgutil
import re
import string
import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from random import Random
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import memory.redaction
from memory.redaction import RedactionType, redact
from memory.redaction.filtered_pattern import FilteredPattern
from memory.redaction.shadow import Shadow
from tests.memory.redaction import cases

PATTERNS: Final = {
    f"{module.name}{name}": value
    for module in pkgutil.iter_modules(memory.redaction.__path__)
    for name, value in vars(importlib.import_module(f"memory.redaction.{module.name}")).items()
    if isinstance(value, FilteredPattern)
}
STEMMED: Final = {name: filtered for name, filtered in PATTERNS.items() if filtered.stems}

LETTERS: Final = sorted(
    {
        letter
        for filtered in STEMMED.values()
        for letter in "".join(filtered.stems)
        if letter.upper() != letter
    }
)
EVERY_CHARACTER: Final = "".join(map(chr, range(sys.maxunicode + 1)))
CASES: Final = {letter: re.findall(re.escape(letter), EVERY_CHARACTER, re.IGNORECASE) for letter in LETTERS}
"""The characters that `re.IGNORECASE` takes for each letter of the stems."""

_RARE: Final = 0.05
KEY: Final = string.ascii_letters + string.digits + "+/"
MATCHES: Final = {
    name: st.from_regex(filtered.pattern)
    if name != "keys_AWS_SECRET"  # so many conditions that hardly a random match meets them
    else st.text(KEY, min_size=37, max_size=37).map("aA1{}".format).filter(filtered.pattern.search)
    for name, filtered in PATTERNS.items()
}


def in_any_case(text: str, random: Random) -> str:
    """The text with its letters in small and large, and now and then in a form that is rarer."""
    return "".join(
        random.choice(CASES.get(character.lower(), [character]))
        if random.random() < _RARE
        else random.choice((character, character.swapcase()))
        for character in text
    )


@pytest.mark.parametrize("name", PATTERNS)
@given(data=st.data())
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
def test_a_match_is_let_through(name: str, data: st.DataObject) -> None:
    """A text that the pattern matches is one that may match, whatever stands around, in any case."""
    filtered = PATTERNS[name]
    match = data.draw(MATCHES[name])
    if filtered.pattern.flags & re.IGNORECASE:
        match = in_any_case(match, data.draw(st.randoms(use_true_random=True)))
    text = data.draw(st.text(max_size=4)) + match + data.draw(st.text(max_size=4))
    assert filtered.may_match(text)


@pytest.mark.parametrize("letter", LETTERS)
def test_all_forms_of_a_letter_are_let_through(letter: str) -> None:
    """What `re.IGNORECASE` takes for a letter passes as that letter: K for k, ſ for s, İ and ı for i."""
    filtered = FilteredPattern(re.compile(letter, re.IGNORECASE), letter)
    assert len(CASES[letter]) >= 2
    assert [form for form in CASES[letter] if not filtered.may_match(form)] == []


def texts() -> Iterator[str]:
    """Every text in the table of cases, before and after redaction, as finders see it."""
    tables = [value for value in vars(cases).values() if isinstance(value, tuple)]
    for case in chain.from_iterable(tables):
        text = case.text if isinstance(case, cases.Case) else case
        yield Shadow(text).text
        for types in (frozenset(RedactionType), frozenset({RedactionType.PAYMENT_CARD})):
            yield Shadow(redact(text, types=types).text).text


@pytest.mark.parametrize("name", PATTERNS)
def test_the_table_is_answered_as_without_a_filter(name: str) -> None:
    """In the table of cases, a pattern finds with its filter what it finds without."""
    filtered = PATTERNS[name]
    found = 0
    for text in texts():
        spans = [match.span() for match in filtered.pattern.finditer(text)]
        assert [match.span() for match in filtered.finditer(text)] == spans
        found += len(spans)
    assert found


FOUND: Final = "\0"
"""The place of a text that holds a stem already."""
_parser: Any = importlib.import_module("re._parser")
_WIDEST_SET: Final = 12

type Operation = tuple[object, Any]


class Reading:
    """What may stand at the end of a text while a pattern reads it, as far as a stem has begun there.

    All the ways through the pattern are followed at once, until each has read a stem. What could
    be anything is forgotten, so a way that is not there may be followed, but none is left out:
    when all have read a stem, every match holds one.
    """

    def __init__(self, stems: Iterable[str]) -> None:
        self._stems = frozenset(stems)
        self._begun = {stem[:length] for stem in self._stems for length in range(len(stem))}

    def has_stem_in_every_match(self, pattern: re.Pattern[str]) -> bool:
        """Whether no match of a pattern is without a stem."""
        return self._read({""}, _parser.parse(pattern.pattern, pattern.flags)) == {FOUND}

    def _add(self, ends: set[str], character: str) -> set[str]:
        return {self._after(end, character.lower()) for end in ends}

    def _after(self, end: str, character: str) -> str:
        suffixes = [(end + character)[start:] for start in range(len(end) + len(character) + 1)]
        if end == FOUND or self._stems.intersection(suffixes):
            return FOUND
        return next((suffix for suffix in suffixes if suffix in self._begun), "")

    def _read(self, ends: set[str], operations: Iterable[Operation]) -> set[str]:
        for operation, argument in operations:
            ends = self._step(ends, str(operation), argument)
        return ends

    def _step(self, ends: set[str], operation: str, argument: Any) -> set[str]:
        match operation, argument:
            case "LITERAL", int(code):
                return self._add(ends, chr(code))
            case "IN", list(members):
                return self._choose(ends, members)
            case "BRANCH", (_, list(branches)):
                return set().union(*(self._read(ends, branch) for branch in branches))
            case "SUBPATTERN", (_, _, _, inner):
                return self._read(ends, inner)
            case "ATOMIC_GROUP", inner:
                return self._read(ends, inner)
            case (("MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT"), (int(least), most, inner)):
                return self._repeat(ends, least, int(most), inner)
            case "ASSERT", (_, inner):
                return {FOUND} if self._read({""}, inner) == {FOUND} else ends
            case (("ASSERT_NOT" | "AT"), _):
                return ends
        return self._forget(ends)

    def _choose(self, ends: set[str], members: list[Operation]) -> set[str]:
        codes: list[int] = []
        for kind, member in members:
            match str(kind), member:
                case "LITERAL", int(code):
                    codes.append(code)
                case "RANGE", (int(first), int(last)) if last - first < _WIDEST_SET:
                    codes += range(first, last + 1)
                case _:
                    return self._forget(ends)
        return set().union(*(self._add(ends, chr(code)) for code in codes))

    def _repeat(self, ends: set[str], least: int, most: int, inner: Iterable[Operation]) -> set[str]:
        for _ in range(least):
            ends = self._read(ends, inner)
        for _ in range(most - least):
            longer = ends | self._read(ends, inner)
            if longer == ends:
                break
            ends = longer
        return ends

    def _forget(self, ends: set[str]) -> set[str]:
        return {FOUND if end == FOUND else "" for end in ends}


@pytest.mark.parametrize("name", STEMMED)
def test_every_match_holds_a_stem(name: str) -> None:
    """No way through the pattern is without a stem."""
    filtered = STEMMED[name]
    assert Reading(filtered.stems).has_stem_in_every_match(filtered.pattern)


@pytest.mark.parametrize(
    ("name", "stem"), [(name, stem) for name, filtered in STEMMED.items() for stem in filtered.stems]
)
def test_no_stem_can_be_left_out(name: str, stem: str) -> None:
    """Each stem is the only one in some match: without it that match would be lost."""
    filtered = STEMMED[name]
    others = [other for other in filtered.stems if other != stem]
    assert not Reading(others).has_stem_in_every_match(filtered.pattern)
