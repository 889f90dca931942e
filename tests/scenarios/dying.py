"""A process that kills itself before its n-th write to Chroma. Run as `python -m tests.scenarios.dying`."""

import os
import signal
import sys
from typing import Any

from memory.chroma import Chroma
from tests.scenarios.engines import Place, tickets_of

WRITES = {"add", "upsert", "update", "delete"}


def main(url: str, namespace: str, verb: str, argument: str, number: str) -> None:
    """Do one thing, and die before a write of it, counted from 1."""
    deadly = int(number)
    on_collection = Chroma._on_collection
    writes = 0

    def counted(self: Chroma, name: str, method: str, arguments: dict[str, Any], **more: Any) -> Any:
        nonlocal writes
        writes += method in WRITES
        if method in WRITES and writes == deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        return on_collection(self, name, method, arguments, **more)

    Chroma._on_collection = counted  # type: ignore[method-assign]
    place = Place(url, namespace)
    if verb == "erase":
        place.erase(argument)
    else:
        place.engine.import_tickets(tickets_of(argument.encode()))


if __name__ == "__main__":
    main(*sys.argv[1:6])
