"""The log of decisions: what is put in comes out, and no text was ever in it."""

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engines.contract import Choice, Noul
from gateway.ledger.decisions import (
    Asked,
    Glance,
    Period,
    label_digest,
    label_digests,
    question_digest,
)
from gateway.ledger.retention import STEP_ROWS, keep_forgetting
from gateway.ledger.sqlite import SqliteStore
from gateway.ledger.sqlite_alarms import reading
from gateway.ledger.store import Store, StoreError
from tests.gateway.ledger.decided import GLANCES, LARGE, NOON_S, SMALL, decided

T = TypeVar("T")


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "ledger.sqlite")


@pytest.fixture
def store(path: str) -> Iterator[SqliteStore]:
    with closing(SqliteStore(path)) as opened:
        yield opened


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    looks=st.lists(GLANCES, min_size=1, max_size=3).map(tuple),
    shadow=st.none() | GLANCES,
    sampling=st.floats(0, 1),
    drawn=st.booleans(),
    truth=st.none() | st.integers(0, 1),
)
def test_a_decision_comes_out_as_it_went_in(
    *,
    store: SqliteStore,
    looks: tuple[Glance, ...],
    shadow: Glance | None,
    sampling: float,
    drawn: bool,
    truth: int | None,
) -> None:
    store._connection.execute("DELETE FROM decisions")
    one = decided(looks=looks, shadow=shadow, sampling=sampling, drawn=drawn, truth=truth)

    store.log_decisions([one], [])

    assert list(store.decisions(Period())) == [one]
    assert store.decisions_of("k_1", "r", 5) == [one]


def test_of_many_requests_with_one_id_as_many_decisions_are_read_as_are_asked_for(
    store: SqliteStore,
) -> None:
    rows = [decided(decision_id=n, at_s=100.0 * n) for n in range(1, 9)]
    store.log_decisions(rows, [])

    latest = store.decisions_of("k_1", "r", 3)
    since = store.decisions_since("k_1", "r", 300.0, 2)

    assert [one.at_s for one in latest] == [800.0, 700.0, 600.0]
    assert [one.at_s for one in since] == [300.0, 400.0]


def test_a_period_holds_what_was_decided_in_it_oldest_first(store: SqliteStore) -> None:
    times = (300.0, 100.0, 200.0, 400.0)
    rows = [decided(decision_id=n, at_s=at_s) for n, at_s in enumerate(times)]
    other = decided(decision_id=9, at_s=250.0, model="other")
    store.log_decisions([*rows, other], [])

    found = store.decisions(Period(200.0, 400.0))
    of_model = store.decisions(Period(200.0, 400.0, "cascade"))

    assert [one.at_s for one in found] == [200.0, 250.0, 300.0]
    assert [one.at_s for one in of_model] == [200.0, 300.0]


def test_more_decisions_than_are_fetched_at_once_come_out_too(store: SqliteStore) -> None:
    store.log_decisions([decided(decision_id=n) for n in range(1100)], [])

    assert [one.decision_id for one in store.decisions(Period())] == list(range(1100))


def test_a_second_opinion_and_a_truth_are_added_later(store: SqliteStore) -> None:
    store.log_decisions([decided(), decided(decision_id=2, at_s=NOON_S + 1)], [])

    store.log_shadow(1, LARGE)
    store.tell_truth(1, 1, NOON_S)
    store.tell_truth(1, 0, NOON_S)
    store.log_shadow(77, LARGE)

    first, second = store.decisions(Period())
    assert (first.shadow, first.truth) == (LARGE, 0)
    assert (second.shadow, second.truth) == (None, None)
    assert store.shadow_tokens(NOON_S) == LARGE.tokens
    assert store.shadow_tokens(NOON_S + 0.5) == 0


def test_logging_the_same_decision_twice_keeps_the_first(store: SqliteStore) -> None:
    store.log_decisions([decided()], [])
    store.log_decisions([decided(reason="budget")], [])

    assert [one.reason for one in store.decisions(Period())] == ["confident"]


