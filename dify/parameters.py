"""What Dify hands over, read in one place: absent, None and "" are the same, numbers come as text too."""

import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, tzinfo
from enum import StrEnum
from typing import Any

from memory.errors import ParameterInvalid
from tickets.errors import TicketFormatError
from tickets.times import load_zone, parse_time

_TRUE = {"true", "1", "yes", "on"}
_FALSE = {"false", "0", "no", "off"}


class Parameters:
    """The inputs and settings of one node, or the fields of one form.

    Args:
        values: as Dify sends them. Never changed.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def raw(self, name: str) -> Any:
        """The value as it came; None for absent, None, "" and blank text."""
        value = self._values.get(name)
        return None if isinstance(value, str) and not value.strip() else value

    def identifier(self, name: str) -> Any:
        """An id as it came; only absent, None and "" are no id, so that a blank one is noticed."""
        value = self._values.get(name)
        return None if value == "" else value

    def text(self, name: str, default: str = "") -> str:
        """Text, trimmed; a number is taken as its digits.

        Raises:
            ParameterInvalid: it is neither.
        """
        value = self.raw(name)
        if value is None:
            return default
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
        if not isinstance(value, str):
            raise ParameterInvalid(name=name, expected="text")
        return value.strip()

    def number(self, name: str, default: float, *, low: float, high: float) -> float:
        """A number within bounds, both included.

        Raises:
            ParameterInvalid: no number, or out of bounds.
        """
        value = self.raw(name)
        if value is None:
            return default
        try:
            number = float(value) if isinstance(value, int | float | str) else math.nan
        except (ValueError, OverflowError):
            number = math.nan
        if isinstance(value, bool) or not low <= number <= high:
            raise ParameterInvalid(name=name, expected=f"a number from {low:g} to {high:g}")
        return number

    def whole_number(self, name: str, default: int, *, low: int, high: int) -> int:
        """A whole number within bounds, both included; "5" and 5.0 are 5.

        Raises:
            ParameterInvalid: no whole number, or out of bounds.
        """
        number = self.number(name, default, low=low, high=high)
        if number != int(number):
            raise ParameterInvalid(name=name, expected="a whole number")
        return int(number)

    def boolean(self, name: str, default: bool = False) -> bool:
        """A switch; "true", "1", "yes" and "on" count as on.

        Raises:
            ParameterInvalid: it is nothing of the kind.
        """
        value = self.raw(name)
        if value is None:
            return default
        if isinstance(value, bool):
            return value
        word = str(value).strip().casefold()
        if word in _TRUE or word in _FALSE:
            return word in _TRUE
        raise ParameterInvalid(name=name, expected="true or false")

    def choice[T: StrEnum](self, name: str, options: type[T], default: T | None) -> T | None:
        """One of a fixed set of words.

        Raises:
            ParameterInvalid: another word.
        """
        word = self.text(name).casefold()
        if not word:
            return default
        try:
            return options(word)
        except ValueError:
            raise ParameterInvalid(name=name, expected=_one_of(options)) from None

    def choices[T: StrEnum](self, name: str, options: type[T]) -> frozenset[T]:
        """Several of a fixed set of words: a list, or text with commas. Nothing, or "all", is the empty set.

        Raises:
            ParameterInvalid: another word.
        """
        words = [word.casefold() for word in self.texts(name)]
        if words == ["all"]:
            return frozenset()
        try:
            return frozenset(options(word) for word in words)
        except ValueError:
            raise ParameterInvalid(name=name, expected=_one_of(options)) from None

    def texts(self, name: str) -> list[str]:
        """Several texts: a list, a list as JSON, or one text with commas or line breaks between.

        Raises:
            ParameterInvalid: it is nothing of the kind.
        """
        value = self.raw(name)
        if value is None:
            return []
        if isinstance(value, str):
            parsed = _json_list(value)
            value = value.replace("\n", ",").split(",") if parsed is None else parsed
        if not isinstance(value, Sequence) or not all(isinstance(v, str) for v in value):
            raise ParameterInvalid(name=name, expected="a list of texts")
        return [v.strip() for v in value if v.strip()]

    def timezone(self, name: str) -> tzinfo:
        """A time zone by its IANA name; UTC if it is absent.

        Raises:
            ParameterInvalid: there is no such zone.
        """
        text = self.text(name)
        if not text:
            return UTC
        try:
            return load_zone(text)
        except TicketFormatError:
            raise ParameterInvalid(
                name=name, expected="the name of a time zone such as Europe/Berlin"
            ) from None

    def moment(self, name: str, zone: tzinfo = UTC) -> float | None:
        """A point in time as seconds since 1970; one without a zone is in the zone given. None if absent.

        Raises:
            ParameterInvalid: it is no time.
        """
        value = self.raw(name)
        if value is None:
            return None
        try:
            return parse_time(value, str(zone)).timestamp()
        except TicketFormatError:
            raise ParameterInvalid(
                name=name, expected="a date or time such as 2026-03-01 or 2026-03-01T10:00:00Z"
            ) from None

    def model(self, name: str) -> dict[str, Any] | None:
        """What a model selector holds, with provider and model; None if nothing was selected.

        Raises:
            ParameterInvalid: it is no model.
        """
        value = self.raw(name)
        if isinstance(value, str):
            value = _json_object(value)
        if value is None or value == {}:
            return None
        if not isinstance(value, dict) or not all(
            value.get(n) and isinstance(value[n], str) for n in ("provider", "model")
        ):
            raise ParameterInvalid(name=name, expected="a model chosen from the list")
        return value


def _one_of(options: type[StrEnum]) -> str:
    return "one of " + ", ".join(options)


def _json_list(text: str) -> list[Any] | None:
    value = _json(text) if text.lstrip().startswith("[") else None
    return value if isinstance(value, list) else None


def _json_object(text: str) -> Any:
    value = _json(text)
    return text if value is None else value


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
