"""How good probabilities are, given the right labels."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gateway.fitting.heads import Floats, Ints
from policies.binomial import Interval, clopper_pearson
from policies.calibration import expected_calibration_error

BINS = 10
_MOST_CONFUSIONS = 8


@dataclass(frozen=True, slots=True)
class Measures:
    """Of rows with a distribution over labels each."""

    rows: int
    right: int
    majority: float
    """Share of the most frequent label: the accuracy of always saying it."""
    balanced: float
    """Mean over the labels that occur of the share of their rows that is right."""
    nll: float
    """Mean of -ln p(right label), nats."""
    ece: float
    """Expected calibration error of the likeliest label, 15 bins, in [0, 1]."""
    reliability: tuple[tuple[float, float, int], ...]
    """(mean stated probability, share right, rows) for each tenth of (0, 1] that has rows."""
    mean_distance: float
    """Mean number of places between the right label and the one said; for scores, levels."""

    @property
    def accuracy(self) -> float:
        """Share of rows that are right, in [0, 1]."""
        return self.right / self.rows

    @property
    def interval(self) -> Interval:
        """The exact 95 % interval of the accuracy."""
        return clopper_pearson(self.right, self.rows)


def measured(shares: Floats, labels: Ints) -> Measures:
    """The measures of float64[rows, labels], at least one row."""
    said, top = shares.argmax(axis=1), shares.max(axis=1)
    hits = said == labels
    counts = np.bincount(labels)
    occurring = np.flatnonzero(counts)
    of_right = shares[np.arange(len(labels)), labels]
    return Measures(
        rows=len(labels),
        right=int(hits.sum()),
        majority=float(counts.max() / len(labels)),
        balanced=float(np.mean([hits[labels == one].mean() for one in occurring])),
        nll=float(-np.log(np.maximum(of_right, 1e-12)).mean()),
        ece=expected_calibration_error(top.tolist(), hits.tolist()),
        reliability=_reliability(top, hits),
        mean_distance=float(np.abs(said - labels).mean()),
    )


def confusions(
    shares: Floats, labels: Ints, names: Sequence[str]
) -> tuple[tuple[str, str, int], ...]:
    """(right label, said label, how often) of the most frequent mistakes, in that order."""
    said = shares.argmax(axis=1)
    wrong = said != labels
    counts = Counter(zip(labels[wrong].tolist(), said[wrong].tolist(), strict=True))
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return tuple((names[a], names[b], n) for (a, b), n in ordered[:_MOST_CONFUSIONS])


def _reliability(top: Floats, hits: "np.ndarray") -> tuple[tuple[float, float, int], ...]:
    bins = np.minimum((top * BINS).astype(int), BINS - 1)
    return tuple(
        (float(top[bins == b].mean()), float(hits[bins == b].mean()), int((bins == b).sum()))
        for b in range(BINS)
        if (bins == b).any()
    )
