"""Calibrations from one part of the rows, floors from the other."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Literal

from gateway.calibrating.judging import Judged
from gateway.policy_file import EngineCalibration, Promise, promise_by
from policies.calibration import Calibration
from policies.cascade import Calibrations
from policies.certify import Certificate, certified, grid
from policies.isotonic import fitted

Per = Literal["cell", "question"]

FEWEST_OF_A_QUESTION = 50
"""Labels with which a question gets a calibration of its own beside its cell's."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What is to be promised."""

    risk: float
    """Of the answers kept, at most this share is wrong."""
    delta: float
    """The promise fails with at most this probability."""
    per: Per
    joint: bool
    """Whether all floors share `delta`."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One engine's questions, judged."""

    engine: str
    digest: str
    calibrate: Sequence[Judged]
    certify: Sequence[Judged]


@dataclass(frozen=True, slots=True)
class Group:
    """The answers of one engine that a floor is for, and what was found."""

    promise: Promise
    answers: tuple[Judged, ...]
    """Those that were tested: read, vouched for, with a label."""
    likelihoods: tuple[float, ...]
    """Calibrated, in the same order."""
    away: tuple[Judged, ...]
    """Labelled answers that are never kept, whatever the floor; `Judged.off` says why."""

    @property
    def off(self) -> dict[str, int]:
        """Reason → how many are never kept."""
        return dict(Counter(one.off for one in self.away if one.off is not None))


def calibrations(measured: Measured) -> EngineCalibration:
    """Temperatures and maps by cell, and by question where a cell has several."""
    usable = [one for one in measured.calibrate if one.label is not None and one.read.log_weights]
    cells = _grouped(usable, "cell")
    questions: dict[str, Calibration] = {}
    for of_cell in cells.values():
        of_question = _grouped(of_cell, "question")
        if len(of_question) > 1:
            questions |= {
                name: _fitted(some)
                for name, some in of_question.items()
                if len(some) >= FEWEST_OF_A_QUESTION
            }
    by_cell = {name: _fitted(some) for name, some in cells.items()}
    return EngineCalibration(measured.digest, by_cell, questions)


def promises(
    lower: Sequence[tuple[Measured, EngineCalibration]], terms: Terms
) -> dict[str, tuple[Group, ...]]:
    """Engine → its floors, by cell or question; all share `terms.delta` where they are joint.

    `lower` are the engines that have a better one above, the cheapest first. The second and later
    ones are asked only what those below do not keep, so they are tested on that; and on rows of
    their own, because what those below keep was chosen with the labels of theirs.
    """
    names = [
        sorted({_name(one, terms.per) for one in measured.certify if one.label is not None})
        for measured, _ in lower
    ]
    shares = sum(map(len, names)) if terms.joint else 1
    delta = terms.delta / max(1, shares)
    found: dict[str, tuple[Group, ...]] = {}
    settled: set[tuple[int, str]] = set()
    for turn, (measured, calibration) in enumerate(lower):
        scales = Calibrations(calibration.cells, calibration.questions)
        mine = [
            one
            for one in measured.certify
            if _turn(one.row, len(lower)) == turn and (one.row, one.name) not in settled
        ]
        tested = _Tested(measured, scales, mine, terms, delta)
        groups = tuple(tested.group(name) for name in names[turn])
        found[measured.engine] = groups
        floors = {_about(group.promise): group.promise.floor for group in groups}
        for one in measured.certify:
            floor = floors.get(_name(one, terms.per))
            if floor is not None and one.off is None and _likelihood(one, scales) >= floor:
                settled.add((one.row, one.name))
    return found


@dataclass(frozen=True, slots=True)
class _Tested:
    """One engine, and the answers its floors are tested on."""

    measured: Measured
    scales: Calibrations
    certify: Sequence[Judged]
    terms: Terms
    delta: float

    def group(self, name: str) -> Group:
        """The floor of a cell or a question."""
        own = [one for one in self.certify if _name(one, self.terms.per) == name]
        others = [one for one in self.measured.calibrate if _name(one, self.terms.per) == name]
        labelled = [one for one in own if one.label is not None]
        answers = tuple(one for one in labelled if one.off is None)
        unseen = [*others, *(one for one in own if one.label is None)]
        likelihoods = tuple(_likelihood(one, self.scales) for one in answers)
        found = certified(
            likelihoods,
            [one.right for one in answers],
            grid([_likelihood(one, self.scales) for one in unseen if one.off is None]),
            risk=self.terms.risk,
            delta=self.delta,
        )
        away = tuple(one for one in labelled if one.off is not None)
        promise = self._promise(name, found, own, away)
        if promise.needs is not None and found.labels:  # as many as that takes in all parts
            promise = replace(
                promise, needs=ceil(promise.needs * self._in_all(name) / found.labels)
            )
        return Group(promise, answers, likelihoods, away)

    def _in_all(self, name: str) -> int:
        """Labels of this group, whatever they are for."""
        some = (*self.measured.calibrate, *self.measured.certify)
        return sum(one.label is not None and _name(one, self.terms.per) == name for one in some)

    def _promise(
        self, name: str, found: Certificate, own: Sequence[Judged], away: Sequence[Judged]
    ) -> Promise:
        promise = promise_by(found, self.measured.engine)
        if self.terms.per == "cell":
            promise = replace(promise, cell=name)
        else:
            promise = replace(promise, question=name, name=own[0].name if own else None)
        if away and not found.labels:
            reasons = sorted({one.off for one in away if one.off is not None})
            rule = f"none: never kept ({', '.join(reasons)})"
            promise = replace(promise, start_rule=rule, needs=None)
        return promise


def _about(promise: Promise) -> str:
    return promise.cell or promise.question or ""


def _likelihood(one: Judged, scales: Calibrations) -> float:
    return one.likelihood(scales.of(one.cell, one.fingerprint))


def _fitted(some: Sequence[Judged]) -> Calibration:
    labels = [one.label for one in some if one.label is not None]
    return fitted([one.read.log_weights for one in some], labels)


def _turn(row: int, engines: int) -> int:
    """Which engine's floors a row tests, from 0."""
    return int(hashlib.sha256(str(row).encode()).hexdigest(), 16) % engines


def _name(one: Judged, per: Per) -> str:
    return one.cell if per == "cell" else one.fingerprint


def _grouped(some: Iterable[Judged], per: Per) -> Mapping[str, list[Judged]]:
    groups: dict[str, list[Judged]] = defaultdict(list)
    for one in some:
        groups[_name(one, per)].append(one)
    return groups
