"""Answers on the tab: many are written together, and nobody is told before his own is."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engines.contract import Inquiry, Noul
from gateway.advance import Work
from gateway.auth import Caller
from gateway.charging import Order, Terms
from gateway.decision import Decision, Step
from gateway.ledger.blocks import Block, Blocks
from gateway.ledger.budget import Admission, Claim, Held, admit
from gateway.ledger.calendar import Calendar
from gateway.ledger.sqlite import SqliteStore
from gateway.ledger.store import StoreError
from gateway.ledger.writer import Writer
from gateway.plan import Plan, Tier
from gateway.rates import Rates
from gateway.tab import Tab
from policies.limits import Amounts, Limits
from policies.pricing import PriceList
from tests.gateway.conftest import Gateway, bearer, charged, ledger_settings
from tests.gateway.test_metering import PATH, words

NOW_S = 1_796_000_000.0
LIMITS = Limits(tpm=1000, tokens_per_day=10**9)
TERMS = Terms(Calendar(), PriceList("USD", {}), "none")
CALLER = Caller("k", "k", limits=LIMITS, budgeted=True)


class Silent:
    """A reader that is never asked."""

    name = "e"

    async def read(self, *_: Any, **__: Any) -> Any:
        raise AssertionError


class Shop:
    """A tab with everything around it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.broken = False
        self.writer = Writer(self._store, interval_s=0.02)
        self.rates = Rates()
        self.blocks = Blocks(self.writer, 8.0)
        self.tab = Tab(self.writer, self.rates, self.blocks, TERMS.calendar)
        self.plan = Plan("m", (Tier(Silent()),))

    def _store(self) -> SqliteStore:
        shop = self

        class Breaking(SqliteStore):
            def _before_commit(self) -> None:
                if shop.broken:
                    raise StoreError("no")
                super()._before_commit()

        return Breaking(self.path)

    def order(self, number: int = 0) -> Order:
        return Order(CALLER, f"r{number}", None, self.plan, Inquiry("s", {"q": Noul("?")}), b"")

    async def block(self, tokens: int) -> Block:
        """Room for so many tokens, the first of them taken."""
        claim = Claim(LIMITS, Amounts(1), Calendar().windows(NOW_S))
        asked = Admission(7, "k", NOW_S, 60.0, claim)
        held = await self.writer.submit(lambda store: admit(store, asked))
        assert isinstance(held, Held)
        return self.blocks.add(asked, replace(held, amounts=Amounts(tokens)))

    def rows(self, sql: str) -> list[Any]:
        with closing(sqlite3.connect(self.path)) as connection:
            return connection.execute(sql).fetchall()


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    opened = Shop(str(tmp_path / "ledger.db"))
    yield opened
    opened.broken = False
    opened.writer.close()


def decided(tokens: int) -> Decision:
    return Decision("m", {}, (Step("e", tokens, 0.001),))


async def test_everyone_is_told_after_the_commit_of_his_own(shop: Shop) -> None:
    await asyncio.gather(
        *[shop.tab.added(shop.order(n), Work(NOW_S, TERMS), decided(n)) for n in range(200)]
    )

    assert shop.rows("SELECT count(*), sum(tokens) FROM charges") == [(200, sum(range(200)))]
    assert shop.rows("SELECT tokens FROM balances") == [(sum(range(200)),)]


async def test_whoever_leaves_while_waiting_takes_nobody_along(shop: Shop) -> None:
    leaving, staying = (
        asyncio.create_task(shop.tab.added(shop.order(n), Work(NOW_S, TERMS), decided(1)))
        for n in (1, 2)
    )
    await asyncio.sleep(0)
    leaving.cancel()

    await staying
    assert leaving.cancelled()
    assert shop.rows("SELECT count(*) FROM charges") == [(2,)]


async def test_what_cannot_be_written_is_told_to_all_who_wait_and_written_later_as_refused(
    shop: Shop,
) -> None:
    shop.broken = True
    found = await asyncio.gather(
        *[shop.tab.added(shop.order(), Work(NOW_S, TERMS), decided(1)) for _ in range(70)],
        return_exceptions=True,
    )
    shop.broken = False
    await shop.writer.submit(lambda _: None)

    assert {type(one) for one in found} == {StoreError}
    kept = shop.rows("SELECT status, cached, count(*), sum(tokens) FROM charges GROUP BY 1, 2")
    assert kept == [(503, 0, 70, 70)]
    assert shop.rows("SELECT tokens FROM balances") == [(70,)]


async def test_whoever_leaves_while_the_ledger_fails_has_paid_all_the_same(shop: Shop) -> None:
    shop.broken = True
    leaving = asyncio.create_task(shop.tab.added(shop.order(), Work(NOW_S, TERMS), decided(4)))
    await asyncio.sleep(0)
    leaving.cancel()
    with pytest.raises(StoreError):
        await shop.writer.submit(lambda _: None)
    shop.broken = False
    await shop.writer.submit(lambda _: None)

    assert shop.rows("SELECT tokens FROM charges") == [(4,)]


async def test_what_nobody_waits_for_is_tried_again(shop: Shop) -> None:
    shop.broken = True
    shop.tab.add(shop.order(), Work(NOW_S, TERMS), decided(3))
    with pytest.raises(StoreError):
        await shop.writer.submit(lambda _: None)
    shop.broken = False

    async with asyncio.timeout(30):
        while shop.rows("SELECT tokens FROM charges") != [(3,)]:
            await asyncio.sleep(0.01)


