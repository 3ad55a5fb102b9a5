"""Keys and their secrets in SQLite, and how anything here reaches the file."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, fields
from typing import Any, TypeAlias

from gateway.ledger.signal import ChangeSignal
from gateway.ledger.store import Key, NameTaken, NoSuchKey, Secret, StoreError, Unfit
from policies.limits import Limits

_Value: TypeAlias = str | int | float | bytes | None

_LIMITS = tuple(one.name for one in fields(Limits))
_KEY = ("key_id", "name", "created_s", "expires_s", "revoked_s", "scopes", "models", "confidence")


class SqliteKeys:
    """Keeps what `gateway.ledger.store.Keys` promises, on a connection of its own."""

    def __init__(self, connection: sqlite3.Connection, signal: ChangeSignal | None = None) -> None:
        """Takes both over; without a signal nobody is told of changes to keys."""
        self._connection = connection
        self._signal = signal
        self._writing = False
        self._stirring = False

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()
        if self._signal is not None:
            self._signal.close()

    def stirred(self) -> bytes:
        return b"" if self._signal is None else self._signal.value

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        self._execute("BEGIN", ())
        try:
            yield
        finally:
            self._execute("COMMIT", ())

    def generation(self) -> int:
        found: int = self._row("SELECT generation FROM key_generation", ())[0]
        return found

    def every_key(self) -> list[Key]:
        names = ", ".join((*_KEY, *_LIMITS))
        rows = self._rows(f"SELECT {names} FROM keys ORDER BY created_s, name", ())  # noqa: S608
        return [_key(row) for row in rows]

    def secrets(self) -> list[Secret]:
        rows = self._rows("SELECT prefix, key_id, digest, created_s, expires_s FROM secrets", ())
        return [Secret(*row) for row in rows]

    def add_key(self, key: Key, secret: Secret) -> None:
        models = None if key.models is None else json.dumps(sorted(key.models))
        values: tuple[_Value, ...] = (
            key.key_id,
            key.name,
            key.created_s,
            key.expires_s,
            key.revoked_s,
            json.dumps(sorted(key.scopes)),
            models,
            key.confidence,
            *astuple(key.limits),
        )
        names, marks = ", ".join((*_KEY, *_LIMITS)), ", ".join("?" * len(values))
        with self._written():
            if self._row("SELECT 1 FROM keys WHERE name = ?", (key.name,)) is not None:
                raise NameTaken(f"there is, or was, a key named '{key.name}' already")
            self._change(f"INSERT INTO keys ({names}) VALUES ({marks})", values)  # noqa: S608
            self._add(secret)

    def rotate(self, key_id: str, secret: Secret, old_expire_s: float) -> None:
        with self._written():
            self._must_exist(key_id)
            self._change(
                "UPDATE secrets SET expires_s = MIN(COALESCE(expires_s, ?1), ?1) WHERE key_id = ?2",
                (old_expire_s, key_id),
            )
            self._add(secret)

    def revoke(self, key_id: str, now_s: float) -> None:
        with self._written():
            self._must_exist(key_id)
            self._change(
                "UPDATE keys SET revoked_s = COALESCE(revoked_s, ?) WHERE key_id = ?",
                (now_s, key_id),
            )

    def set_limits(self, key_id: str, limits: Limits) -> None:
        changes = ", ".join(f"{name} = ?" for name in _LIMITS)
        with self._written():
            self._must_exist(key_id)
            self._change(
                f"UPDATE keys SET {changes} WHERE key_id = ?",  # noqa: S608
                (*astuple(limits), key_id),
            )

    def _forget(self) -> None:
        """Drop what was put off: the transaction is rolled back."""

    def _must_exist(self, key_id: str) -> None:
        self._stirring = True
        if self._row("SELECT 1 FROM keys WHERE key_id = ?", (key_id,)) is None:
            raise NoSuchKey("there is no such key")

    def _add(self, secret: Secret) -> None:
        self._stirring = True
        self._change("INSERT INTO secrets VALUES (?, ?, ?, ?, ?)", astuple(secret))

    @contextmanager
    def _written(self) -> Iterator[None]:
        """The transaction that is open already, or one of its own."""
        if self._writing:
            yield
            return
        self._execute("BEGIN IMMEDIATE", ())
        self._writing = True
        try:
            yield
            self._before_commit()
            self._execute("COMMIT", ())
            if (
                self._stirring and self._signal is not None
            ):  # only now: whoever looks must find the change
                self._signal.change()
        except BaseException:
            self._forget()
            if self._connection.in_transaction:
                self._execute("ROLLBACK", ())
            raise
        finally:
            self._writing = self._stirring = False

    def _before_commit(self) -> None:
        """What was put off until the end of the transaction."""

    def _change(self, sql: str, values: Sequence[_Value]) -> int:
        """Rows that changed."""
        return self._execute(sql, values).rowcount

    def _row(self, sql: str, values: Sequence[_Value]) -> Any:
        """The first row, or `None`."""
        return self._execute(sql, values).fetchone()

    def _rows(self, sql: str, values: Sequence[_Value]) -> list[Any]:
        return self._execute(sql, values).fetchall()

    def _execute(self, sql: str, values: Sequence[_Value]) -> sqlite3.Cursor:
        try:
            return self._connection.execute(sql, values)
        except (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.InterfaceError) as error:
            raise Unfit(f"a value does not fit the ledger: {error}") from error
        except sqlite3.Error as error:
            raise StoreError(f"the ledger cannot be used: {error}") from error


def _key(row: Sequence[Any]) -> Key:
    key_id, name, created_s, expires_s, revoked_s, scopes, models, confidence, *limits = row
    return Key(
        key_id,
        name,
        created_s,
        expires_s,
        revoked_s,
        frozenset(json.loads(scopes)),
        None if models is None else frozenset(json.loads(models)),
        confidence,
        Limits(*limits),
    )
