"""Usage sums from the SQLite file, through a connection that can only read."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from gateway.ledger.migrations import refuse_foreign, refuse_no_file, scripts, version
from gateway.ledger.reports import DAY_S, By, UsageQuery, UsageRow, measures
from gateway.ledger.store import StoreError


@dataclass(frozen=True, slots=True)
class _Facts:
    """A kind of fact: where single ones and rolled-up ones stand, and what can be summed."""

    single: str
    rolled: str
    sums: dict[str, str]
    """Field of `UsageRow` → SQL expression of one fact."""


_SAME = {name: name for name in ("requests", "tokens", "busy_us", "nanos", "unpriced")}
_ASKED = {name: name for name in ("nouls", "choices", "scores", "escalated")}

_REQUESTS = _Facts(
    "charge_facts",
    "usage_daily",
    {
        **_SAME,
        **_ASKED,
        "cached": "cached * requests",
        "failed": "(status >= 400) * requests",
    },
)
_STEPS = _Facts("step_facts", "steps_daily", _SAME)
_REASONS = _Facts("reason_facts", "reasons_daily", {"escalated": "questions"})

_COLUMNS: dict[By, str] = {
    "key": "COALESCE(keys.name, facts.key_id)",
    "model": "facts.model",
    "engine": "facts.engine",
    "day": "date(facts.day * 86400, 'unixepoch')",
    "reason": "facts.reason",
}
_FACT_COLUMNS: dict[By, str] = {"key": "key_id", "day": "day"}


class SqliteReports:
    """Keeps what `gateway.ledger.reports.Reports` promises. Each call opens the file anew."""

    def __init__(self, path: str) -> None:
        self._path = path

    def usage(self, query: UsageQuery) -> list[UsageRow]:
        with closing(read_only(self._path)) as connection:
            try:
                return usage(connection, query)
            except sqlite3.Error as error:
                raise StoreError(f"the ledger cannot be read: {error}") from error


def usage(connection: sqlite3.Connection, query: UsageQuery) -> list[UsageRow]:
    """See `Reports.usage`. A single statement, so that a report never sees half of a pruning."""
    facts = _facts(query.by)
    inner = ["day", *(_FACT_COLUMNS.get(one, one) for one in query.by if one != "day")]
    if "key" not in query.by:
        inner.append("key_id")
    taken = ", ".join([*inner, *(f"{sql} AS {name}" for name, sql in facts.sums.items())])
    keyed = "" if query.key_id is None else " AND key_id = :key_id"
    columns = [_COLUMNS[one] for one in query.by]
    sums = [f"SUM(facts.{name})" for name in facts.sums]
    grouped = f" GROUP BY {', '.join(columns)} ORDER BY {', '.join(columns)}" if columns else ""
    statement = (
        f"SELECT {', '.join([*columns, *sums])} FROM ("  # noqa: S608 - names from this file
        f"SELECT {taken} FROM {facts.single} WHERE at_s >= :since_s AND at_s < :until_s{keyed}"
        f" UNION ALL "
        f"SELECT {taken} FROM {facts.rolled} WHERE day >= :since_day AND day < :until_day{keyed}"
        f") AS facts LEFT JOIN keys USING (key_id){grouped}"
    )
    found = connection.execute(
        statement,
        {
            "since_day": query.since_day,
            "until_day": query.until_day,
            "since_s": query.since_day * DAY_S,
            "until_s": query.until_day * DAY_S,
            "key_id": query.key_id,
        },
    ).fetchall()
    width = len(query.by)
    return [
        UsageRow(tuple(row[:width]), **dict(zip(facts.sums, row[width:], strict=True)))
        for row in found
        if row[width] is not None
    ]


def read_only(path: str) -> sqlite3.Connection:
    """A read-only connection.

    Raises:
        StoreError: no such file, not a ledger, or of another version than this program's.
    """
    if not Path(path).exists():
        raise StoreError("there is no ledger yet; `tiergate serve` makes it")
    refuse_no_file(path)
    connection = sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True)
    try:
        connection.execute("PRAGMA busy_timeout = 10000")
        refuse_foreign(connection)
        _refuse_other_version(version(connection), len(scripts()))
    except (sqlite3.Error, StoreError) as error:
        connection.close()
        if isinstance(error, StoreError):
            raise
        raise StoreError(f"the ledger cannot be read: {error}") from None
    return connection


def _refuse_other_version(found: int, ours: int) -> None:
    if found != ours:
        hint = "a newer one wrote it" if found > ours else "`tiergate serve` brings it up to date"
        raise StoreError(
            f"the ledger has schema version {found}, this tiergate reads {ours}; {hint}"
        )


def _facts(by: Sequence[By]) -> _Facts:
    measures(by)
    if "engine" in by:
        return _STEPS
    return _REASONS if "reason" in by else _REQUESTS
