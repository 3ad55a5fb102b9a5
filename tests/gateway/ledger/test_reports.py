"""Reports and views over a ledger: names instead of ids, nothing secret, read-only."""

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.ledger.reports import ALL_BY, DAY_S, UsageQuery, UsageRow
from gateway.ledger.sqlite import SqliteStore
from gateway.ledger.sqlite_reports import SqliteReports
from gateway.ledger.store import ChargedStep, Key, Secret, StoreError
from tests.gateway.ledger.charges import DAY, charge_of

DIGEST = bytes(range(32))
VIEWS = ("v_charges", "v_usage_daily", "v_escalations")


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "a led?ger#1.sqlite")


@pytest.fixture
def store(path: str) -> Iterator[SqliteStore]:
    opened = SqliteStore(path)
    opened.add_key(Key("k_1", "support", created_s=0.0), Secret("p1", "k_1", DIGEST, 0.0))
    yield opened
    opened.close()


def selected(path: str, statement: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(statement).fetchall()
    finally:
        connection.close()


def test_a_report_is_read_beside_a_store_that_writes(store: SqliteStore, path: str) -> None:
    store.charge(charge_of(), DAY * DAY_S)

    reports = SqliteReports(path)

    assert reports.usage(UsageQuery(DAY, DAY + 1, ("key",))) == [
        UsageRow(("support",), requests=1, tokens=10, busy_us=2500, nouls=1, choices=2, nanos=420)
    ]


def test_an_empty_ledger_has_no_rows(store: SqliteStore, path: str) -> None:
    reports = SqliteReports(path)

    assert [reports.usage(UsageQuery(0, 10**6, by)) for by in ((), ("key",), ("engine",))] == [
        [],
        [],
        [],
    ]


def test_days_begin_and_end_at_midnight_utc(store: SqliteStore, path: str) -> None:
    for at_s in (DAY * DAY_S, (DAY + 1) * DAY_S - 0.001, (DAY + 1) * DAY_S):
        store.charge(charge_of(at_s=at_s), DAY * DAY_S)

    rows = SqliteReports(path).usage(UsageQuery(DAY, DAY + 2, ("day",)))

    assert [(row.dimensions, row.requests) for row in rows] == [
        (("2026-12-02",), 2),
        (("2026-12-03",), 1),
    ]


def test_a_request_without_a_price_is_counted_as_such_and_not_as_free(
    store: SqliteStore, path: str
) -> None:
    store.charge(charge_of(steps=(ChargedStep("free", 10, 1, 0),), nanos=0), DAY * DAY_S)
    store.charge(charge_of(steps=(ChargedStep("new", 10, 1, None),), nanos=None), DAY * DAY_S)

    rows = SqliteReports(path).usage(UsageQuery(DAY, DAY + 1, ("engine",)))

    assert [(row.dimensions, row.nanos, row.unpriced) for row in rows] == [
        (("free",), 0, 0),
        (("new",), 0, 1),
    ]


def test_engines_and_reasons_do_not_mix(store: SqliteStore, path: str) -> None:
    with pytest.raises(ValueError, match="not by both"):
        SqliteReports(path).usage(UsageQuery(DAY, DAY + 1, ALL_BY))


def test_what_is_not_a_ledger_of_this_version_is_refused(store: SqliteStore, path: str) -> None:
    with pytest.raises(StoreError, match="no ledger"):
        SqliteReports(path + "x").usage(UsageQuery(0, 1))

    selected(path, "PRAGMA user_version = 99")
    with pytest.raises(StoreError, match="version 99"):
        SqliteReports(path).usage(UsageQuery(0, 1))


def test_the_views_say_names_and_dates_before_and_after_pruning(
    store: SqliteStore, path: str
) -> None:
    steps = (ChargedStep("starter", 10, 2_500, 420), ChargedStep("large", 5, 1_000, 80))
    store.charge(
        charge_of(steps=steps, nanos=500, escalated=1, reasons={"low_confidence": 1}), DAY * DAY_S
    )
    (charge,) = selected(
        path,
        "SELECT at, key, model_asked, model_served, engines, tokens, seconds, usd FROM v_charges",
    )
    assert charge == (
        "2026-12-02T12:00:00.000Z",
        "support",
        "jev-latest",
        "starter",
        "starter large",
        15,
        0.0035,
        5e-7,
    )

    before = [selected(path, f"SELECT * FROM {view}") for view in VIEWS[1:]]
    store.prune((DAY + 1) * DAY_S, 10)

    assert [selected(path, f"SELECT * FROM {view}") for view in VIEWS[1:]] == before
    assert before[1] == [("2026-12-02", "support", "starter", "low_confidence", 1)]
    assert selected(path, "SELECT * FROM v_charges") == []


def test_a_day_without_any_price_is_not_free_in_the_view(store: SqliteStore, path: str) -> None:
    unpriced = charge_of(steps=(ChargedStep("starter", 10, 2_500, None),), nanos=None)
    store.charge(unpriced, DAY * DAY_S)
    statement = "SELECT requests, usd, nanos, unpriced FROM v_usage_daily"

    alone = selected(path, statement)
    store.charge(charge_of(), DAY * DAY_S)
    both = selected(path, statement)
    store.prune((DAY + 1) * DAY_S, 10)

    assert alone == [(1, None, None, 1)]
    assert both == selected(path, statement) == [(2, 4.2e-7, 420, 1)]


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_shows_no_digest_and_cannot_be_written(
    store: SqliteStore, path: str, view: str
) -> None:
    store.charge(charge_of(reasons={"too_long": 1}), DAY * DAY_S)

    (row,) = selected(path, f"SELECT * FROM {view}")
    assert not any(isinstance(value, bytes) for value in row)
    assert DIGEST.hex() not in repr(row).lower()
    with pytest.raises(sqlite3.OperationalError, match="cannot modify"):
        selected(path, f"DELETE FROM {view}")


def test_the_statement_of_the_documentation_works(store: SqliteStore, path: str) -> None:
    page = (Path(__file__).parents[3] / "docs" / "accounting.md").read_text(encoding="utf-8")
    (statement,) = re.findall(r"sqlite3 -readonly \S+ '([^']+)'", page)
    store.charge(charge_of(), DAY * DAY_S)

    assert selected(path, statement) == [("2026-12-02", "support", 10, 4.2e-7)]
