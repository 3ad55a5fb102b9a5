"""`kill -9` under load: every acknowledged answer against the rows of the ledger."""

import asyncio
import os
import random
import signal
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from bench.bodies import bodies
from bench.ledger_servers import Durability, Gateway, metered

CLIENTS = 16
WINDOW_S = 0.05
"""The default of `ledger.interval_ms`."""
_SHORTEST_S, _LONGEST_S = 0.3, 1.0


@dataclass(frozen=True, slots=True)
class Killed:
    """One gateway that was killed."""

    acknowledged: int
    """Answers with status 200 that a client has read."""
    lost: int
    """Of these, without a row in the ledger."""
    oldest_lost_s: float
    """How long before the last acknowledged answer the first lost one was; 0 = none is lost."""
    balance_is_sum: bool
    """Whether the key's balance is the sum of its charges."""


class _Clients:
    """Closed-loop clients that remember what they were answered."""

    def __init__(self, gateway: Gateway, port: int, run: int) -> None:
        self._key = gateway.key
        self._port = port
        self._run = run
        self._body = bodies()["1q"]
        self.answered: dict[str, float] = {}
        """Request id → when its 200 was read."""

    async def ask_until_it_dies(self, client: int) -> None:
        """One connection, one request after the other."""
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
            number = 0
            while True:
                request_id = f"run{self._run}-{client}-{number}"
                number += 1
                writer.write(self._request(request_id))
                head = await reader.readuntil(b"\r\n\r\n")
                length = head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]
                await reader.readexactly(int(length))
                if head.startswith(b"HTTP/1.1 200"):
                    self.answered[request_id] = time.monotonic()
        except (OSError, asyncio.IncompleteReadError):
            return

    def _request(self, request_id: str) -> bytes:
        head = (
            "POST /v1/systemone HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
            f"Authorization: Bearer {self._key}\r\nX-Request-Id: {request_id}\r\n"
            f"Content-Length: {len(self._body)}\r\n\r\n"
        )
        return head.encode() + self._body


def kill(folder: Path, durability: Durability, times: int, core: int) -> list[Killed]:
    """Kill a gateway under load, `times` over, on one ledger."""
    gateway = metered(folder, f"kill-{durability}", durability)
    return [_once(gateway, run, core) for run in range(times)]


def _once(gateway: Gateway, run: int, core: int) -> Killed:
    with gateway.running(core) as server:
        clients = _Clients(gateway, server.port, run)

        async def load() -> None:
            asking = [clients.ask_until_it_dies(number) for number in range(CLIENTS)]
            loaded = asyncio.gather(*asking)
            await asyncio.sleep(random.uniform(_SHORTEST_S, _LONGEST_S))
            os.kill(server.pid, signal.SIGKILL)
            await loaded

        asyncio.run(load())
    rows, balanced = _rows(gateway, run)
    lost = [at_s for request_id, at_s in clients.answered.items() if request_id not in rows]
    last_s = max(clients.answered.values(), default=0.0)
    oldest_s = last_s - min(lost) if lost else 0.0
    return Killed(len(clients.answered), len(lost), oldest_s, balanced)


def _rows(gateway: Gateway, run: int) -> tuple[set[str], bool]:
    """Request ids of this run in the ledger, and whether the balance is what they all cost."""
    with closing(sqlite3.connect(str(gateway.ledger))) as ledger:
        like = f"run{run}-%"
        found = ledger.execute("SELECT request_id FROM charges WHERE request_id LIKE ?", (like,))
        rows = {str(row[0]) for row in found}
        (charged,) = ledger.execute("SELECT COALESCE(SUM(tokens), 0) FROM charges").fetchone()
        (balance,) = ledger.execute("SELECT COALESCE(SUM(tokens), 0) FROM balances").fetchone()
    return rows, charged == balance
