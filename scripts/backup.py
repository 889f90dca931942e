"""Downloads a backup of a whole namespace, and loads one into an empty namespace.

    CUSTOMER_MEMORY_API_KEY=... python scripts/backup.py download memory.jsonl.gz --url https://…/e/abc
    CUSTOMER_MEMORY_API_KEY=... python scripts/backup.py restore memory.jsonl.gz --url https://…/e/def

Either goes on where it was interrupted when the same command is given again. Exit status: 0 all is well;
1 some rows were left out; 2 the call is wrong, the key is refused, the file is damaged, or the endpoint
cannot be reached.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

if not __package__:  # started as a file, not as a module
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from tqdm import tqdm

from memory.backup_file import decoded
from scripts.backup_parts import DEFAULT_PART_BYTES, BackupWriter, Part, header_of, parts_of
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
from scripts.requesting import (
    NDJSON,
    Client,
    Patience,
    Rejected,
    Stopped,
    Transient,
    Tries,
    error_in,
    failure_of,
    parsed,
)

SHOWN_PROBLEMS = 20
_MEDIA_TYPE = "application/x-ndjson+gzip"


def main(arguments: Sequence[str] | None = None) -> int:
    """Download or restore, as the command line says.

    Returns:
        The exit status.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    key = endpoint_key(parser)
    status = STOPPED
    try:
        status = (download if options.command == "download" else restore)(options, key)
    except Rejected as fault:
        complain(f"The endpoint cannot read the backup ({fault.code}).")
    except Stopped as reason:
        complain(str(reason))
    except KeyboardInterrupt:
        complain("Interrupted. The same command goes on from here.")
        status = INTERRUPTED
    except OSError as error:
        complain(f"{type(error).__name__}: {error.strerror}: {error.filename}")
    return status


def download(options: argparse.Namespace, key: str) -> int:
    """Download a backup into a file that is not there yet.

    Raises:
        Stopped: it cannot be done, or not for the time being.
        OSError: the file cannot be written.
    """
    path: Path = options.file
    if path.exists():
        raise Stopped(f"{path} is there already.")
    started = time.monotonic()
    unfinished = path.with_name(path.name + ".part")
    writer = BackupWriter(unfinished)
    client = Client(options.url, key, "backup")
    bar = tqdm(unit="rows", disable=None, desc=path.name, initial=writer.place.rows)
    tries = Tries(Patience(retries=options.retries, seconds=options.retry_seconds), _teller(bar))
    with bar:
        while writer.place.trailer is None:
            before = writer.place.cursor
            try:
                _receive(client, writer, bar)
                if writer.place.cursor == before and writer.place.trailer is None:
                    raise Transient("The answer broke off.")
            except Transient as failure:
                if writer.place.cursor != before:
                    tries.start_anew()
                tries.wait(failure)
            writer.drop_rest()
    unfinished.rename(path)
    size, seconds = path.stat().st_size, time.monotonic() - started
    counts = ", ".join(f"{count:,} {shown(name)}" for name, count in writer.place.trailer["counts"].items())
    sys.stdout.write(f"{counts}; {size:,} bytes in {seconds:,.1f} s\n")
    sys.stdout.write(f"checksum {writer.place.checksum}\n")
    return FINE


def _receive(client: Client, writer: BackupWriter, bar: tqdm[Any]) -> None:
    """One request's share of a backup.

    Raises:
        Transient, Stopped: as `Client.send`.
    """
    cursor = writer.place.cursor
    query = {"cursor": cursor} if cursor else {}
    with client.send("GET", "/backup", query=query, headers={"Accept": NDJSON}) as answer:
        for line in answer.iter_lines(chunk_size=4_096):
            value = parsed(line)
            error = error_in(value)
            if error is not None:
                raise failure_of(None, answer.headers, error, "backup")
            if not isinstance(value, dict):
                raise Transient("The answer broke off.", is_cut=True)
            writer.add(line)
            if value.get("type") == "header":
                bar.total = sum(value["counts"].values())
            bar.update(writer.place.rows - bar.n)


