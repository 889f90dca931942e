"""Imports exports of a helpdesk, of any size, into the customer memory.

    CUSTOMER_MEMORY_API_KEY=... python scripts/import_tickets.py export.json --url https://dify.example.com/e/abc

Exit status: 0 all is well; 1 some tickets or messages could not be imported; 2 the call is wrong, the key is
refused, or the endpoint cannot be reached.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

if not __package__:  # started as a file, not as a module
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from tqdm import tqdm

from scripts.chunks import DEFAULT_CHUNK_BYTES, MAX_CHUNK_BYTES, TOO_LARGE, Chunk, CustomerMap, Problem, cut
from scripts.command import (
    FINE,
    INCOMPLETE,
    INTERRUPTED,
    KEY_VARIABLE,
    STOPPED,
    add_endpoint,
    complain,
    endpoint_key,
    existing_file,
    possible_file,
    shown,
)
from scripts.posting import Endpoint, Report
from scripts.progress import STATUSES, State, Tally
from scripts.requesting import Patience, Rejected, Stopped
from scripts.ticket_stream import TicketFile
from tickets.errors import TicketFormatError
from tickets.formats import FORMAT_NAMES
from tickets.times import load_zone

SHOWN_PROBLEMS = 20


def main(arguments: Sequence[str] | None = None) -> int:
    """Import the files named on the command line.

    Returns:
        The exit status.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    run = Run(options, endpoint_key(parser))
    status = FINE
    try:
        for path in dict.fromkeys(options.files):
            run.add(path)
    except Stopped as reason:
        complain(str(reason))
        status = STOPPED
    except KeyboardInterrupt:
        complain("Interrupted.")
        status = INTERRUPTED
    except OSError as error:
        complain(f"{type(error).__name__}: {error.strerror}: {error.filename}")
        status = STOPPED
    run.close()
    if status and options.state:
        complain("The same command goes on from here.")
    return status or (FINE if run.total.is_fine else INCOMPLETE)


class Run:
    """One run of the command line.

    Args:
        options: of the command line.
        key: of the endpoint.

    Attributes:
        total: what became of all tickets.
    """

    def __init__(self, options: argparse.Namespace, key: str) -> None:
        self.total = Tally()
        self._options = options
        self._by_file: dict[Path, Tally] = {}
        self._map = CustomerMap(options.customer_map)
        self._state = State(options.state)
        self._started = time.monotonic()
        size = sum(path.stat().st_size for path in set(options.files))
        self._bar = tqdm(total=size, unit="B", unit_scale=True, disable=None)
        query = {
            "source": options.source,
            "timezone": options.timezone,
            "mode": options.mode,
            "include_private": "true" if options.include_private else None,
            "dry_run": "true" if options.dry_run else None,
            "customer_field": options.customer_field,
        }
        self._query = {name: value for name, value in query.items() if value}
        patience = Patience(retries=options.retries, seconds=options.retry_seconds)
        self._endpoint = Endpoint(options.url, key, self._query, patience, self._tell)

    def add(self, path: Path) -> None:
        """Import one file.

        Raises:
            Stopped: nothing can be imported for the time being.
            OSError: the file cannot be opened.
        """
        file = TicketFile(path, self._options.format)
        tally = self._by_file[path] = Tally()
        digest = file.digest() if self._options.state else ""
        before, size = self._bar.n, path.stat().st_size
        self._bar.set_description(path.name)
        for piece in cut(file, limit=self._options.chunk_bytes, customer_map=self._map):
            if isinstance(piece, Problem):
                self._count(tally, _unsent([piece], tickets=int(piece.code == TOO_LARGE)))
            else:
                self._send(piece, file, digest, tally)
            self._bar.update(before + int(file.fraction * size) - self._bar.n)
        self._bar.update(before + size - self._bar.n)

    def _send(self, chunk: Chunk, file: TicketFile, digest: str, tally: Tally) -> None:
        """Import one chunk, or what earlier runs have left of it."""
        query = {"format": file.format or ""}
        if chunk.customer_map:
            query["customer_map"] = json.dumps(dict(chunk.customer_map))
        target = _fingerprint({**self._query, "format": query["format"], "url": self._options.url})
        done = self._state.find(target, digest, chunk.digest)
        self._count(tally, done.tally)
        if done.cursor is None:
            return
        known = sum(self.total.tickets.values()) - done.cursor
        try:
            for report in self._endpoint.reports(
                chunk.body(),
                query,
                cursor=done.cursor,
                on_progress=lambda count: self._show(known + count),
            ):
                news = _tally(report, chunk, file.path.name)
                self._count(tally, news)
                done.cursor = report.cursor
                done.tally.add(news)
                self._state.note(target, digest, chunk.digest, done)
        except Rejected as fault:
            items = chunk.items[done.cursor or 0 :]
            name = file.path.name
            problems = [Problem(name, item.ticket_id, fault.code, item.path("")) for item in items]
            self._count(tally, _unsent(problems, tickets=len(problems)))
        self._show(sum(self.total.tickets.values()))

    def _count(self, tally: Tally, news: Tally) -> None:
        tally.add(news)
        self.total.add(news)

    def _show(self, tickets: int) -> None:
        self._bar.set_postfix_str(f"{tickets:,} tickets")

    def _tell(self, sentence: str) -> None:
        self._bar.clear()
        complain(sentence)

    def close(self) -> None:
        """Write the problems, and show the summary."""
        self._bar.close()
        if self._options.problems:
            with self._options.problems.open("w", encoding="utf-8") as file:
                for problem in self.total.problems:
                    file.write(json.dumps(asdict(problem)) + "\n")
        seconds = time.monotonic() - self._started
        sys.stdout.write(summary(self._by_file, self.total, seconds, is_dry=self._options.dry_run))


