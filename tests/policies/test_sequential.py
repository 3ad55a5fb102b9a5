"""The sequential test: false alarms stay below δ however long one looks; broken promises show."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.binomial import at_least
from policies.sequential import ODDS_RATIOS, Evidence, after

DELTA = 0.1


def alarm_at(
    rng: random.Random, promised: float, rates: list[tuple[int, float]], delta: float
) -> int | None:
    """The observation at which the alarm comes, over stretches of (length, true rate)."""
    evidence = Evidence(promised)
    for length, rate in rates:
        for _ in range(length):
            evidence = after(evidence, wrong=rng.random() < rate)
            if evidence.alarm(delta):
                return evidence.seen
    return None


@pytest.mark.parametrize("promised", [0.05, 0.1, 0.3])
def test_a_kept_promise_is_rarely_refuted_though_looked_at_each_time(promised: float) -> None:
    rng, runs = random.Random(7), 250

    alarms = sum(alarm_at(rng, promised, [(800, promised)], DELTA) is not None for _ in range(runs))

    assert at_least(alarms, runs, DELTA) > 1e-3, f"{alarms} of {runs} at delta {DELTA}"


def test_looking_at_a_fixed_sample_test_each_time_would_not_do() -> None:
    """What the sequential test is for: the same looks at an exact binomial test alarm too often."""
    rng, runs, alarms = random.Random(7), 60, 0
    for _ in range(runs):
        wrong = 0
        for seen in range(1, 401):
            wrong += rng.random() < 0.1
            if at_least(wrong, seen, 0.1) <= DELTA:
                alarms += 1
                break

    assert alarms / runs > 3 * DELTA


@pytest.mark.parametrize(
    ("promised", "true", "within"), [(0.05, 0.2, 150), (0.1, 0.3, 150), (0.1, 0.2, 500)]
)
def test_a_broken_promise_is_found_soon(promised: float, true: float, within: int) -> None:
    rng = random.Random(11)

    found = [alarm_at(rng, promised, [(within, true)], DELTA) for _ in range(60)]

    assert sum(one is not None for one in found) >= 57


def test_a_promise_that_breaks_after_long_keeping_is_found_too() -> None:
    rng, good = random.Random(13), 3000

    found = [alarm_at(rng, 0.1, [(good, 0.03), (400, 0.3)], DELTA) for _ in range(20)]

    late = [one - good for one in found if one is not None and one > good]
    assert len(late) == 20
    assert sum(late) / len(late) < 200


@given(
    st.floats(0.001, 0.999),
    st.lists(st.booleans(), max_size=40),
    st.floats(0.0, 1.0),
)
def test_while_the_promise_holds_the_next_bet_is_not_expected_to_win(
    promised: float, history: list[bool], share: float
) -> None:
    evidence = Evidence(promised)
    for wrong in history:
        evidence = after(evidence, wrong=wrong)
    rate = share * promised  # any rate that keeps the promise

    won = after(evidence, wrong=True).against
    lost = after(evidence, wrong=False).against

    assert rate * won + (1 - rate) * lost <= evidence.against * (1 + 1e-9)


def test_before_anything_is_seen_nothing_speaks_against_the_promise() -> None:
    evidence = Evidence(0.1)

    assert evidence.against == 1.0
    assert evidence.played == (0.0,) * len(ODDS_RATIOS)
    assert not evidence.alarm(DELTA)
