"""The stability index: by hand, under no change, and under change."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.drift import binned, cuts_of, drift, stability_index


def test_the_index_is_the_sum_of_its_definition() -> None:
    a, b = [70, 20, 10], [50, 30, 20]

    by_hand = sum(
        (y - x) * math.log(y / x)
        for x, y in zip(
            [v / 101.5 for v in (70.5, 20.5, 10.5)],
            [v / 101.5 for v in (50.5, 30.5, 20.5)],
            strict=True,
        )
    )

    assert stability_index(a, b) == pytest.approx(by_hand)


@given(st.lists(st.integers(0, 500), min_size=2, max_size=10))
def test_a_sample_does_not_drift_from_itself(counts: list[int]) -> None:
    assert stability_index(counts, counts) == 0.0


@given(st.lists(st.floats(0, 1), min_size=1, max_size=80), st.lists(st.floats(0, 1), max_size=80))
def test_every_value_falls_into_one_bin(reference: list[float], values: list[float]) -> None:
    cuts = cuts_of(reference)

    counts = binned(values, cuts)

    assert list(cuts) == sorted(set(cuts))
    assert len(counts) == len(cuts) + 1 <= 20
    assert sum(counts) == len(values)


@given(st.lists(st.floats(0, 1), min_size=10, max_size=200, unique=True))
def test_bins_hold_equal_shares_of_the_reference(reference: list[float]) -> None:
    counts = binned(reference, cuts_of(reference))

    assert len(counts) == 10
    assert max(counts) - min(counts) <= 2


def test_a_value_that_most_have_is_a_bin_of_its_own() -> None:
    always = [0.9] * 300

    cuts = cuts_of(always)

    assert binned([0.9, 0.8, 0.95, 0.9], cuts) == [1, 2, 1]
    assert drift(binned(always, cuts), binned([0.9] * 200, cuts)).verdict == "stable"
    assert drift(binned(always, cuts), binned([0.6] * 200, cuts)).verdict == "changed"


def test_two_samples_of_one_population_are_stable() -> None:
    rng, alarms = random.Random(3), 0
    for _ in range(400):
        reference = [rng.betavariate(5, 2) for _ in range(400)]
        current = [rng.betavariate(5, 2) for _ in range(120)]
        cuts = cuts_of(reference)
        alarms += drift(binned(reference, cuts), binned(current, cuts)).verdict != "stable"

    assert alarms <= 6


def test_another_population_is_told() -> None:
    rng = random.Random(5)
    reference = [rng.betavariate(8, 2) for _ in range(1000)]
    current = [rng.betavariate(4, 3) for _ in range(500)]
    cuts = cuts_of(reference)

    found = drift(binned(reference, cuts), binned(current, cuts))

    assert found.verdict == "changed"
    assert found.psi > found.by_chance


def test_of_few_observations_nothing_is_said() -> None:
    assert drift([90, 9], [1, 200]).verdict == "too_few"


def test_a_share_is_two_bins() -> None:
    assert drift([900, 100], [700, 300]).verdict == "changed"
    assert drift([900, 100], [890, 110]).verdict == "stable"
    assert drift([9000, 1000], [8200, 1800]).verdict == "stable", "seen, but too small to matter"
