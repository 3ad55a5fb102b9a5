"""The embedded store: one SQLite file in WAL mode, shared by any number of processes.

A connection is used by one thread at a time; whoever needs another opens another.
"""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import chain
from pathlib import Path
from typing import Literal

from gateway.ledger.calendar import Windows
from gateway.ledger.migrations import migrate, refuse_foreign, refuse_no_file
from gateway.ledger.reports import UsageQuery, UsageRow
from gateway.ledger.retention import prune_step
from gateway.ledger.signal import ChangeSignal
from gateway.ledger.sqlite_alarms import SqliteAlarms
from gateway.ledger.sqlite_recent import recent
from gateway.ledger.sqlite_reports import usage
from gateway.ledger.store import Charge, Charged, KeptText, Replay, Row, StoreError
from policies.limits import NOTHING, Amounts

_BUSY_MS = 10_000
"""How long a writer waits for the others; each of them is done within milliseconds."""

Synchronous = Literal["normal", "full"]


def connect(path: str, *, synchronous: Synchronous = "normal") -> sqlite3.Connection:
    """A connection to the ledger at `path`, created for its owner only and brought up to date.

    Raises:
        StoreError: the file cannot be opened or written, or a newer tiergate or something else
            wrote it.
    """
    refuse_no_file(path)
    try:
        if not Path(path).exists():
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"the ledger cannot be opened: {_reason(error)}") from error
    try:
        connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
        refuse_foreign(connection)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {synchronous.upper()}")
        connection.execute("PRAGMA foreign_keys = ON")
        migrate(connection)
    except (sqlite3.Error, StoreError) as error:
        connection.close()
        if isinstance(error, StoreError):
            raise
        raise StoreError(f"the ledger cannot be opened: {_reason(error)}") from error
    return connection


class SqliteStore(SqliteAlarms):
    """Keeps what `gateway.ledger.store.Store` promises."""

    def __init__(self, path: str, *, synchronous: Synchronous = "normal") -> None:
        """Raises: StoreError: see `connect`."""
        connection = connect(path, synchronous=synchronous)
        try:
            super().__init__(connection, ChangeSignal(path))
        except OSError as error:
            connection.close()
            raise StoreError(f"the ledger cannot be opened: {_reason(error)}") from error
        self._added: list[tuple[Sequence[Row], int]] = []

    def transaction(self) -> AbstractContextManager[None]:
        """`BEGIN IMMEDIATE` … `COMMIT`; rolled back when anything inside raises."""
        return self._written()

    def spent(self, key_id: str, windows: Windows) -> tuple[Amounts, Amounts]:
        if self._added:  # of this transaction, not written yet
            self._before_commit()
        row = self._row(
            _SPENT,
            (windows.day_s, windows.day_end_s) * 3 + (key_id, windows.month_s, windows.month_end_s),
        )
        return Amounts(*row[:3]), Amounts(*row[3:])

    def leased(self, key_id: str, now_s: float, until_s: float) -> Amounts:
        row = self._row(_LEASED, (key_id, now_s, until_s))
        return NOTHING if row[0] is None else Amounts(*row)

    def lease(self, lease_id: int, key_id: str, amounts: Amounts, expires_s: float) -> None:
        self._change(
            "INSERT INTO leases VALUES (?, ?, ?, ?, ?, ?)",
            (lease_id, key_id, expires_s, amounts.tokens, amounts.escalations, amounts.nanos),
        )

    def shrink(self, lease_id: int, amounts: Amounts) -> None:
        self._change(
            "UPDATE leases SET tokens = ?, escalations = ?, nanos = ? WHERE lease_id = ?",
            (amounts.tokens, amounts.escalations, amounts.nanos, lease_id),
        )

    def release(self, lease_id: int) -> None:
        self._change("DELETE FROM leases WHERE lease_id = ?", (lease_id,))

    def charge(self, charge: Charge, day_s: int) -> None:
        self.charge_rows([charge.row], day_s)

    def charge_kept(self, row: Row, day_s: int, text: KeptText) -> None:
        with self._written():
            charge_id = self._execute(_CHARGES[1], row).lastrowid
            kept = (charge_id, text.asked, text.answered, int(text.cut))
            self._change("INSERT INTO texts VALUES (?, ?, ?, ?)", kept)
            self._change(_BALANCE, (row[1], day_s, row[6], row[11], row[15] or 0))

    def charge_rows(self, rows: Sequence[Row], day_s: int) -> None:
        with self._written():
            self._added.append((rows, day_s))

    def _before_commit(self) -> None:
        """Charges of one transaction are written together, in as few statements as possible.

        Each statement gives the interpreter's lock away; that costs more than the row.
        """
        added, self._added = self._added, []
        every: list[Row] = []
        sums: dict[tuple[str, int], list[int]] = {}
        for rows, day_s in added:
            every += rows
            for key_id in {row[1] for row in rows}:
                own = [row for row in rows if row[1] == key_id]
                found = sums.setdefault((key_id, day_s), [0, 0, 0])
                found[0] += sum([row[6] for row in own])
                found[1] += sum([row[11] for row in own])
                found[2] += sum([row[15] or 0 for row in own])
        for key, amounts in sums.items():
            self._change(_BALANCE, (*key, *amounts))
        for at in range(0, len(every), _MOST_ROWS):
            part = every[at : at + _MOST_ROWS]
            self._change(_CHARGES[len(part)], tuple(chain.from_iterable(part)))

    def _forget(self) -> None:
        self._added = []

    def replay(
        self, key_id: str, idempotency: bytes, now_s: float, until_s: float
    ) -> Replay | None:
        row = self._row(
            "SELECT body, answer FROM replays WHERE key_id = ? AND idempotency = ?"
            " AND expires_s > ? AND (answer IS NOT NULL OR expires_s <= ?)",
            (key_id, idempotency, now_s, until_s),
        )
        return None if row is None else Replay(*row)

    def begin_replay(
        self, key_id: str, idempotency: bytes, body: bytes, owner: int, expires_s: float
    ) -> None:
        self._change(
            "INSERT OR REPLACE INTO replays VALUES (?, ?, ?, ?, ?, NULL)",
            (key_id, idempotency, body, owner, expires_s),
        )

    def finish_replay(
        self, key_id: str, idempotency: bytes, owner: int, answer: bytes | None, expires_s: float
    ) -> None:
        if answer is None:
            self._change(
                "DELETE FROM replays WHERE key_id = ? AND idempotency = ? AND owner = ?",
                (key_id, idempotency, owner),
            )
        else:
            self._change(
                "UPDATE replays SET answer = ?, expires_s = ?"
                " WHERE key_id = ? AND idempotency = ? AND owner = ?",
                (answer, expires_s, key_id, idempotency, owner),
            )

    def sweep(self, now_s: float, at_most: int) -> int:
        with self._written():
            return self._change(
                "DELETE FROM leases WHERE lease_id IN"
                " (SELECT lease_id FROM leases WHERE expires_s <= ? LIMIT ?)",
                (now_s, at_most),
            ) + self._change(
                "DELETE FROM replays WHERE (key_id, idempotency) IN"
                " (SELECT key_id, idempotency FROM replays WHERE expires_s <= ? LIMIT ?)",
                (now_s, at_most),
            )

    def usage(self, query: UsageQuery) -> list[UsageRow]:
        with _unusable():
            return usage(self._connection, query)

    def recent(
        self, at_most: int, *, before: int | None = None, key_id: str | None = None
    ) -> list[Charged]:
        with _unusable():
            return recent(self._connection, at_most, before, key_id)

    def prune(self, before_s: float, at_most: int) -> int:
        with self._written(), _unusable():
            return prune_step(self._connection, before_s, at_most)


