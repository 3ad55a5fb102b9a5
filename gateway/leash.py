"""Ends the work of a request whose time is up or whose caller has left.

Most requests are answered long before either can happen, so watching the connection begins only
after a moment: until then a leash costs one timer.
"""

import asyncio
from collections.abc import Callable
from types import TracebackType

from starlette.types import Receive

from gateway.errors import Refusal

_QUIET_S = 0.05


class CallerLeft(Exception):
    """The connection was closed before the answer could be sent."""


class Leash:
    """`with Leash(seconds, late):` around work that may be cancelled; in a task.

    Raises:
        Refusal: what `late` makes, after `seconds`.
        CallerLeft: the connection was closed, if there is a `watched` one to receive from.
    """

    __slots__ = ("_late", "_seconds", "_task", "_timer", "_verdict", "_watched", "_watcher")

    def __init__(
        self, seconds: float, late: Callable[[], Refusal], watched: Receive | None = None
    ) -> None:
        self._seconds = seconds
        self._late = late
        self._watched = watched
        self._verdict: Callable[[], Exception] | None = None
        self._watcher: asyncio.Task[None] | None = None

    def __enter__(self) -> None:
        loop = asyncio.get_running_loop()
        self._task = asyncio.current_task(loop)
        if self._watched is None:
            self._timer = loop.call_later(self._seconds, self._end_late)
        else:
            self._timer = loop.call_later(min(_QUIET_S, self._seconds), self._watch)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        if self._watcher is not None:
            self._watcher.cancel()
            self._watcher = None  # what it was cancelled with knows its frames, and these know self
        if self._verdict is None or self._task is None:
            return
        others = self._task.uncancel()
        if kind is asyncio.CancelledError and not others:
            raise self._verdict() from None

    def _end(self, verdict: Callable[[], Exception]) -> None:
        self._verdict = verdict
        if self._task is not None:
            self._task.cancel()

    def _end_late(self) -> None:
        self._end(self._late)

    def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(max(0.0, self._seconds - _QUIET_S), self._end_late)
        self._watcher = loop.create_task(self._wait())

    async def _wait(self) -> None:
        if self._watched is not None:
            while (await self._watched())["type"] != "http.disconnect":
                pass
            self._end(CallerLeft)
