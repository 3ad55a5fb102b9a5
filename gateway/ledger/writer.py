"""One thread that writes: what was handed over while it was busy is committed together.

Work is a function of the store. `submit` waits for the commit, `post` does not: posted work is
committed with the next group, at the latest after the interval. An event loop hands over whole
groups, one system call for each: waking a thread costs more than a row.
"""

import asyncio
import logging
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from gateway.ledger.store import Store, StoreError

_LOG = logging.getLogger("tiergate")

T = TypeVar("T")
Work: TypeAlias = Callable[[Store], Any]

_RETRY_S = 0.2
_MAX_KEPT = 100_000
"""Posted work that is kept for later while the store cannot be written."""


@dataclass(slots=True)
class _Item:
    """Work, and whoever waits for its outcome."""

    work: Work
    future: asyncio.Future[Any] | None = None
    outcome: Any = None


class Writer:
    """The only thread that changes the store of a running gateway. Used from one event loop."""

    def __init__(self, open_store: Callable[[], Store], *, interval_s: float = 0.05) -> None:
        """Opens the store and starts the thread.

        Raises:
            StoreError: the store cannot be opened.
        """
        self._store = open_store()
        self._interval_s = interval_s
        self._loop: asyncio.AbstractEventLoop | None = None
        self._outbox: list[_Item] = []
        self._soon = False
        self._later: asyncio.TimerHandle | None = None
        self._overdue = False
        self._busy = False
        self._failing = False
        self._closed = False
        self._groups: queue.SimpleQueue[list[_Item] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="ledger", daemon=True)
        self._thread.start()

    @property
    def failing(self) -> bool:
        """Whether the last group could not be written; what was posted is being tried again."""
        return self._failing

    async def submit(self, work: Callable[[Store], T]) -> T:
        """What `work` returns, after the commit of its group.

        Cancelling stops the waiting, not the work.

        Raises:
            StoreError: the store cannot be written; nothing of `work` was.
            Exception: whatever else `work` raises; nothing of it was written then.
        """
        if self._closed:
            raise StoreError("the ledger is closed")
        self._loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = self._loop.create_future()
        self._outbox.append(_Item(work, future))
        if not self._soon and not self._busy:
            self._soon = True
            self._loop.call_soon(self._hand_over)
        return await future

    def post(self, work: Work) -> None:
        """Have `work` done soon, in the order of posting; it is tried until the store allows it."""
        self._outbox.append(_Item(work))
        if self._later is None:
            self._loop = asyncio.get_running_loop()
            self._later = self._loop.call_later(self._interval_s, self._due)

    def close(self) -> None:
        """Write everything that was handed over, then let go of the store."""
        self._closed = True
        self._busy = False
        self._hand_over()
        self._groups.put(None)
        self._thread.join()

    def _due(self) -> None:
        """The interval is over for what was posted first."""
        self._later = None
        self._overdue = True
        self._hand_over()

    def _hand_over(self) -> None:
        """Give the thread everything there is, unless it is still writing."""
        self._soon = False
        if self._busy or not self._outbox:
            return
        self._busy, self._overdue = True, False
        if self._later is not None:
            self._later.cancel()
            self._later = None
        group, self._outbox = self._outbox, []
        self._groups.put(group)

    def _written(self, group: list[_Item]) -> None:
        """On the event loop: the thread is done with a group."""
        self._busy = False
        for item in group:
            if item.future is None or item.future.done():
                continue
            if isinstance(item.outcome, Exception):
                item.future.set_exception(item.outcome)
            else:
                item.future.set_result(item.outcome)
        if self._overdue or any(item.future is not None for item in self._outbox):
            self._hand_over()

    def _run(self) -> None:
        kept: list[_Item] = []
        while True:
            try:
                group = self._groups.get(timeout=_RETRY_S if kept else None)
            except queue.Empty:
                kept = self._write(kept)
                continue
            if group is None:
                break
            kept = self._write([*kept, *group])
            self._tell(group)
        if kept and self._write(kept):
            _LOG.error("the ledger could not be written: %d entries are lost", len(kept))
        self._store.close()

    def _tell(self, group: list[_Item]) -> None:
        if self._loop is None:
            return
        try:
            self._loop.call_soon_threadsafe(self._written, group)
        except RuntimeError:  # the loop is closed: nobody waits any more
            return

    def _write(self, group: list[_Item]) -> list[_Item]:
        """Commit the group, or each item alone if one of them raises; what to try again."""
        try:
            with self._store.transaction():
                for item in group:
                    item.outcome = item.work(self._store)
        except StoreError as error:
            return self._put_off(group, error)
        except Exception as error:  # noqa: BLE001 - one item must not end the ledger
            if len(group) > 1:
                return [kept for item in group for kept in self._write([item])]
            group[0].outcome = error
            if group[0].future is None:
                _LOG.error("an entry does not fit the ledger and is lost", exc_info=error)
            return []
        self._failing = False
        return []

    def _put_off(self, group: list[_Item], error: StoreError) -> list[_Item]:
        """Whoever waits is told; the rest is kept for later."""
        if not self._failing:
            _LOG.error("the ledger cannot be written", exc_info=error)
        self._failing = True
        for item in group:
            item.outcome = error
        kept = [item for item in group if item.future is None]
        if len(kept) > _MAX_KEPT:
            _LOG.error("the ledger has too much to catch up: %d entries are lost", len(kept))
            return []
        return kept
