"""From log-weights to calibrated probabilities, and how well calibrated they are.

Temperature scaling and expected calibration error as in Guo et al., "On Calibration of Modern
Neural Networks", ICML 2017 (sections 3 and 4.2).
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Calibration:
    """How the log-weights of one engine become probabilities that mean what they say."""

    temperature: float = 1.0
    """Divides the log-weights; positive."""
    knots: tuple[tuple[float, float], ...] = ()
    """Isotonic map as (probability of the likeliest label, probability that it is right), both
    rising, at least two points; empty = the probability itself. Linear between the points."""

    def likelihood(self, top: float) -> float:
        """The probability in [0, 1] that an answer is right whose own probability is `top`."""
        if not self.knots:
            return top
        at = bisect_right(self.knots, (top, math.inf))
        if at == 0:
            return self.knots[0][1]
        if at == len(self.knots):
            return self.knots[-1][1]
        (x0, y0), (x1, y1) = self.knots[at - 1], self.knots[at]
        return y0 + (y1 - y0) * (top - x0) / (x1 - x0)


def probabilities(log_weights: Sequence[float], temperature: float = 1.0) -> list[float]:
    """Softmax of `log_weights / temperature`: as many values in [0, 1], in the same order.

    `log_weights` are finite and at least one, `temperature` is positive.
    """
    top = max(log_weights)
    weights = [math.exp((w - top) / temperature) for w in log_weights]
    total = sum(weights)
    return [w / total for w in weights]


def probability_of_first(first: float, second: float, temperature: float = 1.0) -> float:
    """`probabilities((first, second), temperature)[0]`, without the lists."""
    gap = (second - first) / temperature
    return 1.0 / (1.0 + math.exp(gap)) if gap < 700.0 else 0.0


def negative_log_likelihood(
    log_weights: Sequence[Sequence[float]], labels: Sequence[int], temperature: float
) -> float:
    """Mean of `-ln p(label)` in nats; `labels` are indices, one per row of log-weights."""
    total = 0.0
    for row, label in zip(log_weights, labels, strict=True):
        top = max(row)
        total -= (row[label] - top) / temperature
        total += math.log(sum(math.exp((w - top) / temperature) for w in row))
    return total / len(labels)


def fitted_temperature(
    log_weights: Sequence[Sequence[float]],
    labels: Sequence[int],
    *,
    low: float = 1e-3,
    high: float = 1e3,
) -> float:
    """The temperature in [low, high] with the least negative log-likelihood.

    Golden-section search over ln T to 1e-4; the likelihood is unimodal in 1/T. A result at
    `high` says that the log-weights hold no information about the labels.
    """
    ratio = (math.sqrt(5.0) - 1.0) / 2.0
    a, b = math.log(low), math.log(high)
    while b - a > 1e-4:
        c, d = b - ratio * (b - a), a + ratio * (b - a)
        nll_c = negative_log_likelihood(log_weights, labels, math.exp(c))
        nll_d = negative_log_likelihood(log_weights, labels, math.exp(d))
        a, b = (a, d) if nll_c < nll_d else (c, b)
    return math.exp((a + b) / 2.0)


def expected_calibration_error(
    confidences: Sequence[float], correct: Sequence[bool], *, bins: int = 15
) -> float:
    """Mean gap between stated probability and share of right answers, in [0, 1].

    Equal-width bins over (0, 1], each weighted by how many answers fall into it.
    """
    hits, stated, count = [0.0] * bins, [0.0] * bins, [0] * bins
    for p, right in zip(confidences, correct, strict=True):
        i = min(bins - 1, max(0, math.ceil(p * bins) - 1))
        hits[i] += right
        stated[i] += p
        count[i] += 1
    gaps = sum(abs(s - h) for s, h, c in zip(stated, hits, count, strict=True) if c)
    return gaps / len(confidences)
