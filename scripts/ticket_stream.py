"""From export files of any size to single tickets, each as one line of JSON; little is held in memory.

Envelopes and arrays are read by ijson, NDJSON line by line, and the rows of a CSV file are put together in a
temporary database, since those of one ticket may stand anywhere in it.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from decimal import Decimal
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

import ijson  # type: ignore[import-untyped]

from scripts.spill import Spill
from tickets.errors import TicketFormatError
from tickets.formats import FORMAT_NAMES, detect_format
from tickets.rows import read_rows

HEAD_BYTES = 1_000_000
"""How much of a file tells what kind it is."""
MAX_TICKET_BYTES = 60_000_000
"""What is larger, and has no known list of tickets in it, is not one ticket."""
SAMPLE = 20
"""Tickets that tell the format."""

_BOM = b"\xef\xbb\xbf"
_GZIP_MAGIC = b"\x1f\x8b"
_LINES_SUFFIXES = {".ndjson", ".jsonl"}
_ROWS_SUFFIXES = {".csv", ".tsv"}
_LISTS = {name: ".".join(import_module(f"tickets.formats.{name}").KEYS) for name in FORMAT_NAMES}
_IN_PAGE = ".tickets[0]"
_MESSAGE = re.compile(r"\.messages\[(\d+)\]")

type Open = Callable[[], AbstractContextManager[IO[bytes]]]


class Unreadable(Exception):
    """A file, or the rest of it, cannot be read.

    Attributes:
        code: as of `tickets.errors`.
        path: where in the file, or "".
    """

    def __init__(self, code: str, path: str = "") -> None:
        super().__init__(code)
        self.code, self.path = code, path


@dataclass(frozen=True, slots=True)
class Item:
    """One ticket of a file; or a line that may hold several, or nothing that can be read.

    Attributes:
        line: one line of JSON without its end.
        where: path in the file, such as `tickets[3]` or `lines[12]`; "" for the whole of it.
        wrapped_at: path of the ticket in the line, where the line is an envelope made for it.
        rows: of a ticket from CSV, the line in the file of each message.
    """

    line: bytes
    where: str
    wrapped_at: str = ""
    rows: tuple[int, ...] = ()

    @property
    def ticket_id(self) -> str | None:
        """The ticket's id, if there is one to be seen."""
        try:
            value = json.loads(self.line)
        except (ValueError, RecursionError):
            return None
        if self.wrapped_at == _IN_PAGE:
            value = value["tickets"][0]
        if not isinstance(value, dict):
            return None
        found = (value.get(name) for name in ("ticket_id", "key", "id", "Id"))
        return next((str(each) for each in found if isinstance(each, str | int) and each != ""), None)

    def path(self, below: str) -> str:
        """A path below the line as a path in the file."""
        below = below.removeprefix(self.wrapped_at)
        message = _MESSAGE.match(below)
        if message and int(message[1]) < len(self.rows):
            return f"lines[{self.rows[int(message[1])]}]{below[message.end() :]}"
        return f"{self.where}{below}".lstrip(".")


