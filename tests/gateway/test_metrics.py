"""What `/metrics` says: every count from a request that made it, and no label from its content."""

import json
import stat
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families as families
from pydantic import SecretStr

from engines.contract import Reading
from engines.scripted import ScriptedEngine
from gateway.config import AuthSection
from gateway.exposition_state import gpu_memory, states
from gateway.metrics import Counts
from gateway.plan import Promised
from gateway.wiring import new_services
from policies.cascade import Floors
from tests.gateway.conftest import ASK, Gateway, bearer, body_of, ledger_settings, settings_of
from tests.gateway.test_cascade_wire import cascade_settings, engines

KEY = "tg_0123456789abcdefghij"
SCRAPER = "tg_scraper_0123456789abcdef"


async def scraped(client: httpx.AsyncClient, **headers: str) -> dict[tuple[str, ...], float]:
    """(name, label values in the order of their names) → value."""
    response = await client.get("/metrics", headers=headers)
    assert response.status_code == 200, response.text
    return {
        (sample.name, *(sample.labels[label] for label in sorted(sample.labels))): sample.value
        for family in families(response.text)
        for sample in family.samples
    }


def series(found: dict[tuple[str, ...], float]) -> set[tuple[str, ...]]:
    return {key for key in found if key[0].startswith("tiergate_")}


async def test_an_answer_is_counted_by_engine_kind_and_reason(client: httpx.AsyncClient) -> None:
    await client.post("/v1/systemone", json=ASK)
    await client.post("/v1/systemone", json=ASK)

    found = await scraped(client)

    for kind in ("choice", "noul", "score"):
        assert found["tiergate_questions_total", "scripted", kind, ""] == 2
    assert found["tiergate_requests_total", "/v1/systemone", "200"] == 2
    assert found["tiergate_tokens_total", "scripted"] == 2 * 3 * 4
    assert found["tiergate_engine_seconds_total", "scripted"] > 0
    assert found["tiergate_requests_in_progress",] == 1  # the scrape itself


async def test_an_engine_that_does_not_vouch_gives_its_reason(gateway: Gateway) -> None:
    class Doubtful(ScriptedEngine):
        def read(self, batch: Any) -> Any:
            return [
                {n: Reading(r.log_weights, r.tokens, doubt="weary") for n, r in one.items()}
                for one in super().read(batch)
            ]

    with gateway(engine=Doubtful()) as client:
        await client.post("/v1/systemone", json=ASK)
        found = await scraped(client)

    assert found["tiergate_questions_total", "scripted", "noul", "weary"] == 1


async def test_in_a_cascade_each_question_is_counted_where_and_why_it_was_answered(
    gateway: Gateway,
) -> None:
    with gateway(cascade_settings(), engines()) as client:
        await client.post("/v1/systemone", json=ASK)
        found = await scraped(client)

    questions = {key[1:]: n for key, n in found.items() if key[0] == "tiergate_questions_total"}
    assert questions == {
        ("little", "choice", "confident"): 1,
        ("big", "noul", "low_confidence"): 1,
        ("big", "score", "low_confidence"): 1,
    }
    assert found["tiergate_escalations_total", "scripted-1", "low_confidence"] == 2
    assert found["tiergate_escalation_share", "scripted-1"] == 2 / 1000
    assert found["tiergate_tokens_total", "little"] == 12
    assert found["tiergate_tokens_total", "big"] == 8
    assert found["tiergate_demoted", "little", "scripted-1"] == 0


async def test_a_promise_that_does_not_hold_is_zero() -> None:
    services = new_services(settings_of())
    services.promises = {
        "little": Promised(Floors()),
        "big": Promised(Floors(), "other weights"),
    }

    (holds,) = (one for one in states(services) if one.name == "tiergate_promise_holds")

    assert {s.labels["engine"]: s.value for s in holds.samples} == {"little": 1.0, "big": 0.0}


