"""What a look at a ledger's file shows, without changing it."""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from gateway.ledger.store import StoreError


@dataclass(frozen=True, slots=True)
class Examined:
    """A ledger that can be read."""

    journal_mode: str
    """`wal` in a ledger that is in order."""
    sound: bool
    """Whether SQLite's own quick check finds nothing."""
    latest_s: float | None
    """When the latest charge was admitted; `None` = there is none."""


def examine(path: Path) -> Examined:
    """What is found in the file, opened for reading only.

    Raises:
        StoreError: it cannot be read, or is no ledger.
    """
    try:
        with closing(_opened(path)) as found:
            (mode,) = found.execute("PRAGMA journal_mode").fetchone()
            (verdict,) = found.execute("PRAGMA quick_check(1)").fetchone()
            (latest_s,) = found.execute("SELECT max(at_s) FROM charges").fetchone()
    except sqlite3.Error as error:
        raise StoreError("it cannot be read, or is no ledger") from error
    return Examined(mode, verdict == "ok", latest_s)


def last_digests(path: Path) -> dict[str, str]:
    """Engine of a cascade → the digest of the weights that it answered with last.

    Raises:
        StoreError: the file cannot be read, or is no ledger of this version.
    """
    try:
        with closing(_opened(path)) as found:
            rows = found.execute("SELECT engine, digest FROM engines_seen ORDER BY last_s")
            return dict(rows.fetchall())
    except sqlite3.Error as error:
        raise StoreError("it cannot be read, or is no ledger of this version") from error


def _opened(path: Path) -> sqlite3.Connection:
    """For reading only. Raises: sqlite3.Error."""
    return sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)
