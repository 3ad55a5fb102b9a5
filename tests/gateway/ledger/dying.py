"""A process that is killed at a chosen statement between holding room and settling.

`python -m tests.gateway.ledger.dying FOLDER` forks one child for each statement and side of it;
child n leaves `FOLDER/n.db` behind and ends by SIGKILL. The last one lives. Prints how many died.
"""

import os
import signal
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from gateway.ledger.budget import Admission, Claim, Idempotency, Settlement, admit, settle
from gateway.ledger.calendar import Calendar
from gateway.ledger.sqlite import SqliteStore
from gateway.ledger.store import Charge, ChargedStep
from policies.limits import Amounts, Limits

NOW_S = 1_796_000_000.0
LEASE_S = 60.0
LIMITS = Limits(tokens_per_day=1000)
HELD, USED = 400, 300


class DyingStore(SqliteStore):
    """Ends the process before or after its n-th statement: 2i = before the i-th, 2i+1 = after."""

    def __init__(self, path: str) -> None:
        self.failpoint = -1
        self._statements = 0
        super().__init__(path)

    def _execute(self, sql: str, values: Sequence[Any]) -> sqlite3.Cursor:
        number, self._statements = self._statements, self._statements + 1
        self._die_at(2 * number)
        cursor = super()._execute(sql, values)
        self._die_at(2 * number + 1)
        return cursor

    def _die_at(self, point: int) -> None:
        if point == self.failpoint:
            os.kill(os.getpid(), signal.SIGKILL)


def live(path: str, failpoint: int) -> None:
    """One call from its admission to its settlement, or to its death."""
    windows = Calendar().windows(NOW_S)
    steps = (ChargedStep("engine", USED, 10),)
    charge = Charge(NOW_S, "k", "req", None, "model", steps, 1, 0, 0, 200)
    claim = Claim(LIMITS, Amounts(HELD), windows)
    once = Idempotency(bytes(32), bytes(32))
    asked = Admission(7, "k", NOW_S, LEASE_S, claim, once)
    with closing(DyingStore(path)) as store:
        store.failpoint = failpoint
        with store.transaction():
            admit(store, asked)
        with store.transaction():
            settle(store, Settlement(asked, charge.row, windows.day_s, b"answer", 7))


def main(folder: Path) -> int:
    """How many children died, one for each failpoint that there is."""
    number = 0
    while True:
        child = os.fork()
        if child == 0:
            live(str(folder / f"{number}.db"), number)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            return number
        number += 1


if __name__ == "__main__":
    print(main(Path(sys.argv[1])))
