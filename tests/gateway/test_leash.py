"""The leash: ends work that is late or that nobody waits for, and nothing else."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from starlette.types import Message

from gateway.errors import Refusal, refusal
from gateway.leash import CallerLeft, Leash


def late() -> Refusal:
    return refusal("late", "too late")


def connection(*messages: str, then_wait: bool = True) -> Callable[[], Awaitable[Message]]:
    kinds = list(messages)

    async def receive() -> Message:
        if not kinds and then_wait:
            await asyncio.Event().wait()
        return {"type": kinds.pop(0)}

    return receive


async def test_quick_work_is_left_alone() -> None:
    with Leash(5.0, late, connection("http.disconnect")):
        await asyncio.sleep(0)


async def test_late_work_is_ended_and_refused() -> None:
    with pytest.raises(Refusal) as refused, Leash(0.01, late):
        await asyncio.Event().wait()

    assert refused.value.problem.kind == "late"


async def test_late_work_is_ended_while_the_connection_is_watched() -> None:
    with pytest.raises(Refusal), Leash(0.1, late, connection()):
        await asyncio.Event().wait()


async def test_work_whose_caller_left_is_ended() -> None:
    watched = connection("http.request", "http.disconnect")

    with pytest.raises(CallerLeft), Leash(30.0, late, watched):
        await asyncio.Event().wait()


async def test_what_the_work_raises_is_passed_on() -> None:
    with pytest.raises(KeyError), Leash(5.0, late):
        raise KeyError


async def test_a_cancellation_from_outside_stays_a_cancellation() -> None:
    async def work() -> None:
        with Leash(30.0, late, connection()):
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_task_can_go_on_after_its_leash_ended_something() -> None:
    with pytest.raises(Refusal), Leash(0.01, late):
        await asyncio.Event().wait()

    await asyncio.sleep(0.01)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
