"""`kill -9` at every statement between holding room and settling: nothing leaks or is lost."""

import math
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from gateway.ledger.budget import Admission, Claim, Held, admit
from gateway.ledger.calendar import Calendar
from gateway.ledger.sqlite import SqliteStore
from policies.limits import Amounts
from tests.gateway.ledger.dying import HELD, LEASE_S, LIMITS, NOW_S, USED

ROOT = Path(__file__).parents[3]


def room(store: SqliteStore, now_s: float, tokens: int) -> bool:
    """Whether so much fits into the budget, without keeping it."""
    claim = Claim(LIMITS, Amounts(tokens), Calendar().windows(now_s))
    with store.transaction():
        found = admit(store, Admission(9, "k", now_s, LEASE_S, claim))
        store.release(9)
    return isinstance(found, Held)


def test_a_kill_at_any_statement_leaves_a_true_balance_and_no_phantom(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.gateway.ledger.dying", str(tmp_path)]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    died = int(said)

    assert died >= 2 * 12
    outcomes = []
    for number in range(died + 1):
        path = tmp_path / f"{number}.db"
        with closing(SqliteStore(str(path))) as store:
            day, month = store.spent("k", Calendar().windows(NOW_S))
            with closing(sqlite3.connect(path)) as plain:
                charges = [row[0] for row in plain.execute("SELECT tokens FROM charges")]
                assert plain.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
            held = store.leased("k", NOW_S, NOW_S + 2 * LEASE_S).tokens

            assert day == month == Amounts(sum(charges))
            assert (charges, held) in [([], 0), ([], HELD), ([USED], 0)]
            later_s = NOW_S + LEASE_S + 1
            assert room(store, later_s, 1000 - sum(charges))
            assert not room(store, later_s, 1001 - sum(charges))
            replay = store.replay("k", bytes(32), NOW_S, math.inf)
            assert (replay is not None and replay.answer is not None) == bool(charges)
            outcomes.append((len(charges), held))

    assert outcomes == sorted(outcomes, key=[(0, 0), (0, HELD), (1, 0)].index)  # never back again
    assert {(0, 0), (0, HELD), (1, 0)} == set(outcomes)
