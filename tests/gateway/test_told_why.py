"""What a caller is told when a limit refuses it: which one, how much, and until when."""

import asyncio
import gzip
import json
import math
import time
from datetime import date
from decimal import Decimal
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gateway.auth import Caller
from gateway.config import ModelSection, Settings
from gateway.config_engines import ScriptedEngineSection
from gateway.config_ledger import LedgerSection
from gateway.config_prices import PricesSection, TariffSection
from gateway.errors import Refusal
from gateway.rates import Rates
from policies.limits import Limits
from tests.gateway.conftest import Gateway, bearer, charged, ledger_settings
from tests.gateway.test_metering import PATH, words


def priced(folder: Path) -> Settings:
    """Settings with a ledger and an engine of which a thousand tokens cost a dollar."""
    tariff = TariffSection(effective=date(2026, 1, 1), usd_per_million_tokens=Decimal(1000))
    return Settings(
        default_model="scripted-1",
        engines={"scripted": ScriptedEngineSection(kind="scripted")},
        models={"scripted-1": ModelSection(engine="scripted", aliases=("jev-latest",))},
        ledger=LedgerSection(path=str(folder / "ledger.db")),
        prices=PricesSection(engines={"scripted": (tariff,)}),
    )


@pytest.mark.parametrize("window", ["day", "month"])
async def test_a_money_budget_speaks_of_dollars(
    gateway: Gateway, tmp_path: Path, window: str
) -> None:
    settings = priced(tmp_path)
    wish: dict[str, Any] = {f"usd_per_{window}": "1.00"}
    key = bearer(settings, **wish)
    with gateway(settings) as client:
        answered = [await client.post(PATH, json=words(300), headers=key) for _ in range(2)]
        refused = await client.post(PATH, json=words(300), headers=key)

    assert [one.status_code for one in answered] == [200, 200]
    assert refused.status_code == 429
    detail = refused.json()["detail"]
    assert detail["x_limit"] == f"usd_per_{window}"
    assert (detail["x_allowed"], detail["x_used"], detail["x_held"]) == ("1", "0.6", "0")
    assert f"The budget usd_per_{window} has no room: 0.6 of 1 used" in detail["message"]
    assert "it is full again at" in detail["message"]
    assert sum(one["nanos"] for one in charged(settings)) == 600_000_000


async def test_no_burst_spends_more_than_a_money_budget_has(
    gateway: Gateway, tmp_path: Path
) -> None:
    settings = priced(tmp_path)
    key = bearer(settings, usd_per_day="1.00")
    with gateway(settings) as client:
        asked = (client.post(PATH, json=words(20), headers=key) for _ in range(60))
        answers = await asyncio.gather(*asked)

    assert {one.status_code for one in answers} == {200, 429}
    told = sum(one.json()["usage"]["input_tokens"] for one in answers if one.is_success)
    assert told * 1_000_000 == sum(one["nanos"] for one in charged(settings)) <= 10**9


async def test_room_that_is_only_held_is_worth_a_moment(gateway: Gateway, tmp_path: Path) -> None:
    settings = priced(tmp_path)
    key = bearer(settings, tokens_per_day=400)
    with gateway(settings) as client:
        asked = (client.post(PATH, json=words(100), headers=key) for _ in range(9))
        refused = [one for one in await asyncio.gather(*asked) if one.status_code == 429]
        spent = await client.post(PATH, json=words(400), headers=key)

    hints = []
    for one in refused:
        detail = one.json()["detail"]
        held = detail["x_used"] + detail["x_wanted"] <= detail["x_allowed"]
        assert ("ask again when they have ended" in detail["message"]) is held
        hints.append((held, int(one.headers["retry-after"])))
    assert (True, 1) in hints
    assert [wait_s for held, wait_s in hints if held and wait_s != 1] == []
    assert spent.status_code == 429
    assert "ask again when" not in spent.json()["detail"]["message"]


