"""The ledger of a gateway: its housekeeping."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from gateway.ledger.sqlite import SqliteStore
from gateway.wiring import new_services
from gateway.wiring_ledger import kept, open_books
from tests.gateway.conftest import ledger_settings


async def test_what_expires_faster_than_it_is_swept_in_one_go_is_swept_in_several(
    tmp_path: Path,
) -> None:
    settings = ledger_settings(tmp_path)
    path = settings.ledger.path
    with closing(SqliteStore(path)) as store, store.transaction():
        for number in range(4000):
            store.begin_replay("k", number.to_bytes(32, "big"), bytes(32), number, 1.0)
    services = new_services(settings)
    with open_books(settings, services), closing(sqlite3.connect(path)) as ledger:
        async with kept(services, 90), asyncio.timeout(5.0):  # at 500 a second it would take eight
            while ledger.execute("SELECT count(*) FROM replays").fetchone() != (0,):
                await asyncio.sleep(0.02)
