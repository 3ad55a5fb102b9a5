"""What came of watching, in SQLite: engines seen, tests of promises, alarms."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import orjson

from gateway.ledger.decisions import Alarm, Trial
from gateway.ledger.sqlite_decisions import SqliteDecisions
from gateway.ledger.sqlite_reports import read_only
from policies.sequential import Evidence

_TRIAL = "SELECT engine, what, digest, since_s, promised, seen, wrong, played FROM evidence"
_ALARMS = "SELECT kind, engine, what, message, at_s, alarm_id, cleared_s FROM alarms"


class SqliteAlarms(SqliteDecisions):
    """Keeps the rest of `gateway.ledger.decisions.DecisionLog`."""

    def engine_seen(self, engine: str, digest: str, at_s: float) -> str | None:
        with self._written():
            row = self._row(
                "SELECT digest FROM engines_seen WHERE engine = ? ORDER BY last_s DESC LIMIT 1",
                (engine,),
            )
            self._change(
                "INSERT INTO engines_seen VALUES (?1, ?2, ?3, ?3)"
                " ON CONFLICT (engine, digest) DO UPDATE SET last_s = MAX(last_s, excluded.last_s)",
                (engine, digest, at_s),
            )
        before: str | None = None if row is None else row[0]
        return None if before == digest else before

    def engine_changes(self, since_s: float) -> list[tuple[str, str, float]]:
        found = self._rows(
            "SELECT engine, digest, first_s FROM engines_seen AS one WHERE first_s >= ? AND EXISTS"
            " (SELECT 1 FROM engines_seen WHERE engine = one.engine AND first_s < one.first_s)"
            " ORDER BY first_s",
            (since_s,),
        )
        return [tuple(row) for row in found]

    def trial(self, engine: str, what: str) -> Trial | None:
        row = self._row(f"{_TRIAL} WHERE engine = ? AND what = ?", (engine, what))
        return None if row is None else _trial(row)

    def every_trial(self) -> list[Trial]:
        return [_trial(row) for row in self._rows(f"{_TRIAL} ORDER BY engine, what", ())]

    def keep_trial(self, trial: Trial) -> None:
        evidence = trial.evidence
        self._change(
            "INSERT OR REPLACE INTO evidence"
            " (engine, what, digest, since_s, promised, seen, wrong, played)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                trial.engine,
                trial.what,
                trial.digest,
                trial.since_s,
                evidence.promised,
                evidence.seen,
                evidence.wrong,
                orjson.dumps(evidence.played).decode(),
            ),
        )

    def forget_trial(self, engine: str, what: str) -> None:
        self._change("DELETE FROM evidence WHERE engine = ? AND what = ?", (engine, what))

    def raise_alarm(self, alarm: Alarm) -> bool:
        added = self._change(
            "INSERT INTO alarms (kind, engine, what, message, at_s) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT DO NOTHING",
            alarm[:5],
        )
        return added > 0

    def alarms(self, *, cleared: bool = False) -> list[Alarm]:
        where = "" if cleared else " WHERE cleared_s IS NULL"
        return [Alarm(*row) for row in self._rows(f"{_ALARMS}{where} ORDER BY alarm_id", ())]

    def clear_alarm(self, alarm_id: int, at_s: float) -> Alarm | None:
        with self._written():
            row = self._row(f"{_ALARMS} WHERE alarm_id = ? AND cleared_s IS NULL", (alarm_id,))
            if row is None:
                return None
            alarm = Alarm(*row)
            self._change("UPDATE alarms SET cleared_s = ? WHERE alarm_id = ?", (at_s, alarm_id))
            if alarm.kind == "disagreement":
                self.forget_trial(alarm.engine, alarm.what)
        return alarm


def _trial(row: Sequence[Any]) -> Trial:
    engine, what, digest, since_s, promised, seen, wrong, played = row
    evidence = Evidence(promised, seen, wrong, tuple(orjson.loads(played)))
    return Trial(engine, what, digest, since_s, evidence)


@contextmanager
def reading(path: str) -> Iterator[SqliteAlarms]:
    """The decisions and alarms of the ledger at `path`, through a connection that only reads.

    Raises:
        StoreError: see `gateway.ledger.sqlite_reports.read_only`.
    """
    store = SqliteAlarms(read_only(path))
    try:
        yield store
    finally:
        store.close()
