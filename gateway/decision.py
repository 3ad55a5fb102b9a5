"""What comes out of deciding: answers, who gave them and why, and what it took."""

from collections.abc import Mapping
from dataclasses import field, replace
from typing import NamedTuple

from engines.contract import Cut, Tally
from engines.value import value
from policies.answers import Answer, restated
from policies.confidence import Formula


@value
class Step:
    """One engine's share in a decision."""

    engine: str
    tokens: int
    seconds: float
    """Engine time: reading without the wait for it; a batch's time is shared by its pieces."""


class Look(NamedTuple):
    """What one engine made of a question, whether its answer was kept or not."""

    engine: str
    probabilities: tuple[float, ...]
    """As reported, in label order; a noul's are those of yes and no."""
    likelihood: float
    """Calibrated probability in [0, 1] that its likeliest label is right."""
    tokens: int


class Route(NamedTuple):
    """How a question got its answer in a cascade."""

    tier: int
    """Of the engine that answered, 1 = the cheapest."""
    engine: str
    reason: str
    """Why this engine: `confident` where it was sure enough, else why a cheaper one's answer did
    not do, or why no better one was asked."""
    fingerprint: str
    looks: tuple[Look, ...] = ()
    """Of every engine that read it, the cheapest first; the last one's answer was given."""


NOT_ESCALATED = frozenset({"off", "shadow"})
"""Reasons of questions that go to the last engine because all do."""


@value
class Decision:
    """What the caller gets, and what it took."""

    model: str
    """The concrete model that answered, never an alias."""
    answers: Mapping[str, Answer]
    """Question id → answer, in the asker's order."""
    steps: tuple[Step, ...]
    cuts: Mapping[str, Cut] = field(default_factory=dict)
    """Question id → what the engine left out, for questions that were truncated."""
    routes: Mapping[str, Route] = field(default_factory=dict)
    """Question id → how it was answered; empty for a model with one engine."""
    natives: Mapping[str, float] = field(default_factory=dict)
    """Question id → the confidence that the answering model's own server would report."""

    @property
    def tokens(self) -> int:
        """Every token every engine read."""
        return sum(step.tokens for step in self.steps)

    @property
    def reasons(self) -> dict[str, int]:
        """Why questions went up to a better engine that answered them → how many.

        Empty where the better engine answers everything anyway.
        """
        found: dict[str, int] = {}
        for route in self.routes.values():
            if route.tier > 1 and route.reason not in NOT_ESCALATED:
                found[route.reason] = found.get(route.reason, 0) + 1
        return found

    @property
    def escalated(self) -> int:
        """How many questions went up to a better engine that answered them."""
        return sum(self.reasons.values())

    def by(self, formula: Formula) -> "Decision":
        """The same decision with confidences by another formula than TypeSafe's."""
        if formula == "jev":
            return self
        answers = {name: restated(one, formula) for name, one in self.answers.items()}
        return replace(self, answers=answers)


class Spending:
    """What deciding has cost so far, engine by engine, also when it comes to no end."""

    __slots__ = ("_below", "_engine", "_risen", "_tally", "steps")

    def __init__(self) -> None:
        self.steps: list[Step] = []
        """Of engines that are done."""
        self._engine = ""
        self._tally: Tally | None = None
        self._risen: Mapping[str, int] = {}
        self._below = 0

    def begin(self, engine: str) -> Tally:
        """What the engine's reading is to be added to, until `end`."""
        self._engine, self._tally = engine, Tally()
        return self._tally

    def end(self, tokens: int | None = None) -> None:
        """The engine is done; `tokens` = what its readings carry, or what it began to read."""
        tally, self._tally = self._tally, None
        if tally is not None:
            counted = tally.tokens if tokens is None else tokens
            if tokens is not None or counted:
                self.steps.append(Step(self._engine, counted, tally.spent_s))

    def rise(self, reasons: Mapping[str, int]) -> None:
        """Questions go up to a better engine than those so far: why → how many."""
        self._risen, self._below = reasons, len(self.steps)

    @property
    def risen(self) -> Mapping[str, int]:
        """Why questions went up → how many, if a better engine has begun to read them."""
        self.end()
        return self._risen if len(self.steps) > self._below else {}

    def so_far(self) -> tuple[Step, ...]:
        """A step for each engine that has read something, the one at work included."""
        self.end()
        return tuple(self.steps)
