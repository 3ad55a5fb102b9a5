"""Softmax, temperature and calibration error."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.calibration import (
    expected_calibration_error,
    fitted_temperature,
    negative_log_likelihood,
    probabilities,
    probability_of_first,
)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50), st.floats(0.01, 100))
def test_probabilities_sum_to_1_for_any_finite_weights(weights: list[float], t: float) -> None:
    p = probabilities(weights, t)

    assert sum(p) == pytest.approx(1.0)
    assert all(0 <= q <= 1 for q in p)


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.floats(0.01, 100))
def test_two_weights_give_the_first_of_their_probabilities(a: float, b: float, t: float) -> None:
    assert probability_of_first(a, b, t) == pytest.approx(probabilities((a, b), t)[0])


def test_weights_that_differ_by_ln_2_give_odds_of_2_to_1() -> None:
    assert probabilities([math.log(2.0), 0.0]) == pytest.approx([2 / 3, 1 / 3])


def test_a_fit_finds_the_temperature_that_the_data_were_drawn_with() -> None:
    draw = random.Random(7)
    rows = [[draw.gauss(0, 2) for _ in range(4)] for _ in range(4000)]
    labels = [draw.choices(range(4), probabilities(row, 2.5))[0] for row in rows]

    fitted = fitted_temperature(rows, labels)

    assert fitted == pytest.approx(2.5, rel=0.1)
    best = negative_log_likelihood(rows, labels, fitted)
    assert best <= negative_log_likelihood(rows, labels, fitted * 1.2)
    assert best <= negative_log_likelihood(rows, labels, fitted / 1.2)


def test_weights_without_information_are_fitted_flat() -> None:
    draw = random.Random(7)
    rows = [[draw.gauss(0, 1), draw.gauss(0, 1)] for _ in range(2000)]
    labels = [draw.randrange(2) for _ in rows]

    assert fitted_temperature(rows, labels) > 5


def test_calibration_error_is_the_gap_between_said_and_true() -> None:
    said = [0.8] * 100

    assert expected_calibration_error(said, [True] * 80 + [False] * 20) == pytest.approx(0.0)
    assert expected_calibration_error(said, [True] * 50 + [False] * 50) == pytest.approx(0.3)
    assert expected_calibration_error([1.0], [False]) == 1.0
