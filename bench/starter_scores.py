"""How good labelled answers are: rank statistics and the constant guess. Knows no engine."""

import math
from collections import Counter
from collections.abc import Sequence


def majority(labels: Sequence[int]) -> float:
    """Share of the most frequent label: the accuracy of always saying it, in (0, 1]."""
    return max(Counter(labels).values()) / len(labels)


def ranks(values: Sequence[float]) -> list[float]:
    """The rank of each value from 1 up, ties sharing the mean of their places."""
    order = sorted(range(len(values)), key=values.__getitem__)
    found = [0.0] * len(values)
    start = 0
    while start < len(order):
        stop = start
        while stop < len(order) and values[order[stop]] == values[order[start]]:
            stop += 1
        for place in order[start:stop]:
            found[place] = (start + 1 + stop) / 2
        start = stop
    return found


def auroc(scores: Sequence[float], positive: Sequence[bool]) -> float:
    """How often a positive scores above a negative, ties counting half; 0.5 is chance.

    The Mann-Whitney statistic over the product of both counts.
    """
    yes = sum(positive)
    no = len(positive) - yes
    above = math.fsum(r for r, p in zip(ranks(scores), positive, strict=True) if p)
    return (above - yes * (yes + 1) / 2) / (yes * no)


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's rho in [-1, 1]: Pearson's correlation of the ranks; 0.0 if one is constant."""
    a, b = ranks(one), ranks(other)
    mean = (len(a) + 1) / 2
    both = math.fsum((x - mean) * (y - mean) for x, y in zip(a, b, strict=True))
    spread = math.fsum((x - mean) ** 2 for x in a) * math.fsum((y - mean) ** 2 for y in b)
    return both / math.sqrt(spread) if spread else 0.0