async def test_every_day_gets_its_own(shop: Shop) -> None:
    midnight_s = Calendar().windows(NOW_S).day_end_s
    times_s = [midnight_s - 1, midnight_s, midnight_s - 0.5, midnight_s + 1]
    await asyncio.gather(
        *[
            shop.tab.added(shop.order(), Work(at_s, TERMS), decided(10**n))
            for n, at_s in enumerate(times_s)
        ]
    )

    days = shop.rows("SELECT day_s, tokens FROM balances ORDER BY 1")
    assert days == [(midnight_s - 86_400, 101), (midnight_s, 1010)]


async def test_a_moment_that_its_day_does_not_hold_is_written_all_the_same(shop: Shop) -> None:
    shop.tab.calendar = Calendar("America/St_Johns")
    again_s = 1_289_097_120.0  # 2010-11-06 23:02 for the second time, after the first midnight
    assert shop.tab.calendar.windows(again_s).day_end_s < again_s

    await asyncio.gather(
        *[shop.tab.added(shop.order(), Work(again_s, TERMS), decided(n)) for n in (1, 2)]
    )

    assert shop.rows("SELECT tokens FROM balances") == [(3,)]


async def test_what_was_held_for_one_that_does_not_fit_comes_back(shop: Shop) -> None:
    block = await shop.block(1000)
    work = Work(NOW_S, TERMS)
    work.block, work.taken = shop.blocks.take("k", LIMITS, Amounts(600), NOW_S), Amounts(600)

    await shop.tab.added(shop.order(), work, Decision("m", {}, (Step("e", 1, float("nan")),)))

    assert block.in_flight() == Amounts(1)


async def test_one_that_does_not_fit_is_lost_alone(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = [decided(-1), Decision("m", {}, (Step("e", 1, float("nan")),))]
    await asyncio.gather(
        *[
            shop.tab.added(shop.order(), Work(NOW_S, TERMS), decision)
            for decision in (decided(1), *wrong, decided(2))
        ]
    )

    assert shop.rows("SELECT tokens FROM charges ORDER BY 1") == [(1,), (2,)]
    assert shop.rows("SELECT tokens FROM balances") == [(3,)]
    assert caplog.text.count("lost") == 2


async def test_what_was_not_used_comes_back(shop: Shop) -> None:
    block = await shop.block(1000)
    taken = shop.blocks.take("k", LIMITS, Amounts(600), NOW_S)
    shop.rates.take_tokens(CALLER, 900, 0.0)
    work = Work(NOW_S, TERMS)
    work.block, work.taken, work.paced = taken, Amounts(600), 900

    shop.tab.add(shop.order(), work, decided(100))
    assert block.tokens == 399
    shop.tab.settle()

    assert block.tokens == 899
    assert block.in_flight() == Amounts(1)
    shop.rates.take_tokens(CALLER, 890, 0.0)  # of 1000 a minute


async def test_a_retired_block_holds_what_is_still_in_flight(shop: Shop) -> None:
    block = await shop.block(1000)
    work = Work(NOW_S, TERMS)
    work.block, work.taken = shop.blocks.take("k", LIMITS, Amounts(600), NOW_S), Amounts(600)
    shop.blocks.retire("k")
    await shop.tab.added(shop.order(), work, decided(100))

    assert shop.rows("SELECT tokens FROM leases") == [(1,)]
    work.block, work.taken = block, Amounts(1)
    await shop.tab.added(shop.order(), work, decided(1))
    assert shop.rows("SELECT tokens FROM leases") == []


@pytest.mark.parametrize("durability", ["group", "async"])
async def test_nothing_is_refused_while_something_is_about_to_come_back(
    gateway: Gateway, tmp_path: Path, durability: str
) -> None:
    settings = ledger_settings(tmp_path, durability=durability)
    key = bearer(settings, tokens_per_day=100_000)
    used, status = 0, 200
    with gateway(settings) as client:
        while status == 200:
            answer = await client.post(PATH, json=words(300), headers=key)
            status = answer.status_code
            used += 300 if status == 200 else 0

    assert status == 429
    assert 100_000 - 800 < used <= 100_000  # a request of 300 tokens holds some 650
    assert sum(charge["tokens"] for charge in charged(settings)) == used


def test_a_tab_settles_before_its_writer_ends(tmp_path: Path) -> None:
    shop = Shop(str(tmp_path / "ledger.db"))

    async def leave() -> None:
        shop.tab.add(shop.order(), Work(NOW_S, TERMS), decided(5))

    asyncio.run(leave())
    shop.writer.close()

    assert shop.rows("SELECT tokens FROM charges") == [(5,)]


def test_a_writer_ends_without_a_loop_where_somebody_left_who_waited(tmp_path: Path) -> None:
    shop = Shop(str(tmp_path / "ledger.db"))

    async def leave() -> None:
        shop.tab.coming = 2
        asyncio.create_task(shop.tab.added(shop.order(), Work(NOW_S, TERMS), decided(5)))  # noqa: RUF006
        await asyncio.sleep(0)

    asyncio.run(leave())
    shop.writer.close()

    assert shop.rows("SELECT tokens FROM charges") == [(5,)]
