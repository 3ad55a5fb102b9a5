"""How good answers are: accuracy, AUROC, ECE and rank correlation; plain Python."""

import random
from collections.abc import Sequence
from itertools import groupby


def ranks(values: Sequence[float]) -> list[float]:
    """The 1-based rank of every value, ties sharing their mean."""
    order = sorted(range(len(values)), key=values.__getitem__)
    found = [0.0] * len(values)
    place = 0
    for _, tied in groupby(order, key=values.__getitem__):
        indices = list(tied)
        for index in indices:
            found[index] = place + (len(indices) + 1) / 2
        place += len(indices)
    return found


def auroc(scores: Sequence[float], holds: Sequence[bool]) -> float:
    """The chance that a random positive outscores a random negative, 0..1, ties a half."""
    positives = sum(holds)
    negatives = len(holds) - positives
    if not positives or not negatives:
        raise ValueError("AUROC needs both classes")
    total = sum(rank for rank, hold in zip(ranks(scores), holds, strict=True) if hold)
    return (total - positives * (positives + 1) / 2) / (positives * negatives)


def spearman(left: Sequence[float], right: Sequence[float]) -> float:
    """Spearman's rho, -1..1, or 0.0 when one side is constant."""
    a, b = ranks(left), ranks(right)
    mean = (len(a) + 1) / 2
    spread = sum((x - mean) ** 2 for x in a) * sum((y - mean) ** 2 for y in b)
    if spread == 0.0:
        return 0.0
    shared = sum((x - mean) * (y - mean) for x, y in zip(a, b, strict=True))
    return float(shared / spread**0.5)


def ece(confidences: Sequence[float], right: Sequence[bool], bins: int = 10) -> float:
    """Expected calibration error over equal-width bins, 0..1 (Guo et al. 2017, eq. 3)."""
    gaps = [0.0] * bins
    for confidence, hit in zip(confidences, right, strict=True):
        gaps[min(int(confidence * bins), bins - 1)] += confidence - hit
    return sum(abs(gap) for gap in gaps) / len(confidences)


Judged = tuple[Sequence[float], Sequence[bool]]
"""The scores of a set and which of them belong to positives, in one order."""


def auroc_interval(
    sets: Sequence[Judged], against: Sequence[Judged] | None = None, draws: int = 400
) -> tuple[float, float]:
    """The 95 % bootstrap interval of the mean AUROC over sets, examples drawn within each.

    With `against`, other scores of the same examples in the same order, the interval of the
    difference of the two means, both over the same draws.
    """
    rng = random.Random(5)
    found = sorted(_drawn_mean(sets, against, rng) for _ in range(draws))
    return found[round(0.025 * (draws - 1))], found[round(0.975 * (draws - 1))]


def _drawn_mean(
    sets: Sequence[Judged], against: Sequence[Judged] | None, rng: random.Random
) -> float:
    total = 0.0
    for number, (scores, holds) in enumerate(sets):
        drawn = rng.choices(range(len(holds)), k=len(holds))
        kept = [holds[i] for i in drawn]
        total += auroc([scores[i] for i in drawn], kept)
        if against is not None:
            total -= auroc([against[number][0][i] for i in drawn], kept)
    return total / len(sets)
