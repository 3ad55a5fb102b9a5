"""The lane: bounded, skips who left, survives its engine."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from engines.contract import Broken, Busy, Question, Reason, Unreadable
from engines.lane import Shape, batches, rows
from engines.scripted import ScriptedEngine
from tests.engines.lanes import PerQuestion, Piece, ask, lane_of, until


async def test_answers_come_back_in_the_order_of_the_questions() -> None:
    async with lane_of(PerQuestion(), rows(2)) as lane:
        readings = await lane.read(ask("z", "a", "m"))

    assert list(readings) == ["z", "a", "m"]


async def test_a_full_lane_refuses_at_once() -> None:
    hold = threading.Event()
    engine = ScriptedEngine(hold=hold)
    async with lane_of(engine, max_waiting=1) as lane:
        begun = asyncio.create_task(lane.read(ask()))
        await until(lambda: engine.entered == 1)
        waiting = asyncio.create_task(lane.read(ask()))
        await until(lambda: lane.waiting == 1)

        with pytest.raises(Busy) as refused:
            await lane.read(ask())

        assert 0 < refused.value.retry_after_s <= 10
        hold.set()
        await asyncio.gather(begun, waiting)


async def test_what_is_prepared_for_a_batch_counts_as_waiting() -> None:
    hold = threading.Event()
    engine = ScriptedEngine(hold=hold)
    async with lane_of(engine, batches(1), max_waiting=3) as lane:
        begun = asyncio.create_task(lane.read(ask()))
        await until(lambda: engine.entered == 1)
        waiting = [asyncio.create_task(lane.read(ask("a", "b"))) for _ in range(3)]
        await until(lambda: lane.ready == 3)

        with pytest.raises(Busy, match="3 requests are waiting"):
            await lane.read(ask())

        hold.set()
        assert all(await asyncio.gather(begun, *waiting))
        assert lane.waiting == 0


async def test_a_wait_longer_than_the_callers_patience_is_refused_at_once() -> None:
    hold = threading.Event()
    hold.set()
    engine = ScriptedEngine(hold=hold, delay_s=0.05)
    async with lane_of(engine) as lane:
        for _ in range(5):
            await lane.read(ask())  # the lane learns its pace
        hold.clear()
        begun = asyncio.create_task(lane.read(ask()))
        await until(lambda: engine.entered == 6)
        waiting = asyncio.create_task(lane.read(ask()))
        await until(lambda: lane.waiting == 1)

        with pytest.raises(Busy):
            await lane.read(ask(), patience_s=0.001)

        hold.set()
        await asyncio.gather(begun, waiting)


@pytest.mark.parametrize("shape", [rows(2), batches(100)], ids=["rows", "batches"])
async def test_an_engine_that_hangs_is_refused_at_once_until_it_answers(shape: Shape) -> None:
    hold = threading.Event()
    engine = ScriptedEngine(hold=hold)
    async with lane_of(engine, shape) as lane:
        begun = [asyncio.create_task(lane.read(ask())) for _ in range(shape.workers)]
        await until(lambda: engine.entered == shape.workers)
        waiting = asyncio.create_task(lane.read(ask()))
        await until(lambda: lane.waiting == 1)
        refused = [asyncio.create_task(lane.read(ask(), patience_s=0.0)) for _ in range(3)]
        await asyncio.wait(refused)
        hold.set()
        await asyncio.gather(*begun, waiting)
        answered = await lane.read(ask(), patience_s=60.0)

    assert [str(one.exception()) for one in refused] == ["the model has not answered for 0 s"] * 3
    assert answered


async def test_one_free_worker_is_enough_to_go_on() -> None:
    hold = threading.Event()
    engine = ScriptedEngine(hold=hold)
    async with lane_of(engine, rows(2)) as lane:
        begun = asyncio.create_task(lane.read(ask()))
        await until(lambda: engine.entered == 1)
        other = asyncio.create_task(lane.read(ask(), patience_s=0.0))
        await until(lambda: engine.entered == 2)
        hold.set()

        assert all(await asyncio.gather(begun, other))


async def test_callers_who_left_are_not_read() -> None:
    hold = threading.Event()
    engine = ScriptedEngine(hold=hold)
    async with lane_of(engine) as lane:
        begun = asyncio.create_task(lane.read(ask()))
        await until(lambda: engine.entered == 1)
        leaver = asyncio.create_task(lane.read(ask()))
        await until(lambda: lane.waiting == 1)

        leaver.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaver
        hold.set()
        await begun
        await lane.read(ask())

    assert engine.reads == 2


async def test_places_of_callers_who_left_are_free_again() -> None:
    hold = threading.Event()
    engine = ScriptedEngine(hold=hold)
    async with lane_of(engine, max_waiting=1) as lane:
        begun = asyncio.create_task(lane.read(ask()))
        await until(lambda: engine.entered == 1)
        leaver = asyncio.create_task(lane.read(ask()))
        await until(lambda: lane.waiting == 1)
        leaver.cancel()
        await asyncio.wait([leaver])

        stayer = asyncio.create_task(lane.read(ask()))
        await until(lambda: stayer.done() or lane.waiting == 1)
        hold.set()

        assert await stayer
        await begun


async def test_a_caller_who_leaves_midway_costs_no_further_pieces() -> None:
    reached, hold = threading.Event(), threading.Event()

    def react(_: Sequence[Piece]) -> None:
        reached.set()
        hold.wait()

    engine = PerQuestion(react)
    async with lane_of(engine) as lane:
        leaver = asyncio.create_task(lane.read(ask(*"abcdef")))
        await until(reached.is_set)

        leaver.cancel()
        await asyncio.wait([leaver])
        hold.set()

        await lane.read(ask("next"))
    assert engine.batches == [["a"], ["next"]]


async def test_an_engine_exception_ends_one_inquiry_and_not_the_lane() -> None:
    def react(batch: Sequence[Piece]) -> None:
        if batch[0].name == "bad":
            raise RuntimeError("boom")

    async with lane_of(PerQuestion(react)) as lane:
        with pytest.raises(Broken) as broken:
            await lane.read(ask("bad"))

        assert isinstance(broken.value.__cause__, RuntimeError)
        assert "boom" not in str(broken.value)
        assert await lane.read(ask("good"))


async def test_what_the_engine_refuses_reaches_the_caller_as_it_is() -> None:
    async with lane_of(ScriptedEngine(max_tokens=3)) as lane:
        with pytest.raises(Unreadable) as refused:
            await lane.read(ask(state="one two three four"))

        assert (refused.value.reason, refused.value.tokens) == (Reason.TOO_LONG, 4)


@pytest.mark.parametrize("weights", [(0.0, float("nan")), (float("inf"), 0.0), (0.0,), (0, 0, 0)])
async def test_weights_that_are_not_one_finite_number_per_label_are_broken(
    weights: tuple[float, ...],
) -> None:
    def script(_: object, __: Question) -> Sequence[float]:
        return weights

    async with lane_of(ScriptedEngine(script=script)) as lane:
        with pytest.raises(Broken):
            await lane.read(ask())


@pytest.mark.parametrize("answers", [[], [{}, {}], None, [{"q": None}]])
async def test_an_engine_that_breaks_its_contract_does_not_end_a_worker(
    answers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = PerQuestion()
    async with lane_of(engine) as lane:
        with monkeypatch.context() as broken:
            broken.setattr(engine, "read", lambda _: answers)
            with pytest.raises(Broken):
                await lane.read(ask("q"))

        assert await lane.read(ask("q"))


async def test_a_batch_takes_what_has_queued_up_and_keeps_to_its_tokens() -> None:
    reached, hold = threading.Event(), threading.Event()

    def react(_: Sequence[Piece]) -> None:
        reached.set()
        hold.wait()

    engine = PerQuestion(react)
    async with lane_of(engine, batches(max_batch_tokens=30)) as lane:
        first = asyncio.create_task(lane.read(ask("first")))
        await until(reached.is_set)
        rest = [asyncio.create_task(lane.read(ask(f"q{i}"))) for i in range(5)]
        await until(lambda: lane.ready == 5)
        hold.set()
        await asyncio.gather(first, *rest)

    assert engine.batches == [["first"], ["q0", "q1", "q2"], ["q3", "q4"]]


async def test_a_batch_that_fails_fails_only_for_the_piece_that_broke_it() -> None:
    reached, hold = threading.Event(), threading.Event()

    def react(batch: Sequence[Piece]) -> None:
        reached.set()
        hold.wait()
        if any(piece.name == "bad" for piece in batch):
            raise RuntimeError

    async with lane_of(PerQuestion(react), batches(1000)) as lane:
        first = asyncio.create_task(lane.read(ask("first")))
        await until(reached.is_set)
        good = asyncio.create_task(lane.read(ask("good")))
        bad = asyncio.create_task(lane.read(ask("bad")))
        await until(lambda: lane.ready == 2)
        hold.set()

        assert await first
        assert await good
        with pytest.raises(Broken):
            await bad


async def test_pieces_of_one_inquiry_are_read_by_several_workers() -> None:
    together = threading.Barrier(2, timeout=10)

    async with lane_of(PerQuestion(lambda _: together.wait()), rows(2)) as lane:
        readings = await lane.read(ask("a", "b"))

    assert list(readings) == ["a", "b"]


async def test_a_thousand_inquiries_through_two_workers_all_come_back() -> None:
    async with lane_of(ScriptedEngine(), rows(2), max_waiting=1000) as lane:
        answers = await asyncio.gather(*(lane.read(ask(f"q{i}")) for i in range(1000)))

    assert [list(answer) for answer in answers] == [[f"q{i}"] for i in range(1000)]
