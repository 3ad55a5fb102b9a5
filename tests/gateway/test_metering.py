"""What an answer costs, through HTTP: charges, budgets, rates, repeated requests."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from engines.scripted import ScriptedEngine
from gateway.config import AuthSection
from gateway.ledger.sqlite import SqliteStore
from gateway.ledger.store import StoreError
from tests.gateway.conftest import (
    ASK,
    Gateway,
    bearer,
    body_of,
    charged,
    ledger_settings,
)

PATH = "/v1/systemone"
ONE = {"q": {"type": "noul", "instructions": "?"}}


def words(n: int, **more: Any) -> dict[str, Any]:
    """A request that the scripted engine reads in `n` tokens."""
    return {"state": " ".join(["w"] * n), "questions": ONE, **more}


@pytest.mark.parametrize("durability", ["group", "async"])
async def test_an_answer_is_charged_with_the_tokens_that_the_caller_is_told(
    gateway: Gateway, tmp_path: Path, durability: str
) -> None:
    settings = ledger_settings(tmp_path, durability=durability)
    key = bearer(settings)
    with gateway(settings) as client:
        response = await client.post(PATH, json=ASK, headers=key | {"x-request-id": "mine"})

    (charge,) = charged(settings)
    assert charge["tokens"] == response.json()["usage"]["input_tokens"] == 12
    assert (charge["nouls"], charge["choices"], charge["scores"]) == (1, 1, 1)
    assert (charge["model_asked"], charge["model_served"]) == ("jev-latest", "scripted-1")
    assert (charge["status"], charge["request_id"]) == (200, "mine")
    assert charge["nanos"] is None
    assert charge["escalated"] == charge["cached"] == 0


async def test_no_text_of_a_request_is_in_the_ledger(gateway: Gateway, tmp_path: Path) -> None:
    settings = ledger_settings(tmp_path)
    key = bearer(settings) | {"idempotency-key": "secretive-header"}
    with gateway(settings) as client:
        await client.post(PATH, json=ASK, headers=key)

    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    for text in ("charged twice", "Which team", "billing", "Payments", "calm", "secretive"):
        assert text.encode() not in stored


async def test_a_budget_refuses_what_does_not_fit_and_says_why(
    gateway: Gateway, tmp_path: Path
) -> None:
    settings = ledger_settings(tmp_path)
    key = bearer(settings, tokens_per_day=1000, tokens_per_month=5000)
    with gateway(settings) as client:
        statuses = [
            (await client.post(PATH, json=words(300), headers=key)).status_code for _ in range(3)
        ]
        refused = await client.post(PATH, json=words(300), headers=key)

    assert statuses == [200, 200, 429]  # a request holds some 650 and uses 300
    detail = refused.json()["detail"]
    assert detail["error_type"] == "budget_error"
    assert (detail["x_limit"], detail["x_allowed"], detail["x_used"]) == (
        "tokens_per_day",
        1000,
        600,
    )
    assert detail["x_resets_at"].endswith("T00:00:00Z")
    assert int(refused.headers["retry-after"]) > 0
    assert sum(one["tokens"] for one in charged(settings)) == 600


async def test_what_was_held_and_not_used_is_given_back(gateway: Gateway, tmp_path: Path) -> None:
    settings = ledger_settings(tmp_path)
    key = bearer(settings, tokens_per_day=1000)
    with gateway(settings) as client:
        for _ in range(20):  # each holds some 70 tokens and uses 1
            assert (await client.post(PATH, json=words(1), headers=key)).status_code == 200

    assert sum(one["tokens"] for one in charged(settings)) == 20


async def test_a_gateway_that_stops_holds_nothing_any_more(
    gateway: Gateway, tmp_path: Path
) -> None:
    settings = ledger_settings(tmp_path)
    key = bearer(settings, tokens_per_day=10**9)
    with gateway(settings) as client:
        answer = await client.post(PATH, json=words(1), headers=key)
        held = SqliteStore(settings.ledger.path)
        before = held.leased(charged(settings)[0]["key_id"], 0.0, float("inf"))
    after = held.leased(charged(settings)[0]["key_id"], 0.0, float("inf"))
    held.close()

    assert answer.status_code == 200
    assert before.tokens > 0
    assert after.tokens == 0


@pytest.mark.parametrize("limit", ["tokens_per_day", "tokens_per_month", "rpm"])
@pytest.mark.parametrize("path", [PATH, "/v1/v1/systemone"])
@pytest.mark.parametrize("model", ["scripted-1", "jev-latest", None])
async def test_zero_is_not_unset_on_any_route(
    gateway: Gateway, tmp_path: Path, limit: str, path: str, model: str | None
) -> None:
    settings = ledger_settings(tmp_path)
    nothing: dict[str, Any] = {limit: 0}
    key = bearer(settings, **nothing)
    with gateway(settings) as client:
        refused = await client.post(path, json=words(1, model=model), headers=key)

    assert refused.status_code == 429
    assert refused.json()["detail"]["x_limit"] == limit
    assert charged(settings) == []


async def test_a_rate_refuses_with_hints_and_lets_go(gateway: Gateway, tmp_path: Path) -> None:
    settings = ledger_settings(tmp_path)
    key = bearer(settings, rpm=3)
    with gateway(settings) as client:
        answers = [await client.post(PATH, json=words(1), headers=key) for _ in range(4)]

    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    refused = answers[-1]
    assert 19_000 < int(refused.headers["retry-after-ms"]) <= 20_000
    assert refused.headers["ratelimit-limit"] == "3"
    assert refused.headers["ratelimit-remaining"] == "0"
    assert 59 <= int(refused.headers["ratelimit-reset"]) <= 60
    assert refused.json()["detail"]["error_type"] == "rate_limit_error"


async def test_a_rate_of_tokens_counts_what_was_read(gateway: Gateway, tmp_path: Path) -> None:
    settings = ledger_settings(tmp_path)
    key = bearer(settings, tpm=1000)
    with gateway(settings) as client:
        answers = [await client.post(PATH, json=words(200), headers=key) for _ in range(8)]

    statuses = [answer.status_code for answer in answers]
    assert statuses == [200] * 3 + [429] * 5  # a bound of some 450, of which 200 were read
    assert answers[-1].json()["detail"]["x_limit"] == "tpm"


async def test_failed_work_is_charged_for_what_ran_and_refused_work_is_not(
    gateway: Gateway, tmp_path: Path
) -> None:
    def broken(*_: object) -> list[float]:
        return [float("nan"), 0.0]

    settings = ledger_settings(tmp_path)
    key = bearer(settings, tokens_per_day=10_000)
    with gateway(settings, ScriptedEngine(script=broken, max_tokens=50)) as client:
        failed = await client.post(PATH, json=words(40), headers=key)
        refused = await client.post(PATH, json=words(60), headers=key)

    assert (failed.status_code, refused.status_code) == (500, 400)
    assert [(one["status"], one["tokens"]) for one in charged(settings)] == [(500, 40)]


async def test_a_caller_who_leaves_pays_for_what_had_begun(
    gateway: Gateway, tmp_path: Path
) -> None:
    hold = threading.Event()
    engine = ScriptedEngine(hold=hold)
    settings = ledger_settings(tmp_path)
    key = bearer(settings, tokens_per_day=1000)
    with gateway(settings, engine) as client:
        asking = asyncio.create_task(client.post(PATH, json=words(30), headers=key))
        while not engine.entered:
            await asyncio.sleep(0.001)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        hold.set()

    assert [(one["status"], one["tokens"]) for one in charged(settings)] == [(499, 30)]


async def test_keys_of_the_configuration_are_charged_without_limits(
    gateway: Gateway, tmp_path: Path
) -> None:
    settings = ledger_settings(tmp_path)
    auth = AuthSection.model_validate({"keys": {"old": "tg_0123456789abcdefghij"}})
    settings = settings.model_copy(update={"auth": auth})
    headers = {"authorization": "Bearer tg_0123456789abcdefghij"}
    with gateway(settings) as client:
        assert (await client.post(PATH, json=ASK, headers=headers)).status_code == 200

    assert [one["key_id"] for one in charged(settings)] == ["config/old"]


async def test_without_any_key_everyone_is_charged_as_anonymous(
    gateway: Gateway, tmp_path: Path
) -> None:
    settings = ledger_settings(tmp_path)
    with gateway(settings) as client:
        response = await client.post(
            PATH, content=body_of(), headers={"content-type": "application/json"}
        )

    assert response.status_code == 200
    assert [one["key_id"] for one in charged(settings)] == ["anonymous"]


async def test_while_the_ledger_cannot_be_written_nobody_is_served(
    gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = ledger_settings(tmp_path)
    key = bearer(settings, tokens_per_day=100_000)

    def full(*_: object) -> None:
        raise StoreError("disk full")

    with gateway(settings) as client:
        assert (await client.post(PATH, json=words(1), headers=key)).status_code == 200
        with monkeypatch.context() as broken:
            broken.setattr(SqliteStore, "transaction", full)
            refused = [await client.post(PATH, json=words(1), headers=key) for _ in range(3)]
        async with asyncio.timeout(5):
            while (await client.post(PATH, json=words(1), headers=key)).status_code != 200:
                await asyncio.sleep(0.05)

    assert [one.status_code for one in refused] == [503, 503, 503]
    assert refused[0].json()["detail"]["error_type"] == "overloaded_error"
    assert "disk" not in refused[0].text
    assert [one["status"] for one in charged(settings)].count(200) == 2


async def test_fifty_calls_at_once_never_overspend(gateway: Gateway, tmp_path: Path) -> None:
    settings = ledger_settings(tmp_path)
    key = bearer(settings, tokens_per_day=1000)
    with gateway(settings) as client:
        answers = await asyncio.gather(
            *(client.post(PATH, json=words(100), headers=key) for _ in range(50))
        )
        later = [await client.post(PATH, json=words(1), headers=key) for _ in range(3)]

    passed = [one.status_code for one in answers].count(200)
    spent = sum(one["tokens"] for one in charged(settings))
    assert 1 <= passed <= 10
    assert {one.status_code for one in answers} <= {200, 429}
    assert {one.status_code for one in later} == {200}  # nothing stays held
    assert spent == 100 * passed + 3 <= 1000