class TicketFile:
    """One export file.

    Args:
        path: where it is.
        format: the format's name; None tells it by the tickets.

    Attributes:
        format: the format's name, once `items` has given the first ticket.
        fraction: how much of the file `items` has read, 0 to 1.
    """

    def __init__(self, path: Path, format: str | None = None) -> None:
        self.path = path
        self.format = format
        self.fraction = 0.0
        self._size = max(1, path.stat().st_size)

    def digest(self) -> str:
        """SHA-256 of the file, in hexadecimal."""
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def items(self) -> Iterator[Item]:
        """The tickets in the order of the file, those of a CSV file in the order of their first rows.

        Raises:
            Unreadable: from here on; what was given before is good. Up to 64 KB before a break in a JSON
                document are lost with it.
        """
        try:
            kind = self._kind()
            if kind == "rows":
                yield from self._rows()
            elif kind == "lines":
                yield from self._lines()
            else:
                yield from self._document(self._opened, "")
        except TicketFormatError as error:
            raise Unreadable(error.code, error.path or "") from None
        except (EOFError, gzip.BadGzipFile, zlib.error):
            raise Unreadable("gzip_invalid") from None
        except UnicodeDecodeError:
            raise Unreadable("encoding_not_utf8") from None
        except csv.Error:
            raise Unreadable("csv_invalid") from None
        except ijson.JSONError:
            raise Unreadable("json_invalid") from None
        self.fraction = 1.0

    # --- kinds of files --------------------------------------------------------------------------

    def _kind(self) -> str:
        suffixes = {suffix.casefold() for suffix in self.path.suffixes}
        with self._opened() as file:
            head = file.read(HEAD_BYTES)
        if not head.strip():
            raise Unreadable("body_empty")
        if suffixes & _ROWS_SUFFIXES or head.lstrip()[:1] not in {b"{", b"["}:
            return "rows"
        lines = [line for line in head.split(b"\n") if line.strip()]
        if len(head) == HEAD_BYTES:
            lines.pop()  # it is not whole
        sample = lines[:SAMPLE]
        objects = sum(isinstance(_loaded(line), dict) for line in sample)
        if lines and suffixes & _LINES_SUFFIXES:
            return "lines"
        is_lines = head.lstrip()[:1] == b"{" and len(sample) > 1 and objects * 2 >= len(sample)
        return "lines" if is_lines else "document"

    def _lines(self) -> Iterator[Item]:
        """NDJSON: the lines as they are; only a page of many tickets may have to be taken apart."""
        if self.format is None:
            with self._opened() as file:
                values = (_loaded(line) for line in islice(file, SAMPLE))
                self.format = detect_format([value for value in values if value is not None]).name
        with self._opened() as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield Item(line.strip(), f"lines[{number}]")

    def parts(self, item: Item) -> list[Item]:
        """The tickets of a line that is a whole page, each by itself; just the item if it is none."""
        if item.wrapped_at or item.rows:
            return [item]
        try:
            return list(self._document(lambda: io.BytesIO(item.line), item.where)) or [item]
        except (ijson.JSONError, TicketFormatError):
            return [item]

    def _document(self, opened: Open, where: str) -> Iterator[Item]:
        """An envelope, an array, or a single ticket; or several of them one after another."""
        place, self.format = find_list(opened, self.format)
        stem = ".".join(part for part in (where, place.removesuffix("item").rstrip(".")) if part)
        is_page = self.format == "zendesk" and place == "tickets.item"
        with Spill() as users:
            if is_page:
                with opened() as file:
                    users.put_all(_users(file))
            with opened() as file:
                for number, value in enumerate(ijson.items(file, place, multiple_values=True)):
                    at = f"{stem}[{number}]" if place else where
                    if not isinstance(value, dict):
                        yield Item(dumped([value]), at, wrapped_at="[0]")  # so that it counts as a ticket
                    elif is_page:
                        page = {"tickets": [value], "users": _users_of(value, users)}
                        yield Item(dumped(page), at, wrapped_at=_IN_PAGE)
                    else:
                        yield Item(dumped(value), at)

    def _rows(self) -> Iterator[Item]:
        """CSV: each ticket in the canonical shape."""
        if self.format not in {None, "canonical"}:
            raise Unreadable("csv_needs_canonical", "format")
        self.format = "canonical"
        header, delimiter, columns = self._header()
        with Spill() as spill:
            with self._text() as text:
                spill.put_all(_keyed_rows(text, delimiter, columns))
            total = max(1, len(spill))
            for done, group in enumerate(spill.groups(), start=1):
                rows = [json.loads(each) for each in group]
                self.fraction = done / total
                ticket = read_rows(_as_csv([header, *(cells for _, cells in rows)]))[0][0]
                numbers = tuple(number for number, _ in rows)
                yield Item(dumped(ticket), f"lines[{numbers[0]}]", rows=numbers)

    def _header(self) -> tuple[list[str], str, Mapping[str, int]]:
        """Header, delimiter, and the columns that say whose row it is.

        The reader of the rows itself is asked, with a row that holds the numbers of the columns.
        """
        failure: TicketFormatError | None = None
        for delimiter in ",;\t":
            with self._text() as text:
                header = next((row for row in csv.reader(text, delimiter=delimiter) if any(row)), [])
            try:
                probe = read_rows(_as_csv([header, [str(at) for at in range(len(header))]]))[0][0]
            except TicketFormatError as error:
                failure = failure or error
                continue
            columns = {name: int(str(probe[name])) for name in ("ticket_id", "source") if probe[name]}
            return header, delimiter, columns
        raise Unreadable("csv_invalid" if failure is None else failure.code)

    # --- opening ---------------------------------------------------------------------------------

    @contextmanager
    def _opened(self) -> Iterator[IO[bytes]]:
        """The file from its first character on, expanded."""
        with io.BufferedReader(_Counted(self.path, self)) as file:
            if file.peek(2).startswith(_GZIP_MAGIC):
                with gzip.GzipFile(fileobj=file) as expanded:
                    yield _without_mark(expanded)
            else:
                yield _without_mark(file)

    @contextmanager
    def _text(self) -> Iterator[IO[str]]:
        with self._opened() as file, io.TextIOWrapper(file, "utf-8", newline="") as text:
            yield text

    def _note_position(self, position: int) -> None:
        self.fraction = position / self._size


