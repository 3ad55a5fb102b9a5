"""What ways of escalating would give, on answers whose every property is known."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.cascade import RESULTS
from bench.cascade_curves import (
    Pair,
    at_random,
    automation,
    beats_random,
    by_oracle,
    by_share,
    informative,
    recovered,
    saving,
    selective,
)
from bench.cascade_plots import draw
from bench.cascade_promises import Population, drawn
from bench.cascade_readings import Floats, Mask

BOOLS = st.lists(st.booleans(), min_size=1, max_size=40)


def pair(likelihood: list[float], small: list[int], large: list[int]) -> Pair:
    return Pair(np.array(likelihood), np.array(small, dtype=bool), np.array(large, dtype=bool))


def answers(rows: int, *, informative: bool, seed: int = 0) -> tuple[Floats, Mask]:
    """Likelihoods and whether the answers are right; calibrated, or hanging on nothing."""
    rng = np.random.default_rng(seed)
    likelihood = rng.random(rows)
    return likelihood, rng.random(rows) < (likelihood if informative else 0.6)


@given(small=BOOLS, data=st.data())
def test_every_curve_begins_with_the_small_engine_and_ends_with_the_large(
    small: list[bool], data: st.DataObject
) -> None:
    many = len(small)
    large = data.draw(st.lists(st.booleans(), min_size=many, max_size=many))
    likelihood = data.draw(st.lists(st.floats(0, 1), min_size=many, max_size=many))
    both = Pair(np.array(likelihood), np.array(small), np.array(large))

    for curve in (by_share(both), at_random(both), by_oracle(both)):
        assert len(curve) == len(small) + 1
        assert curve[0] == pytest.approx(both.small.mean())
        assert curve[-1] == pytest.approx(both.large.mean())
    assert (by_oracle(both) >= by_share(both) - 1e-12).all()
    assert (by_oracle(both) >= at_random(both) - 1e-12).all()


def test_the_least_likely_go_up_first() -> None:
    both = pair([0.9, 0.2, 0.6], small=[1, 0, 0], large=[0, 1, 1])

    assert by_share(both).tolist() == pytest.approx([1 / 3, 2 / 3, 1.0, 2 / 3])


def test_an_uninformed_likelihood_recovers_what_chance_does() -> None:
    likelihood, right = answers(4000, informative=False)
    both = Pair(likelihood, right, np.ones(4000, dtype=bool))

    points, interval = beats_random(both, 0.3)

    assert recovered(both) == pytest.approx(0.5, abs=0.03)
    assert interval.low < 0 < interval.high
    assert abs(points) < 0.02
    assert informative(likelihood, right) == pytest.approx(0.5, abs=0.03)


def test_an_informed_likelihood_saves_at_equal_accuracy() -> None:
    likelihood, right = answers(4000, informative=True)
    both = Pair(likelihood, right, np.random.default_rng(1).random(4000) < 0.8)

    found = saving(both)

    assert found.share > 0.2
    assert found.interval.low <= found.share <= found.interval.high
    assert by_share(both)[round((1 - found.share) * both.rows)] >= both.large.mean() - 1e-12
    assert recovered(both) > 0.7
    assert informative(likelihood, right) > 0.8


def test_nothing_is_saved_where_the_large_engine_is_always_right() -> None:
    likelihood, right = answers(1000, informative=False)

    assert saving(Pair(likelihood, right, np.ones(1000, dtype=bool))).share < 0.02


def test_what_is_kept_at_a_risk_is_the_longest_prefix_that_stays_below() -> None:
    likelihood, right = np.array([0.9, 0.8, 0.7, 0.6]), np.array([True, True, False, False])

    coverage, error = selective(likelihood, right)

    assert coverage.tolist() == [0.25, 0.5, 0.75, 1.0]
    assert error.tolist() == pytest.approx([0, 0, 1 / 3, 0.5])
    assert automation(likelihood, right, 0.1) == 0.5
    assert automation(likelihood, right, 0.4) == 0.75
    assert automation(likelihood, ~right, 0.1) == 0.0


def test_promises_hold_and_floors_without_one_do_not() -> None:
    likelihood, right = answers(3000, informative=True)
    elsewhere, _ = answers(500, informative=True, seed=1)

    found = drawn(Population(likelihood, right, elsewhere), 300, 0.1, 0.1)

    assert found.violated <= 0.13
    assert found.naive_violated > 0.3
    assert 0 < found.coverage < found.naive_coverage


def test_plots_are_drawn_from_results_alone(tmp_path: Path) -> None:
    made = draw(json.loads(RESULTS.read_text(encoding="utf-8")), tmp_path)

    assert len(made) == 4
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in made)
    assert all(path.stat().st_size < 150_000 for path in made)
