"""Ends the process when an engine has lost its device for good, where the configuration says so."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Protocol

from engines.fleet import Fleet, health_of
from engines.lane import Lane
from gateway.config import Settings
from gateway.config_clef import ClefEngineSection
from gateway.wiring_engines import CannotStart

_LOG = logging.getLogger("tiergate")
_LOOK_EACH_S = 1.0


class Stoppable(Protocol):
    """Something that serves until it is told not to."""

    should_exit: bool


@asynccontextmanager
async def guarded(
    settings: Settings,
    lanes: Mapping[str, Lane | Fleet],
    server: Stoppable,
    *,
    look_each_s: float = _LOOK_EACH_S,
) -> AsyncIterator[None]:
    """Meanwhile the server is told to stop as soon as an engine with `on_lost = "stop"` is lost.

    Raises:
        CannotStart: on leaving, if that happened.
    """
    mortal = {
        name: lanes[name]
        for name, section in settings.engines.items()
        if isinstance(section, ClefEngineSection) and section.on_lost == "stop"
    }
    watch = asyncio.create_task(_first_lost(mortal, server, look_each_s)) if mortal else None
    try:
        yield
    finally:
        if watch is not None:
            watch.cancel()
            with suppress(asyncio.CancelledError):
                lost = await watch
                raise CannotStart(f"engines.{lost} has lost its device; start again")


async def _first_lost(
    lanes: Mapping[str, Lane | Fleet], server: Stoppable, look_each_s: float
) -> str:
    """The name of the first engine that is lost; the server is told."""
    while True:
        for name, lane in lanes.items():
            if health_of(lane).state == "lost":
                _LOG.error("device lost; stopping", extra={"engine": name})
                server.should_exit = True
                return name
        await asyncio.sleep(look_each_s)
