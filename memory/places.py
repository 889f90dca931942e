"""Places for a few at a time, given to whoever has the earliest turn."""

import heapq
import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Places:
    """A number of places. Of those who wait the earliest turn is next, however often it looks up meanwhile.

    Args:
        count: how many there are.
    """

    def __init__(self, count: int) -> None:
        self._free = count
        self._lock = threading.Lock()
        self._asked = itertools.count()
        self._waiting: list[tuple[float, int, threading.Event]] = []  # a heap

    @contextmanager
    def asked_for(self, turn: float) -> Iterator[threading.Event]:
        """Ask for a place, and give it back, or the wish for it up, at the end.

        Args:
            turn: the least is the first; of equal ones whoever asked first.

        Yields:
            What is set once the place is there.
        """
        given = threading.Event()
        with self._lock:
            wish = (turn, next(self._asked), given)
            if self._free:
                self._free -= 1
                given.set()
            else:
                heapq.heappush(self._waiting, wish)
        try:
            yield given
        finally:
            with self._lock:
                if not given.is_set():
                    self._waiting.remove(wish)
                    heapq.heapify(self._waiting)
                elif self._waiting:
                    heapq.heappop(self._waiting)[-1].set()
                else:
                    self._free += 1
