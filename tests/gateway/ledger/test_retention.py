"""Pruning: whatever is summed over charges and roll-ups stays the same, step by step."""

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.ledger.reports import DAY_S, By, UsageQuery
from gateway.ledger.retention import STEP_ROWS, keep_pruned, prune_step
from gateway.ledger.sqlite import SqliteStore, connect
from gateway.ledger.sqlite_reports import usage
from gateway.ledger.store import Charge, Key, Secret, Store, StoreError
from tests.gateway.ledger.charges import CHARGES, DAY, NAMES, charge_of, summed

T = TypeVar("T")

BREAKDOWNS: tuple[tuple[By, ...], ...] = (
    (),
    ("key",),
    ("day", "model"),
    ("engine",),
    ("reason",),
    ("key", "reason"),
    ("day", "key", "model", "engine"),
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(str(tmp_path / "ledger.sqlite"))
    for number, (key_id, name) in enumerate(NAMES.items()):
        secret = Secret(f"p{number}", key_id, bytes([number]) * 32, 0.0)
        opened.add_key(Key(key_id, name, created_s=0.0), secret)
    yield opened
    opened.close()


def read(store: SqliteStore) -> sqlite3.Connection:
    return store._connection


def count(store: SqliteStore, table: str) -> int:
    found: int = read(store).execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]
    return found


def empty(store: SqliteStore) -> None:
    for table in ("charges", "usage_daily", "steps_daily", "reasons_daily"):
        read(store).execute(f"DELETE FROM {table}")


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    charges=st.lists(CHARGES, max_size=25),
    prunings=st.lists(
        st.tuples(st.floats(DAY * DAY_S, (DAY + 6) * DAY_S), st.integers(1, 7)), max_size=6
    ),
    late=st.lists(CHARGES, max_size=5),
    since=st.integers(DAY - 1, DAY + 5),
    length=st.integers(0, 6),
    key_id=st.sampled_from([None, "k_1", "config/ops"]),
)
def test_sums_are_the_same_however_much_is_pruned(
    *,
    store: SqliteStore,
    charges: list[Charge],
    prunings: list[tuple[float, int]],
    late: list[Charge],
    since: int,
    length: int,
    key_id: str | None,
) -> None:
    empty(store)
    for charge in charges:
        store.charge(charge, DAY * DAY_S)

    for before_s, at_most in prunings:
        store.prune(before_s, at_most)
        for charge in late:  # a clock that went back, or work that took long
            store.charge(charge, DAY * DAY_S)
        charges = [*charges, *late]

        for by in BREAKDOWNS:
            query = UsageQuery(since, since + length, by, key_id)
            assert usage(read(store), query) == summed(charges, by, since, since + length, key_id)


def test_a_step_takes_the_oldest_and_no_more_than_it_may(store: SqliteStore) -> None:
    for second in (3, 1, 2, 5, 4):
        store.charge(charge_of(at_s=DAY * DAY_S + second, request_id=str(second)), DAY * DAY_S)

    assert store.prune(DAY * DAY_S + 4.5, 2) == 2
    kept = [row[0] for row in read(store).execute("SELECT request_id FROM charges ORDER BY 1")]
    assert kept == ["3", "4", "5"]
    assert store.prune(DAY * DAY_S + 4.5, 200) == 2
    assert store.prune(DAY * DAY_S + 4.5, 200) == 0
    assert count(store, "charges") == 1


def test_a_step_that_fails_changes_nothing(store: SqliteStore) -> None:
    store.charge(charge_of(), DAY * DAY_S)
    read(store).execute(
        "CREATE TEMP TRIGGER stop BEFORE DELETE ON charges BEGIN SELECT RAISE(ABORT, 'no'); END"
    )

    with pytest.raises(sqlite3.IntegrityError):
        prune_step(read(store), (DAY + 1) * DAY_S, 10)

    assert not read(store).in_transaction
    assert (count(store, "charges"), count(store, "usage_daily")) == (1, 0)


def test_a_charge_cannot_be_changed(store: SqliteStore) -> None:
    store.charge(charge_of(), DAY * DAY_S)

    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        read(store).execute("UPDATE charges SET tokens = 0")


def test_pruning_does_not_touch_what_a_budget_has_spent(store: SqliteStore) -> None:
    store.charge(charge_of(), DAY * DAY_S)
    before = read(store).execute("SELECT * FROM balances").fetchall()

    store.prune((DAY + 1) * DAY_S, 10)

    assert read(store).execute("SELECT * FROM balances").fetchall() == before != []


def test_a_report_beside_a_pruning_never_sees_half_of_it(
    store: SqliteStore, tmp_path: Path
) -> None:
    for second in range(STEP_ROWS):
        store.charge(charge_of(at_s=DAY * DAY_S + second), DAY * DAY_S)
    reader = connect(str(tmp_path / "ledger.sqlite"))
    query = UsageQuery(DAY, DAY + 1)

    with store.transaction():
        store.prune((DAY + 1) * DAY_S, 100)
        (during,) = usage(reader, query)
    (after,) = usage(reader, query)

    assert during == after
    assert during.requests == STEP_ROWS
    reader.close()


class Inline:
    """A writer that does the work at once, and fails when told to."""

    def __init__(self, store: Store, outcomes: Sequence[str], done: asyncio.Event) -> None:
        self.store = store
        self.left = list(outcomes)
        self.done = done

    async def submit(self, work: Callable[[Store], T]) -> T:
        if not self.left:
            self.done.set()
        elif self.left.pop(0) == "fail":
            raise StoreError("the disk is full")
        return work(self.store)


async def test_old_charges_are_pruned_in_the_background_and_after_a_failure(
    store: SqliteStore,
) -> None:
    now_s = time.time()
    for number in range(STEP_ROWS + 1):
        store.charge(charge_of(at_s=now_s - 100 - number), 0)
    store.charge(charge_of(at_s=now_s), 0)
    done = asyncio.Event()
    writer = Inline(store, ["fail", "step", "step"], done)

    pruning = asyncio.create_task(keep_pruned(writer, 50.0, every_s=0.0, breath_s=0.0))
    await asyncio.wait_for(done.wait(), 20)
    pruning.cancel()

    assert count(store, "charges") == 1
    (total,) = usage(read(store), UsageQuery(0, 10**6))
    assert total.requests == STEP_ROWS + 2
