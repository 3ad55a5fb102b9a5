"""The charts of a report as numbers: calibration, risk over coverage, cost, confusion."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from gateway.calibrating.judging import Judged, label_names
from gateway.calibrating.results import Read

_MOST_POINTS = 200

T = TypeVar("T")

Cost = Callable[[str, Read], float]
"""Engine name and what it read → what that cost."""


@dataclass(frozen=True, slots=True)
class Bin:
    """Answers of about the same stated probability."""

    stated: float
    """Mean probability of being right, as stated."""
    right: float
    """Share that is right."""
    count: int


@dataclass(frozen=True, slots=True)
class Point:
    """A floor, and what comes of it."""

    floor: float
    coverage: float
    """Share of the answers that is kept."""
    risk: float
    """Share of the kept that is wrong; 0 where none is kept."""


@dataclass(frozen=True, slots=True)
class Trade:
    """A floor, and what the two engines together cost and are right at."""

    floor: float
    kept: float
    """Share of the questions that the small engine answers."""
    cost: float
    """Of one question, on average."""
    accuracy: float


def reliability(stated: Sequence[float], right: Sequence[bool], bins: int = 10) -> list[Bin]:
    """Answers in bins of equal width over [0, 1], those with any, rising."""
    members: dict[int, list[tuple[float, bool]]] = {}
    for p, hit in zip(stated, right, strict=True):
        members.setdefault(min(bins - 1, int(p * bins)), []).append((p, hit))
    return [
        Bin(sum(p for p, _ in some) / len(some), sum(h for _, h in some) / len(some), len(some))
        for _, some in sorted(members.items())
    ]


def risk_coverage(likelihoods: Sequence[float], right: Sequence[bool]) -> list[Point]:
    """Every floor from the strictest down; answers that tie are kept together."""
    falling = sorted(zip(likelihoods, right, strict=True), reverse=True)
    points: list[Point] = []
    errors = 0
    for m, (floor, hit) in enumerate(falling, start=1):
        errors += not hit
        if m == len(falling) or falling[m][0] < floor:
            points.append(Point(floor, m / len(falling), errors / m))
    return points


def trades(
    small: Sequence[tuple[Judged, float]],
    large: Mapping[tuple[int, str], Judged],
    cost: Cost,
    names: tuple[str, str],
) -> list[Trade]:
    """What every floor would cost and be right at, from keeping nothing to keeping everything.

    `small` are answers with their likelihood, −1.0 where they are never kept; `large` are the
    other engine's by row and question; `names` are both engines'. A question that the large one
    refuses is answered wrongly there.
    """
    falling = sorted(small, key=lambda pair: -pair[1])
    n = len(falling)
    right = cost_each = 0.0
    for one, _ in falling:
        other = large[one.row, one.name]
        right += other.read.refused is None and other.right
        cost_each += cost(names[1], other.read)
        if one.off is None or one.off == one.read.doubt:  # otherwise the small one is not asked
            cost_each += cost(names[0], one.read)
    found = [Trade(2.0, 0.0, cost_each / n, right / n)]
    for m, (one, likelihood) in enumerate(falling, start=1):
        if likelihood < 0.0:
            break
        other = large[one.row, one.name]
        right += one.right - (other.read.refused is None and other.right)
        cost_each -= cost(names[1], other.read)
        if m == n or falling[m][1] < likelihood:
            found.append(Trade(likelihood, m / n, cost_each / n, right / n))
    return found


def at_floor(found: Sequence[Trade], floor: float | None) -> Trade:
    """The trade of a floor; of keeping nothing for `None`."""
    strictest = 2.0 if floor is None else floor
    return [one for one in found if one.floor >= strictest][-1]


def confusions(answers: Sequence[Judged], most: int = 10) -> list[tuple[str, str, str, int]]:
    """The commonest wrong answers as (question, right label, answer, how often)."""
    wrong = [one for one in answers if one.label is not None and not one.right]
    counts = Counter((one.name, one.fingerprint, one.label or 0, one.answered) for one in wrong)
    labels = {one.fingerprint: label_names(one.question) for one in wrong}
    return [
        (name, labels[mark][label], labels[mark][answered], count)
        for (name, mark, label, answered), count in counts.most_common(most)
    ]


def thinned(points: Sequence[T]) -> list[T]:
    """At most 200 of them, evenly, with both ends."""
    if len(points) <= _MOST_POINTS:
        return list(points)
    last = len(points) - 1
    return [points[round(i * last / (_MOST_POINTS - 1))] for i in range(_MOST_POINTS)]
