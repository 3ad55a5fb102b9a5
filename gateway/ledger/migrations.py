"""The schema's versions: numbered SQL files that only ever go forward."""

import re
import sqlite3
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path

from gateway.ledger.store import StoreError


@cache
def scripts() -> Mapping[int, str]:
    """Version → SQL that leads from the version before to it; 1, 2, … without gaps.

    Raises:
        StoreError: the installed files leave a gap.
    """
    found = {}
    for file in files("gateway.ledger").joinpath("schema").iterdir():
        if number := re.fullmatch(r"(\d{4})\.sql", file.name):
            found[int(number[1])] = file.read_text(encoding="utf-8")
    if sorted(found) != list(range(1, len(found) + 1)):
        raise StoreError("the schema's numbered files have a gap")
    return found


def migrate(connection: sqlite3.Connection, to: int | None = None) -> int:
    """Bring the file to version `to` (default: the newest); the version it had before.

    Each version is one transaction, so that a crash leaves a whole version behind. Two processes
    may start at once: the second waits and finds nothing to do.

    Raises:
        StoreError: the file was written by a newer tiergate.
    """
    target = len(scripts()) if to is None else to
    before = version(connection)
    if before > len(scripts()):
        raise StoreError(
            f"the ledger has schema version {before}, this tiergate knows {len(scripts())}; "
            "it was written by a newer one"
        )
    while version(connection) < target:
        connection.execute("BEGIN IMMEDIATE")
        try:
            if (at := version(connection)) < target:
                for statement in statements(scripts()[at + 1]):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {at + 1}")
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
    return before


def refuse_no_file(path: str) -> None:
    """Raises: StoreError: at the path is something, but no file."""
    if Path(path).exists() and not Path(path).is_file():
        raise StoreError("it is no file")


def refuse_foreign(connection: sqlite3.Connection) -> None:
    """Raises: StoreError: the database is another program's; nothing of ours is put into it."""
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if tables and version(connection) == 0:
        raise StoreError("it is a database of something else; give the ledger a file of its own")


def version(connection: sqlite3.Connection) -> int:
    """The schema version of the file; 0 = empty."""
    found: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return found


def statements(script: str) -> list[str]:
    """The script's statements; a trigger's body stays in one piece."""
    found, begun = [], ""
    for line in script.splitlines(keepends=True):
        begun += line
        if sqlite3.complete_statement(begun):
            found.append(begun)
            begun = ""
    return found
