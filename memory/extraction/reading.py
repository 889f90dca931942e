"""Reads the JSON out of what a language model says, past thinking, fences and prose, small mistakes mended.

An answer is a list of items, bare or under "facts". Of an answer that was cut off, the whole items are kept.
What holds no list at all is refused; an empty list is an answer.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

_THINKING = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_OPENINGS = re.compile(r"[\[{]")
_TRAILING_COMMA = re.compile(r",\s*([\]}])")
_KEYS = ("facts", "memories", "items", "results")
_MAX_ANSWER = 200_000
"""Characters of an answer that are looked at."""
_MAX_STARTS = 200
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
    text = _THINKING.sub(" ", answer[:_MAX_ANSWER])
    starts = list(_starts(text))
    for start in starts:
        items = _items(_value_at(text, start))
        # An empty list further in may be a detail of an item that was cut off.
        if items or (items is not None and start == starts[0]):
            return items
    for start in starts:
        items = _whole_items(text, start + 1) if text[start] == "[" else []
        if items:
            return items
    for start in starts:
        value = _value_at(text, start)
        if isinstance(value, dict) and "text" in value:
            return [value]
    raise UnreadableAnswer


def _starts(text: str) -> Iterator[int]:
    for count, match in enumerate(_OPENINGS.finditer(text)):
        if count >= _MAX_STARTS:
            return
        yield match.start()


def _value_at(text: str, start: int) -> Any:
    """The JSON value that begins here; None if there is none, also with trailing commas mended."""
    decoder = json.JSONDecoder()
    for candidate in (text[start:], _TRAILING_COMMA.sub(r"\1", text[start:])):
        try:
            return decoder.raw_decode(candidate)[0]
        except (ValueError, RecursionError):
            continue
    return None


def _items(value: Any) -> list[Any] | None:
    """The list of items a value is, or holds; None if it is neither."""
    if isinstance(value, dict):
        for key in _KEYS:
            if isinstance(value.get(key), list):
                return list(value[key])
        return None
    if isinstance(value, list) and all(isinstance(item, dict) for item in value):
        return value
    return None


def _whole_items(text: str, start: int) -> list[Any]:
    """The items of a list that was cut off, up to the last whole one."""
    decoder = json.JSONDecoder()
    items: list[Any] = []
    position = start
    while True:
        opening = text.find("{", position)
        if opening < 0 or text[position:opening].strip(" \t\r\n,"):
            return items
        try:
            item, length = decoder.raw_decode(text[opening:])
        except (ValueError, RecursionError):
            return items
        items.append(item)
        position = opening + length
