"""Places for a few at a time, given in the order in which they were asked for."""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager


class Places:
    """A number of places. Who waits keeps its turn, however often it looks up meanwhile.

    Args:
        count: how many there are.
    """

    def __init__(self, count: int) -> None:
        self._free = count
        self._lock = threading.Lock()
        self._waiting: deque[threading.Event] = deque()

    @contextmanager
    def asked_for(self) -> Iterator[threading.Event]:
        """Ask for a place, and give it back, or the wish for it up, at the end.

        Yields:
            What is set once the place is there; others come later, also those who asked meanwhile.
        """
        turn = threading.Event()
        with self._lock:
            if self._free:
                self._free -= 1
                turn.set()
            else:
                self._waiting.append(turn)
        try:
            yield turn
        finally:
            with self._lock:
                if not turn.is_set():
                    self._waiting.remove(turn)
                elif self._waiting:
                    self._waiting.popleft().set()
                else:
                    self._free += 1
