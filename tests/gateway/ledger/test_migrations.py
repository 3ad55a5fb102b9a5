"""The schema's versions: every old file becomes a new one with everything that stood in it."""

import math
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from gateway.ledger.calendar import Calendar
from gateway.ledger.migrations import migrate, scripts, version
from gateway.ledger.reports import UsageQuery
from gateway.ledger.sqlite import SqliteStore
from gateway.ledger.store import StoreError
from policies.limits import NOTHING, Amounts, Limits


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "ledger.db")


@pytest.mark.parametrize("old", range(len(scripts())))
def test_every_old_version_becomes_the_newest_and_keeps_its_rows(path: str, old: int) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        migrate(connection, to=old)
        if old:
            connection.executescript(_WRITTEN_BY_THE_FIRST_VERSION)

    with closing(SqliteStore(path)) as store:
        day, _ = store.spent("k_1", Calendar().windows(86_400.0))
        named = [(key.name, key.limits) for key in store.every_key()]
        digests = [secret.digest for secret in store.secrets()]
        held = store.leased("k_1", 86_400.0, 86_500.0)
        replay = store.replay("k_1", bytes(32), 86_400.0, math.inf)
        rows = store.usage(UsageQuery(0, 9, ("key", "engine")))

    assert day == (Amounts(7) if old else NOTHING)
    assert named == ([("team", Limits(rpm=5))] if old else [])
    assert digests == ([bytes(32)] if old else [])
    assert held == (Amounts(3) if old else NOTHING)
    assert (replay and replay.answer) == (b"{}" if old else None)
    assert [(row.dimensions, row.tokens, row.nanos) for row in rows] == (
        [(("team", "e"), 7, 42)] if old else []
    )
    with closing(sqlite3.connect(path)) as connection:
        assert version(connection) == len(scripts())
        assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"


_WRITTEN_BY_THE_FIRST_VERSION = """
INSERT INTO keys (key_id, name, created_s, scopes, confidence, rpm)
    VALUES ('k_1', 'team', 1.0, '["decide"]', 'jev', 5);
INSERT INTO secrets VALUES ('0123456789', 'k_1', zeroblob(32), 1.0, NULL);
INSERT INTO balances VALUES ('k_1', 86400, 7, 0, 0);
INSERT INTO leases VALUES (9, 'k_1', 86460.0, 3, 0, 0);
INSERT INTO replays VALUES ('k_1', zeroblob(32), zeroblob(32), 9, 86460.0, CAST('{}' AS BLOB));
INSERT INTO charges (at_s, key_id, request_id, model_served, steps, tokens, busy_us, nouls, choices,
    scores, escalated, cached, status, nanos, price_version)
    VALUES (86400.0, 'k_1', 'r', 'm', '[["e", 7, 10, 42]]', 7, 10, 1, 0, 0, 0, 0, 200, 42, 'v');
"""


def test_a_ledger_from_the_future_is_refused(path: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 999")

    with pytest.raises(StoreError, match="newer"):
        SqliteStore(path)
