"""The published formulas, by table and by law."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies import confidence

DISTRIBUTIONS = (
    st.lists(st.integers(0, 1000), min_size=1, max_size=12)
    .filter(any)
    .map(lambda weights: [w / sum(weights) for w in weights])
)


@pytest.mark.parametrize(
    ("p", "choice", "score"),
    [
        ([0.9, 0.1], 0.80, 0.80),
        ([0.07, 0.91, 0.02], 0.865, 0.865),
        ([0.5, 0.5], 0.0, 0.0),
        ([0.6, 0.2, 0.1, 0.05, 0.05], 0.50, 0.375),
        ([0.4, 0.0, 0.0, 0.0, 0.6], 0.50, 0.0),
        ([0.0, 0.5, 0.5, 0.0], 1 / 3, 0.50),
        ([1.0], 1.0, 1.0),
    ],
)
def test_the_published_examples(p: list[float], choice: float, score: float) -> None:
    assert confidence.of_choice(p) == pytest.approx(choice, abs=1e-9)
    assert confidence.of_score(p) == pytest.approx(score, abs=1e-9)


@given(DISTRIBUTIONS)
def test_confidence_is_between_0_and_1(p: list[float]) -> None:
    assert 0 <= confidence.of_choice(p) <= 1
    assert 0 <= confidence.of_score(p) <= 1


@given(DISTRIBUTIONS, st.randoms(use_true_random=False))
def test_the_order_of_options_means_nothing_to_a_choice(p: list[float], random: object) -> None:
    shuffled = sorted(p)

    assert confidence.of_choice(shuffled) == pytest.approx(confidence.of_choice(p))


@given(st.integers(2, 12))
def test_certainty_is_1_and_a_uniform_choice_is_0(n: int) -> None:
    assert confidence.of_choice([1.0] + [0.0] * (n - 1)) == 1.0
    assert confidence.of_score([0.0] * (n - 1) + [1.0]) == 1.0
    assert confidence.of_choice([1 / n] * n) == pytest.approx(0.0, abs=1e-9)


@given(st.floats(0, 1))
def test_with_two_labels_both_formulas_agree(p: float) -> None:
    pair = [p, 1 - p]

    assert confidence.of_choice(pair) == pytest.approx(confidence.of_score(pair), abs=1e-9)


@given(st.integers(3, 10))
def test_mass_far_from_the_likeliest_level_costs_a_score_more_than_mass_beside_it(n: int) -> None:
    near = [0.7, 0.3] + [0.0] * (n - 2)
    far = [0.7] + [0.0] * (n - 2) + [0.3]

    assert confidence.of_score(far) < confidence.of_score(near)
