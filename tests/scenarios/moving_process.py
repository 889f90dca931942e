"""A process that moves or mends a namespace and kills itself before its n-th write."""

import os
import signal
import sys
from typing import Any

from memory.chroma import Chroma
from memory.repairing import Repair
from memory.resharding import Resharding
from memory.settings import ChromaSettings
from tests.scenarios.engines import HashChoice

WRITES = {"add", "upsert", "update", "delete"}


def main(url: str, namespace: str, verb: str, argument: str, number: str) -> None:
    """Do it, and die before a write of it, counted from 1; those of the namespace's own state count."""
    writes = 0

    def count() -> None:
        nonlocal writes
        writes += 1
        if writes == int(number):
            os.kill(os.getpid(), signal.SIGKILL)

    on_collection = Chroma._on_collection
    amend, drop, rename = Chroma.amend, Chroma.drop, Chroma.rename

    def counted(self: Chroma, name: str, method: str, arguments: dict[str, Any], **more: Any) -> Any:
        if method in WRITES:
            count()
        return on_collection(self, name, method, arguments, **more)

    def amended(self: Chroma, *arguments: Any) -> None:
        count()
        amend(self, *arguments)

    def dropped(self: Chroma, *arguments: Any) -> None:
        count()
        drop(self, *arguments)

    def renamed(self: Chroma, *arguments: Any) -> None:
        count()
        rename(self, *arguments)

    Chroma.rename = renamed  # type: ignore[method-assign, assignment]
    Chroma._on_collection = counted  # type: ignore[method-assign]
    Chroma.amend = amended  # type: ignore[method-assign, assignment]
    Chroma.drop = dropped  # type: ignore[method-assign, assignment]
    settings = ChromaSettings(url=url, namespace=namespace, timeout_seconds=200.0)
    if verb == "move":
        moving = Resharding(settings, HashChoice(), pause=lambda _seconds: None)
        for _ in moving.move(shards=int(argument), embedder=None):
            pass
    else:
        Repair(settings, HashChoice(), pause=lambda _seconds: None).mend(argument)
    sys.stdout.write(f"{writes}\n")


if __name__ == "__main__":
    main(*sys.argv[1:6])
