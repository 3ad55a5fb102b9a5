"""How second opinions become evidence in the ledger, and when a test begins anew."""

import random
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.ledger.decisions import Alarm, Glance, Period
from gateway.ledger.sqlite import SqliteStore
from gateway.second_opinions import Wanted
from gateway.trials import TrialTerms, weighed
from policies.sequential import Evidence, after
from tests.gateway.ledger.decided import LARGE, decided

TERMS = TrialTerms({"small": 0.1}, false_alarm=0.01)
WANTED = Wanted(1, "f" * 16, "choice:2", 1, 10, "small", "digest", "choice:2")
SAME, OTHER = LARGE, Glance("large", 30, 0.7, (0.7, 0.3))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(str(tmp_path / "ledger.sqlite"))) as opened:
        opened.log_decisions([decided()], [])
        yield opened


def weigh(
    store: SqliteStore, glance: Glance, wanted: Wanted = WANTED, terms: TrialTerms = TERMS
) -> Alarm | None:
    return weighed(store, wanted, glance, terms, 5.0)


def test_the_evidence_is_that_of_the_sequential_test(store: SqliteStore) -> None:
    evidence = Evidence(0.1)
    for wrong in (False, True, False, False):
        weigh(store, OTHER if wrong else SAME)
        evidence = after(evidence, wrong=wrong)

    trial = store.trial("small", "choice:2")

    assert trial is not None
    assert trial.evidence == evidence
    assert [one.shadow for one in store.decisions(Period())] == [SAME]


def test_an_alarm_is_raised_once_at_the_moment_of_proof(store: SqliteStore) -> None:
    alarms = [weigh(store, OTHER) for _ in range(10)]

    raised = [alarm for alarm in alarms if alarm is not None]
    assert len(raised) == 1
    assert alarms[0] is None, "one observation proves nothing"
    assert (raised[0].engine, raised[0].what) == ("small", "choice:2")
    assert "10.0%" in raised[0].message


@pytest.mark.parametrize(
    ("wanted", "terms"),
    [
        (replace(WANTED, digest="other weights"), TERMS),
        (WANTED, TrialTerms({"small": 0.2}, 0.01)),
    ],
)
def test_other_weights_or_another_promise_begin_a_new_test(
    store: SqliteStore, wanted: Wanted, terms: TrialTerms
) -> None:
    weigh(store, OTHER)

    weigh(store, SAME, wanted, terms)

    trial = store.trial("small", "choice:2")
    assert trial is not None
    assert (trial.evidence.seen, trial.evidence.wrong) == (1, 0)


@pytest.mark.parametrize(
    ("wanted", "terms"),
    [
        (Wanted(1, "f" * 16, "choice:2", 1, 10), TERMS),
        (WANTED, TrialTerms({}, 0.01)),
    ],
)
def test_where_nothing_is_promised_the_opinion_is_kept_and_nothing_tested(
    store: SqliteStore, wanted: Wanted, terms: TrialTerms
) -> None:
    assert [weigh(store, OTHER, wanted, terms) for _ in range(10)] == [None] * 10
    assert store.every_trial() == []
    assert [one.shadow for one in store.decisions(Period())] == [OTHER]


def test_a_kept_promise_seldom_raises_an_alarm_in_the_ledger(store: SqliteStore) -> None:
    rng, alarms = random.Random(5), 0
    for run in range(20):
        wanted = replace(WANTED, what=f"run {run}")
        with store.transaction():
            found = [weigh(store, OTHER if rng.random() < 0.1 else SAME, wanted) for _ in range(60)]
        alarms += any(found)

    assert alarms <= 2, "at most one in a hundred is expected"
