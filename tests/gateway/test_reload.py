"""New settings for a running gateway: what changes, what stays, what is refused and how."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from engines.lane import Lane, rows
from engines.scripted import ScriptedEngine
from gateway.app import Services
from gateway.config_file import Configuration, load
from gateway.ledger.decisions import Alarm
from gateway.reload import Reloader
from gateway.routes import build_app
from gateway.wiring import install, new_services
from gateway.wiring_ledger import open_books
from tests.gateway.conftest import ASK, bearer, charged
from tests.gateway.watched import pair, watched_settings
from tests.gateway.watched import running as watching

KEY, OTHER = "tg_0123456789abcdefghij", "tg_another_0123456789abc"
BASE = """
default_model = "scripted-1"
[engines.little]
kind = "scripted"
[engines.big]
kind = "scripted"
[models.scripted-1]
tiers = ["little", "big"]
aliases = ["jev-latest"]
"""


class Running:
    """A gateway on a file, and what it takes to have it read the file again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.settings = load(path).settings
        self.services: Services = new_services(self.settings)
        self.lanes = {
            name: Lane(name, ScriptedEngine(), rows(1), max_waiting=64)
            for name in self.settings.engines
        }
        install(self.services, self.settings, self.lanes)
        self.app = build_app(self.services, access_log=False)
        transport = httpx.ASGITransport(self.app)
        self.client = httpx.AsyncClient(transport=transport, base_url="http://gateway")
        self.reloader = Reloader(lambda: load(path), self.settings, self.services, self.lanes)

    async def becomes(self, text: str) -> Any:
        """What comes of writing the text and reloading."""
        self.path.write_text(text, encoding="utf-8")
        return await self.reloader.reload()

    async def ask(self, **headers: str) -> httpx.Response:
        return await self.client.post("/v1/systemone", json=ASK, headers=headers)


Start = Callable[[str], Running]


@pytest.fixture
def start(tmp_path: Path) -> Any:
    begun: list[Running] = []

    def started(text: str) -> Running:
        path = tmp_path / "config.toml"
        path.write_text(text, encoding="utf-8")
        begun.append(Running(path))
        return begun[-1]

    yield started
    for one in begun:
        for lane in one.lanes.values():
            lane.close(drain_s=1.0)


async def test_nothing_new_changes_nothing(start: Start) -> None:
    gateway = start(BASE)

    outcome = await gateway.becomes(BASE)

    assert (outcome.count, outcome.error, outcome.changed, outcome.kept) == (1, None, (), ())


async def test_a_reload_that_breaks_says_so_and_keeps_the_old(start: Start) -> None:
    gateway = start(BASE)

    def broken() -> Configuration:
        raise ValueError("embedded null byte")

    outcome = await Reloader(broken, gateway.settings, gateway.services, gateway.lanes).reload()

    assert outcome.error is not None
    assert gateway.services.reloaded is outcome
    assert (await gateway.ask()).status_code == 200


async def test_keys_from_a_file_are_exchanged(start: Start, tmp_path: Path) -> None:
    secret = tmp_path / "team.key"
    secret.write_text(f"{KEY}\n")
    gateway = start(BASE + f'[auth.keys]\nteam = "${{file:{secret}}}"\n')
    before = await gateway.ask(authorization=f"Bearer {KEY}")

    secret.write_text(f"{OTHER}\n")
    outcome = await gateway.reloader.reload()

    assert before.status_code == 200
    assert outcome.changed == ("auth.keys.team",)
    assert (await gateway.ask(authorization=f"Bearer {KEY}")).status_code == 401
    assert (await gateway.ask(authorization=f"Bearer {OTHER}")).status_code == 200
    assert KEY not in repr(outcome)


