"""`tiergate usage`: one report, five formats, the same numbers everywhere."""

import csv
import io
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from gateway.cli import main
from gateway.ledger.reports import DAY_S
from gateway.ledger.sqlite import SqliteStore
from gateway.ledger.store import Charge, ChargedStep, Key, Secret
from tests.gateway.ledger.charges import DAY, charge_of

ROOT = Path(__file__).parents[2]
PERIOD = ["--since", "2026-12-01", "--until", "2026-12-31"]

Run = Callable[..., tuple[int, str, str]]

CHARGES = [
    charge_of(),
    charge_of(at_s=(DAY + 1) * DAY_S, status=499, cached=True, steps=(), nanos=0),
    charge_of(
        key_id="k_2",
        model_served="cascade",
        steps=(
            ChargedStep("starter", 7, 1_000, 294),
            ChargedStep("large", 90_000, 250_000, 8_100_000),
        ),
        nanos=8_100_294,
        escalated=2,
        reasons={"low_confidence": 2},
    ),
]
UNPRICED = charge_of(key_id="k_2", steps=(ChargedStep("new", 5, 10, None),), nanos=None)


@pytest.fixture
def ledger(tmp_path: Path) -> Callable[[list[Charge]], str]:
    """Charges in, the path of a configuration with a ledger that holds them out."""

    def written(charges: list[Charge]) -> str:
        path = tmp_path / "ledger.sqlite"
        store = SqliteStore(str(path))
        for number, name in enumerate(("support", "triage"), start=1):
            secret = Secret(f"p{number}", f"k_{number}", bytes([number]) * 32, 0.0)
            store.add_key(Key(f"k_{number}", name, created_s=0.0), secret)
        for charge in charges:
            store.charge(charge, DAY * DAY_S)
        store.close()
        config = tmp_path / "config.toml"
        config.write_text(
            f'default_model = "s"\n[ledger]\npath = "{path}"\n[engines.e]\nkind = "scripted"\n'
            '[models.s]\nengine = "e"\n[prices.machines.gpu]\nusd_per_hour = 0.5\n'
        )
        return str(config)

    return written


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def called(config: str, *arguments: str) -> tuple[int, str, str]:
        code = main(["usage", *arguments, "--config", config])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return called


def test_json_csv_and_jsonl_say_the_same(ledger: Callable[..., str], run: Run) -> None:
    config = ledger(CHARGES)
    arguments = ["--by", "key,model", *PERIOD, "--format"]

    whole = json.loads(run(config, *arguments, "json")[1])
    lines = [json.loads(line) for line in run(config, *arguments, "jsonl")[1].splitlines()]
    table = list(csv.DictReader(io.StringIO(run(config, *arguments, "csv")[1])))

    assert lines == whole["rows"]
    assert [{n: str(v) for n, v in row.items()} for row in lines] == table
    assert [(r["key"], r["model"], r["tokens"], r["cost"]) for r in lines] == [
        ("support", "starter", 10, "0.00000042"),
        ("triage", "cascade", 90_007, "0.008100294"),
    ]
    assert whole["total"]["requests"] == 3
    assert (whole["total"]["cached"], whole["total"]["failed"]) == (1, 1)
    assert whole["total"]["seconds"] == 0.2535


@pytest.mark.parametrize("by", ["", "key", "model", "day", "key,day,model"])
def test_every_breakdown_has_the_same_total(ledger: Callable[..., str], run: Run, by: str) -> None:
    config = ledger(CHARGES)

    whole = json.loads(run(config, "--by", by, *PERIOD, "--format", "json")[1])

    assert whole["total"] == json.loads(run(config, *PERIOD, "--format", "json")[1])["total"]
    assert sum(row["tokens"] for row in whole["rows"]) == 90_017


