"""The formats, one module each, in one table."""

from collections.abc import Iterable

from tickets.errors import TicketFormatError
from tickets.formats import (
    canonical,
    freshdesk,
    gorgias,
    helpscout,
    hubspot,
    intercom,
    jira,
    salesforce,
    zendesk,
)
from tickets.formats.base import TicketFormat

FORMATS: tuple[TicketFormat, ...] = (
    canonical.FORMAT,
    zendesk.FORMAT,
    intercom.FORMAT,
    freshdesk.FORMAT,
    helpscout.FORMAT,
    gorgias.FORMAT,
    hubspot.FORMAT,
    jira.FORMAT,
    salesforce.FORMAT,
)
FORMAT_NAMES: tuple[str, ...] = tuple(each.name for each in FORMATS)


def find_format(name: str) -> TicketFormat:
    """Find a format by its name.

    Args:
        name: One of `FORMAT_NAMES`, in any case.

    Returns:
        The format.

    Raises:
        TicketFormatError: `format_unknown`.
    """
    for each in FORMATS:
        if each.name == name.strip().lower():
            return each
    raise TicketFormatError("format_unknown", "format")


def detect_format(payloads: Iterable[object]) -> TicketFormat:
    """Tell the format of a body by the keys of its tickets.

    Args:
        payloads: The body's JSON values, of which a few are enough.

    Returns:
        The only format that matches.

    Raises:
        TicketFormatError: `format_ambiguous` when several match, `format_undetected` when none
            does; either way an explicit `format` helps.
    """
    sample = list(payloads)
    found = [each for each in FORMATS if any(each.matches(payload) for payload in sample)]
    if len(found) > 1:
        raise TicketFormatError("format_ambiguous", "format")
    if not found:
        raise TicketFormatError("format_undetected", "format")
    return found[0]


__all__ = ["FORMATS", "FORMAT_NAMES", "TicketFormat", "detect_format", "find_format"]
