"""Binomial tails against exact fractions; intervals against their definition and known values."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.binomial import (
    Interval,
    at_least,
    at_most,
    clopper_pearson,
    lower_bound,
    upper_bound,
    wilson,
)


def exact(successes: int, trials: int, rate: Fraction) -> Fraction:
    """P(X ≤ successes) in whole numbers."""
    terms = (
        math.comb(trials, k) * rate**k * (1 - rate) ** (trials - k) for k in range(successes + 1)
    )
    return sum(terms, Fraction(0))


@given(st.integers(1, 60), st.integers(0, 60), st.integers(0, 64))
def test_tails_are_exact(trials: int, successes: int, sixtyfourths: int) -> None:
    successes = min(successes, trials)
    rate = Fraction(sixtyfourths, 64)

    below = at_most(successes, trials, float(rate))
    above = at_least(successes, trials, float(rate))

    assert below == pytest.approx(float(exact(successes, trials, rate)), rel=1e-9, abs=1e-300)
    assert above == pytest.approx(float(1 - exact(successes - 1, trials, rate)), rel=1e-9, abs=1e-9)


def test_a_small_tail_is_not_lost_to_rounding() -> None:
    assert at_most(0, 1000, 0.5) == pytest.approx(2.0**-1000, rel=1e-9)
    assert at_least(1000, 1000, 0.5) == pytest.approx(2.0**-1000, rel=1e-9)


def test_large_counts_are_no_problem() -> None:
    assert at_most(500_000, 1_000_000, 0.5) == pytest.approx(0.5004, abs=1e-4)


@pytest.mark.parametrize(("risk", "delta", "labels"), [(0.1, 0.1, 22), (0.05, 0.1, 45)])
def test_no_error_among_so_many_labels_is_enough(risk: float, delta: float, labels: int) -> None:
    assert at_most(0, labels, risk) <= delta < at_most(0, labels - 1, risk)


@given(st.integers(1, 400), st.data())
def test_clopper_pearson_ends_where_the_tails_are_as_said(trials: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, trials))

    found = clopper_pearson(successes, trials, 0.9)

    assert 0.0 <= found.low <= successes / trials <= found.high <= 1.0
    if successes:
        assert at_least(successes, trials, found.low) == pytest.approx(0.05, rel=1e-6)
    if successes < trials:
        assert at_most(successes, trials, found.high) == pytest.approx(0.05, rel=1e-6)


def test_one_sided_bounds_mirror_each_other() -> None:
    assert upper_bound(0, 10, 0.05) == pytest.approx(1 - 0.05**0.1)
    assert lower_bound(10, 10, 0.05) == pytest.approx(0.05**0.1)
    assert lower_bound(0, 10, 0.05) == 0.0


def test_wilson_gives_the_values_of_the_literature() -> None:
    """Newcombe, Statistics in Medicine 17 (1998), table I: 81 of 263, 15 of 148, 0 of 20."""
    for successes, trials, low, high in ((81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605)):
        found = wilson(successes, trials)
        assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)
    assert wilson(0, 20).low == 0.0
    assert wilson(0, 20).high == pytest.approx(0.1611, abs=5e-5)


def test_without_trials_nothing_is_known() -> None:
    assert clopper_pearson(0, 0) == Interval(0.0, 1.0)
    assert wilson(0, 0) == Interval(0.0, 1.0)
