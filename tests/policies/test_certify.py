"""Floors with a promise: where sequences start, what they keep, and what they refuse to say."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.binomial import at_most
from policies.certify import Start, certified, fewest_trials, grid, start_rule, starts

EVEN = grid([i / 1000 for i in range(1000)])


def spread(n: int) -> list[float]:
    """n likelihoods, evenly in (0, 1), falling."""
    return [1 - (i + 0.5) / n for i in range(n)]


def test_starts_depend_on_how_many_labels_there_are_for_what_is_asked() -> None:
    assert starts(22, 0.1, 0.1) == ()
    assert starts(23, 0.1, 0.1) == (Start(22, 0.1),)
    assert starts(439, 0.1, 0.1) == (Start(22, 0.1),)
    assert starts(440, 0.1, 0.1) == (Start(29, 0.05), Start(76, 0.05))
    assert starts(600, 0.05, 0.1) == (Start(45, 0.1),)
    assert start_rule(starts(440, 0.1, 0.1)) == "two sequences from 29 and 76 answers"
    assert start_rule(starts(30, 0.1, 0.1)) == "one sequence from 22 answers"


def test_answers_that_are_all_right_are_all_kept() -> None:
    found = certified(spread(400), [True] * 400, EVEN, risk=0.05, delta=0.1)

    assert (found.floor, found.accepted, found.errors, found.coverage) == (0.0, 400, 0, 1.0)
    assert found.p_value == pytest.approx(0.95**400)
    assert found.needs is None


def test_the_floor_lies_where_errors_begin() -> None:
    scores = spread(1000)
    found = certified(scores, [s > 0.5 for s in scores], EVEN, risk=0.1, delta=0.1)

    assert found.floor is not None
    assert 0.42 <= found.floor <= 0.5
    assert found.p_value is not None
    assert found.p_value <= 0.1
    assert at_most(found.errors, found.accepted, 0.1) == found.p_value
    assert found.accepted == sum(s >= found.floor for s in scores)


def test_too_few_labels_are_answered_with_how_many_it_takes() -> None:
    found = certified(spread(30), [True] * 30, EVEN, risk=0.05, delta=0.1)

    assert found.floor is None
    assert found.needs == 46
    assert found.start_rule == "none: too few labels"


def test_a_little_evidence_asks_for_more_labels() -> None:
    scores = spread(60)
    right = [i not in (10, 30) for i in range(60)]
    found = certified(scores, right, EVEN, risk=0.05, delta=0.1)

    assert found.floor is None
    assert found.needs is not None
    assert 60 < found.needs < 1000


def test_where_the_most_confident_are_the_wrong_ones_no_number_of_labels_helps() -> None:
    scores = spread(600)
    found = certified(scores, [s < 0.5 for s in scores], EVEN, risk=0.1, delta=0.1)

    assert (found.floor, found.needs, found.accepted) == (None, None, 0)


def test_answers_that_tie_are_kept_together_or_not_at_all() -> None:
    scores = [0.9] * 100 + [0.8] * 100
    right = [True] * 100 + [False] * 100
    kept = certified(scores, right, (0.85, 0.0), risk=0.05, delta=0.1)
    all_alike = certified([0.7] * 200, [True] * 200, (0.0,), risk=0.05, delta=0.1)

    assert kept.accepted == 100
    assert kept.floor is not None
    assert 0.8 < kept.floor <= 0.9
    assert (all_alike.floor, all_alike.accepted) == (0.0, 200)


def test_the_second_sequence_saves_what_an_early_error_would_end() -> None:
    scores = spread(600)
    right = [i not in (3, 40) for i in range(600)]  # an error above the first floor of 29

    found = certified(scores, right, EVEN, risk=0.1, delta=0.1)

    assert found.start_rule.startswith("two sequences")
    assert found.floor == 0.0


def test_a_grid_falls_from_the_strictest_to_one_that_keeps_everything() -> None:
    floors = grid(spread(500), 10)

    assert list(floors) == sorted(floors, reverse=True)
    assert len(floors) == 10
    assert floors[-1] == 0.0
    assert [sum(s >= f for s in spread(500)) for f in floors] == [50 * i for i in range(1, 11)]
    assert grid([]) == (0.0,)


@given(
    st.lists(st.tuples(st.integers(0, 20), st.booleans()), max_size=120),
    st.sampled_from([0.05, 0.1, 0.3]),
    st.sampled_from([0.05, 0.2]),
)
def test_what_is_certified_can_be_checked_by_hand(
    rows: Sequence[tuple[int, bool]], risk: float, delta: float
) -> None:
    scores = [score / 20 for score, _ in rows]
    right = [hit for _, hit in rows]
    found = certified(scores, right, grid([i / 20 for i in range(21)]), risk=risk, delta=delta)

    assert found.labels == len(rows)
    if found.floor is None:
        assert found.needs is None or found.needs > len(rows)
        return
    kept = [hit for score, hit in zip(scores, right, strict=True) if score >= found.floor]
    assert (found.accepted, found.errors) == (len(kept), kept.count(False))
    assert found.p_value == at_most(found.errors, found.accepted, risk)
    assert found.p_value <= delta


@pytest.mark.parametrize(
    ("risk", "delta", "least"),
    [(0.10, 0.10, 22), (0.05, 0.10, 45), (0.02, 0.10, 114), (0.01, 0.10, 230), (0.05, 0.05, 59)],
)
def test_the_zero_error_minimum_is_the_published_one(risk: float, delta: float, least: int) -> None:
    assert fewest_trials(0, risk, delta) == least == math.ceil(math.log(delta) / math.log(1 - risk))


@given(st.integers(0, 30), st.floats(0.005, 0.5), st.floats(0.001, 0.5))
def test_so_many_trials_do_and_one_fewer_does_not(errors: int, rate: float, delta: float) -> None:
    m = fewest_trials(errors, rate, delta)

    assert at_most(errors, m, rate) <= delta
    assert m == errors + 1 or at_most(errors, m - 1, rate) > delta
