"""What the pages say is what the reports, the key routes and the plans say."""

import json
import re
import time
from contextlib import closing
from pathlib import Path

import httpx

from engines.contract import Inquiry, Reading, Tally
from gateway.config import ModelSection, Settings
from gateway.config_cascade import CascadeSection
from gateway.config_engines import ScriptedEngineSection
from gateway.config_ledger import LedgerSection
from gateway.config_prices import PricesSection
from gateway.dashboard.rendering import duration, moment, percent, rendered, usd
from gateway.dashboard.standing import standings
from gateway.ledger.sqlite import SqliteStore
from gateway.plan import Plan, Promised, Tier
from policies.cascade import NEVER, Floors
from tests.gateway.conftest import ASK, Gateway, bearer, ledger_settings
from tests.gateway.dashboard.browsing import admin_key, local, log_in, text
from tests.gateway.ledger.charges import charge_of
from tests.gateway.test_cascade_wire import engines

ALERT = "<script>alert(1)</script>'\"&"


def priced_cascade(folder: Path) -> Settings:
    """Two tiers with prices, a machine, and a ledger in the folder."""
    tariffs = {
        name: [{"effective": "2026-01-01", "usd_per_million_tokens": 1000}]
        for name in ("little", "big")
    }
    prices = {"engines": tariffs, "machines": {"gpu": {"usd_per_hour": 0.79}}}
    scripted = ScriptedEngineSection(kind="scripted")
    return Settings(
        default_model="scripted-1",
        engines={"little": scripted, "big": scripted},
        models={"scripted-1": ModelSection(tiers=("little", "big"), aliases=("jev-latest",))},
        cascade=CascadeSection(),
        ledger=LedgerSection(path=str(folder / "ledger.db")),
        prices=PricesSection.model_validate_json(json.dumps(prices), strict=False),
    )


async def test_the_five_questions_are_answered_with_the_reports_numbers(
    gateway: Gateway, tmp_path: Path
) -> None:
    settings = priced_cascade(tmp_path)
    key = admin_key(settings)
    team = bearer(settings, "team", tokens_per_day=100_000, usd_per_month="500")
    with gateway(settings, engines()) as client:
        for _ in range(2):
            assert (await client.post("/v1/systemone", json=ASK, headers=team)).status_code == 200
        await log_in(client, key)
        page = await client.get("/ui?since=7d")
        report = await client.get("/v1/usage?since=7d", headers={"authorization": f"Bearer {key}"})

    said, total = text(page), report.json()["total"]
    assert total["tokens"] == 40
    assert total["cost"] == "0.04"
    assert re.search(r"Spent \$0\.04 and \$\d+(\.\d+)? of rent Hosted", said)
    assert "Hosted instead $0.0000017 jev, the cheapest" in said
    assert "Escalated 67 % mostly low_confidence" in said
    assert "Promises hold None made no alarm" in said
    assert "Near a limit Nobody 0.0 % at most" in said
    assert "$0.04 for 40 tokens in 2 requests" in said
    assert "67 % 4 of 6 questions went up" in said
    assert "low_confidence a cheaper engine was not sure enough 4" in said
    assert "Hosted jev would have cost" in said
    assert "None made floors are guesses" in said
    assert "Nobody with 80 % or more of a budget used" in said
    assert "team US dollars a month $0.04 $500.00" in said
    assert "team Tokens a day 40 100,000" in said
    assert page.text.count("<time datetime=") == 2 * 7  # a row for every day, in two tables


async def test_a_day_without_traffic_is_an_empty_page_and_no_error(
    gateway: Gateway, tmp_path: Path
) -> None:
    settings = ledger_settings(tmp_path)
    key = admin_key(settings)
    with gateway(settings) as client:
        await log_in(client, key)
        pages = {
            since: await client.get("/ui", params={"since": since}) for since in ("90d", "never")
        }
        decisions = await client.get("/ui/decisions")

    for page in pages.values():
        assert "Nothing yet" in text(page)
        assert "There was no traffic in this period" in text(page)
        assert "Spent Nothing yet 0 requests" in text(page)
        assert "Hosted instead – nothing to compare" in text(page)
        assert "Escalated Nothing yet of the questions" in text(page)
        assert "Near a limit Nobody no budgets" in text(page)
        assert "data-chart" not in page.text  # bars of nothing say nothing
    assert 'since=30d" aria-current="true"' in pages["never"].text
    assert "it will stand here" in text(decisions)


async def test_without_a_ledger_the_page_says_how_to_get_one(client: httpx.AsyncClient) -> None:
    with local(client):
        page = await client.get("/ui")
        decisions = await client.get("/ui/decisions")

    assert "Nothing is counted here" in text(page)
    assert "no ledger" in text(decisions)


