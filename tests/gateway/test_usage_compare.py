"""`tiergate usage compare`: the numbers, and a sentence that says what they mean."""

import json
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from gateway.cli import main
from gateway.config_prices import MachineSection, PricesSection, TariffSection
from gateway.ledger.reports import DAY_S
from gateway.ledger.sqlite import SqliteStore
from gateway.ledger.store import ChargedStep
from gateway.usage import Report
from gateway.usage_compare import compare
from tests.gateway.ledger.charges import DAY, charge_of

NOW_S = (DAY + 10.5) * DAY_S


def prices(*, machines: Mapping[str, str], hosted: Mapping[str, str]) -> PricesSection:
    return PricesSection(
        machines={
            name: MachineSection(usd_per_hour=Decimal(usd)) for name, usd in machines.items()
        },
        hosted={
            name: (TariffSection(effective=date(2026, 10, 1), usd_per_million_tokens=Decimal(usd)),)
            for name, usd in hosted.items()
        },
    )


def fetched(tokens: Mapping[str, int], seconds: float = 0.0) -> Callable[[Any], Report]:
    """A report by day of this traffic, until ten days after it began."""

    def fetch(parameters: Mapping[str, str]) -> Report:
        assert parameters["by"] == "day"
        return {
            "since": "2026-12-01",
            "until": "2026-12-12",
            "rows": [{"day": day, "tokens": number} for day, number in tokens.items()],
            "total": {"seconds": seconds},
        }

    return fetch


def test_the_bill_the_idle_share_and_the_break_even() -> None:
    found = compare(
        fetched({"2026-12-02": 4_000_000, "2026-12-05": 1_000_000}, seconds=18 * 3600.0),
        {},
        prices(machines={"gpu": "0.5"}, hosted={"jev": "0.042", "clef": "0.24"}),
        NOW_S,
    )

    assert found["hours"] == 252.0  # from the first day with traffic until now
    assert found["tokens_per_day"] == round(5_000_000 / 10.5)
    assert found["owned"] == {
        "machines": 1,
        "machine_hours": 252.0,
        "cost": "126",
        "idle_share_at_least": pytest.approx(1 - 18 / 252),
    }
    assert [(one["model"], one["cost"]) for one in found["hosted"]] == [
        ("jev", "0.21"),
        ("clef", "1.2"),
    ]
    assert found["hosted"][1]["break_even_tokens_per_day"] == pytest.approx(50_000_000)
    assert found["verdict"] == (
        "Hosted jev would have cost $125.79 less: $0.21 instead of the $126.00 that the machines "
        "cost; owning pays from 285,714,286 tokens a day on, there were 476,190."
    )


@pytest.mark.parametrize(
    ("tokens", "machines", "hosted", "said"),
    [
        ({}, {"gpu": "1"}, {"jev": "0.042"}, "There was no traffic in this period"),
        ({"2026-12-02": 1000}, {"gpu": "1"}, {}, "No hosted model has a price"),
        (
            {"2026-12-02": 10**9},
            {},
            {"jev": "0.042"},
            "Hosted jev, the cheapest, would have cost $42.00; what owning costs is not known",
        ),
        (
            {"2026-12-02": 10**10},
            {"gpu": "0.01"},
            {"clef": "0.24", "jev": "0.042"},
            "Owning was cheaper: the machines cost $2.52, hosted jev, the cheapest, would have "
            "cost $417.48 more.",
        ),
        (
            {"2026-12-02": 1000},
            {"gpu": "0.01"},
            {"jev": "0.042"},
            "$0.000042 instead of the $2.52",
        ),
    ],
)
def test_the_verdict_is_one_plain_sentence(
    tokens: Mapping[str, int],
    machines: Mapping[str, str],
    hosted: Mapping[str, str],
    said: str,
) -> None:
    found = compare(fetched(tokens), {}, prices(machines=machines, hosted=hosted), NOW_S)

    assert said in found["verdict"]
    assert found["verdict"].endswith(".")
    assert found["verdict"].count(". ") == 0


def test_traffic_before_the_first_price_leaves_a_model_out() -> None:
    found = compare(
        fetched({"2026-09-30": 1, "2026-12-02": 1}),
        {},
        prices(machines={}, hosted={"jev": "0.042"}),
        NOW_S,
    )

    assert found["hosted"][0]["cost"] is None
    assert "No hosted model has a price" in found["verdict"]


def test_the_command_reads_the_ledger_and_the_shipped_prices(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "ledger.sqlite"
    store = SqliteStore(str(path))
    store.charge(
        charge_of(
            at_s=(DAY - 30) * DAY_S,
            steps=(ChargedStep("starter", 10**6, 3_600_000_000, None),),
            nanos=None,
        ),
        0,
    )
    store.close()
    config = tmp_path / "config.toml"
    config.write_text(f'[ledger]\npath = "{path}"\n[prices.machines.box]\nusd_per_hour = 0.02\n')
    arguments = ["usage", "compare", "--since", "2026-11-01", "--until", "2026-11-02"]
    arguments += ["--config", str(config)]

    assert main([*arguments, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(one["model"], one["cost"]) for one in found["hosted"]] == [
        ("jev", "0.042"),
        ("clef-flash", "0.09"),
        ("clef", "0.24"),
    ]
    assert (found["engine_hours"], found["hours"]) == (1.0, 24.0)
    assert found["owned"]["cost"] == "0.48"

    assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert found["verdict"].split()[0] in shown
    assert "none for an answer from the memo" in " ".join(shown.split())
    assert "clef-flash" in shown
