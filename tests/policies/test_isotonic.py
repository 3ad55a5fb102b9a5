"""Fitted calibrations: rising, close to the truth, and no more than the labels bear."""

import random
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.calibration import Calibration, expected_calibration_error
from policies.isotonic import FEWEST_FOR_A_MAP, FEWEST_FOR_A_TEMPERATURE, fitted, isotonic, outcomes

Rows = tuple[list[list[float]], list[int]]


def drawn(rng: random.Random, n: int, sharpness: float = 1.0) -> Rows:
    """Two labels; the log-odds are true when divided by `sharpness`."""
    rows, labels = [], []
    for _ in range(n):
        odds = rng.gauss(0, 2)
        labels.append(0 if rng.random() < 1 / (1 + 2.718281828 ** (-odds)) else 1)
        rows.append([odds * sharpness, 0.0])
    return rows, labels


def test_pooling_gives_the_known_fit() -> None:
    """1, 0, 1, 1, 0, 1 over rising probabilities: the least-squares rising fit by hand."""
    tops = [0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    knots = dict(isotonic(tops, [True, False, True, True, False, True]))

    assert knots[0.5] == pytest.approx(0.98 * 0.5 + 0.02 * 0.5)
    assert knots[0.6] == pytest.approx(0.98 * 0.5 + 0.02 * 0.6)
    assert knots[0.7] == pytest.approx(0.98 * 2 / 3 + 0.02 * 0.7)
    assert knots[0.9] == pytest.approx(0.98 * 2 / 3 + 0.02 * 0.9)
    assert knots[1.0] == pytest.approx(1.0)


@given(st.lists(st.tuples(st.integers(0, 30), st.booleans()), min_size=2, max_size=80))
def test_a_map_rises_strictly_and_stays_a_probability(rows: Sequence[tuple[int, bool]]) -> None:
    knots = isotonic([top / 30 for top, _ in rows], [hit for _, hit in rows])

    assert all(x0 < x1 and y0 < y1 for (x0, y0), (x1, y1) in pairwise(knots))
    assert all(0.0 <= y <= 1.0 for _, y in knots)
    assert (len(knots) > 1) == (len({top for top, _ in rows}) > 1)


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), min_size=2, max_size=60))
def test_each_level_of_a_map_is_the_share_of_right_answers_there(
    rows: Sequence[tuple[int, bool]],
) -> None:
    tops, right = [top / 9 for top, _ in rows], [hit for _, hit in rows]
    mapped = Calibration(1.0, isotonic(tops, right))
    levels: dict[float, list[bool]] = {}
    for top, hit in zip(tops, right, strict=True):
        level = round((mapped.likelihood(top) - 0.02 * top) / 0.98, 9)
        levels.setdefault(level, []).append(hit)

    if mapped.knots:
        for level, hits in levels.items():
            assert level == pytest.approx(sum(hits) / len(hits))


def test_few_labels_change_nothing_and_some_fit_a_temperature_alone() -> None:
    rng = random.Random(1)
    few = drawn(rng, FEWEST_FOR_A_TEMPERATURE - 1, 3.0)
    some = drawn(rng, FEWEST_FOR_A_MAP - 1, 3.0)

    assert fitted(*few) == Calibration()
    assert fitted(*some).knots == ()
    assert 2.0 < fitted(*some).temperature < 4.5


def test_a_map_is_taken_where_no_temperature_tells_the_truth() -> None:
    rng = random.Random(2)
    rows, labels = drawn(rng, 1500)
    for i, row in enumerate(rows):  # the most confident fifth is right only as often as not
        if abs(row[0]) > 2.5:
            labels[i] = rng.randrange(2)

    found = fitted(rows, labels)
    tops, right = outcomes(rows, labels, found.temperature)
    said = [found.likelihood(top) for top in tops]

    assert found.knots
    assert expected_calibration_error(said, right) < 0.5 * expected_calibration_error(tops, right)


def test_calibrated_log_weights_stay_nearly_as_they_are() -> None:
    found = fitted(*drawn(random.Random(3), 4000))

    assert found.temperature == pytest.approx(1.0, abs=0.1)
    assert found.likelihood(0.9) == pytest.approx(0.9, abs=0.04)


def test_an_answer_is_the_first_of_the_likeliest_labels() -> None:
    tops, right = outcomes([[1.0, 1.0, 0.0], (0.0, 2.0, 2.0)], [0, 1], 1.0)

    assert right == [True, True]
    assert tops[0] == pytest.approx(2.718281828 / (2 * 2.718281828 + 1))
