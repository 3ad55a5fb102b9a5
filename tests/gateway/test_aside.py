"""Threads for what would hold up the event loop."""

import asyncio
import threading
import time

import pytest

from gateway import aside
from gateway.aside import pool, work_aside


def _threads() -> set[int | None]:
    return {thread.native_id for thread in threading.enumerate()}


def test_every_thread_of_a_pool_is_there_before_it_is_asked_anything() -> None:
    before = _threads()
    with pool(3, "some") as some:
        there = _threads()
        assert len(there - before) == 3
        list(some.map(time.sleep, [0.01] * 12))
        assert _threads() == there
    assert _threads() == before


def test_work_beside_the_event_loop_starts_no_thread() -> None:
    async def main() -> None:
        work_aside()
        there = _threads()
        await asyncio.gather(*(asyncio.to_thread(time.sleep, 0.01) for _ in range(12)))
        assert _threads() == there

    before = _threads()
    asyncio.run(main())
    assert _threads() == before, "the loop's runner ends them"


def test_a_pool_that_cannot_have_all_its_threads_holds_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[threading.Thread] = []

    def start(thread: threading.Thread) -> None:
        if len(started) == 2:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        _start(thread)

    _start = threading.Thread.start
    before = _threads()
    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        aside.pool(3, "some")
    for thread in started:
        thread.join(5.0)
    assert _threads() == before
