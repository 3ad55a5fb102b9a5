"""Fits what makes probabilities of an engine's log-weights: a temperature, and a rising map. Pure.

The map says how probably an answer is right whose own probability is p: isotonic regression by
pooling adjacent violators (Ayer et al., "An empirical distribution function for sampling with
incomplete information", Annals of Mathematical Statistics 26, 1955), as Zadrozny & Elkan (KDD 2002)
use it for calibration.
"""

from collections.abc import Sequence

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
    five folds, every fifth row each.
    """
    if len(labels) < FEWEST_FOR_A_TEMPERATURE:
        return Calibration()
    temperature = fitted_temperature(log_weights, labels)
    tops, right = outcomes(log_weights, labels, temperature)
    knots = isotonic(tops, right) if _map_pays(tops, right) else ()
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


def isotonic(tops: Sequence[float], right: Sequence[bool]) -> Knots:
    """The rising map as knots (probability, share of right answers), strictly rising in both.

    The least-squares rising fit, and a fiftieth of the probability itself. Empty where all
    probabilities are the same.
    """
    blocks = _pooled(tops, right)
    knots: list[tuple[float, float]] = []
    for low, high, share in blocks:
        for x in (low, high):
            y = (1.0 - _OWN_SHARE) * share + _OWN_SHARE * x
            if not knots or x > knots[-1][0]:
                knots.append((x, y))
    return tuple(knots) if len(knots) > 1 else ()


def _pooled(tops: Sequence[float], right: Sequence[bool]) -> list[tuple[float, float, float]]:
    """Blocks of equal shares as (least, greatest probability, share), rising."""
    stack: list[tuple[float, float, float, int]] = []
    for top, hit in sorted(zip(tops, right, strict=True)):
        low, hits, count = top, float(hit), 1
        high = top
        while stack and (stack[-1][2] * count >= hits * stack[-1][3] or stack[-1][1] == low):
            low, _, more, others = stack.pop()
            hits, count = hits + more, count + others
        stack.append((low, high, hits, count))
    return [(low, high, hits / count) for low, high, hits, count in stack]


def _map_pays(tops: Sequence[float], right: Sequence[bool]) -> bool:
    """Whether a map predicts held-out answers better than the probability itself does."""
    if len(tops) < FEWEST_FOR_A_MAP:
        return False
    gain = 0.0
    for fold in range(_FOLDS):
        seen = [i for i in range(len(tops)) if i % _FOLDS != fold]
        knots = isotonic([tops[i] for i in seen], [right[i] for i in seen])
        mapped = Calibration(1.0, knots)
        for i in range(fold, len(tops), _FOLDS):
            gain += (tops[i] - right[i]) ** 2 - (mapped.likelihood(tops[i]) - right[i]) ** 2
    return gain > 0.0


def _likeliest(row: Sequence[float]) -> int:
    return max(range(len(row)), key=row.__getitem__)
