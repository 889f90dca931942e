"""From the body of a request or a file to tickets."""

import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn

from tickets.errors import TicketFormatError
from tickets.formats import detect_format, find_format
from tickets.formats.base import TicketFormat
from tickets.formats.canonical import NAME as CANONICAL
from tickets.formats.canonical import parse_rows
from tickets.model import ParseOptions, Ticket, TicketProblem
from tickets.rows import looks_like_rows, read_rows

MAX_BYTES = 100_000_000
RESULTS_BETWEEN_PAUSES = 10

_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_WINDOW = 31
_PIECE_BYTES = 1_000_000
_DETECTION_LINES = 20
_NDJSON_TYPES = ("ndjson", "jsonl", "jsonlines", "json-lines", "json-seq")

_Line = tuple[str, object]
_Result = Ticket | TicketProblem


def read_tickets(
    body: bytes | str,
    *,
    format: str | None = None,
    options: ParseOptions | None = None,
    content_type: str | None = None,
    max_bytes: int = MAX_BYTES,
    pause: Callable[[], None] | None = None,
) -> Iterator[Ticket | TicketProblem]:
    """Read every ticket of a body: a JSON document, NDJSON or CSV, plain or gzip.

    The whole body is read before the first result, so that of a ticket that occurs twice only the
    newer one (by `updated_at`; the later one where that does not decide) is given, in its place.

    Args:
        body: The bytes as they came; UTF-8 with or without a byte order mark.
        format: One of `FORMAT_NAMES`; None detects it by the keys of the tickets.
        options: What the importer says; None for the defaults.
        content_type: The media type, to tell NDJSON and CSV; None tells by the content.
        max_bytes: Limit for the body, and for what gzip expands to.
        pause: Called every few milliseconds of work, so that others get their turn.

    Returns:
        The tickets in the order of the body, and the problems of what had to be left out.

    Raises:
        TicketFormatError: `body_empty`, `body_too_large`, `gzip_invalid`, `encoding_not_utf8`,
            `json_invalid`, `json_too_deep`, `csv_invalid`, `csv_column_missing`,
            `csv_needs_canonical`, `format_unknown`, `format_ambiguous`, `format_undetected`,
            `envelope_invalid`. They are raised by the call itself, not while iterating.
    """
    chosen = find_format(format) if format is not None else None
    options = options or ParseOptions()
    text = _decode(body, max_bytes)
    kind = (content_type or "").lower()
    if _is_rows(text, kind):
        if chosen is not None and chosen.name != CANONICAL:
            raise TicketFormatError("csv_needs_canonical", "format")
        found = parse_rows(read_rows(text), options)
    else:
        found = _read_json(text, kind, chosen, options)
    return iter(_newest(list(found if pause is None else _paced(found, pause))))


def _paced(results: Iterator[_Result], pause: Callable[[], None]) -> Iterator[_Result]:
    """Pause between results."""
    for number, result in enumerate(results):
        if number % RESULTS_BETWEEN_PAUSES == 0:
            pause()
        yield result


def _decode(body: bytes | str, max_bytes: int) -> str:
    """Expand and decode a body, and refuse an empty one."""
    if isinstance(body, bytes):
        if body.startswith(_GZIP_MAGIC):
            body = _expand(body, max_bytes)
        if len(body) > max_bytes:
            raise TicketFormatError("body_too_large")
        try:
            body = body.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise TicketFormatError("encoding_not_utf8") from None
    elif len(body) > max_bytes:
        raise TicketFormatError("body_too_large")
    text = body.removeprefix("\ufeff").replace("\0", "")
    if not text.strip():
        raise TicketFormatError("body_empty")
    return text