async def test_whoever_is_not_logged_in_sees_what_anonymous_callers_spent(
    gateway: Gateway, tmp_path: Path
) -> None:
    settings = ledger_settings(tmp_path)
    with closing(SqliteStore(settings.ledger.path)) as store:
        store.charge(charge_of(at_s=time.time(), key_id="config/old"), 0)
    with gateway(settings) as client, local(client):
        await client.post("/v1/systemone", json=ASK)
        page = await client.get("/ui")
        decisions = await client.get("/ui/decisions")

    assert "in 1 request" in text(page)
    assert "config/old" not in page.text + decisions.text
    assert "anonymous" in decisions.text


class Named:
    """An engine of which nothing but the name matters."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def read(
        self, inquiry: Inquiry, *, patience_s: float, tally: Tally | None = None
    ) -> dict[str, Reading]:
        """Nothing."""
        return {}


def test_promises_are_told_with_their_reasons() -> None:
    floors = Floors(NEVER, {"noul": 0.9, "choice:11+": NEVER}, {"a" * 16: 0.8})

    tiers = tuple(Tier(Named(name)) for name in ("a", "b", "c", "last"))

    held, gone, none = standings(
        {"a": Promised(floors, claim="Few are wrong."), "b": Promised(floors, "other weights")},
        {"model": Plan("model", tiers)},
    )

    assert held.claim == "Few are wrong."
    assert (held.state, held.promised, held.refused) == ("holds", 2, 1)
    assert dict(held.floors) == {"noul": 0.9, "a" * 16: 0.8}
    assert (gone.state, gone.why) == ("suspended", "other weights")
    assert (none.state, none.floors) == ("none", ())


async def test_decisions_are_listed_newest_first_without_text(
    gateway: Gateway, tmp_path: Path
) -> None:
    settings = priced_cascade(tmp_path)
    key, team = admin_key(settings), bearer(settings, "team")
    with gateway(settings, engines()) as client:
        for number in range(3):
            headers = team | {"x-request-id": f"mine-{number}"}
            await client.post("/v1/systemone", json=ASK, headers=headers)
        await log_in(client, key)
        page = await client.get("/ui/decisions")
        older = await client.get("/ui/decisions?before=2")
        wrong = await client.get("/ui/decisions?before=x")

    assert re.findall(r"mine-\d", text(page)) == ["mine-2", "mine-1", "mine-0"]
    assert re.findall(r"mine-\d", text(older)) == ["mine-0"]
    assert wrong.status_code == 400
    assert "little → big 3 2 2 × low_confidence 20" in text(page)
    for word in ("charged twice", "urgent", "billing"):
        assert word not in page.text


def test_recent_charges_read_back_as_they_were_written(tmp_path: Path) -> None:
    written = [charge_of(at_s=float(n), reasons={"too_long": n} if n else None) for n in range(5)]
    with closing(SqliteStore(str(tmp_path / "ledger.db"))) as store:
        for charge in written:
            store.charge(charge, 0)

        everything = store.recent(10)
        page = store.recent(2, before=everything[1].charge_id)
        nobody = store.recent(10, key_id="k_nobody")

    assert [one.charge for one in everything] == written[::-1]
    assert [one.charge for one in page] == written[2:0:-1]
    assert nobody == []


async def test_static_files_are_kept_for_ever_under_their_digest(
    client: httpx.AsyncClient,
) -> None:
    with local(client):
        page = await client.get("/ui")
        paths = re.findall(r'(?:href|src)="(/ui/static/[^"]+)"', page.text)
        files = [await client.get(path) for path in paths]
        licence = await client.get("/ui/static/uplot-LICENSE.txt")
        loose = await client.get("/ui/static/page.css")

    assert len(paths) >= 6
    for file in files:
        assert file.status_code == 200
        assert "immutable" in file.headers["cache-control"]
    assert loose.headers["cache-control"] == "no-cache"
    assert "MIT" in licence.text


def test_whatever_is_put_into_a_template_is_escaped() -> None:
    context = {"visitor": None, "notice": None, "message": ALERT}

    page = rendered("refused.html", context)

    assert ALERT not in page
    assert "&lt;script&gt;alert(1)" in page


def test_numbers_are_shown_as_people_read_them() -> None:
    assert [usd("1234.5"), usd("0.00000042"), usd("0"), usd(None)] == [
        "$1,234.50",
        "$0.00000042",
        "$0.00",
        "unpriced",
    ]
    assert [percent(0.0), percent(0.034), percent(0.5), percent(0.998), percent(1)] == [
        "0\u202f%",
        "3.4\u202f%",
        "50\u202f%",
        "99.8\u202f%",
        "100\u202f%",
    ]
    assert [duration(9e-5), duration(0.0084), duration(12.34), duration(245), duration(5040)] == [
        "90 µs",
        "8.4 ms",
        "12.3 s",
        "4 min 5 s",
        "1 h 24 min",
    ]
    assert moment(0.0) == moment("1970-01-01T01:00:00+01:00") == "1970-01-01 00:00:00"
