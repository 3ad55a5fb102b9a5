"""Cross-validation: what a head says of rows it was not fitted to, and how many rows it needs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gateway.fitting.heads import Floats, Ints, Line, regression
from gateway.fitting.scaling import fitted_temperature, negative_log_likelihood

STRENGTHS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
"""Inverse penalties that are tried."""
FOLDS = 5
_FOLDS_TO_CHOOSE_BY = 2
SHARES = (0.125, 0.25, 0.5, 1.0)
"""Of the rows of the other folds, for the learning curve."""

Step = Callable[[], None]
"""Told that another regression is done."""
STEPS = len(STRENGTHS) * _FOLDS_TO_CHOOSE_BY + FOLDS * len(SHARES) + 1
"""How many regressions `crossed` and the final fit take together."""


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """The rows of one question that may be fitted to."""

    vectors: Floats
    """float64[rows, 384]."""
    labels: Ints
    """int64[rows]."""
    label_count: int
    folds: Ints
    """int64[rows] in [0, FOLDS)."""

    def fitted(self, rows: Ints, strength: float) -> Line:
        """The regression on some of the rows."""
        return regression(self.vectors[rows], self.labels[rows], self.label_count, strength)

    def outside(self, fold: int) -> Ints:
        """Which rows are not in the fold."""
        return np.flatnonzero(self.folds != fold)

    def inside(self, fold: int) -> Ints:
        """Which rows are in the fold."""
        return np.flatnonzero(self.folds == fold)


@dataclass(frozen=True, slots=True, eq=False)
class Crossed:
    """What cross-validation found."""

    strength: float
    log_weights: Floats
    """float64[rows, labels], each row from the regression that did not see it."""
    temperature: float
    """That suits those log-weights."""
    temperatures: tuple[float, ...]
    """By fold: what suits the log-weights of the other folds."""
    curve: tuple[tuple[int, float], ...]
    """(rows fitted to, share of rows right in the fold that was left out), means over the folds."""

    def calibrated(self, folds: Ints) -> Floats:
        """The log-weights over the temperature of the other folds, float64[rows, labels]."""
        found: Floats = self.log_weights / np.asarray(self.temperatures)[folds][:, None]
        return found


def crossed(training: Training, step: Step) -> Crossed:
    """Chooses the penalty by two folds, then fits without each fold in turn."""
    strength = _strength(training, step)
    log_weights = np.zeros((len(training.labels), training.label_count))
    points: dict[float, list[tuple[int, float]]] = {share: [] for share in SHARES}
    for fold in range(FOLDS):
        others, left = training.outside(fold), training.inside(fold)
        for share in SHARES:
            some = _spread(others, share)
            said = training.fitted(some, strength).log_weights(training.vectors[left])
            right = said.argmax(axis=1) == training.labels[left]
            if len(left):
                points[share].append((len(some), float(right.mean())))
            if share == 1.0:
                log_weights[left] = said
            step()
    return Crossed(
        strength,
        log_weights,
        fitted_temperature(log_weights, training.labels),
        tuple(
            fitted_temperature(log_weights[others], training.labels[others])
            for others in map(training.outside, range(FOLDS))
        ),
        tuple(_mean(points[share]) for share in SHARES),
    )


def _strength(training: Training, step: Step) -> float:
    """The inverse penalty of least negative log-likelihood on rows left out."""
    losses = []
    for strength in STRENGTHS:
        parts, lefts = [], []
        for fold in range(_FOLDS_TO_CHOOSE_BY):
            left = training.inside(fold)
            line = training.fitted(training.outside(fold), strength)
            parts.append(line.log_weights(training.vectors[left]))
            lefts.append(training.labels[left])
            step()
        said, labels = np.concatenate(parts), np.concatenate(lefts)
        losses.append(negative_log_likelihood(said, labels, fitted_temperature(said, labels)))
    return STRENGTHS[int(np.argmin(losses))]


def _spread(rows: Ints, share: float) -> Ints:
    """Every so many of the rows, at least two of them."""
    wanted = max(2, round(share * len(rows)))
    places = np.linspace(0, len(rows) - 1, min(wanted, len(rows))).round().astype(np.int64)
    return rows[np.unique(places)]


def _mean(points: Sequence[tuple[int, float]]) -> tuple[int, float]:
    rows = round(sum(n for n, _ in points) / len(points))
    return rows, sum(share for _, share in points) / len(points)