def _expand(body: bytes, max_bytes: int) -> bytes:
    """Expand gzip, of one or several members, and never more than the limit."""
    pieces: list[bytes] = []
    total = 0
    rest = body
    try:
        while rest.strip(b"\0"):
            expander = zlib.decompressobj(wbits=_GZIP_WINDOW)
            while not expander.eof:
                piece = expander.decompress(rest, _PIECE_BYTES)
                rest = expander.unconsumed_tail
                total += len(piece)
                if total > max_bytes:
                    raise TicketFormatError("body_too_large")
                if not piece and not rest and not expander.eof:
                    raise TicketFormatError("gzip_invalid")
                pieces.append(piece)
            rest = expander.unused_data
    except zlib.error:
        raise TicketFormatError("gzip_invalid") from None
    return b"".join(pieces)


def _is_rows(text: str, kind: str) -> bool:
    """Tell CSV from JSON by the media type, else by the first character and the header."""
    if "csv" in kind or "tab-separated" in kind:
        return True
    return text.lstrip()[0] not in "{[" and looks_like_rows(text)


def _read_json(text: str, kind: str, chosen: TicketFormat | None, options: ParseOptions) -> Iterator[_Result]:
    """Parse a document, or line after line."""
    lines = _lines(text) if any(each in kind for each in _NDJSON_TYPES) else None
    if lines is None:
        try:
            document = _load(text)
        except TicketFormatError as error:
            lines = _lines(text) if error.code == "json_invalid" else None
            if lines is None or not _is_ndjson(text, lines):
                raise
        else:
            chosen = chosen or detect_format([document])
            yield from chosen.parse(document, options)
            return
    yield from _parse_lines(lines, chosen, options)


def _parse_lines(
    lines: Sequence[_Line], chosen: TicketFormat | None, options: ParseOptions
) -> Iterator[_Result]:
    """Parse line after line; a bad one is a problem and stops nothing."""
    values = [value for _path, value in lines if not isinstance(value, TicketProblem)]
    if chosen is None:
        chosen = detect_format(values[:_DETECTION_LINES])
    for path, value in lines:
        if isinstance(value, TicketProblem):
            yield value
            continue
        try:
            yield from chosen.parse(value, options, path)
        except TicketFormatError as error:
            yield TicketProblem(code=error.code, path=error.path or path)


def _lines(text: str) -> list[_Line]:
    """Load each line; one that is no JSON is a problem in its place."""
    lines: list[_Line] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        path = f"lines[{number}]"
        try:
            lines.append((path, _load(line)))
        except TicketFormatError as error:
            lines.append((path, TicketProblem(code=error.code, path=path)))
    return lines


def _is_ndjson(text: str, lines: Sequence[_Line]) -> bool:
    """Tell NDJSON with bad lines from a broken document: at least half of its lines are objects."""
    good = sum(isinstance(value, dict) for _path, value in lines)
    return text.lstrip().startswith("{") and len(lines) > 1 and good * 2 >= len(lines)


def _load(text: str) -> object:
    """Load JSON strictly."""
    try:
        value: object = json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise TicketFormatError("json_too_deep") from None
    except ValueError:  # also a number of thousands of digits
        raise TicketFormatError("json_invalid") from None
    return value


def _refuse_constant(_name: str) -> NoReturn:
    """Refuse NaN and the infinities, which are no JSON."""
    raise ValueError


def _newest(results: Sequence[_Result]) -> list[_Result]:
    """Keep only the newest of each ticket."""
    best: dict[tuple[str, str], int] = {}
    for position, result in enumerate(results):
        if isinstance(result, Ticket):
            key = (result.source, result.ticket_id)
            known = best.get(key)
            if known is None or not _is_newer(results[known], result):
                best[key] = position
    kept = set(best.values())
    return [
        result
        for position, result in enumerate(results)
        if not isinstance(result, Ticket) or position in kept
    ]


def _is_newer(known: _Result, other: Ticket) -> bool:
    """Say whether the one before is newer than the one after."""
    if not isinstance(known, Ticket) or known.updated_at is None or other.updated_at is None:
        return False
    return known.updated_at > other.updated_at
