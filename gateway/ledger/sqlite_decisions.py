"""Decisions of cascades in SQLite."""

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from gateway.ledger.decisions import Asked, Glance, Logged, Period
from gateway.ledger.sqlite_keys import SqliteKeys
from gateway.ledger.store import StoreError

_MILLION = 1_000_000
_DIGEST_BYTES = 8
_FETCHED = 500
_DAY_S = 86_400.0

_COLUMNS = (
    "decision_id, at_s, key_id, request_id, question, model, fingerprint, kind, labels, tier,"
    " engine, reason, looks, sampling, drawn, shadow, truth"
)
_SELECT = f"SELECT {_COLUMNS} FROM decisions"  # noqa: S608 - a constant
_INSERT = (
    f"INSERT OR IGNORE INTO decisions ({_COLUMNS})"  # noqa: S608 - a constant
    f" VALUES ({', '.join('?' * 17)})"
)


class SqliteDecisions(SqliteKeys):
    """Keeps the part of `gateway.ledger.decisions.DecisionLog` that is about decisions."""

    def log_decisions(self, decisions: Sequence[Logged], asked: Sequence[Asked]) -> None:
        with self._written():
            for one in asked:
                self._change(
                    "INSERT INTO questions VALUES (?, ?, ?)"
                    " ON CONFLICT (fingerprint) DO UPDATE SET seen_s = excluded.seen_s",
                    one,
                )
            for decision in decisions:
                self._change(_INSERT, _row_of(decision))

    def log_shadow(self, decision_id: int, shadow: Glance) -> None:
        self._change(
            "UPDATE decisions SET shadow = ? WHERE decision_id = ?",
            (orjson.dumps(_numbers(shadow)).decode(), decision_id),
        )

    def decisions_of(self, key_id: str, request_id: str, at_most: int) -> list[Logged]:
        found = self._rows(
            f"{_SELECT} WHERE key_id = ? AND request_id = ? ORDER BY decision_id DESC LIMIT ?",
            (key_id, request_id, at_most),
        )
        return [_logged(row) for row in found]

    def decisions_since(
        self, key_id: str, request_id: str, since_s: float, at_most: int
    ) -> list[Logged]:
        found = self._rows(
            f"{_SELECT} WHERE key_id = ? AND request_id = ? AND at_s >= ?"
            " ORDER BY decision_id LIMIT ?",
            (key_id, request_id, since_s, at_most),
        )
        return [_logged(row) for row in found]

    def label_digests(self, fingerprint: str) -> tuple[bytes, ...]:
        row = self._row("SELECT labels FROM questions WHERE fingerprint = ?", (fingerprint,))
        whole: bytes = b"" if row is None else row[0]
        return tuple(whole[at : at + _DIGEST_BYTES] for at in range(0, len(whole), _DIGEST_BYTES))

    def tell_truth(self, decision_id: int, truth: int, at_s: float) -> None:
        self._change(
            "UPDATE decisions SET truth = ?, truth_s = ? WHERE decision_id = ?",
            (truth, at_s, decision_id),
        )

    def decisions(self, period: Period) -> Iterator[Logged]:
        since_s = self._first_s(period) if period.latest is not None else period.since_s
        where, values = _where(period)
        rows = self._execute(
            f"{_SELECT} WHERE {where} ORDER BY at_s, decision_id", (since_s, *values)
        )
        while found := _fetched(rows):
            yield from map(_read, found)

    def _first_s(self, period: Period) -> float:
        """When the first of the latest decisions of the period was made."""
        where, values = _where(period)
        row = self._row(
            f"SELECT at_s FROM decisions WHERE {where}"  # noqa: S608 - constants
            " ORDER BY at_s DESC LIMIT 1 OFFSET ?",
            (period.since_s, *values, max(0, (period.latest or 1) - 1)),
        )
        return period.since_s if row is None else row[0]

    def shadow_tokens(self, since_s: float) -> int:
        found: int = self._row(
            "SELECT COALESCE(SUM(json_extract(shadow, '$[1]')), 0) FROM decisions"
            " WHERE at_s >= ? AND shadow IS NOT NULL",
            (since_s,),
        )[0]
        return found

    def forget_decisions(self, before_s: float, at_most: int) -> int:
        with self._written():
            self._change(
                "DELETE FROM questions WHERE fingerprint IN"
                " (SELECT fingerprint FROM questions WHERE seen_s < ? LIMIT ?)",
                (before_s - _DAY_S, at_most),
            )
            return self._change(
                "DELETE FROM decisions WHERE decision_id IN"
                " (SELECT decision_id FROM decisions WHERE at_s < ? ORDER BY at_s LIMIT ?)",
                (before_s, at_most),
            )


def _where(period: Period) -> tuple[str, list[float | str]]:
    """The condition, and its values after that of when the period begins."""
    if period.model is None:
        return "at_s >= ? AND at_s < ?", [period.until_s]
    return "at_s >= ? AND at_s < ? AND model = ?", [period.until_s, period.model]


def _fetched(rows: sqlite3.Cursor) -> list[Any]:
    try:
        return rows.fetchmany(_FETCHED)
    except sqlite3.Error as error:
        raise StoreError(f"the ledger cannot be read: {error}") from error


def _numbers(look: Glance) -> list[Any]:
    """The look as JSON content."""
    millionths = [round(p * _MILLION) for p in look.probabilities]
    return [look.engine, look.tokens, round(look.likelihood * _MILLION), millionths]


def _glance(numbers: Sequence[Any]) -> Glance:
    engine, tokens, likelihood, millionths = numbers
    shares = tuple(p / _MILLION for p in millionths)
    return Glance(engine, tokens, likelihood / _MILLION, shares)


def _row_of(one: Logged) -> tuple[str | int | float | bytes | None, ...]:
    return (
        *one[:12],
        orjson.dumps([_numbers(look) for look in one.looks]).decode(),
        one.sampling,
        int(one.drawn),
        None if one.shadow is None else orjson.dumps(_numbers(one.shadow)).decode(),
        one.truth,
    )


def _read(row: Sequence[Any]) -> Logged:
    try:
        return _logged(row)
    except (TypeError, ValueError) as error:
        raise StoreError(f"the ledger cannot be read: decision {row[0]} is damaged") from error


def _logged(row: Sequence[Any]) -> Logged:
    shadow = None if row[15] is None else _glance(orjson.loads(row[15]))
    looks = tuple([_glance(look) for look in orjson.loads(row[12])])
    return Logged._make([*row[:12], looks, row[13], bool(row[14]), shadow, row[16]])
