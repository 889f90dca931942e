"""Writing behind: the store is busy with one batch while the next is being prepared."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from types import TracebackType
from typing import Self


class WriteBehind:
    """Does writes one after the other, in the order given, while the caller goes on.

    After a write that failed none of the later ones is done; leaving the block waits for all of them and
    raises what the first failure raised.

    Attributes:
        has_failed: whether a write, or the caller within the block, failed.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1)
        self._writes: list[Future[None]] = []
        self.has_failed = False

    def __enter__(self) -> Self:
        return self

    def put(self, write: Callable[[], None]) -> None:
        """Have a write done after those before it.

        Raises:
            MemoryFault: what one of those before it raised; this one is not done.
        """
        self._raise_failure()
        self._writes.append(self._pool.submit(copy_context().run, self._do, write))

    def _do(self, write: Callable[[], None]) -> None:
        if self.has_failed:
            return
        try:
            write()
        except BaseException:
            self.has_failed = True
            raise

    def _raise_failure(self) -> None:
        for write in self._writes:
            if write.done():
                write.result()

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.has_failed = True
        self._pool.shutdown()
        if kind is None:
            self._raise_failure()
