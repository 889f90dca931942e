"""Moves the memories of a namespace to another number of collections or another embedder, while it is used.

    python scripts/reshard.py --chroma-url http://chroma:8000 --namespace default --collections 256
    python scripts/reshard.py --chroma-url http://chroma:8000 --embedding-source builtin

It works on the Chroma server itself, not through the endpoint. Interrupted, it goes on when the same command
is given again. Exit status: 0 all is well; 2 the call is wrong, another move is under way, or a server
cannot be used.
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

from memory.embedding import BUILTIN
from memory.resharding import Progress, Resharding
from memory.settings import SHARDS_RANGE
from scripts.access import add_access, embedders_of, patiently, settings_of
from scripts.command import FINE, INTERRUPTED, STOPPED, complain
from scripts.requesting import Stopped, Tries


def main(arguments: Sequence[str] | None = None) -> int:
    """Move, give up a move, or delete what earlier ones kept, as the command line says.

    Returns:
        The exit status.
    """
    options = _parser().parse_args(arguments)
    try:
        _run(options)
    except Stopped as reason:
        complain(str(reason))
        return STOPPED
    except KeyboardInterrupt:
        complain("Interrupted. The same command goes on from here; --abandon gives it up.")
        return INTERRUPTED
    return FINE


def _run(options: argparse.Namespace) -> None:
    settings = settings_of(options)
    embedders = embedders_of(settings)
    resharding = Resharding(settings.chroma, embedders)
    if options.abandon or options.drop_kept:
        patiently(options, lambda _tries: _tidy(resharding, options))
        return
    embedder = (embedders.chosen() or BUILTIN) if options.embedding_source else None
    if options.collections is None and embedder is None:
        raise Stopped("Say where to: --collections, --embedding-source, or both.")
    started = time.monotonic()

    def move(tries: Tries) -> None:
        with _Bar() as bar:
            for progress in resharding.move(
                shards=options.collections, embedder=embedder, keeps_old=options.keep_old
            ):
                bar.show(progress)
                tries.start_anew()

    patiently(options, move)
    seconds = time.monotonic() - started
    sys.stdout.write(f"{resharding.written:,} rows copied in {seconds:,.1f} s\n")


class _Bar:
    """A progress bar for each step of a move."""

    def __init__(self) -> None:
        self._bars: dict[str, tqdm[Any]] = {}

    def show(self, progress: Progress) -> None:
        """Show how far it is."""
        if progress.step not in self._bars:
            self._close()
            self._bars[progress.step] = tqdm(unit="rows", disable=None, desc=progress.step)
        bar = self._bars[progress.step]
        bar.total = progress.total
        bar.update(progress.done - bar.n)

    def _close(self) -> None:
        for bar in self._bars.values():
            bar.close()
        self._bars.clear()

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *_reason: object) -> None:
        self._close()


def _tidy(resharding: Resharding, options: argparse.Namespace) -> None:
    if options.abandon:
        sys.stdout.write("given up\n" if resharding.abandon() else "there is no move to give up\n")
    else:
        sys.stdout.write(f"{resharding.drop_kept()} earlier layouts deleted\n")


def _collections(text: str) -> int:
    low, high = SHARDS_RANGE
    if not text.isdecimal() or not low <= int(text) <= high:
        raise argparse.ArgumentTypeError(f"a number from {low} to {high} is needed")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="reshard", description="Move memories to another number of collections, or another embedder."
    )
    add_access(parser)
    parser.add_argument("--collections", metavar="N", type=_collections, help="how many, 1 to 1,024")
    parser.add_argument("--keep-old", action="store_true", help="leave the old collections where they are")
    other = parser.add_mutually_exclusive_group()
    other.add_argument("--abandon", action="store_true", help="give up a move that is not switched yet")
    other.add_argument("--drop-kept", action="store_true", help="delete what --keep-old left")
    return parser


if __name__ == "__main__":
    sys.exit(main())