class _Counted(io.FileIO):
    """A file that says how far it was read."""

    def __init__(self, path: Path, owner: TicketFile) -> None:
        super().__init__(path, "r")
        self._owner = owner

    def readinto(self, buffer: Any, /) -> int | None:
        count = super().readinto(buffer)
        self._owner._note_position(self.tell())
        return count


def find_list(opened: Open, format: str | None) -> tuple[str, str]:
    """Find where in a JSON document the tickets are, and their format.

    Args:
        opened: opens the document.
        format: the format's name, if it is known.

    Returns:
        The place as ijson names it, "" where the document is one ticket itself; and the format's name.

    Raises:
        TicketFormatError: `format_undetected`, `format_ambiguous`.
    """
    places = {"", *(_LISTS.values() if format is None else [_LISTS[format]])}
    values = 0
    with opened() as file:
        for prefix, event, _ in ijson.parse(file, multiple_values=True):
            values += event == "end_map" and prefix == ""
            if event != "start_array" or prefix not in places:
                continue
            place = f"{prefix}.item".lstrip(".")
            if format is not None:
                return place, format
            try:
                return place, _format_of(opened, place)
            except TicketFormatError:
                if prefix == "":
                    raise
        if file.tell() > MAX_TICKET_BYTES * max(1, values):
            raise TicketFormatError("format_undetected", "format")
    return "", format or _format_of(opened, "")


def _without_mark(file: io.BufferedReader[Any] | gzip.GzipFile) -> IO[bytes]:
    """The file after its byte order mark."""
    if file.peek(3).startswith(_BOM):
        file.read(3)
    return cast("IO[bytes]", file)


def _format_of(opened: Open, place: str) -> str:
    with opened() as file:
        return detect_format(islice(ijson.items(file, place, multiple_values=True), SAMPLE)).name


def _users(file: IO[bytes]) -> Iterator[tuple[str, bytes]]:
    for user in ijson.items(file, "users.item", multiple_values=True):
        if isinstance(user, dict) and "id" in user:
            yield str(user["id"]), dumped(user)


def _users_of(ticket: dict[str, Any], users: Spill) -> list[Any]:
    """The users a ticket names; of one that was listed twice, the last."""
    comments = ticket.get("comments")
    named = [ticket.get(name) for name in ("requester_id", "submitter_id", "assignee_id")]
    if isinstance(comments, list):
        named += [comment.get("author_id") for comment in comments if isinstance(comment, dict)]
    keys = dict.fromkeys(str(each) for each in named if each is not None)
    return [json.loads(found[-1]) for key in keys if (found := users.get(key))]


def _keyed_rows(text: IO[str], delimiter: str, columns: Mapping[str, int]) -> Iterator[tuple[str, bytes]]:
    """The rows below the header, each with the key of its ticket; without an id it stays alone."""
    reader = csv.reader((line.replace("\0", "") for line in text), delimiter=delimiter, strict=True)
    is_header = True
    number = 1
    for row in reader:
        begins, number = number, reader.line_num + 1
        if not any(cell.strip() for cell in row):
            continue
        if not is_header:
            named = {name: row[at].strip() for name, at in columns.items() if at < len(row)}
            ticket_id = named.get("ticket_id")
            key = json.dumps([named.get("source", ""), ticket_id]) if ticket_id else str(begins)
            yield key, dumped([begins, row])
        is_header = False


def _as_csv(rows: list[list[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows(rows)
    return text.getvalue()


def _loaded(line: bytes) -> object:
    try:
        value: object = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value


def dumped(value: object) -> bytes:
    """A value as one line of JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_number).encode()


def _number(value: object) -> float:
    if isinstance(value, Decimal):
        return float(value)
    raise TypeError(type(value).__name__)
