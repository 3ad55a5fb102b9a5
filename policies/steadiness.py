"""What the answers to variants of a question say about an engine: flips and position bias. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from policies.variants import Test, Variant

Shares: TypeAlias = Sequence[float]
"""Probability of each label, in label order."""

CLOSE = 0.02
"""Labels that are nearer to each other than this may change places."""
SAME = 0.002
"""Probabilities that must not change may differ by this: what batches do to floating point."""
MOST_BIAS = 0.1
"""What a place among the options may be worth."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The answers to one variant and to the question as it stands, about one state."""

    state: int
    """Which state, as a number."""
    variant: Variant
    original: Shares
    varied: Shares
    """In the variant's own order."""

    @property
    def matched(self) -> list[float]:
        """`varied` in the order of the original's labels; what else there is left out."""
        return [self.varied[place] for place in self.variant.places]

    @property
    def flipped(self) -> bool:
        """Whether the likeliest label is another, and was not as good as tied before or after."""
        before, after = self.original, self.matched
        was, became = before.index(max(before)), after.index(max(after))
        apart = min(before[was] - before[became], after[became] - after[was])
        return was != became and apart >= CLOSE

    @property
    def change(self) -> float:
        """The largest change of any probability, in [0, 1]."""
        return max(abs(a - b) for a, b in zip(self.original, self.matched, strict=True))


@dataclass(frozen=True, slots=True)
class Steadiness:
    """How one engine stood one test of one question."""

    test: Test
    asked: int
    """Answers to variants."""
    flips: int
    """Those that decide otherwise; under `escape` those that choose the new option."""
    change: float
    """The largest change of a probability."""
    bias: float | None = None
    """What the favoured place adds to an option's probability; under `order` only."""
    place: int | None = None
    """The favoured place, from 0."""
    faults: tuple[str, ...] = ()
    """What is wrong, in words; empty = nothing."""


def steadiness(test: Test, answers: Sequence[Answered]) -> Steadiness:
    """The verdict over at least one answer to variants of one test."""
    flips = sum(one.flipped for one in answers)
    change = max(one.change for one in answers)
    n = len(answers)
    match test:
        case "order":
            place, bias = favoured(answers)
            faults = []
            if flips:
                faults.append(f"{flips} of {n} reordered questions are answered otherwise")
            if bias > MOST_BIAS:
                faults.append(f"standing at place {place + 1} adds {bias:.2f} to an option")
            return Steadiness(test, n, flips, change, bias, place, tuple(faults))
        case "id" | "neighbours":
            what = "its id" if test == "id" else "other questions"
            fault = f"{what} change probabilities by up to {change:.3f}"
            return Steadiness(test, n, flips, change, faults=(fault,) * (change > SAME))
        case "twin":
            fault = f"{flips} of {n} times the question and its opposite have the same answer"
            return Steadiness(test, n, flips, change, faults=(fault,) * (flips > 0))
        case "escape":
            return _escape(answers)


def favoured(answers: Sequence[Answered]) -> tuple[int, float]:
    """The place among the options that is worth most, from 0, and what it adds to a probability.

    Over all orders of one state an option's mean is its fair share; what an option has more than
    that at a place, averaged over options, orders and states, is the worth of the place.
    """
    labels = len(answers[0].original)
    states: dict[int, list[tuple[Shares, Sequence[int]]]] = {}
    for one in answers:
        orders = states.setdefault(one.state, [(one.original, range(labels))])
        orders.append((one.matched, one.variant.places))
    worth, count = [0.0] * labels, [0] * labels
    for orders in states.values():
        for label in range(labels):
            fair = sum(shares[label] for shares, _ in orders) / len(orders)
            for shares, places in orders:
                worth[places[label]] += shares[label] - fair
                count[places[label]] += 1
    means = [total / seen if seen else 0.0 for total, seen in zip(worth, count, strict=True)]
    best = max(range(labels), key=means.__getitem__)
    return best, means[best]


def _escape(answers: Sequence[Answered]) -> Steadiness:
    """Without a way out an engine must choose wrongly where nothing fits."""
    n, options = len(answers), len(answers[0].original)
    taken = sum(one.varied[-1] >= max(one.matched) for one in answers)
    change = max(one.change for one in answers)
    fault = "no option is for what fits none of them"
    if taken:
        fault += f"; one that is takes {taken} of {n} states"
    return Steadiness("escape", n, taken, change, faults=(fault,) * (taken > 0 or options > 2))