async def test_limits_models_floors_and_proxies_change(start: Start) -> None:
    gateway = start(BASE)
    assert (await gateway.ask()).status_code == 200

    outcome = await gateway.becomes(
        BASE.replace("jev-latest", "jev-next")
        + "[limits]\nmax_questions = 3\n[server]\ntrusted_proxies = ['10.0.0.1']\n"
        + "[cascade.floors]\nlittle = { otherwise = 0.99 }\n"
    )
    assert outcome.error is None
    assert set(outcome.changed) == {
        "models.scripted-1.aliases",
        "limits.max_questions",
        "server.trusted_proxies",
        "cascade.floors.little",
    }
    unknown = await gateway.ask()
    asked = ASK["questions"] | {"one more": ASK["questions"]["urgent"]}
    many = await gateway.client.post("/v1/systemone", json=ASK | {"questions": asked})
    assert unknown.status_code == 400
    assert many.json()["detail"][0]["type"] == "too_many_questions"
    tier = gateway.services.plans["jev-next"].tiers[0]
    assert tier.floor("choice:2", "")[0] == 0.99
    scope = {"client": ("10.0.0.1", 1), "headers": [(b"x-forwarded-for", b"203.0.113.9")]}
    assert gateway.services.proxies.client_of(scope) == "203.0.113.9"


async def test_what_a_cascade_has_learnt_stays(start: Start) -> None:
    gateway = start(BASE)
    plan = gateway.services.plans["scripted-1"]
    plan.share.note(5, 5)
    plan.demote("little", "noul")

    await gateway.becomes(BASE + "[limits]\nmax_questions = 9\n")

    renewed = gateway.services.plans["scripted-1"]
    assert renewed is not plan
    assert renewed.share.value == 5 / 1000
    assert renewed.tiers[0].demoted == {"noul"}


async def test_another_floor_takes_a_demotion_back(start: Start) -> None:
    gateway = start(BASE)
    gateway.services.plans["scripted-1"].demote("little", "noul")

    await gateway.becomes(BASE + "[cascade.floors]\nlittle = { noul = 0.99 }\n")

    assert gateway.services.plans["scripted-1"].tiers[0].demoted == frozenset()


@pytest.mark.parametrize(
    ("more", "kept"),
    [
        ("[server]\nport = 9999\n", "server.port"),
        ("[server]\ndeadline_s = 5.0\n", "server.deadline_s"),
        ("[pricing]\ncached = 'full'\n", "pricing.cached"),
        ("[ledger]\npath = 'other.db'\n", "ledger.path"),
        ("[engines.third]\nkind = 'scripted'\n", "engines.third"),
    ],
)
async def test_what_needs_a_restart_is_named_with_its_line_and_stays(
    start: Start, more: str, kept: str
) -> None:
    gateway = start(BASE)

    outcome = await gateway.becomes(BASE + more + "[limits]\nmax_questions = 1\n")

    (place,) = outcome.kept
    assert place.startswith(f"{kept} ({gateway.path}:")
    assert outcome.changed == ("limits.max_questions",)
    assert (await gateway.ask()).status_code == 422


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (BASE + "[limits]\nmax_questoins = 1\n", "config.toml:11: limits.max_questoins"),
        (BASE + "[limits]\nmax_questions = 0\n", "config.toml:11: limits.max_questions"),
        (BASE + "[limits\n", "not valid TOML"),
        (BASE + "[auth.keys]\nteam = '${NO_SUCH_VARIABLE}'\n", "NO_SUCH_VARIABLE is not set"),
        (BASE + "[auth.keys]\nteam = '${file:/no/such}'\n", "/no/such cannot be read"),
        (BASE + "[cascade]\npolicy = '/no/such.toml'\n", "/no/such.toml"),
        (BASE + "[models.x]\nengine = 'third'\n[engines.third]\nkind = 'scripted'\n", "restart"),
        (BASE.replace('["little", "big"]', '["little", "huge"]'), "huge"),
    ],
)
async def test_a_file_with_a_mistake_changes_nothing_and_says_why(
    start: Start, text: str, why: str
) -> None:
    gateway = start(BASE)
    held = (gateway.services.ring, gateway.services.plans, gateway.services.ask)

    outcome = await gateway.becomes(text + "\n[log]\nlevel = 'debug'\n")

    assert why in (outcome.error or "")
    assert (gateway.services.ring, gateway.services.plans, gateway.services.ask) == held
    assert (await gateway.ask()).status_code == 200
    ready = await gateway.client.get("/ready")
    assert ready.json()["process"]["reloaded"]["error"] == outcome.error
    assert "tiergate_config_in_force 0.0" in (await gateway.client.get("/metrics")).text
    assert (await gateway.becomes(BASE)).error is None
    assert "tiergate_config_in_force 1.0" in (await gateway.client.get("/metrics")).text


