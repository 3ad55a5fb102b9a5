"""The ledger as a running gateway uses it: who writes, who reads, who asks about keys."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from gateway.aside import pool
from gateway.ledger.store import Store, StoreError
from gateway.ledger.writer import Writer

T = TypeVar("T")

_SWEPT = 500


class Books:
    """Three connections: the writer's thread, one thread that reads, and the event loop's own."""

    def __init__(self, open_store: Callable[[], Store], *, interval_s: float) -> None:
        """Raises: StoreError: the store cannot be opened."""
        self.writer = Writer(open_store, interval_s=interval_s)
        self.source = open_store()
        """For questions about keys that take microseconds, from the event loop."""
        self._reader_store = open_store()
        self._reader = pool(1, "ledger-reader")

    async def read(self, work: Callable[[Store], T]) -> T:
        """What `work` finds, on a thread; it must not write.

        Raises:
            StoreError: the store cannot be read.
        """
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._reader, work, self._reader_store)

    async def sweep(self, now_s: float) -> bool:
        """Delete a little of what has expired; whether there may be more.

        Nothing while the store cannot be written.

        Called every second it is also how a writer that fails finds out that it does no more: then
        nobody else asks anything of it. It is not kept for later, as charges are, which would then
        wait behind thousands of these.
        """
        with suppress(StoreError):
            return await self.writer.submit(lambda store: store.sweep(now_s, _SWEPT)) >= _SWEPT
        return False

    def close(self) -> None:
        """Write what was handed over, then let go of everything."""
        self._reader.shutdown()
        self.writer.close()
        self._reader_store.close()
        self.source.close()
