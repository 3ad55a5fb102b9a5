"""The thread that writes: groups, failures, what is kept for later, and closing."""

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from gateway.ledger.calendar import Calendar
from gateway.ledger.sqlite import SqliteStore
from gateway.ledger.store import Charge, ChargedStep, Store, StoreError, Unfit
from gateway.ledger.writer import Writer

NOW_S = 1_796_000_000.0
DAY_S = Calendar().windows(NOW_S).day_s


class Flaky(SqliteStore):
    """A store that cannot be written while `broken` is set, and counts its transactions."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.broken = False
        self.transactions = 0
        self.gate = threading.Event()
        self.gate.set()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self.gate.wait()
        self.transactions += 1
        if self.broken:
            raise StoreError("disk full")
        with super().transaction():
            yield


def charge(tokens: int) -> Charge:
    steps = (ChargedStep("engine", tokens, 10),)
    return Charge(NOW_S, "k", "req", None, "model", steps, 1, 0, 0, 200)


def put(tokens: int) -> "Charging":
    return Charging(tokens)


class Charging:
    """Work that charges so many tokens and returns them."""

    def __init__(self, tokens: int) -> None:
        self._tokens = tokens

    def __call__(self, store: Store) -> int:
        store.charge(charge(self._tokens), DAY_S)
        return self._tokens


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "ledger.db")


@pytest.fixture
def store(path: str) -> Flaky:
    return Flaky(path)


@pytest.fixture
def writer(store: Flaky) -> Iterator[Writer]:
    opened = Writer(lambda: store, interval_s=0.02)
    yield opened
    opened.close()


def tokens(path: str) -> list[int]:
    with closing(sqlite3.connect(path)) as connection:
        return [row[0] for row in connection.execute("SELECT tokens FROM charges ORDER BY 1")]


async def test_submitted_work_is_committed_before_it_returns(writer: Writer, path: str) -> None:
    assert await writer.submit(put(3)) == 3
    assert tokens(path) == [3]


async def test_what_queues_up_meanwhile_is_one_group(
    writer: Writer, store: Flaky, path: str
) -> None:
    store.gate.clear()
    first = asyncio.create_task(writer.submit(put(1)))
    await asyncio.sleep(0.02)
    others = [asyncio.create_task(writer.submit(put(n))) for n in range(2, 30)]
    await asyncio.sleep(0.02)
    store.gate.set()
    await asyncio.gather(first, *others)

    assert store.transactions == 2
    assert tokens(path) == list(range(1, 30))


async def test_posted_work_is_committed_within_the_interval(writer: Writer, path: str) -> None:
    writer.post(put(1))
    writer.post(put(2))

    assert tokens(path) == []
    async with asyncio.timeout(5):
        while tokens(path) != [1, 2]:
            await asyncio.sleep(0.01)


async def test_posted_and_submitted_work_keep_their_order(writer: Writer, store: Flaky) -> None:
    order: list[int] = []
    writer.post(lambda _: order.append(1))
    await writer.submit(lambda _: order.append(2))

    assert order == [1, 2]
    assert store.transactions == 1


async def test_work_that_raises_does_not_take_its_group_along(writer: Writer, path: str) -> None:
    done = await asyncio.gather(
        writer.submit(put(1)),
        writer.submit(put(-1)),
        writer.submit(put(2)),
        return_exceptions=True,
    )

    assert [type(one) for one in done] == [int, Unfit, int]
    assert tokens(path) == [1, 2]


async def test_an_unwritable_store_is_told_and_posted_work_waits_for_better_times(
    writer: Writer, store: Flaky, path: str
) -> None:
    store.broken = True
    writer.post(put(1))
    with pytest.raises(StoreError):
        await writer.submit(put(2))
    failed = writer.failing
    store.broken = False
    async with asyncio.timeout(5):
        while writer.failing:
            await asyncio.sleep(0.01)

    assert failed
    assert tokens(path) == [1]


async def test_closing_writes_what_was_posted(store: Flaky, path: str) -> None:
    writer = Writer(lambda: store, interval_s=60.0)
    for n in range(5):
        writer.post(put(n))
    writer.close()

    assert tokens(path) == [0, 1, 2, 3, 4]
    with pytest.raises(StoreError):
        await writer.submit(put(9))


async def test_who_stops_waiting_does_not_stop_the_work(
    writer: Writer, store: Flaky, path: str
) -> None:
    store.gate.clear()
    waiting = asyncio.create_task(writer.submit(put(7)))
    await asyncio.sleep(0.02)
    waiting.cancel()
    store.gate.set()
    await writer.submit(put(8))

    assert tokens(path) == [7, 8]
