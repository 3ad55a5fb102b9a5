"""The promise, tried hundreds of times on populations whose true risk is known.

Violation: a floor above which the true share of wrong answers is higher than promised. Coverage is
the true share of answers kept, 0 where nothing is promised. The yardsticks are two pickers that are
valid too: a fixed sequence over every rank from the zero-error minimum, and two sequences over
quantiles of unlabelled answers that share δ without inheriting.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from policies.binomial import at_most
from policies.certify import certified, fewest_trials, grid

TRIALS = 300
DELTA = 0.1
Floats = NDArray[np.float64]
Picker = Callable[[Floats, NDArray[np.bool_], Floats, float], float | None]


@dataclass(frozen=True)
class Population:
    """What an engine says of 100,000 answers, and how probably each is right."""

    likelihood: Floats
    truth: Floats

    def drawn(self, rng: np.random.Generator, n: int) -> tuple[Floats, NDArray[np.bool_]]:
        at = rng.integers(0, len(self.likelihood), n)
        return self.likelihood[at], rng.random(n) < self.truth[at]

    def kept(self, floor: float | None) -> tuple[float, float]:
        """Coverage and true risk above a floor."""
        if floor is None or not (above := self.likelihood >= floor).any():
            return 0.0, 0.0
        return float(above.mean()), float(1 - self.truth[above].mean())


def populations() -> dict[str, Population]:
    rng = np.random.default_rng(1)
    said = 1 - 0.7 * rng.beta(1, 2, 100_000)
    top = said > np.quantile(said, 0.95)
    return {
        "calibrated": Population(said, said),
        "over-confident": Population(said, 1 - np.minimum(1, 2 * (1 - said))),
        "confidently wrong": Population(said, np.where(top, 0.7, said)),
        "calibrated, in ties": Population(np.round(said, 2), said),
    }


POPULATIONS = populations()


def ours(scores: Floats, right: NDArray[np.bool_], other: Floats, risk: float) -> float | None:
    floors = grid(other.tolist())
    return certified(scores.tolist(), right.tolist(), floors, risk=risk, delta=DELTA).floor


def every_rank(
    scores: Floats, right: NDArray[np.bool_], other: Floats, risk: float
) -> float | None:
    order = np.argsort(-scores)
    errors = np.cumsum(~right[order])
    best = None
    for m in range(fewest_trials(0, risk, DELTA), len(scores) + 1):
        if at_most(int(errors[m - 1]), m, risk) > DELTA:
            break
        best = float(scores[order[m - 1]])
    return best


def two_chains(
    scores: Floats, right: NDArray[np.bool_], other: Floats, risk: float
) -> float | None:
    least, best = fewest_trials(0, risk, DELTA / 2), None
    for begin in (1.3, 2.5):
        for share in np.arange(begin * least / len(scores), 1.0, 0.01):
            floor = float(np.quantile(other, 1 - share))
            kept = scores >= floor
            m, k = int(kept.sum()), int((kept & ~right).sum())
            if not m or at_most(k, m, risk) > DELTA / 2:
                break
            best = floor if best is None else min(best, floor)
    return best


def naive(scores: Floats, right: NDArray[np.bool_], other: Floats, risk: float) -> float | None:
    order = np.argsort(-scores)
    share = np.cumsum(~right[order]) / np.arange(1, len(scores) + 1)
    good = np.nonzero(share <= risk)[0]
    return float(scores[order[good[-1]]]) if len(good) else None


def tried(picker: Picker, name: str, n: int, risk: float) -> tuple[int, float]:
    """Violations among TRIALS, and mean coverage."""
    population = POPULATIONS[name]
    rng = np.random.default_rng(n)
    violations, coverage = 0, 0.0
    for _ in range(TRIALS):
        scores, right = population.drawn(rng, n)
        other, _unseen = population.drawn(rng, 300)
        share, true_risk = population.kept(picker(scores, right, other, risk))
        violations += true_risk > risk
        coverage += share / TRIALS
    return violations, coverage


def believable(violations: int) -> bool:
    """Whether so many violations happen more than once in a thousand times at a rate of δ."""
    return 1 - at_most(violations - 1, TRIALS, DELTA) > 1e-3


@pytest.mark.parametrize("name", POPULATIONS)
@pytest.mark.parametrize(("n", "risk"), [(200, 0.1), (600, 0.1), (600, 0.05), (2000, 0.05)])
def test_the_promise_is_broken_no_more_often_than_it_says(name: str, n: int, risk: float) -> None:
    violations, _ = tried(ours, name, n, risk)

    assert believable(violations), f"{violations} of {TRIALS}"


@pytest.mark.parametrize("name", ["calibrated", "over-confident"])
@pytest.mark.parametrize(("n", "risk"), [(200, 0.1), (600, 0.1), (600, 0.05)])
def test_no_valid_yardstick_keeps_more_answers(name: str, n: int, risk: float) -> None:
    _, coverage = tried(ours, name, n, risk)

    for yardstick in (every_rank, two_chains):
        assert coverage >= tried(yardstick, name, n, risk)[1] - 0.01


@pytest.mark.parametrize(
    ("name", "n", "risk", "published"),
    [
        ("calibrated", 600, 0.1, 0.24),
        ("over-confident", 600, 0.1, 0.07),
        ("calibrated", 600, 0.05, 0.04),
    ],
)
def test_coverage_is_not_below_the_best_published_for_valid_pickers(
    name: str, n: int, risk: float, published: float
) -> None:
    assert tried(ours, name, n, risk)[1] >= published


def test_a_confidently_wrong_cohort_is_met_with_silence() -> None:
    _, coverage = tried(ours, "confidently wrong", 600, 0.1)

    assert coverage < 0.05


def test_taking_the_lowest_floor_that_looks_good_breaks_the_promise_half_the_time() -> None:
    violations, _ = tried(naive, "calibrated", 600, 0.1)

    assert violations > 0.4 * TRIALS
    assert not believable(violations)
