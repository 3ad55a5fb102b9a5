"""Which answers of a cheap engine are good enough, and what a better one may cost. Pure.

A floor is the least calibrated probability that an answer is right, per engine and cell, or per
engine and question. It is about the answer, not about any dialect's confidence.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from policies.calibration import Calibration

NEVER = 2.0
"""A floor that no answer reaches: the engine's answers are not kept."""


@dataclass(frozen=True, slots=True)
class Floors:
    """The floors of one engine."""

    otherwise: float = NEVER
    """For what no cell speaks of."""
    by_cell: Mapping[str, float] = field(default_factory=dict)
    """Cell as `choice:3-5`, or a whole kind as `choice` → floor in [0, 1], or `NEVER`."""
    by_question: Mapping[str, float] = field(default_factory=dict)
    """Fingerprint → floor; wins over cells."""

    def of(self, cell: str, fingerprint: str) -> float:
        """The floor of a question: its own, its cell's, its kind's, or that of all others."""
        own = self.by_question.get(fingerprint)
        if own is not None:
            return own
        found = self.by_cell.get(cell)
        if found is None:
            found = self.by_cell.get(cell.split(":", 1)[0], self.otherwise)
        return found


@dataclass(frozen=True, slots=True)
class Calibrations:
    """What makes probabilities of one engine's log-weights."""

    by_cell: Mapping[str, Calibration] = field(default_factory=dict)
    """Cell → calibration; log-weights are taken as they are where there is none."""
    by_question: Mapping[str, Calibration] = field(default_factory=dict)
    """Fingerprint → calibration; wins over cells."""

    def of(self, cell: str, fingerprint: str) -> Calibration:
        """The calibration of a question."""
        own = self.by_question.get(fingerprint)
        return self.by_cell.get(cell, _AS_IT_IS) if own is None else own


_AS_IT_IS = Calibration()


def worth_escalating(likelihood: float, cost_of_error: float, step_cost: float) -> bool:
    """Whether the expected loss of keeping an answer exceeds the price of asking on.

    `likelihood` is the calibrated probability that the answer is right; the other two are amounts
    of one currency. The loss of an answer that the next engine gets wrong too is not counted, so
    this is the most that escalating can be worth.
    """
    return (1.0 - likelihood) * cost_of_error > step_cost


def within_share(escalated: int, window: int, more: int, most_share: float) -> int:
    """How many of `more` questions may go up, in [0, more].

    Of the last `window` questions `escalated` went up already; with those that may go now they are
    at most `most_share` (in [0, 1]) of the window.
    """
    return max(0, min(more, int(most_share * window + 1e-9) - escalated))
