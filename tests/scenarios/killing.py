"""Kills a Chroma server in the middle of writing an index out: python -m tests.scenarios.killing FOLDER PID.

A process of its own, since the writing takes a few thousandths of a second.
"""

import os
import signal
import sys

MIDDLE = "length.bin"
"""The index's files are written one after the other, not at once; this is neither the first nor the last."""


def _written(folder: str) -> list[tuple[int, int]]:
    """When the middle file of each index was written, and its size."""
    found = []
    for index in os.scandir(folder):
        path = os.path.join(index.path, MIDDLE)
        if os.path.exists(path):
            status = os.stat(path)
            found.append((status.st_mtime_ns, status.st_size))
    return found


def main() -> None:
    """Wait for the next writing of an index, and kill."""
    folder, pid = sys.argv[1], int(sys.argv[2])
    before = _written(folder)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while _written(folder) == before:
        os.kill(pid, 0)  # ends with the server
    os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
