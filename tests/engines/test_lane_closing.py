"""The end of a lane: what was accepted is answered, the rest refused, the engine closed."""

import asyncio
import threading

import pytest

from engines.contract import Busy
from engines.lane import Lane, batches, rows
from engines.scripted import ScriptedEngine
from tests.engines.lanes import PerQuestion, ask, lane_of, until


async def test_closing_answers_what_was_accepted_and_refuses_the_rest() -> None:
    hold = threading.Event()
    engine = ScriptedEngine(hold=hold)
    async with lane_of(engine) as lane:
        accepted = [asyncio.create_task(lane.read(ask())) for _ in range(3)]
        await until(lambda: lane.waiting == 2)
        closing = asyncio.create_task(asyncio.to_thread(lane.close, drain_s=10.0))
        await until(lambda: lane.closing)

        with pytest.raises(Busy):
            await lane.read(ask())
        hold.set()

        assert all(await asyncio.gather(*accepted))
        await closing


async def test_what_cannot_be_drained_in_time_is_refused() -> None:
    hold = threading.Event()
    engine = ScriptedEngine(hold=hold)
    lane = Lane("test", engine, rows(1), max_waiting=8)
    stuck = asyncio.create_task(lane.read(ask()))
    await until(lambda: engine.entered == 1)
    waiting = asyncio.create_task(lane.read(ask()))
    await until(lambda: lane.waiting == 1)

    await asyncio.to_thread(lane.close, drain_s=0.0)

    with pytest.raises(Busy):
        await waiting
    hold.set()
    stuck.cancel()


async def test_closing_closes_the_engine() -> None:
    engine = PerQuestion()
    async with lane_of(engine, batches(100)) as lane:
        await lane.read(ask("a", "b"))

    assert engine.closed