def test_labels_are_known_again_by_their_digests(store: SqliteStore) -> None:
    question = Choice({"billing": None, "tech\ud800": None})
    asked = Asked("f" * 16, label_digests("f" * 16, question), NOON_S)
    store.log_decisions([], [asked])

    digests = store.label_digests("f" * 16)

    assert [digests.index(label_digest("f" * 16, name)) for name in question.options] == [0, 1]
    assert label_digest("f" * 16, "sales") not in digests
    assert label_digest("e" * 16, "billing") not in digests
    assert store.label_digests("e" * 16) == ()
    assert label_digests("f" * 16, Noul("x")) == b""


def test_no_text_of_a_caller_is_in_the_file(store: SqliteStore, path: str) -> None:
    question = Choice(
        {"confidential-option": "confidential-description"}, "confidential-instructions"
    )
    one = decided(question=question_digest("r", "confidential-id"))

    store.log_decisions([one], [Asked(one.fingerprint, label_digests("f" * 16, question), 0.0)])
    store.close()

    for file in Path(path).parent.iterdir():
        assert b"confidential" not in file.read_bytes()


def test_what_is_old_is_forgotten_a_little_at_a_time(store: SqliteStore) -> None:
    rows = [decided(decision_id=n, at_s=float(n)) for n in range(10)]
    store.log_decisions(rows, [Asked("a" * 16, b"", 0.0), Asked("b" * 16, b"x" * 8, NOON_S)])

    assert store.forget_decisions(7.0, 5) == 5
    assert store.forget_decisions(7.0, 5) == 2
    assert [one.decision_id for one in store.decisions(Period())] == [7, 8, 9]
    assert store.forget_decisions(NOON_S, 5) == 3
    assert store.label_digests("b" * 16) == (b"x" * 8,)
    count = store._connection.execute("SELECT COUNT(*) FROM questions").fetchone()[0]
    assert count == 1


async def test_a_running_gateway_forgets_by_itself(store: SqliteStore) -> None:
    now_s = time.time()
    rows = [decided(decision_id=n, at_s=now_s - 100) for n in range(STEP_ROWS + 3)]
    store.log_decisions([*rows, decided(decision_id=9999, at_s=now_s)], [])
    done = asyncio.Event()

    class Direct:
        async def submit(self, work: Callable[[Store], T]) -> T:
            found = work(store)
            if found != STEP_ROWS:
                done.set()
            return found

    chore = asyncio.create_task(keep_forgetting(Direct(), 50.0, breath_s=0))
    await asyncio.wait_for(done.wait(), 10)
    chore.cancel()

    assert [one.decision_id for one in store.decisions(Period())] == [9999]


def test_the_view_says_numbers_and_names(store: SqliteStore) -> None:
    looks = (SMALL, LARGE)
    store.log_decisions([decided(tier=2, engine="large", looks=looks, reason="low_confidence")], [])

    read = store._connection
    read.row_factory = sqlite3.Row
    row = dict(read.execute("SELECT * FROM v_decisions").fetchone())

    assert row["at"].startswith("2026-12-02T12:00:00")
    assert (row["first_engine"], row["first_likelihood"]) == ("small", 0.9)
    assert (row["engine"], row["likelihood"], row["reason"]) == ("large", 0.7, "low_confidence")
    assert "question" not in row


def test_readers_of_the_file_cannot_write_it(store: SqliteStore, path: str) -> None:
    store.log_decisions([decided()], [])

    with reading(path) as found:
        assert len(list(found.decisions(Period()))) == 1
        with pytest.raises(StoreError):
            found.tell_truth(1, 0, NOON_S)


def test_a_label_that_cannot_be_is_refused_by_the_schema(store: SqliteStore) -> None:
    store.log_decisions([decided()], [])

    with pytest.raises(Exception, match="CHECK"):
        store.tell_truth(1, 2, NOON_S)
