"""A temporary table on disk: values by key, in the order they came."""

import sqlite3
from collections.abc import Iterable, Iterator
from itertools import groupby
from tempfile import TemporaryDirectory
from types import TracebackType

_SCHEMA = """
CREATE TABLE keys (number INTEGER PRIMARY KEY, key TEXT UNIQUE);
CREATE TABLE items (number INTEGER, value BLOB);
CREATE INDEX by_key ON items (number);
"""


class Spill:
    """Values by key; gone at the end. Use it as a context manager.

    Its file lies in a folder only its owner can read, and opens on first use.
    """

    def __init__(self) -> None:
        self._folder: TemporaryDirectory[str] | None = None
        self._table: sqlite3.Connection | None = None

    def put_all(self, pairs: Iterable[tuple[str, bytes]]) -> None:
        """Add values, each with its key; of the same key as many as come."""
        table = self._opened()
        for key, value in pairs:
            table.execute("INSERT OR IGNORE INTO keys (key) VALUES (?)", [key])
            table.execute("INSERT INTO items SELECT number, ? FROM keys WHERE key = ?", [value, key])

    def get(self, key: str) -> list[bytes]:
        """The values of a key."""
        query = "SELECT value FROM items JOIN keys USING (number) WHERE key = ? ORDER BY items.rowid"
        return [value for (value,) in self._opened().execute(query, [key])]

    def groups(self) -> Iterator[list[bytes]]:
        """The values of each key together, in the order in which the keys were seen first."""
        rows = self._opened().execute("SELECT number, value FROM items ORDER BY number, rowid")
        for _, group in groupby(rows, key=lambda row: row[0]):
            yield [value for _, value in group]

    def __len__(self) -> int:
        return int(self._opened().execute("SELECT count(*) FROM keys").fetchone()[0])

    def _opened(self) -> sqlite3.Connection:
        if self._table is None:
            self._folder = TemporaryDirectory(prefix="customer-memory-")
            self._table = sqlite3.connect(f"{self._folder.name}/spill", isolation_level=None)
            self._table.execute("PRAGMA journal_mode = OFF")
            self._table.execute("PRAGMA synchronous = OFF")
            self._table.executescript(_SCHEMA)
            self._table.execute("BEGIN")
        return self._table

    def __enter__(self) -> "Spill":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._table is not None and self._folder is not None:
            self._table.close()
            self._folder.cleanup()
