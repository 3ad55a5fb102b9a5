"""The accounts of gateways for tests: orders whose reading ends when and as a test says."""

import asyncio
import sqlite3
from collections import Counter
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field
from typing import Any

from engines.contract import Broken, Inquiry, Noul
from gateway.auth import Caller
from gateway.bound import token_bound
from gateway.charging import Order, Terms, bound_of
from gateway.decision import Decision, Route, Spending
from gateway.ledger.calendar import Calendar
from gateway.metering import Metering, Served
from gateway.plan import Plan, Tier
from policies.answers import NoulAnswer
from policies.limits import Amounts, Limits
from policies.pricing import PriceList, Tariff
from tests.gateway.desks import Desk, Gated, Silent

LONGEST_S = 8.0
LIMITS = {
    "free": Limits(),
    "paced": Limits(tpm=50_000_000),
    "small": Limits(tokens_per_day=9_000),
    "monthly": Limits(tokens_per_month=4_000),
    "big": Limits(tokens_per_day=200_000, tokens_per_month=250_000),
    "money": Limits(nanos_per_day=20_000_000_000),
    "all": Limits(
        tpm=50_000_000,
        tokens_per_day=400_000,
        escalations_per_day=9,
        nanos_per_day=20_000_000_000,
        nanos_per_month=30_000_000_000,
    ),
}
TWICE = frozenset({"big", "all", "free"})
"""Keys that ask for the model with two engines."""


@dataclass
class Asking:
    """A request on its way."""

    key: str
    desk: Desk
    order: Order
    bound: int
    """Tokens that one engine reads at most."""
    granted: Amounts
    """What it may take of budgets at most."""
    rough: int
    """Tokens that may be held for it at most."""
    now_s: float
    go: asyncio.Future[tuple[float, bool]] = field(default_factory=asyncio.Future)
    """How much of its bound is read, and whether there is an answer."""
    task: "asyncio.Task[Served] | None" = None
    begun: bool = False
    """Whether an engine has begun to read it."""
    versions: set[str] = field(default_factory=set)
    """Of the prices that it may be charged by."""


