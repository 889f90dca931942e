"""The shape that every format has."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from tickets.errors import TicketFormatError
from tickets.fields import envelope_items, read_mapping
from tickets.model import ParseOptions, Ticket, TicketProblem

SAMPLE = 20


class Parse(Protocol):
    """Reads the tickets of one payload."""

    def __call__(
        self, payload: object, options: ParseOptions, path: str = ""
    ) -> Iterator[Ticket | TicketProblem]:
        """Read the tickets of one payload.

        Args:
            payload: A JSON value: an envelope, a bare array of tickets, or one ticket.
            options: What the importer says.
            path: Where the payload is in the input, such as `lines[12]`; "" for all of it.

        Returns:
            The tickets, and the problems of those that had to be left out.

        Raises:
            TicketFormatError: `envelope_invalid` when there is nothing like a ticket.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TicketFormat:
    """One way of writing tickets.

    Attributes:
        name: The word for `format` in a request, and the source where none is named.
        matches: Tells from its keys whether a payload is of this format; it never raises.
        parse: Reads the tickets of one payload.
    """

    name: str
    matches: Callable[[object], bool]
    parse: Parse


def any_ticket(
    payload: object, keys: Sequence[str], looks_like: Callable[[Mapping[str, object]], bool]
) -> bool:
    """Look for a format's keys in the first tickets of a payload.

    Args:
        payload: A JSON value.
        keys: The way to the list of tickets in the envelope.
        looks_like: Tells it of one ticket.

    Returns:
        True when one of the first 20 tickets looks like it, so that a broken one decides nothing.
    """
    try:
        for _path, item in islice(envelope_items(payload, keys, ""), SAMPLE):
            if looks_like(read_mapping(item)):
                return True
    except TicketFormatError:
        return False
    return False
