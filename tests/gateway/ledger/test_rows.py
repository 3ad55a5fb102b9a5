"""Charges that are written together: what does not fit, what fails in the middle, what is owed."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.ledger.budget import Admission as Asked
from gateway.ledger.budget import Idempotency, Settlement, Settling, admit
from gateway.ledger.calendar import Calendar
from gateway.ledger.rows import Rows
from gateway.ledger.sqlite import SqliteStore
from gateway.ledger.store import Charge, ChargedStep, KeptText, StoreError, Unfit
from gateway.ledger.writer import Writer
from policies.limits import Amounts

NOW_S = 1_796_000_000.0
DAY_S = Calendar().windows(NOW_S).day_s


class Failing(SqliteStore):
    """A store of which these transactions fail, counted from 1."""

    def __init__(self, path: str, failing: Sequence[int]) -> None:
        super().__init__(path)
        self.failing = failing
        self.transactions = 0

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self.transactions += 1
        if self.transactions in self.failing:
            raise StoreError("busy")
        with super().transaction():
            yield


def charge(tokens: int) -> Charge:
    steps = (ChargedStep("engine", tokens, 0),)
    return Charge(NOW_S, "k", "r", None, "m", steps, 1, 0, 0, 200, cached=True)


def rows(*tokens: int) -> Rows:
    return Rows([([charge(one).row for one in tokens], DAY_S)])


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "ledger.db")


def found(path: str, sql: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def closed_after(path: str, failing: Sequence[int], *work: Any) -> None:
    """Post all of it as one group, and write it before the end."""
    writer = Writer(lambda: Failing(path, failing), interval_s=60.0)
    for one in work:
        writer.put(one, None)
    writer.close()


@pytest.mark.parametrize("failing", [[], [1], [2], [3], [4], [5], [3, 5], [1, 3]])
def test_a_failure_in_the_middle_writes_nothing_twice(path: str, failing: list[int]) -> None:
    closed_after(path, failing, rows(1, -1, 2, 4))

    kept = [tokens for (tokens,) in found(path, "SELECT tokens FROM charges ORDER BY 1")]
    assert len(kept) == len(set(kept))
    assert found(path, "SELECT COALESCE(SUM(tokens), 0) FROM balances") == [(sum(kept),)]
    if len(failing) < 2:  # on the way out it is tried once more
        assert kept == [1, 2, 4]


def test_after_a_failure_nothing_overtakes_a_charge(path: str) -> None:
    with closing(SqliteStore(path)) as store:
        store.lease(7, "k", Amounts(9), NOW_S + 60)
    release = Settling(Settlement(None, lease_id=7))

    closed_after(path, [3, 4], rows(-1), rows(9), release)  # 2, 3: each alone; 4: the last try

    assert found(path, "SELECT tokens FROM charges") == []
    assert found(path, "SELECT tokens FROM leases") == [(9,)], "neither charged nor held"


async def test_what_is_owed_is_written_later_for_those_who_were_refused(path: str) -> None:
    writer = Writer(lambda: Failing(path, [1]), interval_s=60.0)
    with pytest.raises(StoreError):
        await writer.submit(rows(3, 4))
    await writer.submit(lambda _: None)
    writer.close()

    assert found(path, "SELECT status, cached, tokens FROM charges") == [(503, 0, 3), (503, 0, 4)]
    assert found(path, "SELECT sum(tokens) FROM balances") == [(7,)]


async def test_an_answer_that_nobody_got_is_not_replayed(path: str) -> None:
    asked = Asked(1, "k", NOW_S, 60.0, None, Idempotency(bytes(32), bytes(32)))
    writer = Writer(lambda: Failing(path, [2]), interval_s=60.0)
    await writer.submit(lambda store: admit(store, asked))
    with pytest.raises(StoreError):
        await writer.submit(Settling(Settlement(asked, charge(5).row, DAY_S, b"answer")))
    await writer.submit(lambda _: None)
    writer.close()

    assert found(path, "SELECT * FROM replays") == []
    assert found(path, "SELECT status, cached, tokens FROM charges") == [(503, 0, 5)]


async def test_an_answer_that_nobody_got_is_not_kept_as_text(path: str) -> None:
    writer = Writer(lambda: Failing(path, [1]), interval_s=60.0)
    text = KeptText("asked", "answered", cut=False)
    with pytest.raises(StoreError):
        await writer.submit(Settling(Settlement(None, charge(5).row, DAY_S, text=text)))
    await writer.submit(lambda _: None)
    writer.close()

    assert found(path, "SELECT status, asked, answered FROM kept_texts") == [(503, "asked", None)]


async def test_a_row_that_does_not_fit_is_told_to_whoever_waits_for_it_alone(path: str) -> None:
    writer = Writer(lambda: Failing(path, []), interval_s=60.0)
    with pytest.raises(Unfit):
        await writer.submit(rows(-1))
    writer.close()


def test_refused_rows_are_those_of_refused_charges() -> None:
    refused = charge(5)._replace(status=503, cached=False)
    written: list[Any] = []

    class Listening:
        def charge_rows(self, rows: Sequence[Any], day_s: int) -> None:
            written.append((list(rows), day_s))

    rows(5).refused()(Listening())  # type: ignore[arg-type]

    assert written == [([refused.row], DAY_S)]
