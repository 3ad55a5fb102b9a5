"""The SQLite store: versions, transactions, and many who write at once."""

import math
import multiprocessing
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gateway.keys import mint
from gateway.ledger.budget import Admission, Claim, Held, Settlement, admit, settle
from gateway.ledger.calendar import Calendar
from gateway.ledger.sqlite import SqliteStore
from gateway.ledger.sqlite_alarms import reading
from gateway.ledger.store import (
    Charge,
    ChargedStep,
    Key,
    NameTaken,
    NoSuchKey,
    StoreError,
    Unfit,
)
from policies.limits import NOTHING, Amounts, Limits

NOW_S = 1_796_000_000.0
WINDOWS = Calendar().windows(NOW_S)
THOUSAND = Limits(tokens_per_day=1000)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "ledger.db")


@pytest.fixture
def store(path: str) -> Iterator[SqliteStore]:
    with closing(SqliteStore(path)) as opened:
        yield opened


def charge(tokens: int, *, at_s: float = NOW_S, status: int = 200) -> Charge:
    steps = (ChargedStep("engine", tokens, 10),)
    return Charge(at_s, "k", "req", None, "model", steps, 1, 0, 0, status)


def call(store: SqliteStore, number: int, tokens: int, limits: Limits = THOUSAND) -> bool:
    """Hold, work, settle; whether there was room."""
    asked = Admission(number, "k", NOW_S, 60.0, Claim(limits, Amounts(tokens), WINDOWS))
    with store.transaction():
        found = admit(store, asked)
    if not isinstance(found, Held):
        return False
    time.sleep(0.002)
    with store.transaction():
        settle(store, Settlement(asked, charge(tokens).row, WINDOWS.day_s, None, number))
    return True