def summary(by_file: Mapping[Path, Tally], total: Tally, seconds: float, *, is_dry: bool) -> str:
    """A table of what became of the tickets, and the first problems.

    Args:
        by_file: of each file.
        total: of all.
        seconds: how long it took.
        is_dry: whether nothing was written.

    Returns:
        Lines of text.
    """
    rows: list[tuple[str, ...]] = [("", *STATUSES)]
    named = [(shown(path.name), tally) for path, tally in by_file.items()]
    for name, tally in [*named, *([("all files", total)] if len(named) != 1 else [])]:
        rows.append((name, *(f"{tally.tickets[status]:,}" for status in STATUSES)))
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
        for row in rows
    ]
    lines.append(f"{total.stored:,} memories stored, {total.removed:,} removed, in {seconds:,.1f} s")
    if is_dry:
        lines.append("This was a dry run: nothing was written.")
    if not total.is_fine:
        lines.append("Problems:")
    for problem in total.problems[:SHOWN_PROBLEMS]:
        ticket = f"ticket {problem.ticket_id}" if problem.ticket_id is not None else "-"
        lines.append(
            f"  {shown(problem.file)}  {shown(ticket)}  {shown(problem.code)}  {shown(problem.path)}"
        )
    more = max(0, len(total.problems) - SHOWN_PROBLEMS) + total.omitted
    if more:
        lines.append(f"  and {more:,} more; --problems FILE lists what the endpoint named")
    return "\n".join(lines) + "\n"


def _tally(report: Report, chunk: Chunk, name: str) -> Tally:
    tally = Tally(stored=report.stored, removed=report.removed, omitted=report.omitted)
    tally.tickets.update(report.tickets)
    for ticket_id, code, path in report.problems:
        tally.problems.append(Problem(name, ticket_id, code, chunk.path_in_file(path)))
    return tally


def _unsent(problems: list[Problem], *, tickets: int) -> Tally:
    return Tally(Counter(failed=tickets), problems=problems)


def _fingerprint(value: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


# --- the command line ---------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="import_tickets",
        description=f"Import exports of a helpdesk. The endpoint's API key comes from {KEY_VARIABLE}.",
    )
    add = parser.add_argument
    add(
        "files", nargs="+", metavar="FILE", type=existing_file, help="JSON, NDJSON or CSV, also .gz; any size"
    )
    add_endpoint(parser)
    add("--format", choices=FORMAT_NAMES, help="told by the tickets if left out")
    add("--source", help="name of the helpdesk or brand; the format's name if left out")
    add("--mode", choices=("as_is", "extract"), help="keep every message, or have facts extracted")
    add("--timezone", type=_zone, help="for times without a zone, such as Europe/Berlin")
    add("--include-private", action="store_true", help="import private notes too")
    add(
        "--customer-field",
        metavar="PATH",
        help="where in a ticket the customer's id is, such as custom.crm_id",
    )
    add(
        "--customer-map",
        metavar="FILE",
        type=_map,
        default={},
        help="JSON object: id in the export to customer",
    )
    add("--dry-run", action="store_true", help="check everything, write nothing")
    add("--chunk-bytes", metavar="N", type=_chunk_bytes, default=DEFAULT_CHUNK_BYTES, help="of one request")
    add(
        "--state",
        metavar="FILE",
        type=possible_file,
        help="remember what is done, to go on after an interruption",
    )
    add(
        "--problems",
        metavar="FILE",
        type=possible_file,
        help="write what could not be imported, a JSON object a line",
    )
    return parser


def _zone(text: str) -> str:
    try:
        load_zone(text)
    except TicketFormatError:
        raise argparse.ArgumentTypeError("a name like Europe/Berlin is needed") from None
    return text


def _map(text: str) -> dict[str, str]:
    try:
        value = json.loads(existing_file(text).read_bytes())
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        raise argparse.ArgumentTypeError("a JSON object whose values are texts is needed")
    return value


def _chunk_bytes(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if not 1 <= number <= MAX_CHUNK_BYTES:
        raise argparse.ArgumentTypeError(f"a number from 1 to {MAX_CHUNK_BYTES} is needed")
    return number


if __name__ == "__main__":
    sys.exit(main())
