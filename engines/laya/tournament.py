"""More options than a row holds: groups in the asker's order, winners meet again.

The probabilities are those of the last row, so they compare finalists only; what was eliminated
before has practically none. They say nothing about how close an early round was.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

from engines.laya.wording import Wording

Ask = Callable[[Sequence[Wording]], Sequence[Sequence[float]]]
"""Wordings → log-weights per option, canonical order."""

_ELIMINATED = 30.0
"""How far below the last finalist an eliminated option lies, in nats: below any reported step."""


def groups(count: int, size: int) -> list[range]:
    """As few runs of at most `size` as cover `count` places, their lengths at most one apart."""
    parts = -(-count // size)
    bounds = [round(count * i / parts) for i in range(parts + 1)]
    return [range(a, b) for a, b in pairwise(bounds)]


def part(wording: Wording, places: Sequence[int]) -> Wording:
    """The same question about some of its options."""
    return replace(wording, options=tuple(wording.options[at] for at in places))


def rounds(wording: Wording, size: int, heaviest: Callable[[str], float]) -> list[Wording]:
    """Every row of the first round, and of each later one the heaviest that can come about.

    If these fit, no course of the tournament can end in a row that does not.
    """
    found: list[Wording] = []
    while len(wording.options) > size:
        parts = [part(wording, places) for places in groups(len(wording.options), size)]
        found += parts
        wording = replace(wording, options=tuple(max(p.options, key=heaviest) for p in parts))
    return [*found, wording]


def played(wording: Wording, size: int, ask: Ask) -> list[float]:
    """One log-weight per option, in the question's order, after as many rounds as it takes."""
    alive = list(range(len(wording.options)))
    while len(alive) > size:
        contests = [[alive[i] for i in places] for places in groups(len(alive), size)]
        results = ask([part(wording, contest) for contest in contests])
        alive = [
            contest[max(range(len(contest)), key=weights.__getitem__)]
            for contest, weights in zip(contests, results, strict=True)
        ]
    final = ask([part(wording, alive)])[0]
    weights = [min(final) - _ELIMINATED] * len(wording.options)
    for place, weight in zip(alive, final, strict=True):
        weights[place] = weight
    return weights
