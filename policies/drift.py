"""Has the traffic changed? Two samples of numbers and their population stability index. Pure.

`PSI = Σ (aᵢ - bᵢ) ln(aᵢ / bᵢ)` over bins: Jeffreys' divergence J(1,2) in S. Kullback, "Information
Theory and Statistics" (1959), chapter 1. The usual reading, from credit scoring: below 0.1 nothing
to see, from 0.25 on another population (N. Siddiqi, "Credit Risk Scorecards", 2006).

Small samples differ by chance: with the same population behind both, n·m/(n + m)·PSI is
asymptotically chi-square with one degree of freedom less than bins (Kullback, chapter 6).
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, log, nextafter, sqrt
from statistics import NormalDist
from typing import Literal, TypeAlias

BINS = 10
SHIFTED = 0.1
CHANGED = 0.25

Verdict: TypeAlias = Literal["stable", "shifted", "changed", "too_few"]

_FEWEST = 100
"""Observations on either side below which nothing is said."""
_CHANCE = 0.001
"""How often a shift may be seen where there is none."""
_PSEUDO = 0.5
"""Added to each bin, so that an empty one does not weigh infinitely much."""


@dataclass(frozen=True, slots=True)
class Drift:
    """How far a sample is from its reference."""

    psi: float
    by_chance: float
    """What the index stays below with probability 0.999 when nothing has changed."""
    verdict: Verdict


def cuts_of(reference: Sequence[float], bins: int = BINS) -> tuple[float, ...]:
    """Where to cut so that each bin holds as much of the reference; rising.

    A bin reaches from one cut, exclusive, to the next, inclusive. A value that so much of the
    reference has that it would fill several bins gets one of its own.
    """
    ordered = sorted(reference)
    if not ordered:
        return ()
    places = (max(0, len(ordered) * i // bins - 1) for i in range(1, bins))
    found = Counter(ordered[place] for place in places)
    repeated = {cut for cut, times in found.items() if times > 1}
    below = {nextafter(cut, -inf) for cut in repeated}
    return tuple(sorted(below | repeated | {cut for cut in found if cut < ordered[-1]}))


def binned(values: Sequence[float], cuts: Sequence[float]) -> list[int]:
    """How many values fall into each of the `len(cuts) + 1` bins."""
    counts = [0] * (len(cuts) + 1)
    for value in values:
        at = bisect_right(cuts, value)
        counts[at - 1 if at and cuts[at - 1] == value else at] += 1
    return counts


def stability_index(reference: Sequence[int], current: Sequence[int]) -> float:
    """PSI of two counts over the same bins, at least 0; half an observation is added to each."""
    total_a = sum(reference) + _PSEUDO * len(reference)
    total_b = sum(current) + _PSEUDO * len(current)
    index = 0.0
    for a, b in zip(reference, current, strict=True):
        share_a, share_b = (a + _PSEUDO) / total_a, (b + _PSEUDO) / total_b
        index += (share_b - share_a) * log(share_b / share_a)
    return index


def drift(reference: Sequence[int], current: Sequence[int]) -> Drift:
    """What two counts over the same bins say; nothing with fewer than 100 on either side."""
    index = stability_index(reference, current)
    n, m = sum(reference), sum(current)
    if min(n, m) < _FEWEST:
        return Drift(index, inf, "too_few")
    chance = _chi_square_quantile(len(reference) - 1, 1.0 - _CHANCE) * (1.0 / n + 1.0 / m)
    verdict: Verdict = "stable"
    if index > chance and index >= SHIFTED:
        verdict = "changed" if index >= CHANGED else "shifted"
    return Drift(index, chance, verdict)


def _chi_square_quantile(freedom: int, level: float) -> float:
    """By E. B. Wilson & M. M. Hilferty, PNAS 17 (1931); within 2 % from two degrees on."""
    if freedom <= 0:
        return 0.0
    normal = NormalDist()
    if freedom == 1:
        return normal.inv_cdf((1.0 + level) / 2.0) ** 2
    spread = 2.0 / (9.0 * freedom)
    cubed: float = (1.0 - spread + normal.inv_cdf(level) * sqrt(spread)) ** 3
    return freedom * cubed
