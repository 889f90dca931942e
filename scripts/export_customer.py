"""Writes everything that is known of one customer into a file: a JSON object a line.

    CUSTOMER_MEMORY_API_KEY=... python scripts/export_customer.py ann.jsonl --customer-id 42 --url https://…/e/abc

The first line says whom it is about, then come memories, ended values, links and tickets, page by page, and
the last line counts them. Exit status: 0 all is well; 2 the call is wrong, the key is refused, or the
endpoint cannot be reached.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

if not __package__:  # started as a file, not as a module
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from tqdm import tqdm

from scripts.command import (
    FINE,
    INTERRUPTED,
    KEY_VARIABLE,
    STOPPED,
    add_endpoint,
    complain,
    endpoint_key,
    possible_file,
)
from scripts.requesting import Client, Patience, Rejected, Stopped, Transient, Tries, parsed

LISTS = {"memories": "memory", "ended": "ended", "links": "link", "tickets": "ticket"}
"""List of a page → type of a line."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Export the customer named on the command line.

    Returns:
        The exit status.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    key = endpoint_key(parser)
    unfinished = options.file.with_name(options.file.name + ".part")
    started = time.monotonic()
    try:
        with unfinished.open("wb") as file:
            counts = _export(options, key, file)
        unfinished.replace(options.file)
    except Rejected as fault:
        complain(f"The endpoint refuses the export ({fault.code}).")
        return STOPPED
    except Stopped as reason:
        complain(str(reason))
        return STOPPED
    except KeyboardInterrupt:
        complain("Interrupted.")
        return INTERRUPTED
    except OSError as error:
        complain(f"{type(error).__name__}: {error.strerror}: {error.filename}")
        return STOPPED
    finally:
        unfinished.unlink(missing_ok=True)
    told = ", ".join(f"{counts[name]:,} {name}" for name in LISTS)
    sys.stdout.write(f"{told} in {time.monotonic() - started:,.1f} s\n")
    return FINE


def _export(options: argparse.Namespace, key: str, file: BinaryIO) -> Counter[str]:
    """Write page after page; how many items of each list there are.

    Raises:
        Rejected, Stopped: it cannot be done, or not for the time being.
    """
    client = Client(options.url, key, "export")
    query = {"customer_id": options.customer_id, "conversation_id": options.conversation_id}
    query = {name: value for name, value in query.items() if value}
    counts: Counter[str] = Counter()
    cursor: str | None = ""
    with tqdm(unit="items", disable=None, desc=options.file.name) as bar:
        patience = Patience(retries=options.retries, seconds=options.retry_seconds)
        while cursor is not None:
            page = _page(client, query | ({"cursor": cursor} if cursor else {}), patience, bar)
            if not cursor:
                first = {name: page[name] for name in ("customer_id", "aliases", "linked", "exported_at")}
                _write(file, {"type": "customer", **first})
            for name, kind in LISTS.items():
                for item in page[name]:
                    _write(file, {"type": kind, **item})
                counts[name] += len(page[name])
            bar.update(counts.total() - bar.n)
            if page["cursor"] is not None and page["cursor"] == cursor:
                raise Stopped("The endpoint makes no progress: its answer points back to where it began.")
            cursor = page["cursor"]
    _write(file, {"type": "end", "complete": True, "counts": {name: counts[name] for name in LISTS}})
    return counts


def _page(client: Client, query: dict[str, str], patience: Patience, bar: tqdm[Any]) -> dict[str, Any]:
    """One page, asked for as often as it takes."""

    def tell(sentence: str) -> None:
        bar.clear()
        complain(sentence)

    tries = Tries(patience, tell)
    while True:
        try:
            headers = {"Accept": "application/json"}
            with client.send("GET", "/export", query=query, headers=headers) as answer:
                value = parsed(answer.content)
        except Transient as failure:
            tries.wait(failure)
            continue
        if not isinstance(value, dict) or not {*LISTS, "cursor", "customer_id"} <= set(value):
            raise Stopped("What answers at this address is no Customer Memory endpoint.")
        return value


def _write(file: BinaryIO, value: dict[str, Any]) -> None:
    file.write(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace") + b"\n")


# --- the command line ---------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="export_customer",
        description=f"Export one customer. The endpoint's API key comes from {KEY_VARIABLE}.",
    )
    parser.add_argument("file", metavar="FILE", type=possible_file, help="such as ann.jsonl; written over")
    who = parser.add_mutually_exclusive_group(required=True)
    who.add_argument("--customer-id", metavar="ID", help="whom it is about")
    who.add_argument("--conversation-id", metavar="ID", help="or a conversation, whoever it belongs to")
    add_endpoint(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
