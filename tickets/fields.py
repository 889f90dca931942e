"""Reading single fields of an export, whose shape nobody guarantees."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from tickets.errors import TicketFormatError
from tickets.text import clean_line

ID_LENGTH = 1000

_UNUSABLE_IN_ID = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_TRUE = {"true", "yes", "1", "t", "y"}
_FALSE = {"false", "no", "0", "f", "n"}


class FieldFault(Exception):
    """One field makes its message or ticket unusable; it never leaves this package.

    Attributes:
        code: The code of the problem to report.
        path: The field's path.
    """

    def __init__(self, code: str, path: str) -> None:
        self.code = code
        self.path = path
        super().__init__(code)


def join_path(path: str, field: str) -> str:
    """Name a field below a path.

    Args:
        path: The path of the object; "" for the whole input.
        field: The field's name.

    Returns:
        `path.field`.
    """
    return f"{path}.{field}" if path else field


def read_mapping(value: object) -> Mapping[str, object]:
    """Take an object as it is, and anything else as an empty one.

    Args:
        value: Any value.

    Returns:
        The object.
    """
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}


def read_list(value: object) -> Sequence[object]:
    """Take a list as it is, and anything else as an empty one.

    Args:
        value: Any value.

    Returns:
        The list.
    """
    return cast("Sequence[object]", value) if isinstance(value, list) else ()


def dig(value: object, *keys: str) -> object:
    """Follow keys through nested objects.

    Args:
        value: The outermost object.
        keys: The keys, outermost first.

    Returns:
        The value there, or None where the way ends early.
    """
    for key in keys:
        value = read_mapping(value).get(key)
    return value


def first_present(raw: Mapping[str, object], *keys: str) -> object:
    """Give the first of several fields that is there.

    Args:
        raw: The object.
        keys: The fields, the preferred one first.

    Returns:
        The first value that is neither absent, None nor blank text; else None.
    """
    for key in keys:
        value = raw.get(key)
        if value is not None and not (isinstance(value, str) and not value.strip()):
            return value
    return None


def follow(value: object, dotted: str) -> object:
    """Follow a dotted path that the importer wrote.

    Args:
        value: The ticket.
        dotted: Such as `custom_fields.360001.value`: in a list a part is the `id` of one of its
            objects, else a position counted from 0.

    Returns:
        The value there, or None.
    """
    for part in dotted.split("."):
        if not isinstance(value, list):
            value = dig(value, part)
            continue
        elements = read_list(value)
        value = next((each for each in elements if _has_id(each, part)), None)
        if value is None and re.fullmatch(r"\d{1,6}", part, re.ASCII) and int(part) < len(elements):
            value = elements[int(part)]
    return value


def _has_id(element: object, part: str) -> bool:
    """Say whether a list's element goes by this id."""
    element_id = dig(element, "id")
    return isinstance(element_id, str | int) and str(element_id) == part


def read_id(value: object, path: str, name: str) -> str | None:
    """Read an opaque id: a number or text, case kept, outer spaces dropped.

    Args:
        value: What the export holds.
        path: The field's path.
        name: The word for it in the code of the problem, such as `ticket_id`.

    Returns:
        The id as text, or None when there is none.

    Raises:
        FieldFault: `<name>_invalid` for other types, control characters, lone surrogates, or more
            than 1000 characters.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise FieldFault(f"{name}_invalid", path)
    if isinstance(value, int) and value.bit_length() > ID_LENGTH:
        raise FieldFault(f"{name}_invalid", path)
    text = str(value).strip()
    if len(text) > ID_LENGTH or _UNUSABLE_IN_ID.search(text):
        raise FieldFault(f"{name}_invalid", path)
    return text or None


def require_id(value: object, path: str, name: str) -> str:
    """Read an id that must be there.

    Args:
        value: What the export holds.
        path: The field's path.
        name: The word for it in the code of the problem.

    Returns:
        The id as text.

    Raises:
        FieldFault: `<name>_missing`, or as `read_id`.
    """
    text = read_id(value, path, name)
    if text is None:
        raise FieldFault(f"{name}_missing", path)
    return text


def read_flag(value: object, path: str, default: bool) -> bool:
    """Read yes or no. What is neither is refused, since privacy hangs on it.

    Args:
        value: true, false, 1, 0, or such words as "true" and "no" in any case.
        path: The field's path.
        default: The answer for None and blank text.

    Returns:
        The answer.

    Raises:
        FieldFault: `flag_invalid`.
    """
    if value is None or isinstance(value, bool):
        return default if value is None else value
    if isinstance(value, str | int):
        word = str(value).strip().lower() if isinstance(value, str) or value in (0, 1) else "?"
        if not word:
            return default
        if word in _TRUE or word in _FALSE:
            return word in _TRUE
    raise FieldFault("flag_invalid", path)


def read_line(value: object) -> str | None:
    """Read optional display text, such as a subject or a name.

    Args:
        value: Text or a whole number; anything else counts as absent.

    Returns:
        One clean line, or None.
    """
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() <= ID_LENGTH:
        value = str(value)
    return (clean_line(value) or None) if isinstance(value, str) else None


def read_lines(value: object, *keys: str) -> tuple[str, ...]:
    """Read a list of names, such as tags or attachments.

    Args:
        value: A list of texts, or of objects that hold the name.
        keys: Where in such an object; the first that is there counts.

    Returns:
        The names, without those that are empty.
    """
    lines: list[str] = []
    for element in read_list(value):
        line = read_line(element)
        if line is None:
            line = read_line(first_present(read_mapping(element), *keys))
        if line is not None:
            lines.append(line)
    return tuple(lines)


def read_email(value: object) -> str | None:
    """Read an e-mail address.

    Args:
        value: Any value.

    Returns:
        The address in lower case, or None when it is none.
    """
    text = value.strip().lower() if isinstance(value, str) else ""
    usable = "@" in text and len(text) <= ID_LENGTH and not _UNUSABLE_IN_ID.search(text)
    return text if usable else None


def same_id(left: object, right: object) -> bool:
    """Compare two ids, of which one may be a number and the other text.

    Args:
        left: An id.
        right: An id.

    Returns:
        True when both are there and the same.
    """
    usable = all(
        isinstance(each, str | int) and not isinstance(each, bool) and each != "" for each in (left, right)
    )
    return usable and (left == right or as_key(left) == as_key(right))


def as_key(value: object) -> str | None:
    """Turn an id into a key for look-ups.

    Args:
        value: An id, a number or text.

    Returns:
        The text, or None when it cannot be an id.
    """
    try:
        return read_id(value, "", "id")
    except FieldFault:
        return None


def envelope_items(payload: object, keys: Sequence[str], path: str) -> Iterator[tuple[str, object]]:
    """Find the tickets in a payload: an envelope, a bare array, or a single ticket.

    Args:
        payload: The JSON value.
        keys: The way to the list in the envelope, such as `("_embedded", "conversations")`.
        path: The payload's own path; "" for the whole input.

    Yields:
        The path and the value of each ticket.

    Raises:
        TicketFormatError: `envelope_invalid` when it is none of these.
    """
    found, where = payload, path
    if isinstance(payload, Mapping):
        for key in keys:
            if not isinstance(found, Mapping) or key not in found:
                yield path, payload
                return
            found, where = dig(found, key), join_path(where, key)
    if not isinstance(found, list):
        raise TicketFormatError("envelope_invalid", where)
    for position, item in enumerate(read_list(found)):
        yield f"{where}[{position}]", item
