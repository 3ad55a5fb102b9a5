"""One thread that writes: what was handed over while it was busy is committed together.

Work is a function of the store. `submit` waits for the commit, `post` does not: posted work is
committed with the next group, at the latest after the interval. What is owed is kept for later even
if somebody waits, so that it stands before whatever comes after it. An event loop hands over whole
groups, one system call for each: waking a thread costs more than a row. Whoever has `gather` may
put more work in a group just before it is handed over.
"""

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

from gateway.ledger.owed import Owed
from gateway.ledger.rows import Rows
from gateway.ledger.store import Store, StoreError

_LOG = logging.getLogger("tiergate")

T = TypeVar("T")
Work: TypeAlias = Callable[[Store], Any]

_Item: TypeAlias = tuple[Work, asyncio.Future[Any] | None]
"""Work, and whoever waits for what it returns or raises."""


def _nothing() -> None:
    """There is no more."""


_MOMENT_S = 0.001
"""A commit of six rows takes as long as two of one, and one of sixteen as long as three."""
_RETRY_S = 0.2
_STUCK_S = 2.0
"""A group that takes longer, behind somebody else's lock or a dying disk, is as good as failed."""
_MAX_KEPT = 100_000
"""Posted work that is kept for later while the store cannot be written."""


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
        self.gather: Callable[[], None] = _nothing
        """Called on the event loop before a group is handed over; it may `put` more into it."""
        self._soon = False
        """Whether somebody waits for the next group."""
        self._later: asyncio.TimerHandle | None = None
        self._moment: asyncio.TimerHandle | None = None
        self._overdue = False
        self._busy = False
        self._handed_s = 0.0
        self._failing = False
        self._closed = False
        self._groups: queue.SimpleQueue[list[_Item] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="ledger", daemon=True)
        self._thread.start()

    @property
    def failing(self) -> bool:
        """Whether the last group could not be written, or this one takes far too long.

        What was posted is being tried again.
        """
        return self._failing or (self._busy and time.monotonic() - self._handed_s > _STUCK_S)

    async def submit(self, work: Callable[[Store], T]) -> T:
        """What `work` returns, after the commit of its group.

        Cancelling stops the waiting, not the work.

        Raises:
            StoreError: the store cannot be written; nothing of `work` was. What is `Owed` is
                tried again, as of somebody who was refused.
            Exception: whatever else `work` raises; nothing of it was written then.
        """
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.put(work, future)
        self.hurry()
        try:
            return await future
        finally:
            del future  # an exception in it knows this frame

    def post(self, work: Work) -> None:
        """Have `work` done soon, in the order of posting; it is tried until the store allows it."""
        self.put(work, None)
        self.remind()

    def put(self, work: Work, waiting: asyncio.Future[Any] | None) -> None:
        """Work of the next group, whenever that is handed over; see `submit` and `post`."""
        self._outbox.append((work, waiting))

    def hurry(self) -> None:
        """Somebody waits for the next group. Raises: StoreError: the ledger is closed."""
        if self._soon:
            return
        if self._closed:
            raise StoreError("the ledger is closed")
        self._soon = True
        if not self._busy:
            self._loop = asyncio.get_running_loop()
            self._loop.call_soon(self._hand_over)

    def linger(self) -> None:
        """Somebody waits for the next group, and more is about to come: give it a moment.

        Raises: StoreError: the ledger is closed.
        """
        if self._soon or self._moment is not None:
            return
        if self._closed:
            raise StoreError("the ledger is closed")
        self._loop = asyncio.get_running_loop()
        self._moment = self._loop.call_later(_MOMENT_S, self._moment_over)

    def _moment_over(self) -> None:
        self._moment = None
        self._soon = True
        self._hand_over()

    def remind(self) -> None:
        """The next group is due after the interval."""
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
        if self._busy:
            return
        self.gather()
        self._soon = False
        if not self._outbox:
            return
        self._busy, self._overdue = True, False
        self._handed_s = time.monotonic()
        for timer in (self._later, self._moment):
            if timer is not None:
                timer.cancel()
        self._later = self._moment = None
        group, self._outbox = self._outbox, []
        self._groups.put(group)

    def _written(self, group: list[_Item], outcomes: list[Any]) -> None:
        """On the event loop: the thread is done with a group."""
        self._busy = False
        for (_, future), outcome in zip(group, outcomes, strict=True):
            if future is None or future.done():
                continue
            if isinstance(outcome, Exception):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)
        if self._overdue or self._soon:
            self._hand_over()

    def _run(self) -> None:
        kept: list[_Item] = []
        while True:
            try:
                group = self._groups.get(timeout=_RETRY_S if kept else None)
            except queue.Empty:
                kept = self._put_off(kept, self._committed(_works(kept)))
                continue
            if group is None:
                break
            everything = [*kept, *group]
            outcomes = self._committed(_works(everything))
            own = outcomes[len(kept) :]
            kept = self._put_off(everything, outcomes)
            self._tell(group, own)
        if kept and self._put_off(kept, self._committed(_works(kept))):
            _LOG.error("the ledger could not be written: %d entries are lost", len(kept))
        self._store.close()

    def _tell(self, group: list[_Item], outcomes: list[Any]) -> None:
        if self._loop is None:
            return
        try:
            self._loop.call_soon_threadsafe(self._written, group, outcomes)
        except RuntimeError:  # the loop is closed: nobody waits any more
            return

    def _committed(self, every: list[Work]) -> list[Any]:
        """Commit everything, or each work alone if one of them raises; what each came to.

        What is raised knows this frame and who called it: neither may know, for longer than until
        the next group, the futures that it is put into.
        """
        store = self._store
        try:
            with store.transaction():
                outcomes = [work(store) for work in every]
        except StoreError as error:
            if not self._failing:
                _LOG.error("the ledger cannot be written", exc_info=error)
            self._failing = True
            return [error] * len(every)
        except Exception as error:  # noqa: BLE001 - one item must not end the ledger
            if len(every) > 1:
                return self._each_committed(every)
            (work,) = every
            if isinstance(work, Rows) and (parts := work.parts()):
                return [self._left_of(work, parts)]
            return [error]
        self._failing = False
        return outcomes

    def _each_committed(self, every: list[Work]) -> list[Any]:
        """As `_committed`, each work alone; after a failure of the store nothing overtakes it."""
        outcomes: list[Any] = []
        for work in every:
            if outcomes and isinstance(outcomes[-1], StoreError):
                outcomes.append(outcomes[-1])
            else:
                outcomes += self._committed([work])
        return outcomes

    def _left_of(self, rows: Rows, parts: Sequence[Rows]) -> StoreError | None:
        """Commit rows part by part; what they came to together. They keep what failed."""
        pairs = list(zip(parts, self._committed(list(parts)), strict=True))
        for _, outcome in pairs:
            if isinstance(outcome, Exception) and not isinstance(outcome, StoreError):
                _lost(outcome)
        failed = [(part, error) for part, error in pairs if isinstance(error, StoreError)]
        rows.leave([part for part, _ in failed])
        return failed[0][1] if failed else None

    def _put_off(self, group: list[_Item], outcomes: list[Any]) -> list[_Item]:
        """What could not be written and nobody waits for, or is owed: it is tried again."""
        kept: list[_Item] = []
        for (work, waiting), outcome in zip(group, outcomes, strict=True):
            if not isinstance(outcome, StoreError):
                if waiting is None and isinstance(outcome, Exception):
                    _lost(outcome)
                continue
            if waiting is None:
                kept.append((work, None))
            elif isinstance(work, Owed):
                kept.append((work.refused(), None))
        if len(kept) > _MAX_KEPT:
            _LOG.error("the ledger has too much to catch up: %d entries are lost", len(kept))
            return []
        return kept


def _works(group: list[_Item]) -> list[Work]:
    return [work for work, _ in group]


def _lost(error: Exception) -> None:
    _LOG.error("an entry does not fit the ledger and is lost", exc_info=error)
