"""Whatever happens, the ledger's sum is what engines read and what callers were told.

A random workload: answers, repeats, failures, callers who leave, bursts, restarts, pruning.
"""

import asyncio
import shutil
import sqlite3
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, TypeVar

import httpx
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from engines.contract import Question, Reading, Text
from engines.lane import Lane, rows
from engines.scripted import ScriptedEngine
from gateway.app import Services
from gateway.ledger.reports import DAY_S
from gateway.ledger.sqlite import SqliteStore
from gateway.routes import build_app
from gateway.wiring import install, new_services
from gateway.wiring_ledger import open_books
from tests.gateway.conftest import bearer, ledger_settings

T = TypeVar("T")

PATH = "/v1/systemone"
BUDGET = 300
MAX_TOKENS = 60
KEYS = st.sampled_from(["free", "small"])
WORDS = st.integers(1, 50)


def _weights(state: Text, _: Question) -> Sequence[float]:
    return [float("nan") if str(state).startswith("broken") else 1.0, 0.0]


class Counting(ScriptedEngine):
    """Counts the tokens of every piece that it reads; waits while it is held."""

    def __init__(self, go: threading.Event) -> None:
        super().__init__(script=_weights, max_tokens=MAX_TOKENS, hold=go)
        self.tokens = 0

    def read(self, batch: Sequence[Any]) -> Sequence[Mapping[str, Reading]]:
        self.tokens += sum(piece.tokens for piece in batch)
        return super().read(batch)


def asking(words: int, first: str = "w") -> dict[str, Any]:
    question = {"type": "noul", "instructions": "?"}
    return {"state": " ".join([first, *["w"] * (words - 1)]), "questions": {"q": question}}


class Workload(RuleBasedStateMachine):
    """A gateway with a ledger, and what its callers remember."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.runner = asyncio.Runner()
        self.go = threading.Event()
        self.go.set()
        self.engine = Counting(self.go)
        self.told: Counter[str] = Counter()
        self.stack = ExitStack()

    @initialize(durability=st.sampled_from(["group", "async"]))
    def begin(self, durability: str) -> None:
        self.settings = ledger_settings(self.folder, durability=durability)
        self.keys = {
            "free": bearer(self.settings, "free"),
            "small": bearer(self.settings, "small", tokens_per_day=BUDGET),
        }
        self.open()

    def open(self) -> None:
        lane = Lane("scripted", self.engine, rows(1), max_waiting=64)
        self.stack.callback(lane.close, drain_s=5.0)
        self.services: Services = new_services(self.settings)
        install(self.services, self.settings, {"scripted": lane})
        self.stack.enter_context(open_books(self.settings, self.services))
        app = build_app(self.services, access_log=False)
        transport = httpx.ASGITransport(app)
        self.client = httpx.AsyncClient(transport=transport, base_url="http://gateway")

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    async def ask(self, key: str, body: dict[str, Any], **headers: str) -> int:
        """The status; what a new answer says it took is remembered."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        answer = await self.client.post(PATH, json=body, headers=self.keys[key] | named)
        if answer.status_code == 200 and "x-tiergate-replayed" not in answer.headers:
            self.told[key] += answer.json()["usage"]["input_tokens"]
        return answer.status_code

    @rule(key=KEYS, words=WORDS)
    def answered_or_out_of_budget(self, key: str, words: int) -> None:
        assert self.run(self.ask(key, asking(words))) in ((200,) if key == "free" else (200, 429))

    @rule(key=KEYS, words=WORDS)
    def failed(self, key: str, words: int) -> None:
        assert self.run(self.ask(key, asking(words, "broken"))) in (500, 429)

    @rule(key=KEYS)
    def refused_as_too_long(self, key: str) -> None:
        assert self.run(self.ask(key, asking(MAX_TOKENS + 1))) in (400, 429)

    @rule(key=KEYS, words=st.sampled_from([5, 6]), order=st.sampled_from(["a", "b"]))
    def repeated(self, key: str, words: int, order: str) -> None:
        status = self.run(self.ask(key, asking(words), idempotency_key=order))
        assert status in (200, 409, 429)

    @rule(key=KEYS, several=st.lists(WORDS, min_size=2, max_size=6))
    def in_parallel(self, key: str, several: list[int]) -> None:
        async def burst() -> list[int]:
            asked = (self.ask(key, asking(words)) for words in several)
            return await asyncio.gather(*asked)

        assert set(self.run(burst())) <= {200, 429}

    @rule(key=KEYS, words=WORDS, leave=st.booleans())
    def sent_again_while_it_is_read(self, key: str, words: int, leave: bool) -> None:
        async def again() -> None:
            self.go.clear()
            entered = self.engine.entered
            first = asyncio.create_task(self.ask(key, asking(words)))
            while self.engine.entered == entered and not first.done():
                await asyncio.sleep(0.001)
            retry = asyncio.create_task(self.ask(key, asking(words), x_typesafe_retry_count="1"))
            await asyncio.sleep(0.005)
            if leave:
                first.cancel()
            self.go.set()
            await asyncio.gather(first, retry, return_exceptions=True)

        self.run(again())

    @rule()
    def restarted(self) -> None:
        self.stack.close()
        self.open()

    @rule(at_most=st.integers(1, 10))
    def pruned(self, at_most: int) -> None:
        with closing(SqliteStore(self.settings.ledger.path)) as store:
            store.prune(time.time() + DAY_S, at_most)

    @invariant()
    def the_sums_are_equal(self) -> None:
        if not hasattr(self, "client"):
            return
        self.run(self.written())
        with closing(sqlite3.connect(self.settings.ledger.path)) as ledger:
            select = ledger.execute
            by_status = "SELECT key, SUM(tokens) FROM v_usage_daily WHERE status = 200 GROUP BY 1"
            assert dict(select(by_status)) == self.told
            (read,) = select("SELECT COALESCE(SUM(tokens), 0) FROM v_usage_daily").fetchone()
            assert read == self.engine.tokens
            (spent,) = select("SELECT COALESCE(SUM(tokens), 0) FROM balances").fetchone()
            assert spent == read
            assert select("SELECT COUNT(*) FROM leases").fetchone() == (0,)
            over = "SELECT day, SUM(tokens) AS s FROM v_usage_daily WHERE key = 'small' GROUP BY 1"
            assert all(tokens <= BUDGET for _, tokens in select(over))

    async def written(self) -> None:
        """Returns when everything that was handed to the writer is in the file."""
        books = self.services.books
        assert books is not None
        await books.writer.submit(lambda store: None)

    def teardown(self) -> None:
        self.go.set()
        self.stack.close()
        self.runner.close()
        shutil.rmtree(self.folder)


TestWorkload = Workload.TestCase
TestWorkload.settings = hypothesis_settings(
    max_examples=15,
    stateful_step_count=15,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