def total(path: str) -> int:
    with closing(sqlite3.connect(path)) as connection:
        found: int = connection.execute("SELECT COALESCE(SUM(tokens), 0) FROM charges").fetchone()[
            0
        ]
        return found


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_what_root_opens_stays_the_owners(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    SqliteStore(str(path)).close()
    os.chown(path, 4711, 4711)
    Path(f"{path}-keys").unlink()

    store = SqliteStore(str(path))
    owners = {one.name: one.stat().st_uid for one in tmp_path.iterdir()}
    store.close()

    assert set(owners.values()) == {4711}
    assert "ledger.db-keys" in owners


def test_a_file_that_is_no_ledger_is_refused_without_its_path(tmp_path: Path) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("no database, " * 100)

    with pytest.raises(StoreError) as refused:
        SqliteStore(str(other))

    assert "notes" not in str(refused.value)


def test_another_programs_database_is_refused_and_stays_as_it_is(path: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE notes (text)")
    before = Path(path).read_bytes()

    with pytest.raises(StoreError, match="a database of something else"):
        SqliteStore(path)
    with pytest.raises(StoreError, match="a database of something else"), reading(path):
        pass

    assert Path(path).read_bytes() == before


def test_many_may_create_the_same_ledger_at_once(path: str) -> None:
    faults: list[Exception] = []

    def open_it() -> None:
        try:
            SqliteStore(path).close()
        except Exception as error:  # noqa: BLE001 - told to the test below
            faults.append(error)

    threads = [threading.Thread(target=open_it) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert faults == []


def test_the_file_belongs_to_its_owner_only(store: SqliteStore, path: str) -> None:
    for suffix in ("", "-keys"):
        assert Path(path + suffix).stat().st_mode & 0o077 == 0


def test_what_raises_inside_a_transaction_leaves_nothing(store: SqliteStore, path: str) -> None:
    def fail() -> None:
        with store.transaction():
            store.charge(charge(5), WINDOWS.day_s)
            store.lease(1, "k", Amounts(5), NOW_S + 60)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()

    assert total(path) == 0
    assert store.leased("k", NOW_S, NOW_S + 120) == NOTHING
    with store.transaction():
        store.charge(charge(6), WINDOWS.day_s)
    assert total(path) == 6


def test_a_value_that_breaks_the_schema_is_our_fault(store: SqliteStore) -> None:
    with pytest.raises(Unfit):
        store.charge(charge(-1), WINDOWS.day_s)


def test_names_are_used_once(store: SqliteStore) -> None:
    secret = mint("k_1", NOW_S).secret
    store.add_key(Key("k_1", "team", NOW_S), secret)
    store.revoke("k_1", NOW_S)

    with pytest.raises(NameTaken):
        store.add_key(Key("k_2", "team", NOW_S), mint("k_2", NOW_S).secret)
    with pytest.raises(NoSuchKey):
        store.revoke("k_3", NOW_S)


def test_every_change_to_a_key_is_seen_by_others(store: SqliteStore, path: str) -> None:
    with closing(SqliteStore(path)) as other:
        seen = [(other.stirred(), other.generation())]
        store.add_key(Key("k_1", "team", NOW_S), mint("k_1", NOW_S).secret)
        seen.append((other.stirred(), other.generation()))
        store.rotate("k_1", mint("k_1", NOW_S).secret, NOW_S + 1)
        seen.append((other.stirred(), other.generation()))
        store.set_limits("k_1", Limits(rpm=1))
        seen.append((other.stirred(), other.generation()))
        store.revoke("k_1", NOW_S)
        seen.append((other.stirred(), other.generation()))

    assert len({stirred for stirred, _ in seen}) == len({number for _, number in seen}) == 5


def test_charges_of_one_transaction_count_against_a_budget_at_once(store: SqliteStore) -> None:
    with store.transaction():
        for _ in range(45):
            store.charge(charge(2), WINDOWS.day_s)
        day, month = store.spent("k", WINDOWS)

    assert day == month == Amounts(90)


def test_a_lease_that_nobody_settles_counts_until_it_expires(store: SqliteStore) -> None:
    store.lease(1, "k", Amounts(900), NOW_S + 60)

    def room(now_s: float) -> bool:
        claim = Claim(THOUSAND, Amounts(200), Calendar().windows(now_s))
        with store.transaction():
            found = admit(store, Admission(int(now_s), "k", now_s, 60.0, claim))
            store.release(int(now_s))
        return isinstance(found, Held)

    assert not room(NOW_S + 59)
    assert room(NOW_S + 60)
    assert not room(NOW_S - 50)  # the clock went back a little: it may still be at work
    assert room(NOW_S - 3600)  # the clock went back a lot: nobody can still be at work


def test_sweeping_takes_what_has_expired_and_no_more(store: SqliteStore) -> None:
    for number in range(5):
        store.lease(number, "k", Amounts(1), NOW_S + number)
        store.begin_replay("k", bytes([number]) * 32, bytes(32), number, NOW_S + number)

    assert store.sweep(NOW_S + 2, at_most=2) == 4
    assert store.sweep(NOW_S + 2, at_most=2) == 2
    assert store.sweep(NOW_S + 2, at_most=2) == 0
    assert store.leased("k", NOW_S, NOW_S + 60) == Amounts(2)
    assert store.replay("k", bytes([4]) * 32, NOW_S, math.inf) is not None


def test_of_fifty_threads_exactly_ten_fit_into_the_budget(path: str) -> None:
    passed: list[bool] = []

    def one(number: int) -> None:
        with closing(SqliteStore(path)) as store:
            passed.append(call(store, number, 100))

    SqliteStore(path).close()
    threads = [threading.Thread(target=one, args=(number,)) for number in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (len(passed), passed.count(True)) == (50, 10)
    assert total(path) == 1000


def _calls(path: str, first: int, gate: "multiprocessing.synchronize.Barrier") -> None:
    with closing(SqliteStore(path)) as store:
        gate.wait()
        for number in range(first, first + 25):
            call(store, number, 100)


def test_of_two_processes_exactly_ten_calls_fit_into_the_budget(path: str) -> None:
    SqliteStore(path).close()
    spawned = multiprocessing.get_context("spawn")
    gate = spawned.Barrier(2)
    processes = [spawned.Process(target=_calls, args=(path, n, gate)) for n in (0, 25)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()

    assert [process.exitcode for process in processes] == [0, 0]
    assert total(path) == 1000


def test_sixty_four_writers_beside_a_long_reader_are_never_locked_out(path: str) -> None:
    faults: list[Exception] = []
    with closing(SqliteStore(path)) as reader, reader.snapshot():
        before = reader.spent("k", WINDOWS)

        def write(number: int) -> None:
            try:
                with closing(SqliteStore(path)) as store:
                    for _ in range(4):
                        store.charge(charge(1), WINDOWS.day_s)
            except Exception as error:  # noqa: BLE001 - told to the test below
                faults.append(error)

        threads = [threading.Thread(target=write, args=(number,)) for number in range(64)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        during = reader.spent("k", WINDOWS)
    with closing(SqliteStore(path)) as store:
        after = store.spent("k", WINDOWS)[0]

    assert faults == []
    assert before == during  # a snapshot stays one
    assert after == Amounts(64 * 4)
