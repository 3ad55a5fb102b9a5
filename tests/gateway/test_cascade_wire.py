"""A cascade over HTTP: what an answer says of its way, and what a key pays for it."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from engines.contract import Choice, Question, Text
from engines.scripted import ScriptedEngine
from gateway.config import ModelSection, Settings
from gateway.config_cascade import CascadeSection
from gateway.config_engines import ScriptedEngineSection
from gateway.config_ledger import LedgerSection
from tests.gateway.conftest import ASK, Gateway, bearer, charged

SCRIPTED = ScriptedEngineSection(kind="scripted")


def cascade_settings(folder: Path | None = None, **cascade: Any) -> Settings:
    """Two scripted engines behind `scripted-1`; a ledger in the folder if there is one."""
    ledger = LedgerSection() if folder is None else LedgerSection(path=str(folder / "ledger.db"))
    return Settings(
        default_model="scripted-1",
        engines={"little": SCRIPTED, "big": SCRIPTED},
        models={"scripted-1": ModelSection(tiers=("little", "big"), aliases=("jev-latest",))},
        cascade=CascadeSection(**cascade),
        ledger=ledger,
    )


def little(_: Text, question: Question) -> list[float]:
    """Sure of choices only."""
    n = len(question.options) if isinstance(question, Choice) else 2
    return [9.0 if isinstance(question, Choice) else 0.1, *[0.0] * (n - 1)]


def scored(state: Text, question: Question) -> list[float]:
    return (
        [*little(state, question), 0.0] if hasattr(question, "levels") else little(state, question)
    )


def engines() -> dict[str, ScriptedEngine]:
    return {"little": ScriptedEngine(script=scored), "big": ScriptedEngine()}


async def asked(client: httpx.AsyncClient, **headers: str) -> httpx.Response:
    async with client:
        return await client.post("/v1/systemone", json=ASK, headers=headers)


async def test_every_answer_says_who_gave_it_and_why(gateway: Gateway) -> None:
    with gateway(cascade_settings(), engines()) as client:
        response = await asked(client)

    body = response.json()
    assert {
        name: (one["x_tier"], one["x_engine"], one["x_reason"])
        for name, one in body["answers"].items()
    } == {
        "team": (1, "little", "confident"),
        "urgent": (2, "big", "low_confidence"),
        "mood": (2, "big", "low_confidence"),
    }
    assert body["x_cascade"] == {"escalated": 2, "tokens": {"little": 12, "big": 8}}
    assert body["usage"]["input_tokens"] == 20
    assert response.headers["x-tiergate-tier"] == "2"
    assert response.headers["x-tiergate-escalated"] == "2"


async def test_a_model_with_one_engine_says_nothing_of_tiers(client: httpx.AsyncClient) -> None:
    response = await client.post("/v1/systemone", json=ASK)

    assert "x_tier" not in response.text
    assert "x_cascade" not in response.json()
    assert "x-tiergate-tier" not in response.headers


@pytest.mark.parametrize("formula", ["jev", "entropy", "top", "margin"])
async def test_a_request_may_choose_its_confidence(client: httpx.AsyncClient, formula: str) -> None:
    response = await client.post(
        "/v1/systemone", json=ASK, headers={"x-tiergate-confidence": formula}
    )

    team = response.json()["answers"]["team"]
    p = sorted(team["probabilities"].values())
    expected = {"top": p[-1], "margin": p[-1] - p[-2], "jev": 2 * p[-1] - 1}
    if formula in expected:
        assert team["confidence"] == pytest.approx(expected[formula], abs=1e-6)
    else:
        assert team["confidence"] < 2 * p[-1] - 1


async def test_another_formula_than_there_are_is_refused(client: httpx.AsyncClient) -> None:
    response = await client.post(
        "/v1/systemone", json=ASK, headers={"x-tiergate-confidence": "vibes"}
    )

    assert response.status_code == 422
    assert response.json()["detail"][0]["loc"] == ["header", "x-tiergate-confidence"]


async def test_the_ledger_keeps_what_went_up_and_why(gateway: Gateway, tmp_path: Path) -> None:
    settings = cascade_settings(tmp_path)
    key = bearer(settings)
    with gateway(settings, engines()) as client:
        response = await asked(client, **key)

    (row,) = charged(settings)
    assert row["escalated"] == 2
    assert json.loads(row["reasons"]) == {"low_confidence": 2}
    assert [step[:2] for step in json.loads(row["steps"])] == [["little", 12], ["big", 8]]
    assert row["tokens"] == response.json()["usage"]["input_tokens"] == 20


async def test_a_repeated_request_gets_the_same_bytes(gateway: Gateway, tmp_path: Path) -> None:
    settings = cascade_settings(tmp_path)
    headers = bearer(settings) | {"idempotency-key": "one"}
    with gateway(settings, engines()) as client:
        async with client:
            first = await client.post("/v1/systemone", json=ASK, headers=headers)
            again = await client.post("/v1/systemone", json=ASK, headers=headers)

    assert again.content == first.content
    assert again.headers["x-tiergate-tier"] == "2"
    assert len(charged(settings)) == 1


@pytest.mark.parametrize(("policy", "status"), [("refuse", 429), ("stay_small", 200)])
async def test_a_budget_of_escalations_refuses_or_stays_small(
    gateway: Gateway, tmp_path: Path, policy: str, status: int
) -> None:
    settings = cascade_settings(tmp_path, on_exhausted=policy)
    headers = bearer(settings, escalations_per_day=2)
    with gateway(settings, engines()) as client:
        async with client:
            first = await client.post("/v1/systemone", json=ASK, headers=headers)
            second = await client.post("/v1/systemone", json=ASK, headers=headers)
            easy = {"team": ASK["questions"]["team"]}
            third = await client.post(
                "/v1/systemone", json=ASK | {"questions": easy}, headers=headers
            )

    assert first.status_code == third.status_code == 200
    assert second.status_code == status
    if status == 200:
        assert second.json()["answers"]["urgent"]["x_reason"] == "budget"
        assert second.json()["answers"]["urgent"]["x_tier"] == 1
    else:
        detail = second.json()["detail"]
        assert (detail["x_limit"], detail["x_used"]) == ("escalations_per_day", 2)
        assert "retry-after" in second.headers
    assert sum(row["escalated"] for row in charged(settings)) == 2


async def test_a_budget_of_tokens_may_be_enough_for_the_small_engine_alone(
    gateway: Gateway, tmp_path: Path
) -> None:
    settings = cascade_settings(tmp_path, on_exhausted="stay_small")
    headers = bearer(settings, tokens_per_day=500)
    with gateway(settings, engines()) as client:
        response = await asked(client, **headers)

    assert response.status_code == 200
    reasons = {name: one["x_reason"] for name, one in response.json()["answers"].items()}
    assert reasons == {"team": "confident", "urgent": "budget", "mood": "budget"}
    assert charged(settings)[0]["tokens"] == 12
