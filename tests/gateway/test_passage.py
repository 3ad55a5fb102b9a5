"""Server-Timing: where the time of a request went, told to whoever sent it."""

import asyncio
import re
import threading
import time

import httpx
import pytest

from engines.scripted import ScriptedEngine
from gateway.decision import Decision
from gateway.passage import STAGES, Passage
from tests.gateway.conftest import ASK, Gateway


def durations(response: httpx.Response) -> dict[str, float]:
    """Stage → milliseconds, from the header."""
    header = response.headers["server-timing"]
    assert re.fullmatch(r"\w+;dur=\d+\.\d\d(, \w+;dur=\d+\.\d\d)*", header)
    pairs = (part.split(";dur=") for part in header.split(", "))
    return {name: float(value) for name, value in pairs}


async def test_an_answer_says_what_each_stage_took(client: httpx.AsyncClient) -> None:
    found = durations(await client.post("/v1/systemone", json=ASK))

    assert tuple(found) == ("queue", "engine", "total")
    assert found["queue"] + found["engine"] <= found["total"]


async def test_a_refusal_and_other_routes_say_the_total(client: httpx.AsyncClient) -> None:
    refused = await client.post("/v1/systemone", content=b"{")
    health = await client.get("/health")

    assert tuple(durations(refused)) == tuple(durations(health)) == ("total",)


async def test_waiting_for_a_busy_engine_is_told_apart_from_its_reading(gateway: Gateway) -> None:
    hold = threading.Event()
    engine = ScriptedEngine(hold=hold)
    with gateway(engine=engine) as client:
        first = asyncio.create_task(client.post("/v1/systemone", json=ASK))
        while engine.entered < 1:
            await asyncio.sleep(0.001)
        second = asyncio.create_task(client.post("/v1/systemone", json=ASK))
        begun_s = time.perf_counter()
        while 'queue_requests{engine="scripted"} 1.0' not in (await client.get("/metrics")).text:
            await asyncio.sleep(0)
        held_ms = 1000 * (time.perf_counter() - begun_s)
        hold.set()
        ahead, behind = durations(await first), durations(await second)

    assert ahead["engine"] >= held_ms
    assert behind["queue"] > behind["engine"]


def test_a_decision_that_somebody_else_made_took_no_reading() -> None:
    passage = Passage(b"req")
    passage.received_s = passage.decoded_s = passage.begun_s

    laps = dict(zip(STAGES, passage.answered(Decision("m", {}, ())), strict=True))

    assert laps["queue"] == laps["engine"] == 0.0
    assert laps["ledger"] == pytest.approx(laps["total"])


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.0, b"0.00"), (0.000_123, b"0.12"), (0.02, b"20.00"), (1.5, b"1500.00")],
)
def test_long_and_short_times_are_written_alike(seconds: float, shown: bytes) -> None:
    passage = Passage(b"req")
    passage.laps = (0.0, 0.0, 0.0, seconds, 0.0, 0.0)

    assert passage.server_timing.startswith(b"queue;dur=" + shown + b",")
