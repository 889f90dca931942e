"""Reads the JSON out of what a language model says, past thinking, fences and prose, small mistakes mended.

An answer is a list of items, bare or under "facts". Of an answer that was cut off, the whole items are kept.
What holds no list at all is refused; an empty list is an answer.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

_THINKING_BEGINS = re.compile(r"<(?:think|thinking|reasoning)>", re.IGNORECASE)
_THINKING_ENDS = re.compile(r"</(?:think|thinking|reasoning)>", re.IGNORECASE)
_OPENINGS = re.compile(r"[\[{]")
_STRING_OR_TRAILING_COMMA = re.compile(r'("(?:[^"\\]|\\.)*+")|,(?=\s*[\]}])', re.DOTALL)
_KEYS = ("facts", "memories", "items", "results")
_DECODER = json.JSONDecoder()
_MAX_ANSWER = 200_000
"""Characters of an answer that are looked at."""
_MAX_STARTS = 50
"""Places in an answer where JSON is looked for."""


class UnreadableAnswer(Exception):
    """The answer holds no list of items."""


def read_items(answer: str) -> list[Any]:
    """The items of an answer, unchecked.

    Args:
        answer: what the model said.

    Returns:
        The items, in order; empty if the model said that there is nothing.

    Raises:
        UnreadableAnswer: there is no list in it.
    """
    for text in _without_thinking(answer[:_MAX_ANSWER]):
        for candidate in (text, _STRING_OR_TRAILING_COMMA.sub(r"\1", text)):
            items = _listed(candidate)
            if items is not None:
                return items
    raise UnreadableAnswer


def _without_thinking(answer: str) -> Iterator[str]:
    """What may be the answer proper: behind the last end of thinking, else all, unless it only thinks."""
    ends = list(_THINKING_ENDS.finditer(answer))
    if ends:
        yield answer[ends[-1].end() :]
    begins = _THINKING_BEGINS.search(answer)
    first = _OPENINGS.search(answer)
    only_thinks = begins is not None and first is not None and begins.start() < first.start()
    if not only_thinks:
        yield answer


def _listed(text: str) -> list[Any] | None:
    """The items of a text; None if there is no list in it."""
    starts = list(_starts(text))
    for start in starts:
        items = _items(_value_at(text, start), is_first=start == starts[0])
        if items is not None:
            return items
    for start in starts:
        items = _whole_items(text, start + 1) if text[start] == "[" else []
        if items:
            return items
    for start in starts:
        value = _value_at(text, start)
        if isinstance(value, dict) and "text" in value:
            return [value]
    return None


def _starts(text: str) -> Iterator[int]:
    for count, match in enumerate(_OPENINGS.finditer(text)):
        if count >= _MAX_STARTS:
            return
        yield match.start()


def _value_at(text: str, start: int) -> Any:
    """The JSON value that begins here; None if there is none."""
    try:
        return _DECODER.raw_decode(text, start)[0]
    except (ValueError, RecursionError):
        return None


def _items(value: Any, *, is_first: bool) -> list[Any] | None:
    """The list of items a value is, or holds; None if it is neither.

    A bare empty list further in may be a detail of an item that was cut off, and is no answer.
    """
    if isinstance(value, dict):
        return next((list(value[key]) for key in _KEYS if isinstance(value.get(key), list)), None)
    if isinstance(value, list) and all(isinstance(item, dict) for item in value):
        return value if value or is_first else None
    return None


def _whole_items(text: str, start: int) -> list[Any]:
    """The items of a list that was cut off, up to the last whole one."""
    items: list[Any] = []
    position = start
    while True:
        opening = text.find("{", position)
        if opening < 0 or text[position:opening].strip(" \t\r\n,"):
            return items
        try:
            item, position = _DECODER.raw_decode(text, opening)
        except (ValueError, RecursionError):
            return items
        items.append(item)
