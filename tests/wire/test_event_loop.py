"""The event loop stays free: while an engine reads, and while large bodies are taken apart."""

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from gateway.aside import pool
from gateway.dialects import systemone

from .asks import NOUL, ask, raw
from .serving import Gateway, Watched, thread
from .wellformed import refusal

_TICK_S = 0.005


class _Lag:
    """The longest time the loop of a gateway did nothing for others, in seconds."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        self.ticks = 0

    async def watch(self) -> None:
        before_s = time.perf_counter()
        while True:
            await asyncio.sleep(_TICK_S)
            now_s = time.perf_counter()
            self.longest_s = max(self.longest_s, now_s - before_s - _TICK_S)
            self.ticks += 1
            before_s = now_s


@contextmanager
def _watched(gateway: Gateway) -> Iterator[_Lag]:
    lag = _Lag()
    watching = asyncio.run_coroutine_threadsafe(lag.watch(), gateway.loop)
    yield lag
    watching.cancel()


def _health_s(client: httpx.Client) -> float:
    """Seconds that `/health` takes."""
    begun_s = time.perf_counter()
    assert client.get("/health").status_code == 200
    return time.perf_counter() - begun_s


def test_while_an_engine_reads_others_are_answered_at_once() -> None:
    hold = threading.Event()
    with (
        thread(Watched(hold=hold)) as gateway,
        httpx.Client(base_url=gateway.url, timeout=20, trust_env=False) as client,
        ThreadPoolExecutor(8) as callers,
        _watched(gateway) as lag,
    ):
        asked = [callers.submit(client.post, "/v1/systemone", content=raw()) for _ in range(8)]
        gateway.engine.await_read()
        begun_s = time.perf_counter()
        slowest_s = max(_health_s(client) for _ in range(50))
        held_s = time.perf_counter() - begun_s
        still_held = not any(one.done() for one in asked)
        hold.set()
        statuses = [one.result().status_code for one in asked]

    assert still_held
    assert statuses == [200] * 8
    assert lag.ticks > 0
    assert lag.longest_s < 2
    assert slowest_s < max(2, held_s / 2)


def test_while_a_large_body_is_taken_apart_others_are_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, hold = threading.Event(), threading.Event()
    decode = systemone.decode

    def held_decode(body: bytes, *more: Any) -> Any:
        if len(body) > 1_000_000:
            begun.set()
            assert hold.wait(10)
        return decode(body, *more)

    monkeypatch.setattr(systemone, "decode", held_decode)
    body = raw(ask({"n": NOUL}, state="x" * 8_000_000))
    with (
        thread(Watched()) as gateway,
        httpx.Client(base_url=gateway.url, timeout=20, trust_env=False) as client,
        ThreadPoolExecutor(1) as callers,
    ):
        asked = callers.submit(client.post, "/v1/systemone", content=body)
        assert begun.wait(10)
        _health_s(client)
        small = client.post("/v1/systemone", content=raw()).status_code
        still_held = not asked.done()
        hold.set()
        large = asked.result().status_code

    assert still_held
    assert (small, large) == (200, 200)


@pytest.mark.parametrize("shape", ["one string", "many strings", "escapes"])
def test_a_body_of_8_mb_holds_the_loop_for_a_fraction_of_its_time(shape: str) -> None:
    states: dict[str, object] = {
        "one string": "x" * 8_000_000,
        "many strings": [["word" * 25] * 1000] * 75,
        "escapes": "é\n" * 1_000_000,
    }
    body = raw(ask({"n": NOUL}, state=states[shape]))
    with (
        thread(Watched(max_tokens=None), server={"deadline_s": 60.0}) as gateway,
        httpx.Client(base_url=gateway.url, timeout=60, trust_env=False) as client,
        ThreadPoolExecutor(1) as callers,
    ):
        alone_s = _alone_s(client, body)
        with _watched(gateway) as lag:
            asked = callers.submit(client.post, "/v1/systemone", content=body)
            while not asked.done():
                _health_s(client)
            status = asked.result().status_code

    assert status == 200
    assert lag.longest_s < max(1.5, alone_s / 2)


def test_a_body_whose_values_would_hold_the_loop_is_refused_unparsed() -> None:
    body = raw(ask({"n": NOUL}, state=[{"a": {"b": {"c": [1.5, None, "d"]}}}] * 200_000))
    with (
        thread(Watched(max_tokens=None)) as gateway,
        httpx.Client(base_url=gateway.url, timeout=60, trust_env=False) as client,
        _watched(gateway) as lag,
    ):
        response = client.post("/v1/systemone", content=body)

    assert response.status_code == 422
    assert refusal(response.content)["detail"][0]["type"] == "too_many_values"
    assert gateway.engine.reads == 0
    assert lag.longest_s < 1.5


def test_however_many_bodies_are_taken_apart_at_once_no_thread_is_added() -> None:
    body = raw(ask({"n": NOUL}, state="x" * 1_000_000))
    with (
        thread(Watched(max_tokens=None)) as gateway,
        httpx.Client(base_url=gateway.url, timeout=60, trust_env=False) as client,
        pool(12, "callers") as callers,
    ):
        before = {one.native_id for one in threading.enumerate()}
        asked = [callers.submit(client.post, "/v1/systemone", content=body) for _ in range(36)]
        statuses = {one.result().status_code for one in asked}
        added = [one.name for one in threading.enumerate() if one.native_id not in before]

    assert statuses == {200}
    assert added == []


def _alone_s(client: httpx.Client, body: bytes) -> float:
    """Seconds that the body takes with nobody else there."""
    begun_s = time.perf_counter()
    assert client.post("/v1/systemone", content=body).status_code == 200
    return time.perf_counter() - begun_s
