"""Floors with a finite-sample promise: of the answers kept, at most a share `risk` is wrong. Pure.

Fixed-sequence testing of Learn-then-Test (Angelopoulos et al., "Learn then Test", 2021, section
3.2) with exact binomial p-values: floors are tested from the strictest down, each hypothesis being
"the risk above this floor is too high", until one cannot be rejected. Where two sequences start,
they share `delta`, and the second inherits what the first has left (the fallback procedure, Wiens
2003).

The grid of floors comes from answers that are not among the labelled ones tested here. The first
floor of a sequence lies just above the likelihood of a certain rank, so that exactly so many
answers are accepted. The promise is exact for any relation between likelihood and truth as long as
likelihoods do not tie: cut the likelihoods where the risk crosses `risk`; between two cuts the mean
risk is `risk` exactly, and which floor is the first bad one depends on nothing but how many answers
lie between cuts, so given that, errors above it are binomial with at least the rate `risk`. Answers
that tie are kept together.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from policies.binomial import at_most

GRID_STEPS = 50
"""Floors of a grid: each accepts another fiftieth of the answers."""

_PLENTY = 20
"""With so many times the zero-error minimum, a second sequence starts further down."""
_SECOND_ERRORS = 3
"""The second sequence starts where so many errors still pass."""

_CLEARLY = 0.9
"""Errors closer than this to the risk are taken to be as frequent as it."""


@dataclass(frozen=True, slots=True)
class Start:
    """Where a sequence begins."""

    accepted: int
    """Answers above its first floor."""
    delta: float
    """What it may spend."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """A floor and its evidence, or why there is none."""

    floor: float | None
    """The least likelihood of an answer that is kept, in [0, 1]; `None` = nothing is promised."""
    labels: int
    accepted: int
    errors: int
    """Among the accepted."""
    p_value: float | None
    """Of the last floor that was rejected as too risky: how probable so few errors were."""
    coverage: float
    """Share of the answers that is accepted, in [0, 1]."""
    delta: float
    start_rule: str
    needs: int | None
    """Labels that it would take: a least number where there are fewer than any floor needs, else an
    estimate. `None` = promised, or more labels will not do."""


@dataclass(frozen=True, slots=True)
class _Node:
    """One floor, and what it accepts."""

    floor: float
    accepted: int
    errors: int
    spends: float
    """What a sequence that starts here brings along."""


def fewest_trials(errors: int, rate: float, delta: float) -> int:
    """The least number of trials in which `errors` errors still show a rate below `rate`.

    That is the least m with `at_most(errors, m, rate) ≤ delta`; for no errors
    ⌈ln δ / ln(1 − rate)⌉, the zero-error minimum.
    """
    low, high = errors, max(1, errors + 1)
    while at_most(errors, high, rate) > delta:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        passes = at_most(errors, middle, rate) <= delta
        low, high = (low, middle) if passes else (middle, high)
    return high


def starts(labels: int, risk: float, delta: float) -> tuple[Start, ...]:
    """Where sequences begin; a function of these three numbers, never of any label.

    One sequence from the zero-error minimum m₀, or, with twenty times as many labels, two: one
    from its own zero-error minimum, one from where three errors still pass, each with half of
    `delta`. None where there are too few labels.
    """
    least = fewest_trials(0, risk, delta)
    if labels <= least:
        return ()
    if labels < _PLENTY * least:
        return (Start(least, delta),)
    half = delta / 2.0
    return tuple(Start(fewest_trials(k, risk, half), half) for k in (0, _SECOND_ERRORS))


def start_rule(begin: Sequence[Start]) -> str:
    """The starts in words, e.g. `one sequence from 22 answers`."""
    if not begin:
        return "none: too few labels"
    many = "one sequence" if len(begin) == 1 else "two sequences"
    return f"{many} from {' and '.join(str(one.accepted) for one in begin)} answers"


def grid(likelihoods: Sequence[float], steps: int = GRID_STEPS) -> tuple[float, ...]:
    """Floors at quantiles of likelihoods, falling; the last is 0.0 and keeps everything.

    The likelihoods must be of other answers than those that are tested; labels are not looked at.
    """
    rising = sorted(likelihoods)
    n = len(rising)
    found = {rising[n - max(1, n * step // steps)] for step in range(1, steps)} if n else set()
    return (*sorted(found, reverse=True), 0.0)


def certified(
    likelihoods: Sequence[float],
    right: Sequence[bool],
    floors: Sequence[float],
    *,
    risk: float,
    delta: float,
) -> Certificate:
    """The lowest floor above which the share of wrong answers is at most `risk`.

    With probability at least 1 − `delta` over the drawing of the labelled answers that is true of
    the answers that they were drawn from. `floors` is a `grid` of other answers.
    """
    pairs = sorted(zip(likelihoods, right, strict=True))
    scores = [score for score, _ in pairs]
    begin = starts(len(pairs), risk, delta)
    nodes = _nodes(scores, [hit for _, hit in pairs], begin, floors)
    last, p_value = _lowest(nodes, risk)
    if last is None:
        needs = _needs(len(pairs), nodes, risk, delta)
        return Certificate(None, len(pairs), 0, 0, None, 0.0, delta, start_rule(begin), needs)
    return Certificate(
        last.floor,
        len(pairs),
        last.accepted,
        last.errors,
        p_value,
        last.accepted / len(pairs),
        delta,
        start_rule(begin),
        None,
    )


def _nodes(
    scores: Sequence[float],
    right: Sequence[bool],
    begin: Sequence[Start],
    floors: Sequence[float],
) -> list[_Node]:
    """Floors from the strictest down. `scores` rise; `right` belongs to them."""
    n = len(scores)
    wrong_from = [0] * (n + 1)
    for i in range(n - 1, -1, -1):
        wrong_from[i] = wrong_from[i + 1] + (not right[i])
    spends: dict[float, float] = {}
    for start in begin:
        floor = _just_above(scores, start.accepted)
        spends[floor] = spends.get(floor, 0.0) + start.delta
    strictest = max(spends, default=0.0)
    walk = {floor: 0.0 for floor in floors if floor < strictest} | spends
    found = []
    for floor in sorted(walk, reverse=True):
        at = bisect_left(scores, floor)
        found.append(_Node(floor, n - at, wrong_from[at], walk[floor]))
    return found


def _just_above(scores: Sequence[float], accepted: int) -> float:
    """The strictest floor just above a score that accepts at least so many, or 0.0.

    Without ties it accepts exactly so many. `scores` rise and are more than `accepted`.
    """
    next_one = scores[len(scores) - 1 - accepted]
    if len(scores) - bisect_right(scores, next_one) < accepted:  # it ties with accepted ones
        below = bisect_left(scores, next_one)
        if not below:
            return 0.0
        next_one = scores[below - 1]
    return math.nextafter(next_one, 2.0)


def _lowest(nodes: Sequence[_Node], risk: float) -> tuple[_Node | None, float | None]:
    """The last floor that some sequence reached, and its p-value."""
    level, last, p_value = 0.0, None, None
    for node in nodes:
        level += node.spends
        if not level:
            continue
        p = at_most(node.errors, node.accepted, risk)
        if node.accepted and p <= level:
            last, p_value = node, p
        else:
            level = 0.0
    return last, p_value


def _needs(labels: int, nodes: Sequence[_Node], risk: float, delta: float) -> int | None:
    """Labels that it would take, if errors stay as frequent as they were seen to be.

    The frequency is Laplace's, (k + 1)/(m + 2), so that few answers without an error are no proof;
    where that is too high at every floor, k/m. `None` = that too. Never fewer than the zero-error
    minimum.
    """
    least = fewest_trials(0, risk, delta) + 1
    if not nodes:
        return least
    for more in (1, 0):
        wanted = [
            math.ceil(_accepted_for(rate, risk, delta) * labels / node.accepted)
            for node in nodes
            if node.accepted
            and (rate := (node.errors + more) / (node.accepted + 2 * more)) < risk * _CLEARLY
        ]
        if wanted:
            return max(least, labels + 1, min(wanted))
    return None


def _accepted_for(rate: float, risk: float, delta: float) -> int:
    """Accepted answers in which errors of this rate, below `risk`, would pass."""
    low, high = 0, 1
    while at_most(math.ceil(rate * high), high, risk) > delta:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        passes = at_most(math.ceil(rate * middle), middle, risk) <= delta
        low, high = (low, middle) if passes else (middle, high)
    return high
