"""How often a promise is broken, and how often thresholds picked without one are too risky.

The rows of a set are taken for the population, so the risk above a floor is known exactly.
Labels are drawn from it with replacement again and again, a floor is chosen from each drawing, and
the share of drawings whose floor has a risk above what was asked for is compared with delta.
"""

from dataclasses import dataclass

import numpy as np

from bench.cascade_curves import selective
from bench.cascade_readings import Floats, Mask
from policies.certify import certified, grid

DRAWINGS = 500
_JITTER = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Population:
    """Answers of an engine, all that there are."""

    likelihood: Floats
    """Calibrated, float64[rows]."""
    right: Mask
    elsewhere: Floats
    """Likelihoods of other rows, from which the grid of floors comes."""

    def above(self, floor: float | None) -> tuple[float, float]:
        """Share of the answers above a floor, and of them the share that is wrong; 0.0 for none."""
        kept = self.likelihood >= (2.0 if floor is None else floor - 2 * _JITTER)
        return float(kept.mean()), float((~self.right[kept]).mean()) if kept.any() else 0.0


@dataclass(frozen=True, slots=True)
class Broken:
    """What became of so many drawings."""

    labels: int
    promised: float
    """Share of drawings in which a floor was promised."""
    coverage: float
    """Mean share of the population above the floor; 0 where nothing was promised."""
    violated: float
    """Share of drawings whose floor is riskier than promised."""
    naive_violated: float
    """The same for the lowest floor with few enough errors among the drawn labels."""
    naive_coverage: float


def drawn(every: Population, labels: int, risk: float, delta: float) -> Broken:
    """What becomes of `DRAWINGS` drawings of so many labels."""
    draw = np.random.default_rng(0)
    floors = grid(every.elsewhere.tolist())
    coverages, broken, naive, naive_coverages = [], 0, 0, []
    for _ in range(DRAWINGS):
        rows = draw.integers(len(every.right), size=labels)
        right = every.right[rows]
        # Drawing a row twice would tie it with itself; answers of real traffic do not tie.
        scores = every.likelihood[rows] - _JITTER * draw.random(labels)
        found = certified(scores.tolist(), right.tolist(), floors, risk=risk, delta=delta)
        coverage, error = every.above(found.floor)
        coverages.append(coverage)
        broken += error > risk
        coverage, error = every.above(_naive(scores, right, risk))
        naive_coverages.append(coverage)
        naive += error > risk
    return Broken(
        labels,
        float(np.mean(np.array(coverages) > 0)),
        float(np.mean(coverages)),
        broken / DRAWINGS,
        naive / DRAWINGS,
        float(np.mean(naive_coverages)),
    )


def _naive(likelihood: Floats, right: Mask, risk: float) -> float | None:
    """The lowest likelihood down to which at most `risk` of these answers are wrong."""
    _, error = selective(likelihood, right)
    allowed = np.flatnonzero(error <= risk)
    return float(np.sort(likelihood)[::-1][allowed[-1]]) if len(allowed) else None
