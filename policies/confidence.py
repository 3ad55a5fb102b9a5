"""Confidence in [0, 1] from a reported distribution, by TypeSafe's published formulas.

Source: `typesafe_sdk`'s system-one-adapter 0.2.1, `_utils/confidence_metrics.py` (both formulas),
and the confidence page of TypeSafe's documentation (the choice formula for three options).
Inputs are reported probabilities: in [0, 1] and summing to 1. Both are clamped to [0, 1], which
only removes float noise.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from operator import mul
from typing import Literal, TypeAlias

from engines.contract import NativeConfidence, Noul, Question
from policies.calibration import probabilities

Formula: TypeAlias = Literal["jev", "entropy", "top", "margin"]
"""`jev`: TypeSafe's, one for choices and one for scores. The others are the same for both."""


def of_choice(p: Sequence[float]) -> float:
    """How far the best option stands above a uniform guess.

    `(n·max(p) - 1) / (n - 1)` over `n = len(p)` options; 1.0 when there is only one.
    """
    return of_best(max(p), len(p))


def of_best(top: float, n: int) -> float:
    """`of_choice` of `n` options whose likeliest has the probability `top`."""
    return 1.0 if n == 1 else _unit((n * top - 1.0) / (n - 1))


def of_score(p: Sequence[float]) -> float:
    """How tightly the levels gather around the likeliest one.

    `1 - Σ pᵢ·|i - k| / D` with `k` the first likeliest level and `D = (1/n)·Σ |i - (n-1)/2|`,
    the spread of a uniform distribution around the middle; 1.0 when there is only one level.
    """
    n = len(p)
    if n == 1:
        return 1.0
    distances = _distances(n, p.index(max(p)))
    return _unit(1.0 - sum(map(mul, p, distances)) / _uniform_spread(n))


def of_entropy(p: Sequence[float]) -> float:
    """1 − H(p) / log n over `n = len(p)` labels: how far from a uniform guess; 1.0 for one label.

    Shannon's entropy, normalised by its largest value.
    """
    n = len(p)
    if n == 1:
        return 1.0
    return _unit(1.0 + sum(q * math.log(q) for q in p if q > 0.0) / math.log(n))


def of_top(p: Sequence[float]) -> float:
    """The largest probability itself."""
    return _unit(max(p))


def of_margin(p: Sequence[float]) -> float:
    """How far the largest probability stands above the second largest; 1.0 for one label."""
    if len(p) == 1:
        return 1.0
    second, first = sorted(p)[-2:]
    return _unit(first - second)


OTHERS: Mapping[Formula, Callable[[Sequence[float]], float]] = {
    "entropy": of_entropy,
    "top": of_top,
    "margin": of_margin,
}
"""Formulas beside TypeSafe's."""


def of_native(formula: NativeConfidence, question: Question, log_weights: Sequence[float]) -> float:
    """The confidence that a model's own server reports, from its own log-weights.

    Laya's: `of_entropy` of a choice or a score. Clef's: `of_top`. Both: `of_top` of a noul.
    """
    measure = of_top if formula == "top" or isinstance(question, Noul) else of_entropy
    return round(measure(probabilities(log_weights)), 6)


@lru_cache(maxsize=256)
def _distances(n: int, k: int) -> tuple[int, ...]:
    """|i - k| for each of n levels."""
    return tuple(abs(i - k) for i in range(n))


@lru_cache(maxsize=64)
def _uniform_spread(n: int) -> float:
    return sum(abs(i - (n - 1) / 2) for i in range(n)) / n


def _unit(x: float) -> float:
    return 0.0 if x < 0.0 else 1.0 if x > 1.0 else x
