"""Two gateways on one ledger: a budget is one budget, whoever is asked."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from engines.scripted import ScriptedEngine
from tests.gateway.conftest import Gateway, bearer, charged, ledger_settings

PATH = "/v1/systemone"
BUDGET = 3000


def words(n: int) -> dict[str, Any]:
    """A request that the scripted engine reads in `n` tokens."""
    question = {"type": "noul", "instructions": "?"}
    return {"state": " ".join(["w"] * n), "questions": {"q": question}}


async def test_both_together_never_answer_above_the_budget(
    gateway: Gateway, tmp_path: Path
) -> None:
    settings = ledger_settings(tmp_path)
    key = bearer(settings, tokens_per_day=BUDGET)
    with gateway(settings) as one, gateway(settings) as other:

        async def keep_asking(client: httpx.AsyncClient, n: int) -> int:
            """Tokens that were answered before the first refusal."""
            told = 0
            while (answer := await client.post(PATH, json=words(n), headers=key)).is_success:
                told += answer.json()["usage"]["input_tokens"]
            assert answer.status_code == 429
            return told

        asked = [keep_asking(client, n) for client in (one, other) for n in (7, 20, 50)]
        told = sum(await asyncio.gather(*asked))

    assert told == sum(charge["tokens"] for charge in charged(settings))
    assert told <= BUDGET
    assert told > BUDGET / 2


async def entered(engine: ScriptedEngine) -> None:
    """When the engine has begun to read."""
    while not engine.entered:
        await asyncio.sleep(0.001)


async def test_the_same_idempotency_key_at_both_at_once_is_one_answer_and_one_charge(
    gateway: Gateway, tmp_path: Path
) -> None:
    settings = ledger_settings(tmp_path)
    key = bearer(settings, tokens_per_day=BUDGET) | {"idempotency-key": "order-7"}
    hold = threading.Event()
    engines = ScriptedEngine(hold=hold), ScriptedEngine(hold=hold)
    with gateway(settings, engines[0]) as one, gateway(settings, engines[1]) as other:
        first = asyncio.create_task(one.post(PATH, json=words(5), headers=key))
        await entered(engines[0])
        others = [
            asyncio.create_task(other.post(PATH, json=words(5), headers=key)) for _ in range(3)
        ]
        another_body = await other.post(PATH, json=words(6), headers=key)
        hold.set()
        answers = await asyncio.gather(first, *others)

    assert [answer.status_code for answer in answers] == [200] * 4
    assert {answer.content for answer in answers} == {answers[0].content}
    replayed = [answer.headers.get("x-tiergate-replayed") for answer in answers]
    assert replayed == [None, "true", "true", "true"]
    assert another_body.status_code == 409
    assert engines[0].reads == len(charged(settings)) == 1
    assert engines[1].reads == 0


async def test_who_waits_for_another_gateway_is_not_kept_for_ever(
    gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.admitting._PATIENCE_S", 0.05)
    settings = ledger_settings(tmp_path)
    key = bearer(settings, tokens_per_day=BUDGET) | {"idempotency-key": "order-7"}
    hold = threading.Event()
    engine = ScriptedEngine(hold=hold)
    with gateway(settings, engine) as one, gateway(settings) as other:
        first = asyncio.create_task(one.post(PATH, json=words(5), headers=key))
        await entered(engine)
        busy = await other.post(PATH, json=words(5), headers=key)
        hold.set()
        answer = await first

    assert (busy.status_code, busy.headers["retry-after-ms"]) == (529, "500")
    assert answer.status_code == 200
    assert len(charged(settings)) == 1


async def test_who_waited_for_another_gateway_that_fails_answers_itself(
    gateway: Gateway, tmp_path: Path
) -> None:
    settings = ledger_settings(tmp_path)
    key = bearer(settings, tokens_per_day=BUDGET) | {"idempotency-key": "order-7"}
    hold = threading.Event()
    engine = ScriptedEngine(script=lambda *_: [float("nan"), 0.0], hold=hold)
    with gateway(settings, engine) as one, gateway(settings) as other:
        first = asyncio.create_task(one.post(PATH, json=words(5), headers=key))
        await entered(engine)
        second = asyncio.create_task(other.post(PATH, json=words(5), headers=key))
        hold.set()
        failed, answer = await asyncio.gather(first, second)

    assert (failed.status_code, answer.status_code) == (500, 200)
    assert "x-tiergate-replayed" not in answer.headers
    assert sorted(one["status"] for one in charged(settings)) == [200, 500]
