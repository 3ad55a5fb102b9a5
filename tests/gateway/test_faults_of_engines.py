"""Engines that raise, answer NaN, are busy or stall, over HTTP: alone and below a better one."""

from pathlib import Path
from typing import Any

import pytest

from engines.scripted import Fault, ScriptedEngine
from gateway.config import ModelSection, Settings
from gateway.config_cascade import CascadeSection
from gateway.config_engines import ScriptedEngineSection
from gateway.config_ledger import LedgerSection
from tests.gateway.conftest import Gateway, bearer, charged

PATH = "/v1/systemone"
ASK: dict[str, Any] = {
    "state": "a state of five words",
    "questions": {"q": {"type": "noul", "instructions": "Is it?"}},
}
STATUSES: list[tuple[Fault, int]] = [("raise", 500), ("nan", 500), ("busy", 529)]


def settings(folder: Path, *engines: str, **cascade: Any) -> Settings:
    """A model of these engines, the cheapest first, and a ledger."""
    return Settings(
        default_model="scripted-1",
        engines={name: ScriptedEngineSection(kind="scripted") for name in engines},
        models={"scripted-1": ModelSection(tiers=engines)},
        cascade=CascadeSection(default_floor=0.0, **cascade),
        ledger=LedgerSection(path=str(folder / "ledger.db")),
    )


@pytest.mark.parametrize(("fault", "status"), STATUSES)
async def test_an_engine_alone_fails_its_own_request_and_no_other(
    gateway: Gateway, tmp_path: Path, fault: Fault, status: int
) -> None:
    chosen = settings(tmp_path, "only")
    key = bearer(chosen)
    engines = {"only": ScriptedEngine(faults={fault: 2})}
    with gateway(chosen, engines) as client:
        answers = [await client.post(PATH, json=ASK, headers=key) for _ in range(6)]

    assert [one.status_code for one in answers] == [200, status] * 3
    assert sum(one["tokens"] for one in charged(chosen) if one["status"] == 200) == 3 * 5


@pytest.mark.parametrize(("fault", "status"), STATUSES)
async def test_below_a_better_engine_nobody_notices_but_by_the_reason(
    gateway: Gateway, tmp_path: Path, fault: Fault, status: int
) -> None:
    chosen = settings(tmp_path, "small", "large")
    key = bearer(chosen)
    engines = {"small": ScriptedEngine(faults={fault: 2}), "large": ScriptedEngine()}
    with gateway(chosen, engines) as client:
        answers = [await client.post(PATH, json=ASK, headers=key) for _ in range(4)]

    told = [one.json()["answers"]["q"] for one in answers]
    assert [one["x_engine"] for one in told] == ["small", "large"] * 2
    assert [one["x_reason"] for one in told] == ["confident", "small_unavailable"] * 2
    used = sum(one.json()["usage"]["input_tokens"] for one in answers)
    assert used == sum(one["tokens"] for one in charged(chosen))


@pytest.mark.parametrize(("fault", "status"), STATUSES)
async def test_an_unsure_answer_is_kept_where_the_better_engine_fails_and_that_is_allowed(
    gateway: Gateway, tmp_path: Path, fault: Fault, status: int
) -> None:
    unsure = {"floors": {"small": {"otherwise": 1.0}}}
    chosen = settings(tmp_path, "small", "large", on_unavailable="small", **unsure)
    refusing = settings(tmp_path, "small", "large", **unsure)
    engines = {"small": ScriptedEngine(), "large": ScriptedEngine(faults={fault: 1})}
    with gateway(chosen, engines) as client:
        kept = await client.post(PATH, json=ASK, headers=bearer(chosen))
    with gateway(refusing, engines) as client:
        refused = await client.post(PATH, json=ASK, headers=bearer(refusing, "other"))

    assert kept.json()["answers"]["q"]["x_reason"] == "large_unavailable"
    assert refused.status_code == status
