"""What an operator does during a soak: reloads of good and of bad files, a look at the metrics."""

import asyncio
import itertools
import os
import re
import signal

from bench.soak_clients import NO_ANSWER, Line, Notes
from bench.soak_gateway import Soaked

_RELOADS_EVERY_S = 1.5
_SCRAPES_EVERY_S = 0.5
_MAX_SERIES = 5000
"""Whatever callers send."""

_FLOORS = ("0.6", "0.75", "0.5")
_BAD = "[limits]\nmax_questoins = 3\n"


async def reload(soaked: Soaked, stopping: asyncio.Event) -> None:
    """Swap floors and caps under the gateway, and now and then a file that it must not take."""
    good = soaked.settings.read_text(encoding="utf-8")
    for turn in itertools.count():
        if turn % 4 == 3:
            content = good + _BAD
        else:
            floor = _FLOORS[turn % len(_FLOORS)]
            content = good.replace("default_floor = 0.6", f"default_floor = {floor}")
        _give(soaked, content)
        if await _stopped(stopping, _RELOADS_EVERY_S):
            break
    _give(soaked, good)


def _give(soaked: Soaked, content: str) -> None:
    """The new file as a whole, then the signal."""
    written = soaked.settings.with_suffix(".new")
    written.write_text(content, encoding="utf-8")
    written.replace(soaked.settings)
    os.kill(soaked.server.pid, signal.SIGHUP)


async def scrape(soaked: Soaked, notes: Notes, stopping: asyncio.Event) -> None:
    """Read `/metrics` as Prometheus does; there must not be more and more series."""
    stopped = False
    while not stopped:
        try:
            page = await metrics(soaked)
        except NO_ANSWER as error:
            notes.complain(f"/metrics was not answered: {type(error).__name__}")
            page = ""
        if (series := _series(page)) > _MAX_SERIES:
            notes.complain(f"/metrics has {series} series")
        notes.statuses["metrics", 200] += bool(page)
        stopped = await _stopped(stopping, _SCRAPES_EVERY_S)


async def metrics(soaked: Soaked) -> str:
    """The page; empty when it is refused.

    Raises:
        OSError, asyncio.IncompleteReadError, TimeoutError: there is no answer.
    """
    line = await Line.to(soaked.server.port)
    try:
        head = (
            "GET /metrics HTTP/1.1\r\nHost: soak\r\nConnection: close\r\n"
            f"Authorization: Bearer {soaked.key}\r\n\r\n"
        )
        await line.send(head.encode())
        reply = await line.reply()
    finally:
        await line.close()
    return reply.body.decode() if reply.status == 200 else ""


def reloads(page: str) -> tuple[int, int]:
    """How many reloads worked and how many did not, as the metrics say."""
    found = dict(re.findall(r'^tiergate_config_reloads_total\{outcome="(\w+)"\} (\d+)', page, re.M))
    return int(found.get("done", 0)), int(found.get("failed", 0))


def _series(page: str) -> int:
    return sum(bool(line) and not line.startswith("#") for line in page.split("\n"))


async def _stopped(stopping: asyncio.Event, within_s: float) -> bool:
    """Whether it is time to stop, after waiting for that."""
    try:
        await asyncio.wait_for(stopping.wait(), within_s)
    except TimeoutError:
        return False
    return True