def restore(options: argparse.Namespace, key: str) -> int:
    """Load a backup into an empty namespace, part by part.

    Raises:
        Rejected, Stopped: it cannot be done, or not for the time being.
        OSError: the file cannot be read.
    """
    started = time.monotonic()
    header = header_of(options.file)
    total = sum(decoded(header)["counts"].values())
    client = Client(options.url, key, "restore")
    patience = Patience(retries=options.retries, seconds=options.retry_seconds)
    problems: list[tuple[int, str, str]] = []
    left_out = 0
    with tqdm(total=total, unit="rows", disable=None, desc=options.file.name) as bar:
        report = _post(client, Part([header], [1]), patience, bar)
        if not report["complete"]:
            for part in parts_of(options.file, behind=report["checksum"], size=options.part_bytes):
                is_done = False
                while not is_done:
                    report = _post(client, part, patience, bar)
                    is_done = report["done"]
                    left_out += report["left_out"]
                    problems += [
                        (part.numbers[each["line"] - 1], each["collection"], each["code"])
                        for each in report["problems"]
                    ]
    sys.stdout.write(_summary(report, problems, left_out, time.monotonic() - started))
    return INCOMPLETE if left_out else FINE


def _post(client: Client, part: Part, patience: Patience, bar: tqdm[Any]) -> dict[str, Any]:
    """Send a part, as often as it takes, and give the endpoint's report."""
    tries = Tries(patience, _teller(bar))
    while True:
        try:
            return _posted(client, part, bar)
        except Transient as failure:
            tries.wait(failure)


def _posted(client: Client, part: Part, bar: tqdm[Any]) -> dict[str, Any]:
    headers = {"Content-Type": _MEDIA_TYPE, "Accept": f"{NDJSON}, application/json;q=0.5"}
    with client.send("POST", "/backup", query={}, headers=headers, body=part.body()) as answer:
        for line in answer.iter_lines():
            value = parsed(line)
            error = error_in(value)
            if error is not None:
                raise failure_of(None, answer.headers, error, "restore")
            if isinstance(value, dict):
                bar.update(int(value.get("rows", 0)) - bar.n)
                if "complete" in value:
                    return value
    raise Transient("The answer broke off.", is_cut=True)


def _summary(
    report: dict[str, Any], problems: list[tuple[int, str, str]], left_out: int, seconds: float
) -> str:
    loaded = ", ".join(f"{count:,} {shown(name)}" for name, count in report["loaded"].items())
    lines = [f"{loaded} loaded in {seconds:,.1f} s; {report['embedded_again']:,} embedded again"]
    lines.append(f"checksum {report['checksum']}")
    if left_out:
        lines.append(f"{left_out:,} rows left out:")
    for number, collection, code in problems[:SHOWN_PROBLEMS]:
        lines.append(f"  line {number:,}  {shown(collection) or '-'}  {shown(code)}")
    if left_out > SHOWN_PROBLEMS:
        lines.append(f"  and {left_out - SHOWN_PROBLEMS:,} more")
    return "\n".join(lines) + "\n"


def _teller(bar: tqdm[Any]) -> Any:
    def tell(sentence: str) -> None:
        bar.clear()
        complain(sentence)

    return tell


# --- the command line ---------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="backup",
        description=f"Back up a namespace. The endpoint's API key comes from {KEY_VARIABLE}.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="download|restore")
    get = commands.add_parser("download", help="write a backup of the whole namespace")
    get.add_argument("file", metavar="FILE", type=possible_file, help="such as memory.jsonl.gz; gzip always")
    add_endpoint(get)
    put = commands.add_parser("restore", help="load a backup into an empty namespace")
    put.add_argument("file", metavar="FILE", type=existing_file, help="a backup, plain or gzip")
    put.add_argument(
        "--part-bytes",
        metavar="N",
        type=_part_bytes,
        default=DEFAULT_PART_BYTES,
        help="of one request, before it is compressed",
    )
    add_endpoint(put)
    return parser


def _part_bytes(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if not 1 <= number <= DEFAULT_PART_BYTES:
        raise argparse.ArgumentTypeError(f"a number from 1 to {DEFAULT_PART_BYTES} is needed")
    return number


if __name__ == "__main__":
    sys.exit(main())
