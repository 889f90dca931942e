"""Quotas of a hosted Chroma: how much one request may hold, and rows that keep to it.

A server of one's own has none. What Chroma Cloud publishes is in `CHROMA_CLOUD`; it raises most of them for
those who ask, so each is a setting.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any
from urllib.parse import urlsplit

from memory.errors import SettingInvalid

RECORDS_RANGE = (10, 5_000)
CALLS_RANGE = (1, 64)
BYTES_RANGE = (1_000, 1_000_000)
MARK = "~"
"""Between a column's name and the number of a piece; no column of ours has it in its name."""
COUNT_MARK = "\x1f"
"""Between the first piece and the number of the others; JSON, which all that is cut is, has none."""
COUNT_BYTES = 3
PIECES = {"fixed": 7, "told": 15}
"""Columns that can be long, and in how many further columns the rest of one may lie: a row of Chroma Cloud
has 32 columns at the most."""
TEXT, TEXT_PIECES = "text", 15
"""The same for the text of a row that has none of these columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotas:
    """How much a Chroma service takes at once; None for as much as we would ever send.

    Args:
        records_per_write: records in one write or deletion, 10 to 5,000.
        records_per_read: records in one answer, 10 to 5,000.
        calls_at_once: requests of this process under way at once, 1 to 64.
        document_bytes: of a record's text in UTF-8, 1,000 to 1,000,000.
        value_bytes: of one value of a record's metadata in UTF-8, 1,000 to 1,000,000.

    Raises:
        SettingInvalid: a value is out of range.
    """

    records_per_write: int | None = None
    records_per_read: int | None = None
    calls_at_once: int | None = None
    document_bytes: int | None = None
    value_bytes: int | None = None

    def __post_init__(self) -> None:
        ranges = {
            "records_per_write": RECORDS_RANGE,
            "records_per_read": RECORDS_RANGE,
            "calls_at_once": CALLS_RANGE,
            "document_bytes": BYTES_RANGE,
            "value_bytes": BYTES_RANGE,
        }
        for name, (low, high) in ranges.items():
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                raise SettingInvalid(name="chroma_quotas", expected=f"{name} from {low} to {high}")

    def write_size(self, usual: int) -> int:
        """Records in one write, where so many are usual."""
        return usual if self.records_per_write is None else min(usual, self.records_per_write)

    def read_size(self, usual: int) -> int:
        """Records in one answer, where so many are usual."""
        return usual if self.records_per_read is None else min(usual, self.records_per_read)

    def calls(self, usual: int) -> int:
        """Requests at once, where so many are usual."""
        return usual if self.calls_at_once is None else min(usual, self.calls_at_once)


NO_QUOTAS = Quotas()
CHROMA_CLOUD = Quotas(
    records_per_write=300,
    records_per_read=300,
    calls_at_once=8,
    document_bytes=16_384,
    value_bytes=4_096,
)
"""As published in November 2026 (docs.trychroma.com/cloud/quotas-limits), but for the calls: it takes 10 of
reads and of writes at once in a collection, of all processes together."""
CLOUD_DOMAIN = "trychroma.com"
_NAMED = {"none": NO_QUOTAS, "chroma_cloud": CHROMA_CLOUD}
_NAMES = tuple(field.name for field in fields(Quotas))


def quotas_at(url: str) -> Quotas:
    """The quotas of the service at an address, where nobody says which: Chroma Cloud's or none."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:  # such an address is refused where it is used
        host = ""
    is_cloud = host == CLOUD_DOMAIN or host.endswith(f".{CLOUD_DOMAIN}")
    return CHROMA_CLOUD if is_cloud else NO_QUOTAS


def read_quotas(words: Sequence[str], url: str) -> Quotas:
    """The quotas that words tell of.

    Args:
        words: "none", "chroma_cloud", and quotas with a number such as "records_per_read=1000", which change
            what was told before; none at all for what the address tells.
        url: of the server.

    Raises:
        SettingInvalid: a word is none of these, or a number is out of range.
    """
    quotas = quotas_at(url)
    for word in words:
        name, _, number = (part.strip().casefold() for part in word.partition("="))
        if word.strip().casefold() in _NAMED:
            quotas = _NAMED[word.strip().casefold()]
        elif name in _NAMES and number.isdecimal():
            quotas = replace(quotas, **{name: int(number)})
        else:
            expected = f"{', '.join(_NAMED)}, or a number for {', '.join(_NAMES)}"
            raise SettingInvalid(name="chroma_quotas", expected=expected)
    return quotas


def cut(text: str, columns: Mapping[str, Any], quotas: Quotas) -> tuple[str, dict[str, Any]]:
    """A row with what is too long in one place going on in further columns.

    Columns of pieces that it does not need are None, since a longer version may have had them. What does not
    fit into all pieces there may be stays as it is, for the service to refuse.
    """
    fitting = dict(columns)
    if quotas.value_bytes is not None:
        for name in PIECES.keys() & columns.keys():
            fitting |= _pieces(name, columns[name], PIECES[name], quotas.value_bytes, quotas.value_bytes)
    if quotas.document_bytes is not None and not PIECES.keys() & columns.keys():
        value_bytes = quotas.value_bytes or quotas.document_bytes
        pieces = _pieces(TEXT, text, TEXT_PIECES, quotas.document_bytes, value_bytes)
        text = pieces.pop(TEXT) or ""
        fitting |= pieces
    return text, fitting


def whole(text: str, columns: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The row that `cut` made another one of."""
    if MARK not in "".join(columns):
        return text, columns
    joined = {name: value for name, value in columns.items() if MARK not in name}
    for name in PIECES.keys() & columns.keys():
        joined[name] = _joined(name, columns[name], columns)
    return _joined(TEXT, text, columns), joined


def _joined(name: str, first: str, columns: Mapping[str, Any]) -> str:
    """A value with its pieces; the first tells how many, for others may be left of a longer version."""
    value, _, count = first.partition(COUNT_MARK)
    pieces = (str(columns.get(f"{name}{MARK}{number}", "")) for number in range(1, int(count or 0) + 1))
    return "".join((value, *pieces))


def _pieces(name: str, value: str | None, most: int, first: int, others: int) -> dict[str, str | None]:
    """A value in pieces by column, those that are not needed None."""
    pieces: list[str | None] = [value]
    if value and len(value.encode("utf-8", "surrogatepass")) > first:
        cuts = list(_split(value, first - COUNT_BYTES, others))
        if len(cuts) <= most + 1:
            pieces = [f"{cuts[0]}{COUNT_MARK}{len(cuts) - 1}", *cuts[1:]]
    names = [name, *(f"{name}{MARK}{number}" for number in range(1, most + 1))]
    return dict(zip(names, pieces + [None] * (len(names) - len(pieces)), strict=True))


def _split(value: str, first: int, others: int) -> Iterator[str]:
    """A value cut between characters, in pieces of so many bytes at the most."""
    raw = value.encode("utf-8", "surrogatepass")
    start, size = 0, first
    while start < len(raw):
        end = min(start + size, len(raw))
        while end < len(raw) and raw[end] & 0xC0 == 0x80:
            end -= 1  # inside a character
        yield raw[start:end].decode("utf-8", "surrogatepass")
        start, size = end, others
