"""What a lane tells of the cost of a reading, also to callers who got no answer."""

import asyncio
import threading
import time

import pytest

from engines.contract import Broken, Tally
from engines.lane import Shape, batches, rows
from engines.scripted import ScriptedEngine
from tests.engines.lanes import PerQuestion, ask, lane_of, until


async def test_time_spent_is_reading_and_not_waiting() -> None:
    hold = threading.Event()
    engine = ScriptedEngine(hold=hold)
    first, second = Tally(), Tally()
    async with lane_of(engine) as lane:
        begun = asyncio.create_task(lane.read(ask(), tally=first))
        await until(lambda: engine.entered == 1)
        waiting = asyncio.create_task(lane.read(ask(), tally=second))
        held_s = -time.monotonic()
        await asyncio.sleep(0.1)
        held_s += time.monotonic()
        hold.set()
        await asyncio.gather(begun, waiting)

    assert first.spent_s >= held_s
    assert 0 < second.spent_s < held_s


@pytest.mark.parametrize("shape", [rows(2), batches(1000)])
async def test_every_piece_is_tallied_once(shape: Shape) -> None:
    tally = Tally()
    async with lane_of(PerQuestion(lambda _: time.sleep(0.01)), shape) as lane:
        await lane.read(ask("a", "b", "c"), tally=tally)

    assert tally.tokens == 30
    assert tally.spent_s >= 0.01


async def test_a_caller_who_leaves_is_told_of_what_had_begun_and_no_more() -> None:
    hold, entered = threading.Event(), threading.Event()

    def react(_: object) -> None:
        entered.set()
        hold.wait(10)

    engine, tally = PerQuestion(react), Tally()
    async with lane_of(engine) as lane:
        asking = asyncio.create_task(lane.read(ask("a", "b", "c"), tally=tally))
        await asyncio.to_thread(entered.wait, 10)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        hold.set()

    assert tally.tokens == 10
    assert engine.batches == [["a"]]


async def test_a_reading_that_fails_has_cost_its_tokens() -> None:
    def react(_: object) -> None:
        raise Broken("no")

    tally = Tally()
    async with lane_of(PerQuestion(react)) as lane:
        with pytest.raises(Broken):
            await lane.read(ask(), tally=tally)

    assert tally.tokens == 10
