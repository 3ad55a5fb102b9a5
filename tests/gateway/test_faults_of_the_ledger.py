"""A ledger that somebody locks, clocks that jump: refused or answered, and always accounted for."""

import asyncio
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.config import Settings
from tests.gateway.conftest import Gateway, bearer, charged, ledger_settings

PATH = "/v1/systemone"
DAY_S = 86_400.0


def words(n: int) -> dict[str, Any]:
    """A request that the scripted engine reads in `n` tokens."""
    return {"state": " ".join(["w"] * n), "questions": {"q": {"type": "noul", "instructions": "?"}}}


@contextmanager
def locked(settings: Settings) -> Iterator[None]:
    """Somebody else writes for as long as the block takes."""
    with closing(sqlite3.connect(settings.ledger.path, isolation_level=None)) as somebody:
        somebody.execute("BEGIN IMMEDIATE")
        yield
        somebody.execute("ROLLBACK")


async def answered_again(client: httpx.AsyncClient, key: dict[str, str]) -> httpx.Response:
    """The first answer; refusals before it must be 503 with a hint."""
    async with asyncio.timeout(20):
        while True:
            answer = await client.post(PATH, json=words(1), headers=key)
            if answer.status_code == 200:
                return answer
            assert answer.status_code == 503
            assert int(answer.headers["retry-after-ms"]) > 0
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("limits", [{}, {"tokens_per_day": 100_000}], ids=["plain", "budget"])
async def test_a_ledger_that_somebody_locks_is_503_and_then_answered_again(
    gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: dict[str, Any]
) -> None:
    settings = ledger_settings(tmp_path)
    key = bearer(settings, **limits)
    monkeypatch.setattr("gateway.ledger.sqlite._BUSY_MS", 200)
    with gateway(settings) as client:
        assert (await client.post(PATH, json=words(3), headers=key)).status_code == 200
        with locked(settings):
            refused = await client.post(PATH, json=words(5), headers=key)
            health = await client.get("/health")
            at_once = await client.post(PATH, json=words(7), headers=key)
        again = await answered_again(client, key)

    assert (refused.status_code, at_once.status_code, health.status_code) == (503, 503, 200)
    assert refused.json()["detail"]["error_type"] == "overloaded_error"
    told = 3 + again.json()["usage"]["input_tokens"]
    assert sum(one["tokens"] for one in charged(settings) if one["status"] == 200) == told
    assert 7 not in [one["tokens"] for one in charged(settings)]


async def test_while_one_group_is_stuck_behind_a_lock_others_are_refused_at_once(
    gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = ledger_settings(tmp_path)
    key = bearer(settings)
    monkeypatch.setattr("gateway.ledger.writer._STUCK_S", 0.05)
    asked: list[asyncio.Task[httpx.Response]] = []
    with gateway(settings) as client:
        with locked(settings):
            async with asyncio.timeout(5):
                while not any(one.done() for one in asked):
                    asked.append(asyncio.create_task(client.post(PATH, json=words(3), headers=key)))
                    await asyncio.sleep(0.02)
            waited = [one for one in asked if not one.done()]
        answers = await asyncio.gather(*asked)

    assert waited
    assert asked[0] in waited
    assert [one.status_code for one in answers] == [200] * len(waited) + [503] * (
        len(asked) - len(waited)
    )
    assert len(charged(settings)) == len(waited)


async def test_who_waits_for_a_stuck_ledger_until_the_deadline_is_told_of_the_ledger(
    gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = ledger_settings(tmp_path)
    hasty = settings.server.model_copy(update={"deadline_s": 0.3})
    settings = settings.model_copy(update={"server": hasty})
    key, admin = bearer(settings, tokens_per_day=1000), bearer(settings, "root", scopes=["admin"])
    monkeypatch.setattr("gateway.ledger.writer._STUCK_S", 0.05)
    with gateway(settings) as client:
        with locked(settings):
            refused = await client.post(PATH, json=words(3), headers=key)
            async with asyncio.timeout(5):  # and not after the ten seconds of SQLite's patience
                change = await client.post("/v1/admin/keys/team/revoke", headers=admin)
            listed = await client.get("/v1/admin/keys", headers=admin)
        again = await answered_again(client, key)

    assert (refused.status_code, change.status_code, listed.status_code) == (503, 503, 200)
    assert again.status_code == 200


@pytest.mark.parametrize("jump_s", [40 * DAY_S, -40 * DAY_S, 3.0, -3.0])
async def test_a_clock_that_jumps_changes_no_sum_and_refuses_nobody(
    gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump_s: float
) -> None:
    settings = ledger_settings(tmp_path)
    key = bearer(settings, tokens_per_day=1000, rpm=1000)
    real = time.time
    told = 0
    with gateway(settings) as client:
        for offset_s in (0.0, jump_s, 0.0, 2 * jump_s, -jump_s):
            monkeypatch.setattr(time, "time", lambda offset_s=offset_s: real() + offset_s)
            answers = [await client.post(PATH, json=words(n), headers=key) for n in (3, 5)]
            assert [one.status_code for one in answers] == [200, 200]
            told += sum(one.json()["usage"]["input_tokens"] for one in answers)

    assert told == 5 * 8
    assert sum(one["tokens"] for one in charged(settings)) == told
    with closing(sqlite3.connect(settings.ledger.path)) as ledger:
        assert ledger.execute("SELECT SUM(tokens) FROM balances").fetchone() == (told,)


async def test_a_budget_that_was_used_up_stays_so_when_the_clock_goes_back(
    gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = ledger_settings(tmp_path)
    key = bearer(settings, tokens_per_month=100)
    real, offset_s = time.time, 0.0
    monkeypatch.setattr(time, "time", lambda: real() + offset_s)
    with gateway(settings) as client:
        while (await client.post(PATH, json=words(5), headers=key)).status_code == 200:
            pass
        offset_s = -2.0
        refused = await client.post(PATH, json=words(5), headers=key)

    assert refused.status_code == 429
    assert sum(one["tokens"] for one in charged(settings)) <= 100