_SPENT = """
SELECT COALESCE(SUM(tokens) FILTER (WHERE day_s >= ? AND day_s < ?), 0),
       COALESCE(SUM(escalations) FILTER (WHERE day_s >= ? AND day_s < ?), 0),
       COALESCE(SUM(nanos) FILTER (WHERE day_s >= ? AND day_s < ?), 0),
       COALESCE(SUM(tokens), 0), COALESCE(SUM(escalations), 0), COALESCE(SUM(nanos), 0)
FROM balances WHERE key_id = ? AND day_s >= ? AND day_s < ?"""

_LEASED = """
SELECT SUM(tokens), SUM(escalations), SUM(nanos)
FROM leases WHERE key_id = ? AND expires_s > ? AND expires_s <= ?"""

_COLUMNS = (
    "at_s, key_id, request_id, model_asked, model_served, steps, tokens, busy_us, nouls, choices,"
    " scores, escalated, reasons, cached, status, nanos, price_version"
)
_MOST_ROWS = 64
"""Of one statement; the connection keeps every one of these prepared."""
_CHARGES = {
    rows: f"INSERT INTO charges ({_COLUMNS}) VALUES "  # noqa: S608 - constants
    + ", ".join(["(" + ", ".join("?" * 17) + ")"] * rows)
    for rows in range(1, _MOST_ROWS + 1)
}
"""Rows → the statement that inserts as many."""

_BALANCE = """
INSERT INTO balances VALUES (?, ?, ?, ?, ?)
ON CONFLICT (key_id, day_s) DO UPDATE SET
    tokens = tokens + excluded.tokens,
    escalations = escalations + excluded.escalations,
    nanos = nanos + excluded.nanos"""


@contextmanager
def _unusable() -> Iterator[None]:
    """Raises: StoreError: for whatever SQLite says inside."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(f"the ledger cannot be used: {error}") from error


def _reason(error: OSError | sqlite3.Error) -> str:
    """What went wrong, without the path."""
    return (error.strerror or "unknown") if isinstance(error, OSError) else str(error)
