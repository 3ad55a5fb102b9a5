"""Counts out of so many: exact binomial tails, and intervals for the rate behind them. Pure.

Tails are summed term by term, so they are exact but for rounding: to about 1e-9 of themselves for
up to a million trials.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist

_ENOUGH = 1e-17
"""A term this much smaller than the sum changes nothing."""
_BISECTIONS = 60


@dataclass(frozen=True, slots=True)
class Interval:
    """Where a rate lies, 0 ≤ low ≤ high ≤ 1."""

    low: float
    high: float


def at_most(successes: int, trials: int, rate: float) -> float:
    """P(X ≤ `successes`) for X binomial with `trials` trials of this rate, in [0, 1]."""
    if successes < 0:
        return 0.0
    if successes >= trials or rate <= 0.0:
        return 1.0
    if rate >= 1.0:
        return 0.0
    if successes > trials * rate:  # the other tail is the smaller one and so the exact one
        return 1.0 - _tail(trials - successes - 1, trials, 1.0 - rate)
    return _tail(successes, trials, rate)


def at_least(successes: int, trials: int, rate: float) -> float:
    """P(X ≥ `successes`) for X binomial with `trials` trials of this rate, in [0, 1]."""
    return at_most(trials - successes, trials, 1.0 - rate)


def clopper_pearson(successes: int, trials: int, level: float = 0.95) -> Interval:
    """The exact interval for the rate: covers it with probability at least `level`, whatever it is.

    Clopper & Pearson, "The use of confidence or fiducial limits illustrated in the case of the
    binomial", Biometrika 26 (1934): the rates at which either tail has probability (1 - level)/2.
    Everything, `[0, 1]`, for no trials.
    """
    side = (1.0 - level) / 2.0
    return Interval(
        lower_bound(successes, trials, side),
        upper_bound(successes, trials, side),
    )


def upper_bound(successes: int, trials: int, delta: float) -> float:
    """The rate that is exceeded with probability at most `delta`: one side of Clopper–Pearson."""
    if successes >= trials:
        return 1.0
    low, high = successes / trials, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2.0
        if at_most(successes, trials, middle) > delta:
            low = middle
        else:
            high = middle
    return high


def lower_bound(successes: int, trials: int, delta: float) -> float:
    """The rate that is undercut with probability at most `delta`."""
    return 1.0 - upper_bound(trials - successes, trials, delta)


def wilson(successes: float, trials: float, level: float = 0.95) -> Interval:
    """The score interval for the rate: covers it with probability near `level`; for display.

    Wilson, "Probable inference, the law of succession, and statistical inference", Journal of the
    American Statistical Association 22 (1927). Everything, `[0, 1]`, for no trials. Counts may be
    fractions: effective ones of weighted trials.
    """
    if trials <= 0:
        return Interval(0.0, 1.0)
    z2 = NormalDist().inv_cdf((1.0 + level) / 2.0) ** 2
    share = successes / trials
    middle = (share + z2 / (2.0 * trials)) / (1.0 + z2 / trials)
    spread = math.sqrt(z2 * (share * (1.0 - share) + z2 / (4.0 * trials)) / trials)
    half = spread / (1.0 + z2 / trials)
    low = 0.0 if successes <= 0 else max(0.0, middle - half)
    return Interval(low, 1.0 if successes >= trials else min(1.0, middle + half))


def _tail(successes: int, trials: int, rate: float) -> float:
    """P(X ≤ successes) for 0 < rate < 1 and successes < trials, by falling terms."""
    term = math.exp(
        math.lgamma(trials + 1)
        - math.lgamma(successes + 1)
        - math.lgamma(trials - successes + 1)
        + successes * math.log(rate)
        + (trials - successes) * math.log1p(-rate)
    )
    total, odds = term, (1.0 - rate) / rate
    for k in range(successes, 0, -1):
        term *= k / (trials - k + 1) * odds
        total += term
        if term < total * _ENOUGH:
            break
    return min(1.0, total)