@pytest.mark.parametrize("limit", ["tokens_per_day", "usd_per_day", "usd_per_month"])
async def test_what_never_fits_is_not_promised_for_tomorrow(
    gateway: Gateway, tmp_path: Path, limit: str
) -> None:
    settings = priced(tmp_path)
    nothing: dict[str, Any] = {limit: 0}
    key = bearer(settings, **nothing)
    with gateway(settings) as client:
        refused = await client.post(PATH, json=words(1), headers=key)

    assert refused.status_code == 429
    assert refused.json()["detail"]["x_limit"] == limit
    assert "would need more than all of it" in refused.json()["detail"]["message"]
    assert "full again" not in refused.json()["detail"]["message"]


@pytest.mark.parametrize("limit", ["rpm", "tpm"])
async def test_a_rate_of_nothing_has_the_same_headers_as_any_rate(
    gateway: Gateway, tmp_path: Path, limit: str
) -> None:
    settings = ledger_settings(tmp_path)
    nothing: dict[str, Any] = {limit: 0}
    key = bearer(settings, **nothing)
    with gateway(settings) as client:
        refused = await client.post(PATH, json=words(1), headers=key)

    assert refused.status_code == 429
    names = ("ratelimit-limit", "ratelimit-remaining", "ratelimit-reset", "retry-after")
    assert [refused.headers[name] for name in names] == ["0", "0", "60", "60"]
    assert refused.json()["detail"]["x_allowed"] == 0


@pytest.mark.parametrize("rpm", [7, 11, 45, 59])
async def test_who_waits_as_long_as_the_header_says_is_not_refused_again(
    gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rpm: int
) -> None:
    settings = ledger_settings(tmp_path)
    key = bearer(settings, rpm=rpm)
    now_s = 1000.0
    clock = SimpleNamespace(time=time.time, monotonic=lambda: now_s)
    monkeypatch.setattr("gateway.app.time", clock)
    with gateway(settings) as client:
        while (answer := await client.post(PATH, json=words(1), headers=key)).is_success:
            pass
        now_s += int(answer.headers["retry-after"])
        again = await client.post(PATH, json=words(1), headers=key)

    assert answer.status_code == 429
    assert again.status_code == 200


def test_the_sentence_never_says_to_try_again_too_early() -> None:
    rates, caller = Rates(), Caller("k", limits=Limits(rpm=7))
    for _ in range(7):
        rates.admit(caller, 0.0)

    with pytest.raises(Refusal) as refused:
        rates.admit(caller, 0.0)

    said = refused.value.problem
    assert said.retry_after_s == pytest.approx(60 / 7)
    assert said.message.endswith(f"try again in {math.ceil(600 / 7) / 10} s.")


@pytest.mark.parametrize(
    "where", [*product([PATH, "/v1/v1/systemone"], ["scripted-1", "jev-latest", None])]
)
@pytest.mark.parametrize(
    "headers",
    [{}, {"idempotency-key": "new"}, {"x-typesafe-retry-count": "2"}, {"content-encoding": "gzip"}],
    ids=["plain", "idempotent", "retried", "compressed"],
)
@pytest.mark.parametrize("again", [False, True], ids=["new", "cached"])
async def test_a_key_that_has_used_up_its_budget_is_refused_however_it_asks(
    gateway: Gateway,
    tmp_path: Path,
    where: tuple[str, str | None],
    headers: dict[str, str],
    again: bool,
) -> None:
    path, model = where
    settings = ledger_settings(tmp_path)
    key = bearer(settings, tokens_per_day=120)
    with gateway(settings) as client:
        used = await client.post(PATH, json=words(20, model="scripted-1"), headers=key)
        body = json.dumps(words(20 if again else 21, model=model)).encode()
        if headers.get("content-encoding"):
            body = gzip.compress(body)
        refused = await client.post(path, content=body, headers=key | headers)
        known = await client.get("/v1/usage", headers=key)

    assert used.status_code == 200
    assert refused.status_code == 429
    assert refused.json()["detail"]["x_limit"] == "tokens_per_day"
    assert known.json()["total"]["tokens"] == 20  # it may still see what it has used
    assert len(charged(settings)) == 1
