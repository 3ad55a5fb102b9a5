"""The accounts of a gateway for tests: orders whose reading ends when and as a test says."""

import asyncio
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from engines.contract import Broken, Inquiry, Noul
from gateway.auth import Caller
from gateway.bound import token_bound
from gateway.charging import Order, Terms
from gateway.decision import Decision, Route, Spending
from gateway.ledger.calendar import Calendar
from gateway.ledger.sqlite import SqliteStore
from gateway.ledger.store import StoreError
from gateway.ledger.writer import Writer
from gateway.metering import Metering, Served
from gateway.plan import Plan, Tier
from gateway.rates import Rates
from policies.answers import NoulAnswer
from policies.limits import Limits
from policies.pricing import PriceList, Tariff

LONGEST_S = 8.0
LIMITS = {
    "free": Limits(),
    "paced": Limits(tpm=50_000_000),
    "small": Limits(tokens_per_day=9_000),
    "big": Limits(tokens_per_day=200_000, tokens_per_month=4_000_000),
    "money": Limits(nanos_per_day=20_000_000_000),
    "all": Limits(
        tpm=50_000_000, tokens_per_day=400_000, escalations_per_day=9, nanos_per_day=20_000_000_000
    ),
}
TWICE = frozenset({"big", "all", "free"})
"""Keys that ask for the model with two engines."""


class Silent:
    """A reader that is never asked: a test reads."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def read(self, *_: Any, **__: Any) -> Any:
        raise AssertionError


class Gated(SqliteStore):
    """A store that waits while its gate is shut, and fails while it is broken."""

    broken = False

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.gate = threading.Event()
        self.gate.set()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self.gate.wait()
        if self.broken:
            raise StoreError("broken")
        with super().transaction():
            yield


@dataclass
class Asking:
    """A request on its way."""

    key: str
    order: Order
    bound: int
    now_s: float
    go: asyncio.Future[tuple[float, bool]] = field(default_factory=asyncio.Future)
    """How much of its bound is read, and whether there is an answer."""
    task: "asyncio.Task[Served] | None" = None


class Accounts:
    """Metering on a real ledger, by a clock that a test moves."""

    def __init__(self, path: str, *, durable: bool) -> None:
        self.path = path
        self.durable = durable
        self.now_s = 1_796_000_000.0
        self.read: Counter[str] = Counter()
        """Key → tokens that were read for it."""
        self.answered: dict[str, tuple[str, int]] = {}
        """Request → key and tokens, of answers that were not replayed."""
        self.flying: list[Asking] = []
        self.rates = Rates()
        one, two = Tier(Silent("small")), Tier(Silent("large"))
        self.plans = (Plan("one", (one,)), Plan("two", (one, two)))
        self.callers = {key: self.caller(key) for key in LIMITS}
        self.million_tokens = 50_000_000_000
        self.open()

    def caller(self, key: str) -> Caller:
        """As after any key was changed: the same limits, but not the same object."""
        limits = Limits(**{name: getattr(LIMITS[key], name) for name in Limits.__slots__})
        return Caller(key, key, limits=limits, budgeted=limits.has_budgets)

    def prices(self) -> PriceList:
        tariff = Tariff(0, self.million_tokens, 10**9)
        return PriceList("USD", {"small": (tariff,), "large": (tariff,)})

    def open(self) -> None:
        self.store = Gated(self.path)
        self.writer = Writer(lambda: self.store, interval_s=3600.0)
        prices = self.prices()
        terms = Terms(Calendar(), prices, prices.version, self.durable, longest_s=LONGEST_S)
        self.metering = Metering(self.writer, self.rates, terms)

    # What requests do

    async def ask(self, key: str, text: str, *, once: bytes | None, retried: bool) -> None:
        """Begin a request; it is read when `go` is set."""
        inquiry = Inquiry(text, {"q": Noul("?")})
        plan = self.plans[key in TWICE]
        body = b'{"state": "%s", "questions": {"q": {"type": "noul"}}}' % text.encode()
        number = f"r{len(self.answered)}-{self.now_s}-{len(self.flying)}-{sum(self.read.values())}"
        order = Order(self.callers[key], number, None, plan, inquiry, body, once, retried)
        asking = Asking(key, order, token_bound(inquiry), self.now_s)
        asking.task = asyncio.create_task(self._served(asking))
        self.flying.append(asking)
        await self.pause()

    async def _served(self, asking: Asking) -> Served:
        def leashed() -> AbstractContextManager[None]:
            return nullcontext()

        async def reading(spending: Spending, most: int | None) -> Decision:
            return await self._read(asking, spending, most)

        served = await self.metering.serve(asking.order, leashed, reading)
        if not served.replayed:
            number, tokens = asking.order.request_id, served.decision.tokens
            self.answered[number] = asking.key, tokens
            if self.durable:
                found = self.rows("SELECT tokens, status FROM charges WHERE request_id = ?", number)
                assert found == [(tokens, 200)], "told before the commit"
        return served

    async def _read(self, asking: Asking, spending: Spending, most: int | None) -> Decision:
        routes = {}
        tally = spending.begin("small")
        tally.tokens = 1  # a piece whose reading has begun
        self.read[asking.key] += 1
        share, answered = await asking.go
        tokens = max(1, round(asking.bound * share))
        self.read[asking.key] += tokens - 1
        tally.tokens, tally.spent_s = tokens, share
        if not answered:
            raise Broken("broken")
        spending.end(tokens)
        if len(asking.order.plan.readers) > 1 and most != 0 and share > 0.5:
            spending.rise({"low_confidence": 1})
            tally = spending.begin("large")
            self.read[asking.key] += tokens
            tally.tokens, tally.spent_s = tokens, share
            await asyncio.sleep(0)
            spending.end(tokens)
            routes = {"q": Route(2, "large", "low_confidence", "")}
        return Decision("m", {"q": NoulAnswer(0.5)}, tuple(spending.steps), {}, routes)

    async def pause(self) -> None:
        """Let everything happen that can."""
        for _ in range(6):
            await asyncio.sleep(0)
        while self.store.gate.is_set() and (
            self.writer._busy or self.writer._soon or self.writer._moment is not None
        ):
            await asyncio.sleep(0.0001)
        for _ in range(6):
            await asyncio.sleep(0)

    def landed(self) -> list[Asking]:
        """Those that have ended, and are forgotten."""
        done = [one for one in self.flying if one.task is not None and one.task.done()]
        self.flying = [one for one in self.flying if one not in done]
        return done

    async def written(self) -> None:
        """Returns when everything that was handed over is in the file."""
        await self.writer.submit(lambda _: None)
        await self.pause()

    def rows(self, sql: str, *values: Any) -> list[Any]:
        with closing(sqlite3.connect(self.path)) as connection:
            return connection.execute(sql, values).fetchall()

    async def end(self) -> None:
        """End what is in flight, and write it."""
        self.store.gate.set()
        for one in self.flying:
            if not one.go.done():
                one.go.set_result((0.3, True))
        while self.flying:
            await self.pause()
            self.landed_quietly()
        await self.written()

    def landed_quietly(self) -> None:
        """Forget those that have ended, and look at what they came to."""
        for one in self.landed():
            if one.task is not None and not one.task.cancelled():
                one.task.exception()
