"""Ends the work of a request whose caller has left or whose time is up.

Most requests are answered long before either can happen, so watching the connection begins only
after a moment: until then a leash costs one timer.
"""

import asyncio
from types import TracebackType
from typing import Literal

from starlette.types import Receive

from gateway.body import CallerLeft
from gateway.errors import refusal

_QUIET_S = 0.05


class Leash:
    """`async with Leash(receive, deadline_s):` around work that may be cancelled.

    Raises:
        CallerLeft: the connection was closed.
        Refusal: 504 after `deadline_s`.
    """

    def __init__(self, receive: Receive, deadline_s: float) -> None:
        self._receive = receive
        self._deadline_s = deadline_s
        self._verdict: Literal["left", "late"] | None = None
        self._watcher: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        self._task = asyncio.current_task()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(min(_QUIET_S, self._deadline_s), self._watch)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        if self._watcher is not None:
            self._watcher.cancel()
        if self._verdict is None:
            return
        assert_task = self._task
        still_cancelled = assert_task.uncancel() if assert_task is not None else 0
        if kind is not asyncio.CancelledError or still_cancelled:
            return
        if self._verdict == "left":
            raise CallerLeft
        raise refusal("late", f"No answer within {self._deadline_s:g} s; the work was ended.")

    def _watch(self) -> None:
        self._watcher = asyncio.get_running_loop().create_task(self._wait())

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(max(0.0, self._deadline_s - _QUIET_S)):
                while (await self._receive())["type"] != "http.disconnect":
                    pass
            self._verdict = "left"
        except TimeoutError:
            self._verdict = "late"
        if self._task is not None:
            self._task.cancel()