async def test_every_stage_of_an_answer_is_timed(client: httpx.AsyncClient) -> None:
    for _ in range(3):
        await client.post("/v1/systemone", json=ASK)

    found = await scraped(client)

    name = "tiergate_request_stage_seconds"
    sums = {}
    for stage in ("receive", "decode", "ledger", "queue", "engine", "total"):
        assert found[f"{name}_count", stage] == found[f"{name}_bucket", "+Inf", stage] == 3
        sums[stage] = found[f"{name}_sum", stage]
    assert sums["total"] > 0
    assert sum(sums.values()) - sums["total"] == pytest.approx(sums["total"], rel=0.01)


async def test_refusals_are_counted_by_kind_and_truncations_by_reason(
    client: httpx.AsyncClient,
) -> None:
    await client.post("/v1/systemone", content=body_of(state="a " * 70_000))
    await client.post("/v1/systemone", content=b"{")
    await client.get("/nowhere/at/all")

    found = await scraped(client)

    assert found["tiergate_refusals_total", "max_tokens_exceeded"] == 1
    assert found["tiergate_refusals_total", "invalid"] == 1
    assert found["tiergate_refusals_total", "not_found"] == 1
    assert found["tiergate_truncations_refused_total", "too_long"] == 1
    assert found["tiergate_requests_total", "other", "404"] == 1


async def test_hostile_ids_paths_and_models_make_no_series(client: httpx.AsyncClient) -> None:
    await client.post("/v1/systemone", json=ASK)
    await client.post("/v1/systemone", json=ASK | {"model": "no-such-model"})
    await client.get("/nowhere")
    before = series(await scraped(client))

    for n in range(20):
        asked = {f"q{n}-{i}": {"type": "noul", "instructions": f"i{i}"} for i in range(250)}
        headers = {"x-request-id": f"r{n}", "authorization": f"Bearer k{n}"}
        body = {"state": f"s{n}", "questions": asked}
        answered = await client.post("/v1/systemone", json=body, headers=headers)
        assert answered.status_code == 200
        await client.post("/v1/systemone", json=ASK | {"model": f"model-{n}"})
        await client.get(f"/nowhere/{n}", headers={"host": f"h{n}"})
        await client.request(f"METHOD{n}", "/health")
    found = await scraped(client)

    new = series(found) - before
    assert {key[0] for key in new} <= {"tiergate_requests_total", "tiergate_refusals_total"}
    assert len(new) <= 3  # the routes and kinds that are asked for the first time
    assert found["tiergate_questions_total", "scripted", "noul", ""] == 1 + 5_000


async def test_one_kind_too_many_becomes_other() -> None:
    counts: Counts[str] = Counts("other", most=2)
    for key in ("a", "b", "c", "d", "a"):
        counts.add(key)

    assert dict(counts.items()) == {"a": 2, "b": 1, "other": 2}


async def test_the_queue_the_engine_and_the_memo_are_there_to_see(
    client: httpx.AsyncClient,
) -> None:
    found = await scraped(client)

    assert found["tiergate_ready",] == 1
    assert found["tiergate_queue_requests", "scripted"] == 0
    assert found["tiergate_queue_limit", "scripted"] == 64
    assert [key[2] for key in found if key[0] == "tiergate_engine_info"] == ["scripted"]
    assert "process_resident_memory_bytes" in {key[0] for key in found}


async def test_a_key_with_a_budget_shows_what_is_left_and_others_do_not(
    gateway: Gateway, tmp_path: Path
) -> None:
    settings = ledger_settings(tmp_path)
    team = bearer(settings, "team", tokens_per_day=100_000)
    bearer(settings, "free")
    scraper = bearer(settings, "prometheus", scopes=["metrics"])
    with gateway(settings) as client:
        await client.post("/v1/systemone", json=ASK, headers=team)
        found = await scraped(client, **scraper)

    assert found["tiergate_budget_limit", "team", "tokens", "day"] == 100_000
    assert found["tiergate_budget_remaining", "team", "tokens", "day"] == 100_000 - 3 * 4
    assert found["tiergate_ledger_failing",] == 0
    assert {key[1] for key in found if key[0].startswith("tiergate_budget")} == {"team"}


