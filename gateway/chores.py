"""Work that goes on beside the answering, as long as the gateway runs."""

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

_LOG = logging.getLogger("tiergate")


@asynccontextmanager
async def chores(*endless: Coroutine[Any, Any, object]) -> AsyncIterator[None]:
    """Do these as long as the block lasts. One that ends before, as none should, is logged."""
    tasks = [asyncio.create_task(one) for one in endless]
    for task in tasks:
        task.add_done_callback(_told_of_the_end)
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _told_of_the_end(task: asyncio.Task[object]) -> None:
    if not task.cancelled():
        name = task.get_coro().__qualname__  # type: ignore[union-attr]
        _LOG.error("'%s' has ended, until the next start", name, exc_info=task.exception())
