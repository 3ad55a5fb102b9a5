"""Fits what makes probabilities of an engine's log-weights: a temperature, and a rising map. Pure.

The map says how probably an answer is right whose own probability is p: isotonic regression by
pooling adjacent violators (Ayer et al., "An empirical distribution function for sampling with
incomplete information", Annals of Mathematical Statistics 26, 1955), as Zadrozny & Elkan (KDD 2002)
use it for calibration.
"""

from collections.abc import Sequence
from math import isqrt, sqrt
from statistics import fmean, stdev

from policies.calibration import Calibration, fitted_temperature, probabilities

FEWEST_FOR_A_TEMPERATURE = 20
"""With fewer labels log-weights are taken as they are."""
FEWEST_FOR_A_MAP = 200
"""With fewer labels a map would follow chance."""
_FOLDS = 5
_OWN_SHARE = 0.02
"""Of the probability itself in the map, so that no two answers lose their order in a step."""

Knots = tuple[tuple[float, float], ...]


def fitted(log_weights: Sequence[Sequence[float]], labels: Sequence[int]) -> Calibration:
    """The calibration that suits the labels, indices into their rows of log-weights.

    A map is taken only where it predicts labels better that it has not seen: by Brier score over
    five folds, every fifth row each, and by more than the standard error of the difference.
    """
    if len(labels) < FEWEST_FOR_A_TEMPERATURE:
        return Calibration()
    temperature = fitted_temperature(log_weights, labels)
    tops, right = outcomes(log_weights, labels, temperature)
    knots = isotonic(tops, right, isqrt(len(tops))) if _map_pays(tops, right) else ()
    return Calibration(temperature, knots)


def outcomes(
    log_weights: Sequence[Sequence[float]], labels: Sequence[int], temperature: float
) -> tuple[list[float], list[bool]]:
    """The probability of each row's first likeliest label, and whether that is the right one."""
    tops, right = [], []
    for row, label in zip(log_weights, labels, strict=True):
        shares = probabilities(row, temperature)
        tops.append(max(shares))
        right.append(_likeliest(row) == label)
    return tops, right


def isotonic(tops: Sequence[float], right: Sequence[bool], least: int = 1) -> Knots:
    """The rising map as knots (probability, share of right answers), strictly rising in both.

    The least-squares rising fit to shares of at least `least` answers each, and a fiftieth of the
    probability itself. Empty where all probabilities are the same.
    """
    blocks = _pooled(tops, right, least)
    knots: list[tuple[float, float]] = []
    for low, high, share in blocks:
        for x in (low, high):
            y = (1.0 - _OWN_SHARE) * share + _OWN_SHARE * x
            if not knots or x > knots[-1][0]:
                knots.append((x, y))
    return tuple(knots) if len(knots) > 1 else ()


def _pooled(
    tops: Sequence[float], right: Sequence[bool], least: int
) -> list[tuple[float, float, float]]:
    """Blocks of equal shares as (least, greatest probability, share), rising."""
    stack: list[tuple[float, float, float, int]] = []
    for top, hit in sorted(zip(tops, right, strict=True)):
        if stack and (stack[-1][3] < least or stack[-1][1] == top):
            low, _, hits, count = stack.pop()
            stack.append((low, top, hits + hit, count + 1))
        else:
            _pool(stack)
            stack.append((top, top, float(hit), 1))
    if len(stack) > 1 and stack[-1][3] < least:
        _merge(stack)
    _pool(stack)
    return [(low, high, hits / count) for low, high, hits, count in stack]


def _pool(stack: list[tuple[float, float, float, int]]) -> None:
    """Merge from the top while shares do not rise."""
    while len(stack) > 1 and stack[-2][2] * stack[-1][3] >= stack[-1][2] * stack[-2][3]:
        _merge(stack)


def _merge(stack: list[tuple[float, float, float, int]]) -> None:
    _, high, more, others = stack.pop()
    low, _, hits, count = stack.pop()
    stack.append((low, high, hits + more, count + others))


def _map_pays(tops: Sequence[float], right: Sequence[bool]) -> bool:
    """Whether a map predicts held-out answers better than the probability itself does."""
    if len(tops) < FEWEST_FOR_A_MAP:
        return False
    gains: list[float] = []
    for fold in range(_FOLDS):
        seen = [i for i in range(len(tops)) if i % _FOLDS != fold]
        knots = isotonic([tops[i] for i in seen], [right[i] for i in seen], isqrt(len(seen)))
        mapped = Calibration(1.0, knots)
        for i in range(fold, len(tops), _FOLDS):
            after = (mapped.likelihood(tops[i]) - right[i]) ** 2
            gains.append((tops[i] - right[i]) ** 2 - after)
    return fmean(gains) > stdev(gains) / sqrt(len(gains))


def _likeliest(row: Sequence[float]) -> int:
    return max(range(len(row)), key=row.__getitem__)