async def test_an_answer_given_again_is_a_replay_and_no_new_question(
    gateway: Gateway, tmp_path: Path
) -> None:
    settings = ledger_settings(tmp_path)
    headers = bearer(settings, "team", scopes=["decide", "metrics"])
    with gateway(settings) as client:
        for _ in range(2):
            once = headers | {"idempotency-key": "once"}
            await client.post("/v1/systemone", json=ASK, headers=once)
        found = await scraped(client, **headers)

    assert found["tiergate_replays_total",] == 1
    assert found["tiergate_questions_total", "scripted", "noul", ""] == 1
    assert found["tiergate_tokens_total", "scripted"] == 3 * 4


@pytest.mark.parametrize(
    ("key", "status"), [(None, 403), ("wrong", 401), (KEY, 403), (SCRAPER, 200)]
)
async def test_metrics_want_a_key_of_their_own(
    gateway: Gateway, key: str | None, status: int
) -> None:
    keys = {"team": SecretStr(KEY)}
    scrapers = {"prometheus": SecretStr(SCRAPER)}
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    with gateway(settings_of(auth=AuthSection(keys=keys, metrics_keys=scrapers))) as client:
        response = await client.get("/metrics", headers=headers)
        asked = await client.post("/v1/systemone", json=ASK, headers=headers)

    assert response.status_code == status
    assert asked.status_code == (200 if key == KEY else 401 if key == "wrong" else 403)


async def test_with_a_key_for_metrics_alone_everyone_may_ask_and_nobody_else_may_scrape(
    gateway: Gateway,
) -> None:
    scrapers = {"prometheus": SecretStr(SCRAPER)}
    with gateway(settings_of(auth=AuthSection(metrics_keys=scrapers))) as client:
        asked = await client.post("/v1/systemone", json=ASK)
        refused = await client.get("/metrics")
        found = await scraped(client, authorization=f"Bearer {SCRAPER}")

    assert (asked.status_code, refused.status_code) == (200, 403)
    assert found["tiergate_requests_total", "/v1/systemone", "200"] == 1


async def test_memory_of_gpus_is_what_nvidia_smi_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho '0, 1024, 143771'\necho '1, [N/A], [N/A]'\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")

    used, total = gpu_memory()

    assert [(s.labels["gpu"], s.value) for s in used.samples] == [("0", 1024 * 2**20)]
    assert [(s.labels["gpu"], s.value) for s in total.samples] == [("0", 143_771 * 2**20)]


async def test_a_nvidia_smi_that_fails_is_no_series(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\nexit 9\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert gpu_memory() == []


async def test_open_metrics_are_given_to_who_asks_for_them(client: httpx.AsyncClient) -> None:
    response = await client.get("/metrics", headers={"accept": "application/openmetrics-text"})

    assert response.headers["content-type"].startswith("application/openmetrics-text")
    assert response.text.endswith("# EOF\n")


async def test_no_text_of_a_caller_is_in_the_metrics(client: httpx.AsyncClient) -> None:
    secret = "zebra-crossing"
    questions = {secret: {"type": "choice", "instructions": secret, "criteria": {secret: secret}}}
    await client.post("/v1/systemone", json={"state": secret, "questions": questions})
    await client.post("/v1/systemone", json=ASK | {"model": secret})
    await client.get(f"/{secret}")

    assert secret not in (await client.get("/metrics")).text
    assert json.dumps(secret) not in (await client.get("/ready")).text


async def test_every_metric_is_on_the_operators_page(gateway: Gateway, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "operate.md").read_text(encoding="utf-8")
    settings = ledger_settings(tmp_path)
    headers = bearer(settings, "p", scopes=["metrics"], tokens_per_day=1)
    with gateway(settings) as client:
        text = (await client.get("/metrics", headers=headers)).text

    names = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE tiergate_")]
    missing = {name for name in names if f"`{name}`" not in page}
    assert missing == set()
    assert len(names) > 15