class Accounts:
    """Metering on a real ledger, by a clock that a test moves."""

    def __init__(
        self,
        path: str,
        *,
        durable: bool,
        desks: int = 1,
        text_bytes: int = 0,
        now_s: float = 1_796_000_000.0,
    ) -> None:
        self.path = path
        self.durable = durable
        self.text_bytes = text_bytes
        self.now_s = now_s
        self.read: Counter[str] = Counter()
        """Key → tokens that were read for it."""
        self.answered: dict[str, tuple[str, int]] = {}
        """Request → key and tokens, of answers that were not replayed."""
        self.flying: list[Asking] = []
        self.sent: dict[str, Asking] = {}
        """Every request."""
        self.asked = 0
        one, two = Tier(Silent("small")), Tier(Silent("large"))
        self.plans = (Plan("one", (one,)), Plan("two", (one, two)))
        self.limits = dict(LIMITS)
        self.callers = {key: self.caller(key) for key in LIMITS}
        self.million_tokens = 50_000_000_000
        self.desks = [self.opened() for _ in range(desks)]

    @property
    def metering(self) -> Metering:
        """Of the first desk."""
        return self.desks[0].metering

    @property
    def store(self) -> Gated:
        """Of the first desk."""
        return self.desks[0].store

    def caller(self, key: str) -> Caller:
        """As after any key was changed: the same limits, but not the same object."""
        limits = Limits(**{name: getattr(self.limits[key], name) for name in Limits.__slots__})
        return Caller(key, key, limits=limits, budgeted=limits.has_budgets)

    def prices(self) -> PriceList:
        tariff = Tariff(0, self.million_tokens, 10**9)
        return PriceList("USD", {"small": (tariff,), "large": (tariff,)})

    def terms(self) -> Terms:
        prices = self.prices()
        return Terms(
            Calendar(),
            prices,
            prices.version,
            self.durable,
            longest_s=LONGEST_S,
            text_bytes=self.text_bytes,
        )

    def reprice(self, factor: float) -> None:
        """Prices are read again; whatever has begun keeps its own."""
        self.million_tokens = round(self.million_tokens * factor)
        prices = self.prices()
        for desk in self.desks:
            desk.metering.reprice(prices)
        for one in self.flying:
            if not one.begun:
                one.versions.add(prices.version)

    def opened(self) -> Desk:
        return Desk(self.path, self.terms())

    # What requests do

    async def ask(
        self, key: str, text: str, *, once: bytes | None = None, retried: bool = False, at: int = 0
    ) -> Asking:
        """Begin a request at a desk; it is read when `go` is set."""
        inquiry = Inquiry(text, {"q": Noul("?")})
        plan = self.plans[key in TWICE]
        body = b'{"state": "%s", "questions": {"q": {"type": "noul"}}}' % text.encode()
        self.asked += 1
        order = Order(self.callers[key], f"r{self.asked}", None, plan, inquiry, body, once, retried)
        desk = self.desks[at % len(self.desks)]
        rough = plan.rough
        assert rough is not None
        asking = Asking(
            key,
            desk,
            order,
            token_bound(inquiry),
            bound_of(order, plan.readers, self.terms(), self.now_s),
            rough.each + rough.byte * len(body),
            self.now_s,
        )
        asking.versions.add(self.prices().version)
        self.sent[order.request_id] = asking
        asking.task = asyncio.create_task(self._served(asking))
        self.flying.append(asking)
        await self.pause()
        return asking

    async def _served(self, asking: Asking) -> Served:
        def leashed() -> AbstractContextManager[None]:
            return nullcontext()

        async def reading(spending: Spending, most: int | None) -> Decision:
            return await self._read(asking, spending, most)

        served = await asking.desk.metering.serve(asking.order, leashed, reading)
        if not served.replayed:
            number, tokens = asking.order.request_id, served.decision.tokens
            self.answered[number] = asking.key, tokens
            if self.durable:
                found = self.rows("SELECT tokens, status FROM charges WHERE request_id = ?", number)
                assert found == [(tokens, 200)], "told before the commit"
        return served

    async def _read(self, asking: Asking, spending: Spending, most: int | None) -> Decision:
        routes = {}
        asking.begun = True
        tally = spending.begin("small")
        tally.tokens = 1  # a piece whose reading has begun
        self._count(asking, 1)
        share, answered = await asking.go
        tokens = max(1, round(asking.bound * share))
        self._count(asking, tokens - 1)
        tally.tokens, tally.spent_s = tokens, share
        if not answered:
            raise Broken("broken")
        spending.end(tokens)
        if len(asking.order.plan.readers) > 1 and most != 0 and share > 0.5:
            spending.rise({"low_confidence": 1})
            tally = spending.begin("large")
            self._count(asking, tokens)
            tally.tokens, tally.spent_s = tokens, share
            await asyncio.sleep(0)
            spending.end(tokens)
            routes = {"q": Route(2, "large", "low_confidence", "")}
        return Decision("m", {"q": NoulAnswer(0.5)}, tuple(spending.steps), {}, routes)

    def _count(self, asking: Asking, tokens: int) -> None:
        self.read[asking.key] += tokens
        asking.desk.paced[asking.key] += tokens

    async def pause(self) -> None:
        """Let everything happen that can."""
        for _ in range(6):
            await asyncio.sleep(0)
        while any(desk.writes for desk in self.desks):
            await asyncio.sleep(0.0001)
        for _ in range(6):
            await asyncio.sleep(0)

    def landed(self) -> list[Asking]:
        """Those that have ended, and are forgotten."""
        done = [one for one in self.flying if one.task is not None and one.task.done()]
        self.flying = [one for one in self.flying if one not in done]
        return done

    async def written(self, at: int | None = None) -> None:
        """Returns when everything that was handed over is in the file; all desks for `None`."""
        for desk in self.desks if at is None else [self.desks[at]]:
            await desk.writer.submit(lambda _: None)
        await self.pause()

    async def restart(self, at: int) -> None:
        """Stop a desk as on SIGTERM, when there was no time to wait for those in flight."""
        at %= len(self.desks)
        desk = self.desks[at]
        for one in self.flying:
            if one.desk is desk and one.task is not None:
                one.task.cancel()
        await self.pause()
        desk.close()
        self.desks[at] = self.opened()

    def rows(self, sql: str, *values: Any) -> list[Any]:
        with closing(sqlite3.connect(self.path)) as connection:
            return connection.execute(sql, values).fetchall()

    async def end(self) -> None:
        """End what is in flight, and write it."""
        for desk in self.desks:
            desk.mend()
        while self.flying:
            for one in self.flying:
                if not one.go.done():
                    one.go.set_result((0.3, True))
            await self.pause()
            for one in self.landed():
                if one.task is not None and not one.task.cancelled():
                    one.task.exception()
        await self.written()

    def close(self) -> None:
        """Close every desk."""
        for desk in self.desks:
            desk.close()
