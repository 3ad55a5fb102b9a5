"""Requests that are sent again: one answer, one charge."""

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from engines.scripted import ScriptedEngine
from gateway.leash import Leash
from tests.gateway.conftest import ASK, Gateway, bearer, charged, ledger_settings
from tests.gateway.test_metering import PATH, words


async def test_the_same_idempotency_key_is_answered_once(gateway: Gateway, tmp_path: Path) -> None:
    settings = ledger_settings(tmp_path)
    key = bearer(settings, tokens_per_day=100_000) | {"idempotency-key": "order-7"}
    engine = ScriptedEngine()
    with gateway(settings, engine) as client:
        first = await client.post(PATH, json=ASK, headers=key)
        again = await client.post(PATH, json=ASK, headers=key)
        other = await client.post(PATH, json=ASK | {"state": "else"}, headers=key)
    with gateway(settings, engine) as client:
        after_restart = await client.post(PATH, json=ASK, headers=key)

    assert first.content == again.content == after_restart.content
    assert "x-tiergate-replayed" not in first.headers
    assert again.headers["x-tiergate-replayed"] == "true"
    assert other.status_code == 409
    assert engine.reads == len(charged(settings)) == 1


async def test_another_body_in_flight_takes_the_answer_from_nobody(
    gateway: Gateway, tmp_path: Path
) -> None:
    settings = ledger_settings(tmp_path)
    key = bearer(settings, tokens_per_day=100_000) | {"idempotency-key": "order-7"}
    with gateway(settings) as client:
        await client.post(PATH, json=ASK, headers=key)
        bodies = (words(2), ASK, words(3), ASK)
        answers = await asyncio.gather(
            *(client.post(PATH, json=body, headers=key) for body in bodies)
        )

    assert [answer.status_code for answer in answers] == [409, 200, 409, 200]
    assert len(charged(settings)) == 1


async def test_of_two_bodies_at_once_one_has_the_idempotency_key(
    gateway: Gateway, tmp_path: Path
) -> None:
    settings = ledger_settings(tmp_path)
    key = bearer(settings, tokens_per_day=100_000) | {"idempotency-key": "order-7"}
    hold = threading.Event()
    engine = ScriptedEngine(hold=hold)
    with gateway(settings, engine) as client:
        first = asyncio.create_task(client.post(PATH, json=words(2), headers=key))
        while not engine.entered:
            await asyncio.sleep(0.001)
        second = await client.post(PATH, json=words(3), headers=key)  # while the first is read
        hold.set()
        answer = await first

    assert (second.status_code, answer.status_code) == (409, 200)
    assert [one["tokens"] for one in charged(settings)] == [2]


@pytest.mark.parametrize(("later_s", "reads"), [(86_390, 1), (86_410, 2)])
async def test_an_idempotency_key_is_remembered_for_a_day(
    gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, later_s: int, reads: int
) -> None:
    settings = ledger_settings(tmp_path)
    key = bearer(settings, tokens_per_day=100_000) | {"idempotency-key": "order-7"}
    engine = ScriptedEngine()
    with gateway(settings, engine) as client:
        first = await client.post(PATH, json=ASK, headers=key)
        now_s = time.time()
        monkeypatch.setattr("gateway.metering.time.time", lambda: now_s + later_s)
        again = await client.post(PATH, json=ASK, headers=key)

    assert first.content == again.content
    assert ("x-tiergate-replayed" in again.headers) == (reads == 1)
    assert engine.reads == len(charged(settings)) == reads


async def test_an_idempotency_key_belongs_to_its_key(gateway: Gateway, tmp_path: Path) -> None:
    settings = ledger_settings(tmp_path)
    header = {"idempotency-key": "order-7"}
    one, two = bearer(settings, "one") | header, bearer(settings, "two") | header
    with gateway(settings) as client:
        await client.post(PATH, json=ASK, headers=one)
        theirs = await client.post(PATH, json=words(2), headers=two)

    assert theirs.status_code == 200
    assert len(charged(settings)) == 2


async def test_an_idempotency_key_is_free_again_after_a_failure(
    gateway: Gateway, tmp_path: Path
) -> None:
    settings = ledger_settings(tmp_path)
    key = bearer(settings) | {"idempotency-key": "order-7"}
    with gateway(settings, ScriptedEngine(max_tokens=3)) as client:
        refused = await client.post(PATH, json=words(4), headers=key)
        answered = await client.post(PATH, json=words(3), headers=key)

    assert (refused.status_code, answered.status_code) == (400, 200)


@pytest.mark.parametrize(
    "header", [{"idempotency-key": "order-7"}, {"x-typesafe-retry-count": "1"}]
)
async def test_the_same_request_in_flight_is_read_once(
    gateway: Gateway, tmp_path: Path, header: dict[str, str]
) -> None:
    hold = threading.Event()
    engine = ScriptedEngine(hold=hold)
    settings = ledger_settings(tmp_path)
    key = bearer(settings, tokens_per_day=100_000)
    with gateway(settings, engine) as client:
        first = asyncio.create_task(client.post(PATH, json=ASK, headers=key | header))
        while not engine.entered:
            await asyncio.sleep(0.001)
        others = [
            asyncio.create_task(client.post(PATH, json=ASK, headers=key | header)) for _ in range(5)
        ]
        await asyncio.sleep(0.05)
        hold.set()
        answers = await asyncio.gather(first, *others)

    assert {answer.content for answer in answers} == {answers[0].content}
    assert engine.reads == len(charged(settings)) == 1


async def left_alone(
    client: httpx.AsyncClient,
    engine: ScriptedEngine,
    hold: threading.Event,
    key: dict[str, str],
    others: int,
) -> list[asyncio.Task[httpx.Response]]:
    """Retries that had joined a request when its caller left, all answered."""
    first = asyncio.create_task(client.post(PATH, json=ASK, headers=key))
    while not engine.entered:
        await asyncio.sleep(0.001)
    retry = key | {"x-typesafe-retry-count": "1"}
    tasks = [asyncio.create_task(client.post(PATH, json=ASK, headers=retry)) for _ in range(others)]
    await asyncio.sleep(0.05)
    first.cancel()
    hold.set()
    await asyncio.gather(*tasks)
    return tasks


async def test_who_joins_one_request_after_another_has_one_deadline_for_all_of_them(
    gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: dict[asyncio.Task[Any] | None, list[float]] = {}

    class Noted(Leash):
        def __init__(self, seconds: float, *more: Any) -> None:
            left.setdefault(asyncio.current_task(), []).append(seconds)
            super().__init__(seconds, *more)

    monkeypatch.setattr("gateway.app.Leash", Noted)
    settings = ledger_settings(tmp_path)
    hold = threading.Event()
    engine = ScriptedEngine(hold=hold)
    key = bearer(settings)
    with gateway(settings, engine) as client:
        others = await left_alone(client, engine, hold, key, 5)

    assert {one.result().status_code for one in others} == {200}
    assert all(left[one][0] > left[one][1] for one in others)


async def test_who_joined_a_request_is_answered_when_its_caller_leaves(
    gateway: Gateway, tmp_path: Path
) -> None:
    hold = threading.Event()
    engine = ScriptedEngine(hold=hold)
    settings = ledger_settings(tmp_path)
    key = bearer(settings)
    with gateway(settings, engine) as client:
        (second,) = await left_alone(client, engine, hold, key, 1)

    assert second.result().status_code == 200
    assert sorted(one["status"] for one in charged(settings)) == [200, 499]
