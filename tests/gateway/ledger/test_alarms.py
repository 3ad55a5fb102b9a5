"""Engines seen, tests of promises, alarms: they outlive the process."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gateway.ledger.decisions import Alarm, Trial
from gateway.ledger.sqlite import SqliteStore
from policies.sequential import Evidence, after


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "ledger.sqlite")


@pytest.fixture
def store(path: str) -> Iterator[SqliteStore]:
    with closing(SqliteStore(path)) as opened:
        yield opened


def alarm(what: str = "noul", kind: str = "disagreement") -> Alarm:
    return Alarm("disagreement" if kind == "disagreement" else "drift", "small", what, "why", 5.0)


def test_another_digest_than_the_last_is_told(store: SqliteStore) -> None:
    told = [
        store.engine_seen("small", digest, float(at_s))
        for at_s, digest in enumerate(["a", "a", "b", "b", "a"])
    ]
    store.engine_seen("large", "c", 9.0)

    assert told == [None, None, "a", None, "b"]
    assert store.engine_changes(0.0) == [("small", "b", 2.0)]
    assert store.engine_changes(3.0) == []


def test_a_test_goes_on_where_it_stood(store: SqliteStore, path: str) -> None:
    evidence = Evidence(0.1)
    for wrong in (False, True, False):
        evidence = after(evidence, wrong=wrong)
    trial = Trial("small", "noul", "digest", 5.0, evidence)

    store.keep_trial(Trial("small", "noul", "digest", 5.0, Evidence(0.1)))
    store.keep_trial(trial)

    with closing(SqliteStore(path)) as later:
        assert later.trial("small", "noul") == trial
        assert later.every_trial() == [trial]
        assert later.trial("small", "choice:2") is None
        later.forget_trial("small", "noul")
        assert later.trial("small", "noul") is None


def test_an_alarm_is_raised_once_and_holds_until_it_is_cleared(
    store: SqliteStore, path: str
) -> None:
    assert store.raise_alarm(alarm())
    assert not store.raise_alarm(alarm())
    assert store.raise_alarm(alarm(kind="drift"))
    assert store.raise_alarm(alarm("choice:2"))

    with closing(SqliteStore(path)) as later:
        first, *_ = later.alarms()
        assert (first.engine, first.what, first.cleared_s) == ("small", "noul", None)
        assert later.clear_alarm(first.alarm_id, 9.0) == first
        assert later.clear_alarm(first.alarm_id, 9.0) is None
        assert [one.what for one in later.alarms() if one.kind == "disagreement"] == ["choice:2"]
        assert len(later.alarms(cleared=True)) == 3
        assert later.raise_alarm(alarm())


def test_with_its_alarm_a_test_is_forgotten(store: SqliteStore) -> None:
    store.keep_trial(Trial("small", "noul", "digest", 5.0, Evidence(0.1)))
    store.raise_alarm(alarm())

    store.clear_alarm(store.alarms()[0].alarm_id, 9.0)

    assert store.trial("small", "noul") is None
