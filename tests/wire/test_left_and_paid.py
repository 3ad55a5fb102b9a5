"""A caller who closes its connection while it is being read pays for what was read."""

import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from gateway import issuing
from gateway.ledger.sqlite import SqliteStore

from .asks import raw
from .serving import Watched, thread
from .sockets import line, posted
from .test_overload import left

__all__ = ["left"]


@pytest.mark.parametrize("durability", ["group", "async"])
def test_who_closes_the_connection_while_it_is_read_has_paid(
    left: threading.Semaphore, tmp_path: Path, durability: str
) -> None:
    path = str(tmp_path / "ledger.db")
    with closing(SqliteStore(path)) as store:
        wish = {"name": "team", "tokens_per_day": 100_000}
        key = issuing.create(store, wish, [], time.time()).minted.text
    hold = threading.Event()
    with thread(
        Watched(hold=hold),
        log={"access": True},
        ledger={"path": path, "durability": durability},
    ) as gateway:
        with line(gateway.address) as leaver:
            leaver.send(posted(raw(), f"Authorization: Bearer {key}"))
            gateway.engine.await_read()
        assert left.acquire(timeout=10)
        hold.set()

    with closing(sqlite3.connect(path)) as connection:
        ((status, tokens),) = connection.execute("SELECT status, tokens FROM charges").fetchall()
        ((spent,),) = connection.execute("SELECT tokens FROM balances").fetchall()
        held = connection.execute("SELECT COUNT(*) FROM leases").fetchone()[0]
    assert status == 499
    assert spent == tokens > 0
    assert held == 0
