"""Agreement of two engines from what a gateway logged, instead of from rows.

A pair is a question that both engines read. Under the mode `shadow` the other engine reads every
question, so the pairs are a fair sample. Otherwise the last engine reads all that is not kept, and
by lot a share of what is; then as large a share of the unkept is drawn here, so that the pairs are
again a fair sample of what the small engine can be asked.
"""

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engines.contract import Choice, Noul, Question, Score
from gateway.calibrating.certifying import Measured, Terms, promises
from gateway.calibrating.curves import Cost
from gateway.calibrating.findings import Findings, engine_found, group_found
from gateway.calibrating.judging import Judged
from gateway.calibrating.results import Read
from gateway.ledger.decisions import Glance, Logged
from gateway.policy_file import (
    Bound,
    CalibrationFile,
    EngineCalibration,
    PolicyFile,
    calibration_digest,
)
from policies.calibration import Calibration
from policies.cells import cell

_CALIBRATE = 1 / 3
_BY_FLOOR = frozenset(
    (
        *("confident", "low_confidence", "no_promise", "suspended", "demoted", "cost_of_error"),
        "shadow",
    )
)
"""Reasons that leave it to a floor; with any other the small engine's answer is never kept."""
_LEAST = 1e-9
"""Instead of a probability that was rounded to nothing."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A question that both engines read."""

    logged: Logged
    small: Glance
    large: Glance


@dataclass(frozen=True, slots=True)
class Logs:
    """What is to be found out, and about whom."""

    small: str
    large: str
    digest: str
    """Of the small engine."""
    calibration: CalibrationFile
    """What the logged likelihoods were made with; it stays as it is."""
    terms: Terms
    cost: Cost
    unit: str
    created: str

    @property
    def own(self) -> EngineCalibration:
        """The small engine's part of the calibration."""
        return self.calibration.engines[self.small]


def pairs(decisions: Iterable[Logged], small: str, large: str) -> list[Pair]:
    """A fair sample of questions that both engines read, oldest first."""
    shadowed: list[Pair] = []
    kept: list[Pair] = []
    unkept: list[Pair] = []
    for one in decisions:
        glances = {glance.engine: glance for glance in one.looks}
        if one.shadow is not None:
            glances[one.shadow.engine] = one.shadow
        if not {small, large} <= glances.keys():
            continue
        pair = Pair(one, glances[small], glances[large])
        if one.reason == "shadow":
            shadowed.append(pair)
        elif one.drawn:
            kept.append(pair)
        else:
            unkept.append(pair)
    share = max((pair.logged.sampling for pair in kept), default=0.0)
    fair = [pair for pair in kept if pair.logged.sampling == share]
    fair += [pair for pair in unkept if _lot("sample", pair) < share]
    return sorted([*shadowed, *fair], key=lambda pair: pair.logged.decision_id)


def findings_of(found: Sequence[Pair], logs: Logs) -> Findings:
    """Floors above which the engines agree, and what the report shows."""
    small = [_judged(i, pair, pair.small) for i, pair in enumerate(found)]
    large = [_judged(i, pair, pair.large) for i, pair in enumerate(found)]
    chosen = [_lot("split", pair) < _CALIBRATE for pair in found]
    tested = [one for one, grid in zip(small, chosen, strict=True) if not grid]
    measured = Measured(
        logs.small,
        logs.digest,
        [one for one, grid in zip(small, chosen, strict=True) if grid],
        tested,
    )
    (groups,) = promises([(measured, _mapped(logs.own))], logs.terms).values()
    bound = Bound(logs.digest, calibration_digest(logs.own))
    policy = PolicyFile(
        logs.created,
        logs.terms.risk,
        logs.terms.delta,
        "agreement",
        logs.terms.joint,
        {logs.small: bound},
        tuple(group.promise for group in groups),
    )
    others = [one for one, grid in zip(large, chosen, strict=True) if not grid]
    plain = Calibration()
    shown = tuple(
        group_found(
            group, [one.likelihood(plain) for one in group.answers], others, logs.cost, logs.large
        )
        for group in groups
    )
    return Findings(
        policy,
        logs.calibration,
        logs.terms,
        "agreement",
        (
            engine_found(logs.small, "as logged", logs.digest, tested),
            engine_found(logs.large, "as logged", "", others),
        ),
        shown,
        {"calibrate": len(measured.calibrate), "certify": len(tested), "repeated": 0},
        logs.unit,
    )


def _judged(at: int, pair: Pair, glance: Glance) -> Judged:
    logged = pair.logged
    weights = tuple(math.log(max(p, _LEAST)) for p in glance.probabilities)
    return Judged(
        at,
        logged.fingerprint,
        _nameless(logged),
        cell(logged.kind, logged.labels),
        logged.fingerprint,
        Read(weights, glance.tokens),
        pair.large.label,
        None if logged.reason in _BY_FLOOR else logged.reason,
    )


def _nameless(logged: Logged) -> Question:
    """A question of the same kind and size; the log does not know its words."""
    match logged.kind:
        case "noul":
            return Noul()
        case "choice":
            return Choice({str(place): None for place in range(logged.labels)})
        case "score":
            return Score([str(level) for level in range(logged.labels)])


def _mapped(calibration: EngineCalibration) -> EngineCalibration:
    """The maps alone: the temperatures are in the logged probabilities already."""
    return EngineCalibration(
        calibration.digest,
        {name: Calibration(1.0, one.knots) for name, one in calibration.cells.items()},
        {name: Calibration(1.0, one.knots) for name, one in calibration.questions.items()},
    )


def _lot(what: str, pair: Pair) -> float:
    """A number in [0, 1) that depends on nothing but the decision's number."""
    digest = hashlib.sha256(f"{what} {pair.logged.decision_id}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64
