"""`GET /v1/usage` over requests that were really made: what it says is what was answered."""

import asyncio
import json
import sqlite3
import time
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.cli import main
from gateway.config import Settings
from gateway.config_ledger import LedgerSection
from gateway.config_prices import PricesSection, TariffSection
from gateway.keys import mint
from gateway.ledger.reports import DAY_S, UsageQuery
from gateway.ledger.sqlite import SqliteStore
from gateway.ledger.store import Key, Scope
from gateway.wiring import new_services
from gateway.wiring_ledger import kept, open_books
from tests.gateway.conftest import ASK, Gateway, settings_of
from tests.gateway.ledger.charges import charge_of

PRICES = PricesSection(
    engines={
        "scripted": (
            TariffSection(effective=date(2026, 1, 1), usd_per_million_tokens=Decimal("0.042")),
        )
    }
)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "ledger.sqlite")


@pytest.fixture
def settings(path: str) -> Settings:
    return settings_of(ledger=LedgerSection(path=path), prices=PRICES)


@pytest.fixture
def key(path: str) -> Callable[..., dict[str, str]]:
    """Name and scopes in, the headers of a new key out."""

    def made(name: str, *scopes: Scope) -> dict[str, str]:
        store = SqliteStore(path)
        key_id = f"k_{name}"
        minted = mint(key_id, time.time())
        store.add_key(Key(key_id, name, time.time(), scopes=frozenset(scopes)), minted.secret)
        store.close()
        return {"authorization": f"Bearer {minted.text}"}

    return made


async def asked(client: httpx.AsyncClient, headers: dict[str, str]) -> int:
    """The tokens that an answer says it took."""
    answer = await client.post("/v1/systemone", json=ASK, headers=headers)
    assert answer.status_code == 200
    tokens: int = answer.json()["usage"]["input_tokens"]
    return tokens


async def used(
    client: httpx.AsyncClient, headers: dict[str, str], parameters: str = ""
) -> dict[str, Any]:
    answer = await client.get(f"/v1/usage{parameters}", headers=headers)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_the_report_says_what_the_answers_said(
    gateway: Gateway, settings: Settings, key: Callable[..., dict[str, str]]
) -> None:
    support, admin = key("support", "decide", "usage"), key("ops", "admin")
    with gateway(settings) as client:
        tokens = [await asked(client, support) for _ in range(3)]
        report = await used(client, admin, "?by=key,model")

    (row,) = report["rows"]
    assert (row["key"], row["model"], row["requests"]) == ("support", "scripted-1", 3)
    assert row["tokens"] == sum(tokens) > 0
    assert (row["nouls"], row["choices"], row["scores"]) == (3, 3, 3)
    assert Decimal(row["cost"]) == sum(tokens) * 42 / Decimal(10**9)
    assert row["unpriced"] == 0
    assert {n: v for n, v in row.items() if n not in ("key", "model")} == report["total"]
    assert report["until"] == datetime.now(UTC).date().isoformat()


async def test_a_key_sees_itself_and_an_admin_everybody(
    gateway: Gateway, settings: Settings, key: Callable[..., dict[str, str]]
) -> None:
    one, other = key("one", "decide", "usage"), key("other", "decide", "usage")
    admin, silent = key("ops", "admin"), key("silent", "decide")
    with gateway(settings) as client:
        for headers in (one, one, other):
            await asked(client, headers)

        seen = {
            name: [row["key"] for row in (await used(client, headers, "?by=key"))["rows"]]
            for name, headers in (("one", one), ("other", other), ("admin", admin))
        }
        refused = await client.get("/v1/usage", headers=silent)
        anonymous = await client.get("/v1/usage")

    assert seen == {"one": ["one"], "other": ["other"], "admin": ["one", "other"]}
    assert refused.status_code == anonymous.status_code == 403


async def test_the_command_line_says_the_same_as_the_route(
    *,
    gateway: Gateway,
    settings: Settings,
    key: Callable[..., dict[str, str]],
    path: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    admin = key("ops", "admin")
    with gateway(settings) as client:
        await asked(client, admin)
        there = await used(client, admin, "?by=day,key,engine&since=7d")

    config = tmp_path / "config.toml"
    config.write_text(f'[ledger]\npath = "{path}"\n')
    arguments = ["--by", "day,key,engine", "--since", "7d", "--format", "json"]
    assert main(["usage", *arguments, "--config", str(config)]) == 0

    assert json.loads(capsys.readouterr().out) == there
    assert there["rows"][0]["engine"] == "scripted"
    assert there["rows"][0]["seconds"] > 0


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ("?by=hour", "'hour'"),
        ("?since=x", "'x' is not a day"),
        ("?by=engine,reason", "not by both"),
        ("?key=ops", "there is no 'key'"),
    ],
)
async def test_parameters_that_make_no_sense_are_400(
    gateway: Gateway,
    settings: Settings,
    key: Callable[..., dict[str, str]],
    parameters: str,
    words: str,
) -> None:
    admin = key("ops", "admin")
    with gateway(settings) as client:
        answer = await client.get(f"/v1/usage{parameters}", headers=admin)

    assert answer.status_code == 400
    assert words in answer.json()["detail"]["message"]


async def test_without_a_ledger_there_is_no_usage(client: httpx.AsyncClient) -> None:
    answer = await client.get("/v1/usage")

    assert answer.status_code == 404
    assert "no ledger" in answer.json()["detail"]["message"]


async def test_an_engine_without_a_price_is_told_and_not_taken_for_free(
    gateway: Gateway, path: str
) -> None:
    with gateway(settings_of(ledger=LedgerSection(path=path))) as client:
        await asked(client, {})
        report = await used(client, {})

    assert report["total"]["requests"] == report["total"]["unpriced"] == 1
    assert report["total"]["cost"] is None


async def test_a_running_gateway_rolls_old_charges_up(settings: Settings, path: str) -> None:
    store = SqliteStore(path)
    for age_days in (0, 1, 3, 5):
        store.charge(charge_of(at_s=time.time() - age_days * DAY_S), 0)
    store.close()
    everything = UsageQuery(0, 10**6)
    services = new_services(settings)

    with open_books(settings, services):
        books = services.books
        assert books is not None
        before = await books.read(lambda store: store.usage(everything))
        async with kept(services, retention_days=2):
            async with asyncio.timeout(10):
                while count(path) > 2:
                    await asyncio.sleep(0.01)
        after = await books.read(lambda store: store.usage(everything))

    assert before == after
    assert count(path) == 2


def count(path: str) -> int:
    """Charges that are not rolled up."""
    connection = sqlite3.connect(path)
    found: int = connection.execute("SELECT COUNT(*) FROM charges").fetchone()[0]
    connection.close()
    return found
