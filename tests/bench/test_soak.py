"""The soak's verdict: what grew, waited or is missing is told, and what did not is not."""

import math
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from bench.soak_acts import Acts
from bench.soak_clients import Notes, Reply
from bench.soak_gateway import Rest
from bench.soak_verdict import MAX_ANSWER_P99_S, differences, leaks, p99, waits

MB = 1_000_000
ROW = ("a", 5, 200)


def rests(*megabytes: float, descriptors: int = 9, threads: int = 4) -> list[Rest]:
    return [Rest(round(size * MB), descriptors, threads) for size in megabytes]


def test_memory_that_levels_off_after_the_warm_up_is_no_leak() -> None:
    assert leaks(rests(60, 80, 84, 85, 85, 84, 86, 85)) == []


def test_memory_that_grows_from_lap_to_lap_is_a_leak() -> None:
    (sentence,) = leaks(rests(60, *(80 + lap for lap in range(9))))

    assert sentence.startswith("memory at rest grew by 6")


@pytest.mark.parametrize("what", ["descriptors", "threads"])
def test_one_more_descriptor_or_thread_at_rest_is_a_leak(what: str) -> None:
    (sentence,) = leaks([*rests(80, 80, 80), *rests(80, **{what: 10})])

    assert what in sentence


def test_the_warm_up_may_open_what_it_needs() -> None:
    assert leaks([*rests(80, descriptors=7), *rests(80, 80, 80)]) == []


def test_on_a_busy_machine_a_slow_health_check_shows_little_but_a_starved_one_does() -> None:
    slow, starved = [0.6] * 200, [6.0] * 200

    assert len(waits(slow, [0.1], 0.05)) == 1
    assert waits(slow, [0.1], 0.5) == []
    assert len(waits(starved, [0.1], 0.5)) == 1


@pytest.mark.parametrize(
    ("health_s", "answered_s", "which"),
    [
        ([0.01] * 200, [0.1] * 200, []),
        ([0.01] * 195 + [3.0] * 5, [0.1] * 200, ["/health"]),
        ([0.01] * 200, [0.1] * 195 + [2 * MAX_ANSWER_P99_S] * 5, ["an answer"]),
        ([], [0.1], ["/health"]),
    ],
)
def test_what_waits_too_long_is_named(
    health_s: Sequence[float], answered_s: Sequence[float], which: list[str]
) -> None:
    found = waits(health_s, answered_s, 0.0)

    assert len(found) == len(which)
    assert all(word in sentence for word, sentence in zip(which, found, strict=True))


def test_p99_of_little_is_the_largest_and_of_nothing_not_a_number() -> None:
    assert p99([2.0]) == 2.0
    assert math.isnan(p99([]))


def ledger(folder: Path, *rows: tuple[str, int, int], balance: int | None = None) -> Path:
    """A ledger with these request ids, tokens and statuses; the balance is their sum."""
    path = folder / "ledger.db"
    total = sum(tokens for _, tokens, _ in rows) if balance is None else balance
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE charges (request_id, tokens, status, key_id)")
        connection.execute("CREATE TABLE balances (tokens)")
        connection.executemany("INSERT INTO charges VALUES (?, ?, ?, 'k_0')", rows)
        connection.execute("INSERT INTO balances VALUES (?)", (total,))
    return path


def test_a_ledger_of_what_callers_were_told_differs_in_nothing(tmp_path: Path) -> None:
    path = ledger(tmp_path, ROW, ("b", 7, 500), ("left-c", 9, 200), ("d", 3, 499))

    assert differences(path, {"a": 5}) == []


@pytest.mark.parametrize(
    ("rows", "told", "words"),
    [
        ([], {"a": 5}, "not in the ledger"),
        ([ROW], {"a": 6}, "other tokens"),
        ([ROW], {}, "answered to nobody"),
        ([ROW, ROW], {"a": 5}, "charged twice"),
    ],
)
def test_what_differs_is_told(
    rows: list[tuple[str, int, int]], told: dict[str, int], words: str, tmp_path: Path
) -> None:
    (sentence,) = differences(ledger(tmp_path, *rows), told)

    assert words in sentence


def test_a_balance_that_is_not_the_sum_is_told(tmp_path: Path) -> None:
    (sentence,) = differences(ledger(tmp_path, ROW, balance=4), {"a": 5})

    assert sentence == "the balances say 4 tokens, the charges 5"


def test_the_same_seed_makes_the_same_acts_of_every_kind() -> None:
    acts, again = Acts(7), Acts(7)
    drawn = [acts.next() for _ in range(300)]

    assert drawn == [again.next() for _ in range(300)]
    assert len({act.name for act in drawn}) >= 14


@pytest.mark.parametrize(
    ("status", "head", "wrong"),
    [
        (200, b"", 0),
        (500, b"", 1),
        (529, b"", 1),
        (529, b"\r\nretry-after-ms: 100", 0),
        (404, b"", 1),
    ],
)
def test_a_status_that_a_request_does_not_deserve_is_told(
    status: int, head: bytes, wrong: int
) -> None:
    notes = Notes()
    act = next(act for act in iter(Acts(1).next, None) if act.name == "plain")
    notes.answered(act, "a", Reply(status, head, b'{"usage": {"input_tokens": 5}}'))

    assert len(notes.wrong) == wrong
    assert notes.tokens == ({"a": 5} if status == 200 else {})
