"""Whole gateways in trouble: a full disk, a sudden death beside a survivor, a hung engine."""

import os
import resource
import signal
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx

from .asks import raw
from .serving import SCRIPTED, Address, doomed, process
from .sockets import line, posted

_WORDS = 8


def ledger_config(ledger: Path) -> str:
    return f'{SCRIPTED}\n[ledger]\npath = "{ledger}"\n'


def words(n: int) -> dict[str, Any]:
    """A request that the scripted engine reads in `n` tokens."""
    return {"state": " ".join(["w"] * n), "questions": {"q": {"type": "noul", "instructions": "?"}}}


def new_key(folder: Path, config: str, *limits: str) -> str:
    """A key of the ledger that the configuration names."""
    path = folder / "keys.toml"
    path.write_text(config, encoding="utf-8")
    command = [sys.executable, "-m", "gateway", "keys", "create", "team", "--config", str(path)]
    made = subprocess.run([*command, *limits], capture_output=True, text=True, check=True)
    return made.stdout.strip()


def sums(ledger: Path) -> tuple[int, int, int]:
    """Tokens of answered charges, of all charges, and of the balances."""
    with closing(sqlite3.connect(ledger)) as connection:
        select = connection.execute
        (answered,) = select("SELECT TOTAL(tokens) FROM charges WHERE status = 200").fetchone()
        (charged,) = select("SELECT TOTAL(tokens) FROM charges").fetchone()
        (balance,) = select("SELECT TOTAL(tokens) FROM balances").fetchone()
    return int(answered), int(charged), int(balance)


@contextmanager
def full_disk(address: Address) -> Iterator[None]:
    """Every write of the gateway to a file fails, as on a disk without a free block."""
    before = resource.prlimit(address.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(address.pid, resource.RLIMIT_FSIZE, (0, before[1]))
    yield
    resource.prlimit(address.pid, resource.RLIMIT_FSIZE, before)


def test_a_full_disk_is_503_until_there_is_room_and_loses_nothing(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    config = ledger_config(ledger)
    key = new_key(tmp_path, config, "--tokens-per-day", "100000")
    with (
        process(config, tmp_path) as address,
        httpx.Client(
            base_url=address.url, headers={"authorization": f"Bearer {key}"}, trust_env=False
        ) as client,
    ):

        def ask(n: int) -> httpx.Response:
            return client.post("/v1/systemone", json=words(n), timeout=30)

        told = [ask(3)]
        with full_disk(address):
            refused = [ask(5), ask(7)]
            alive = client.get("/health")
        while (again := ask(11)).status_code == 503:
            assert int(again.headers["retry-after-ms"]) > 0
        told.append(again)

    assert [one.status_code for one in refused] == [503, 503]
    assert "disk" not in refused[0].text
    assert alive.status_code == 200
    answered, charged, balance = sums(ledger)
    assert answered == sum(one.json()["usage"]["input_tokens"] for one in told) == 14
    assert charged == balance


class Asker:
    """Asks one gateway until it is told to stop or the gateway is gone; knows what it was told."""

    def __init__(self, address: Address, key: str) -> None:
        self.told = 0
        self.statuses: Counter[int] = Counter()
        self.answers = threading.Semaphore(0)
        """Released with every answer."""
        self.stopping = threading.Event()
        self._address = address
        self._headers = {"authorization": f"Bearer {key}"}

    def ask_until_the_end(self) -> None:
        with httpx.Client(
            base_url=self._address.url, headers=self._headers, timeout=30, trust_env=False
        ) as client:
            while not self.stopping.is_set():
                try:
                    answer = client.post("/v1/systemone", json=words(_WORDS))
                except httpx.TransportError:
                    return
                self.statuses[answer.status_code] += 1
                self.told += answer.json()["usage"]["input_tokens"]
                self.answers.release()

    def await_answers(self, times: int) -> None:
        """Nothing, after so many answers more."""
        for _ in range(times):
            assert self.answers.acquire(timeout=30), "it is not answered any more"


def test_of_two_gateways_on_one_ledger_one_dies_and_the_other_goes_on(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    config = ledger_config(ledger)
    key = new_key(tmp_path, config, "--tokens-per-day", "10000000")
    with process(config, tmp_path) as address, ThreadPoolExecutor(4) as pool:
        living = [Asker(address, key) for _ in range(2)]
        (folder := tmp_path / "doomed").mkdir()
        with doomed(config, folder) as other:
            dying = [Asker(other.address, key) for _ in range(2)]
            asking = [pool.submit(one.ask_until_the_end) for one in (*dying, *living)]
            for one in (*dying, *living):
                one.await_answers(3)
            os.kill(other.pid, signal.SIGKILL)
        for one in living:
            while one.answers.acquire(blocking=False):
                pass  # from before the other's death
            one.await_answers(10)
            one.stopping.set()
        for done in asking:
            done.result()

    askers = (*dying, *living)
    answered, charged, balance = sums(ledger)
    assert [set(one.statuses) for one in askers] == [{200}] * 4
    unread = answered - sum(one.told for one in askers)
    assert 0 <= unread <= len(dying) * _WORDS  # answered by the dead one, and read by nobody
    assert answered == charged == balance


def test_a_hung_engine_does_not_keep_a_gateway_from_ending(tmp_path: Path) -> None:
    hanging = SCRIPTED.replace('kind = "scripted"\n', 'kind = "scripted"\ndelay_s = 60\n')
    config = f"{hanging}\n[server]\ndrain_s = 0.5\n"

    with process(config, tmp_path) as address, line(address) as connection:
        connection.send(posted(raw()))
        alive = httpx.get(f"{address.url}/health", trust_env=False)

    assert alive.status_code == 200
