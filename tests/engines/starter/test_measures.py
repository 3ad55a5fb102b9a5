"""The figures of the model card: fitted scales and scores on cases that can be worked out."""

import math
import random

import pytest

from bench.starter_fit import NO_INFORMATION, Cosines, ranked, yes_no
from bench.starter_scores import auroc, majority, rank_correlation, ranks


def drawn(seed: int, slope: float, offset: float, rows: int = 1000) -> Cosines:
    """Yes/no rows whose right label is drawn with the log-odds `slope * cosine + offset`."""
    dice = random.Random(seed)
    cosines = [dice.uniform(-0.2, 0.8) for _ in range(rows)]
    odds = [slope * c + offset for c in cosines]
    return Cosines(
        [[c] for c in cosines], [int(dice.random() > 1 / (1 + math.exp(-o))) for o in odds]
    )


def test_ties_share_the_mean_of_their_ranks() -> None:
    assert ranks([3.0, 1.0, 3.0, 2.0]) == [3.5, 1.0, 3.5, 2.0]


@pytest.mark.parametrize(
    ("scores", "expected"),
    [([3, 4, 1, 2], 1.0), ([1, 2, 3, 4], 0.0), ([1, 1, 1, 1], 0.5), ([2, 4, 1, 3], 0.75)],
)
def test_auroc_is_how_often_a_positive_stands_above_a_negative(
    scores: list[float], expected: float
) -> None:
    assert auroc(scores, [True, True, False, False]) == expected


@pytest.mark.parametrize(
    ("other", "rho"), [([1, 2, 3], 1.0), ([9, 4, 1], -1.0), ([5, 5, 5], 0.0), ([1, 3, 2], 0.5)]
)
def test_rank_correlation_is_spearmans(other: list[float], rho: float) -> None:
    assert rank_correlation([1, 10, 100], other) == pytest.approx(rho)


def test_the_majority_is_the_share_of_the_most_frequent_label() -> None:
    assert majority([0, 2, 2, 1]) == 0.5


def test_a_yes_no_scale_is_found_where_every_set_agrees_on_it() -> None:
    sets = {str(seed): drawn(seed, slope=10.0, offset=-3.0) for seed in range(3)}

    scale, evidence = yes_no(sets)

    assert scale["temperature"] == pytest.approx(0.1, rel=0.3)
    assert scale["unsaid_no"] == pytest.approx(3.0, rel=0.3)
    for name, nll in evidence["nll_where_left_out"].items():
        assert nll < evidence["nll_of_the_others_base_rate"][name]


def test_a_yes_no_scale_of_cosines_that_say_nothing_gives_the_base_rate() -> None:
    sets = {str(seed): drawn(seed, slope=0.0, offset=-1.0) for seed in range(3)}

    scale, evidence = yes_no(sets)

    yes = [1 / (1 + math.exp(scale["unsaid_no"] - c / scale["temperature"])) for c in (-0.2, 0.8)]
    assert yes == pytest.approx([evidence["base_rate"]] * 2, abs=0.05)


def test_sets_that_contradict_each_other_give_a_large_temperature() -> None:
    sets = {"for": drawn(1, slope=8.0, offset=-2.4), "against": drawn(2, slope=-8.0, offset=2.4)}

    scale, _ = yes_no(sets)

    assert scale["temperature"] > 2


def test_a_temperature_of_levels_drawn_at_random_is_the_largest() -> None:
    dice = random.Random(3)
    rows = [[dice.random() for _ in range(4)] for _ in range(500)]
    unrelated = Cosines(rows, [max(range(4), key=lambda n: -row[n]) for row in rows])

    scale, evidence = ranked({"one": unrelated})

    assert scale["temperature"] == pytest.approx(NO_INFORMATION, rel=0.01)
    assert evidence["nll"] == pytest.approx(math.log(4), abs=0.001)
