"""Findings as JSON for programs."""

from collections.abc import Mapping

from engines.contract import Json
from gateway.calibrating.curves import Point, Trade, risk_coverage, thinned
from gateway.calibrating.findings import EngineFound, Findings, GroupFound
from gateway.calibrating.words import sentence
from gateway.policy_file import PolicyFile, Promise, evidence_of


def summary(found: Findings, files: Mapping[str, str]) -> dict[str, Json]:
    """What was found; `files` are those that were written, by name."""
    return {
        "version": 1,
        "created": found.policy.created,
        "mode": found.mode,
        "risk": found.terms.risk,
        "delta": found.terms.delta,
        "joint": found.terms.joint,
        "rows": dict(found.rows),
        "cost_unit": found.unit,
        "engines": [_engine(one) for one in found.engines],
        "floors": [_group(one, found.policy) for one in found.groups],
        "files": dict(files),
    }


def promise_json(promise: Promise, policy: PolicyFile) -> dict[str, Json]:
    """A floor, its evidence, and the sentence that says it."""
    return {**evidence_of(promise), "says": sentence(promise, policy)}


def _engine(one: EngineFound) -> Json:
    return {
        "name": one.name,
        "model": one.model,
        "digest": one.digest,
        "questions": one.questions,
        "refused": one.refused,
        "accuracy": one.accuracy,
        "mean_tokens": one.mean_tokens,
        "mean_ms": one.mean_ms,
    }


def _group(one: GroupFound, policy: PolicyFile) -> Json:
    errors = one.errors_of_calibration
    curve = thinned(risk_coverage(one.group.likelihoods, one.right))
    return promise_json(one.group.promise, policy) | {
        "never_kept": dict(one.group.off),
        "calibration_error_before": None if errors is None else errors[0],
        "calibration_error_after": None if errors is None else errors[1],
        "chosen": None if one.chosen is None else _trade(one.chosen),
        "risk_coverage": [_point(point) for point in curve],
        "cost_accuracy": [_trade(trade) for trade in thinned(one.trades)],
    }


def _point(one: Point) -> Json:
    return {"floor": one.floor, "coverage": one.coverage, "risk": one.risk}


def _trade(one: Trade) -> Json:
    return {"floor": one.floor, "kept": one.kept, "cost": one.cost, "accuracy": one.accuracy}