def test_the_table_shows_names_totals_and_what_has_no_price(
    ledger: Callable[..., str], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")

    code, shown, _ = run(ledger([*CHARGES, UNPRICED]), "--by", "key,engine", *PERIOD)

    assert code == 0
    assert all(
        word in shown for word in ("support", "triage", "large", "90,000", "total", "0.0081")
    )
    assert "unpriced" in next(line for line in shown.splitlines() if " new " in line)


@pytest.mark.parametrize("columns", ["20", "80"])
def test_a_narrow_table_cuts_no_number(
    ledger: Callable[..., str], run: Run, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    config = ledger([*CHARGES, UNPRICED])
    total = json.loads(run(config, *PERIOD, "--format", "json")[1])["total"]

    _, shown, _ = run(config, "--by", "key,model,day", *PERIOD)

    assert "…" not in shown
    for said in (total["cost"], f"{total['tokens']:,}", "2026-12-01", "escalated"):
        assert said in shown


def test_an_empty_period_still_has_a_head_in_csv_and_focus(
    ledger: Callable[..., str], run: Run
) -> None:
    config = ledger([])

    shown = run(config, "--by", "key", *PERIOD, "--format", "csv")[1]
    assert shown.startswith("key,requests,")
    assert len(shown.splitlines()) == 1

    shown = run(config, *PERIOD, "--format", "focus")[1]
    assert shown.startswith("BilledCost,")
    assert len(shown.splitlines()) == 1


def test_reasons_are_counted_by_question(ledger: Callable[..., str], run: Run) -> None:
    whole = json.loads(run(ledger(CHARGES), "--by", "reason", *PERIOD, "--format", "json")[1])

    assert whole["rows"] == [{"reason": "low_confidence", "escalated": 2}]
    assert whole["total"] == {"escalated": 2}


def focus(text: str) -> list[dict[str, Any]]:
    """The rows of a CSV export; an empty cell is null."""
    return [
        {name: value or None for name, value in row.items()}
        for row in csv.DictReader(io.StringIO(text))
    ]


def test_focus_rows_keep_to_the_schema_and_to_the_numbers(
    ledger: Callable[..., str], run: Run
) -> None:
    schema = json.loads((ROOT / "docs" / "focus-1.4.schema.json").read_text(encoding="utf-8"))
    config = ledger([*CHARGES, UNPRICED])

    code, printed, told = run(config, *PERIOD, "--format", "focus")
    rows = focus(printed)

    assert code == 0
    assert len(rows) == 4
    validator = jsonschema_rs.validator_for(schema)
    assert [str(fault) for row in rows for fault in validator.iter_errors(row)] == []
    whole = json.loads(run(config, "--by", "engine", *PERIOD, "--format", "json")[1])
    billed = sum(Decimal(row["BilledCost"]) for row in rows)
    assert billed == Decimal(whole["total"]["cost"])
    assert sum(int(row["ConsumedQuantity"]) for row in rows) == whole["total"]["tokens"]
    assert (rows[0]["BillingPeriodStart"], rows[0]["BillingPeriodEnd"]) == (
        "2026-12-01T00:00:00Z",
        "2027-01-01T00:00:00Z",
    )
    (unpriced,) = [row for row in rows if row["x_UnpricedRequests"] == "1"]
    assert (unpriced["BilledCost"], unpriced["PricingUnit"]) == ("0", "Tokens")
    assert "has a price" in (unpriced["ChargeDescription"] or "")
    assert "1 requests have no price" in told


@pytest.mark.parametrize(
    "change",
    [
        {"BilledCost": "1e-7"},
        {"BilledCost": None},
        {"ChargePeriodStart": "2026-12-01"},
        {"ServiceCategory": "AI"},
        {"PricingUnit": None},
        {"PricingQuantity": None, "PricingUnit": None},
        {"Extra": "x"},
    ],
)
def test_the_schema_refuses_what_focus_does_not_allow(
    ledger: Callable[..., str], run: Run, change: dict[str, Any]
) -> None:
    schema = json.loads((ROOT / "docs" / "focus-1.4.schema.json").read_text(encoding="utf-8"))
    row = focus(run(ledger(CHARGES), *PERIOD, "--format", "focus")[1])[0]

    assert jsonschema_rs.validator_for(schema).is_valid(row)
    assert not jsonschema_rs.validator_for(schema).is_valid(row | change)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--by", "hour"], "'hour'"),
        (["--since", "tomorrow"], "'tomorrow'"),
        (["--format", "focus", "--by", "key"], "leave out --by"),
        (["compare", "--format", "csv"], "table or json"),
        (["compare", "--by", "key"], "no --by"),
    ],
)
def test_what_cannot_be_asked_is_a_usage_error(
    ledger: Callable[..., str], run: Run, arguments: list[str], words: str
) -> None:
    code, printed, told = run(ledger([]), *arguments)

    assert (code, printed) == (2, "")
    assert words in told


def test_without_a_ledger_there_is_nothing_to_report(run: Run, tmp_path: Path) -> None:
    bare = tmp_path / "bare.toml"
    bare.write_text("")
    assert run(str(bare))[0] == 2

    missing = tmp_path / "missing.toml"
    missing.write_text(f'[ledger]\npath = "{tmp_path}/none.sqlite"\n')
    code, _, told = run(str(missing))
    assert code == 4
    assert "no ledger yet" in told
    assert not (tmp_path / "none.sqlite").exists()
