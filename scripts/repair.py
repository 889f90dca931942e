"""Finds and mends collections whose vector index was torn when the Chroma server was killed.

    python scripts/repair.py --chroma-url http://chroma:8000 --namespace default --dry-run
    python scripts/repair.py --chroma-url http://chroma:8000 --namespace default

It works on the Chroma server itself, not through the endpoint. Exit status: 0 all is sound now; 1 something
is torn or unreadable still; 2 the call is wrong, or a server cannot be used.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if not __package__:  # started as a file, not as a module
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from tqdm import tqdm

from memory.repairing import Condition, Finding, Repair
from scripts.access import add_access, embedders_of, patiently, settings_of
from scripts.command import FINE, INCOMPLETE, INTERRUPTED, STOPPED, complain
from scripts.requesting import Stopped, Tries

UNREADABLE = (
    "{name}: the server answers nothing about it. Stop the server, move the folder of its index away, "
    "start the server, and run this again. See the README for the folder's name."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Look at a namespace, and mend it unless it is only to be looked at.

    Returns:
        The exit status.
    """
    options = _parser().parse_args(arguments)
    try:
        return _run(options)
    except Stopped as reason:
        complain(str(reason))
    except KeyboardInterrupt:
        complain("Interrupted. Run it again.")
        return INTERRUPTED
    return STOPPED


def _run(options: argparse.Namespace) -> int:
    settings = settings_of(options)
    repair = Repair(settings.chroma, embedders_of(settings))
    findings: dict[str, Finding] = {}

    def look(tries: Tries) -> None:
        if not options.dry_run and (resumed := repair.resume()):
            sys.stdout.write(f"{resumed}: an earlier mending was cut, and is finished or undone\n")
        names = [name for name in repair.collections() if name not in findings]
        for name in tqdm(names, unit="collections", disable=None, desc="look"):
            findings[name] = repair.examine(name)
            tries.start_anew()

    def mend(tries: Tries) -> None:
        for finding in [each for each in findings.values() if each.condition is Condition.TORN]:
            mended = repair.mend(finding.collection)
            findings[finding.collection] = repair.examine(finding.collection)
            sys.stdout.write(
                f"{mended.collection}: mended, {mended.rows:,} rows, {mended.made_anew:,} vectors made anew\n"
            )
            tries.start_anew()

    patiently(options, look)
    for finding in findings.values():
        if finding.condition is Condition.TORN:
            counts = f"{finding.unread:,} without a vector, {finding.unfound:,} not found by a search"
            sys.stdout.write(f"{finding.collection}: torn, {finding.rows:,} rows, {counts}\n")
        elif finding.condition is Condition.UNREADABLE:
            complain(UNREADABLE.format(name=finding.collection))
    if not options.dry_run:
        patiently(options, mend)
    left = [each for each in findings.values() if each.condition is not Condition.SOUND]
    rows = sum(each.rows for each in findings.values())
    sys.stdout.write(f"{len(findings)} collections, {rows:,} rows, {len(left)} not sound\n")
    return INCOMPLETE if left else FINE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="repair", description="Find and mend torn collections.")
    add_access(parser)
    parser.add_argument("--dry-run", action="store_true", help="only look")
    return parser


if __name__ == "__main__":
    sys.exit(main())
