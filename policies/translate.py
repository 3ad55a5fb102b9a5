"""One threshold in the words of another formula of confidence. Pure.

A threshold keeps answers whose confidence by one formula is at least so much. By another formula
such answers lie in an interval: the same for all of them where both formulas look at the largest
probability alone or there are two options, wider where the others count. Below the interval no
answer would be kept, above it every one; inside it depends on the answer.

With p the largest of n probabilities: jev = (n·p − 1)/(n − 1) and top = p say the same. For the
margin m = p − (second largest), p lies between (1 + (n − 1)·m)/n, all others alike, and (1 + m)/2,
all of the rest on the second. For a given p, or a given m, entropy is largest where the rest is
spread evenly, and smallest where it sits on as few options as it can (entropy is concave, so its
least value is at a corner of the set).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from policies.binomial import Interval
from policies.confidence import OTHERS, Formula, of_choice

_BISECTIONS = 60

Bounds = Callable[[float, int], Interval]
"""Largest probability and number of options → the confidences that it allows."""


def translated(threshold: float, source: Formula, target: Formula, options: int) -> Interval:
    """Confidences by `target` of answers to choices whose confidence by `source` is `threshold`.

    Both in [0, 1]; `options` at least 2. Exact, also at the ends.
    """
    if source == target:
        return Interval(threshold, threshold)
    if {source, target} == {"margin", "entropy"}:
        return _margin_and_entropy(threshold, source, options)
    tops = _tops(threshold, source, options)
    ends = [_of_top(top, target, options) for top in (tops.low, tops.high)]
    return Interval(ends[0].low, ends[1].high)


def confidence(shares: Sequence[float], formula: Formula) -> float:
    """The confidence of a choice with these probabilities."""
    return of_choice(shares) if formula == "jev" else OTHERS[formula](shares)


@dataclass(frozen=True, slots=True)
class Matched:
    """A threshold that keeps as many of some answers, and how alike the two choose."""

    threshold: float
    kept: float
    """Share of the answers that the old one keeps."""
    kept_now: float
    """Share that the new one keeps."""
    alike: float
    """Share of the answers that both keep or both do not."""


def matched(
    answers: Sequence[Sequence[float]], threshold: float, source: Formula, target: Formula
) -> Matched:
    """The threshold by `target` that decides most of these answers as the old one does.

    `answers` are probabilities of choices, at least one; of equally good thresholds the highest.
    """
    old = [confidence(shares, source) >= threshold for shares in answers]
    new = [confidence(shares, target) for shares in answers]
    order = sorted(range(len(answers)), key=new.__getitem__, reverse=True)
    alike = old.count(False)  # keeping nothing
    best, at, kept = alike, 1.0, 0
    for place, i in enumerate(order):
        alike += 1 if old[i] else -1
        tied = place + 1 < len(order) and new[order[place + 1]] == new[i]
        if alike > best and not tied:
            best, at, kept = alike, new[i], place + 1
    n = len(answers)
    return Matched(at, old.count(True) / n, kept / n, best / n)


def _tops(threshold: float, formula: Formula, n: int) -> Interval:
    """The largest probabilities of answers with this confidence."""
    match formula:
        case "top":
            top = max(threshold, 1.0 / n)
            return Interval(top, top)
        case "jev":
            top = (1.0 + (n - 1) * threshold) / n
            return Interval(top, top)
        case "margin":
            return Interval((1.0 + (n - 1) * threshold) / n, (1.0 + threshold) / 2.0)
        case "entropy":
            entropy = (1.0 - threshold) * math.log(n)
            return Interval(
                _where(_least_entropy, entropy, 1.0 / n),
                _where(lambda p: _most_entropy(p, n), entropy, 1.0 / n),
            )


def _of_top(top: float, formula: Formula, n: int) -> Interval:
    """The confidences of answers with this largest probability."""
    match formula:
        case "top":
            return Interval(top, top)
        case "jev":
            jev = max(0.0, (n * top - 1.0) / (n - 1))
            return Interval(jev, jev)
        case "margin":
            return Interval(max(0.0, 2.0 * top - 1.0), max(0.0, top - (1.0 - top) / (n - 1)))
        case "entropy":
            full = math.log(n)
            return Interval(
                max(0.0, 1.0 - _most_entropy(top, n) / full),
                min(1.0, 1.0 - _least_entropy(top) / full),
            )


def _margin_and_entropy(threshold: float, source: Formula, n: int) -> Interval:
    """Between the two, directly: through the largest probability the interval were too wide."""

    def most(margin: float) -> float:
        return _most_entropy((1.0 + (n - 1) * margin) / n, n)

    def least(margin: float) -> float:
        return _entropy(((1.0 + margin) / 2.0, (1.0 - margin) / 2.0))

    full = math.log(n)
    if source == "margin":
        return Interval(
            max(0.0, 1.0 - most(threshold) / full), min(1.0, 1.0 - least(threshold) / full)
        )
    entropy = (1.0 - threshold) * full
    return Interval(_where(least, entropy, 0.0), _where(most, entropy, 0.0))


def _where(falling: Callable[[float], float], value: float, low: float) -> float:
    """Where a function that falls on [low, 1] has the value; `low` where it is below it already."""
    high = 1.0
    if falling(low) <= value:
        return low
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2.0
        if falling(middle) > value:
            low = middle
        else:
            high = middle
    return (low + high) / 2.0


def _entropy(shares: Sequence[float]) -> float:
    return -sum(p * math.log(p) for p in shares if p > 0.0)


def _most_entropy(top: float, n: int) -> float:
    """With the rest spread evenly."""
    return _entropy((top, *[(1.0 - top) / (n - 1)] * (n - 1)))


def _least_entropy(top: float) -> float:
    """With the rest on as few others as none is larger."""
    whole = int(1.0 / top + 1e-12)
    return _entropy((*[top] * whole, max(0.0, 1.0 - whole * top)))
