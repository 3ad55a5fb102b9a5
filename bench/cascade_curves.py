"""A small and a large engine's answers to the same rows: what each way of escalating would give."""

from dataclasses import dataclass

import numpy as np

from bench.cascade_readings import Floats, Ints, Mask
from policies.binomial import Interval, clopper_pearson

EQUAL_WITHIN = 0.01
"""Accuracies this close count as equal in the second of the savings."""
_RESAMPLES = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Two engines on the same rows."""

    likelihood: Floats
    """The small engine's calibrated probability of being right, float64[rows]."""
    small: Mask
    """Where the small engine is right, bool[rows]."""
    large: Mask

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.small)


@dataclass(frozen=True, slots=True)
class Saving:
    """Questions that the large engine need not read, at equal accuracy."""

    share: float
    """Of all questions, in [0, 1]; 0 = only asking the large engine everything is as good."""
    interval: Interval
    """95 %, by the bootstrap over rows."""


def by_share(pair: Pair) -> Floats:
    """Accuracy when the least likely k rows go up, for k = 0 … rows; float64[rows + 1].

    Rows of one likelihood are taken in the file's order.
    """
    order = np.argsort(pair.likelihood, kind="stable")
    return _as_they_go_up(pair, order)


def at_random(pair: Pair) -> Floats:
    """Mean accuracy when any k rows go up, k = 0 … rows: a straight line; float64[rows + 1]."""
    return np.linspace(pair.small.mean(), pair.large.mean(), pair.rows + 1)


def by_oracle(pair: Pair) -> Floats:
    """Accuracy when somebody who knows every answer picks the k rows, k = 0 … rows."""
    return _as_they_go_up(pair, np.argsort(pair.small.astype(int) - pair.large.astype(int)))


def _as_they_go_up(pair: Pair, order: Ints) -> Floats:
    gains = pair.large[order].astype(int) - pair.small[order].astype(int)
    found: Floats = (pair.small.sum() + np.concatenate([[0], np.cumsum(gains)])) / pair.rows
    return found


def recovered(pair: Pair) -> float:
    """Mean over all shares of how much of the gap between the engines is closed; random = 0.5.

    The average performance gap recovered of Ong et al., "RouteLLM", 2024. 0.0 without a gap.
    """
    gap = pair.large.mean() - pair.small.mean()
    if abs(gap) < 1e-9:
        return 0.0
    return float((by_share(pair) - pair.small.mean()).mean() / gap)


def saving(pair: Pair, slack: float = 0.0) -> Saving:
    """The largest share that stays below while accuracy is within `slack` of the large engine's.

    Shares are chosen on the rows they are reported on, again in each resample; so the interval
    covers the choice too, and the point is what an operator who knew these rows would take.
    """
    draw = np.random.default_rng(0)
    found = [
        _saved(_resampled(pair, draw.integers(pair.rows, size=pair.rows)), slack)
        for _ in range(_RESAMPLES)
    ]
    low, high = np.quantile(found, [0.025, 0.975])
    return Saving(_saved(pair, slack), Interval(float(low), float(high)))


def _resampled(pair: Pair, rows: Ints) -> Pair:
    return Pair(pair.likelihood[rows], pair.small[rows], pair.large[rows])


def _saved(pair: Pair, slack: float) -> float:
    enough = by_share(pair) >= pair.large.mean() - slack - 1e-12
    return float(1.0 - np.argmax(enough) / pair.rows) if enough.any() else 0.0


def beats_random(pair: Pair, share: float) -> tuple[float, Interval]:
    """Accuracy above random escalation of the same share, and its 95 % bootstrap interval."""
    draw = np.random.default_rng(0)
    found = []
    for _ in range(_RESAMPLES):
        some = _resampled(pair, draw.integers(pair.rows, size=pair.rows))
        at = round(share * some.rows)
        found.append(by_share(some)[at] - at_random(some)[at])
    low, high = np.quantile(found, [0.025, 0.975])
    at = round(share * pair.rows)
    return float(by_share(pair)[at] - at_random(pair)[at]), Interval(float(low), float(high))


def selective(likelihood: Floats, right: Mask) -> tuple[Floats, Floats]:
    """(coverage, error) of keeping the likeliest k answers, k = 1 … rows."""
    order = np.argsort(-likelihood, kind="stable")
    wrong = np.cumsum(~right[order])
    kept = np.arange(1, len(right) + 1)
    return kept / len(right), wrong / kept


def automation(likelihood: Floats, right: Mask, risk: float) -> float:
    """The largest share of answers that could be kept at an error of at most `risk` on these rows.

    Known only with the labels: what a promise has to be measured against, never to be had.
    """
    coverage, error = selective(likelihood, right)
    allowed = np.flatnonzero(error <= risk)
    return float(coverage[allowed[-1]]) if len(allowed) else 0.0


def informative(likelihood: Floats, right: Mask) -> float:
    """How often a right answer is held likelier than a wrong one: AUROC, 0.5 = not at all."""
    if right.all() or not right.any():
        return 0.5
    _, inverse, counts = np.unique(likelihood, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    yes = int(right.sum())
    above = ranks[right].sum() - yes * (yes + 1) / 2
    return float(above / (yes * (len(right) - yes)))


def accuracy(right: Mask) -> tuple[float, Interval]:
    """Share right with its exact 95 % interval."""
    return float(right.mean()), clopper_pearson(int(right.sum()), len(right))