async def test_only_this_machine_is_told_of_the_process(start: Start) -> None:
    gateway = start(BASE)
    elsewhere = httpx.ASGITransport(gateway.app, client=("203.0.113.9", 5000))
    async with httpx.AsyncClient(transport=elsewhere, base_url="http://gateway") as far:
        told = await far.get("/ready")
    proxied = await gateway.client.get("/ready", headers={"x-forwarded-for": "127.0.0.1"})

    assert "process" not in told.json()
    assert "process" not in proxied.json()
    assert "process" in (await gateway.client.get("/ready")).json()


async def test_prices_change_for_what_ends_from_then_on(start: Start, tmp_path: Path) -> None:
    ledger = f'[ledger]\npath = "{tmp_path / "ledger.db"}"\n'
    price = "[[prices.engines.{}]]\neffective = 2026-01-01\nusd_per_million_tokens = {}\n"
    gateway = start(BASE + ledger)
    headers = bearer(gateway.settings, "team")
    with open_books(gateway.settings, gateway.services):
        await gateway.ask(**headers)
        assert not gateway.services.prices.engines
        priced = BASE + ledger + price.format("little", 1.0) + price.format("big", 1.0)
        outcome = await gateway.becomes(priced)
        await gateway.ask(**headers)

    assert outcome.error is None
    assert set(gateway.services.prices.engines) == {"little", "big"}  # of the page
    before, after = charged(gateway.settings)
    assert (before["nanos"], after["nanos"]) == (None, after["tokens"] * 1000)


async def test_a_key_with_a_money_budget_keeps_its_prices(start: Start, tmp_path: Path) -> None:
    ledger = f'[ledger]\npath = "{tmp_path / "ledger.db"}"\n'
    price = "[[prices.engines.{}]]\neffective = 2026-01-01\nusd_per_million_tokens = 1.0\n"
    priced = BASE + ledger + price.format("little") + price.format("big")
    gateway = start(priced)
    bearer(gateway.settings, "team", usd_per_day=5)
    with open_books(gateway.settings, gateway.services):
        outcome = await gateway.becomes(BASE + ledger)

    assert "'team' has a money budget" in (outcome.error or "")


async def test_alarms_hold_for_the_plans_of_a_reload_and_are_obeyed_there(
    tmp_path: Path,
) -> None:
    settings = watched_settings(tmp_path)
    floors = settings.cascade.model_copy(update={"floors": {"small": {"otherwise": 0.6}}})
    changed = Configuration(settings.model_copy(update={"cascade": floors}), None, {})
    engines = {
        name: Lane(name, ScriptedEngine(), rows(1), max_waiting=4) for name in settings.engines
    }
    async with watching(settings, pair()) as gateway:
        reloader = Reloader(lambda: changed, settings, gateway.services, engines)
        outcome = await reloader.reload()
        vigil, books = gateway.services.vigil, gateway.services.books
        assert vigil is not None
        assert books is not None
        alarm = Alarm("disagreement", "small", "noul", "they disagree", 0.0)
        await books.writer.submit(lambda store: store.raise_alarm(alarm))

        vigil.obey()

        demoted = gateway.services.plans["cascade"].tiers[0].demoted
        for lane in engines.values():
            lane.close(drain_s=1.0)

    assert outcome.changed == ("cascade.floors.small",)
    assert demoted == {"noul"}
