"""`policy.toml` and `calibration.json`: what was promised about engines, and for which weights.

A promise is bound to the digest of an engine (weights, tokenizer, encoding) and to its entry in
`calibration.json`. When either differs, the promise does not hold; see `suspended`.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from engines.contract import Json
from gateway.config_file import toml
from gateway.config_policy import parsed_calibration, parsed_policy
from policies.calibration import Calibration
from policies.cascade import NEVER, Calibrations, Floors
from policies.certify import Certificate

Mode = Literal["labels", "agreement"]
"""Whether answers were compared with labels or with the answers of the last engine."""


@dataclass(frozen=True, slots=True)
class Bound:
    """What the floors of one engine depend on."""

    digest: str
    """`Facts.digest` of the engine that was measured."""
    calibration: str
    """SHA-256 of its entry in `calibration.json`; see `calibration_digest`."""


@dataclass(frozen=True, slots=True)
class Promise:
    """One floor and its evidence, or why there is none."""

    engine: str
    promised: bool
    labels: int
    """Labelled answers that the floor was tested on."""
    delta: float
    """This promise fails with at most this probability."""
    cell: str | None = None
    """As `choice:3-5`; `None` where it is about one question."""
    question: str | None = None
    """Fingerprint; `None` where it is about a cell."""
    name: str | None = None
    """The question's id in the labelled file, for people."""
    floor: float | None = None
    """Least calibrated probability of being right, in [0, 1]; `None` = nothing is promised."""
    accepted: int = 0
    """Of the labelled answers, those at or above the floor."""
    errors: int = 0
    """Of the accepted, those that were wrong."""
    p_value: float | None = None
    """Exact binomial probability of so few errors if the risk were above what is promised."""
    coverage: float = 0.0
    """Share of the labelled answers that is accepted."""
    start_rule: str = ""
    needs: int | None = None
    """Labels that would be needed in all; `None` = promised, or no number would do."""


@dataclass(frozen=True, slots=True)
class PolicyFile:
    """What `tiergate calibrate` found out."""

    created: str
    """ISO 8601, UTC."""
    risk: float
    """Of the answers kept, at most this share is wrong."""
    delta: float
    """The promise fails with at most this probability."""
    mode: Mode
    joint: bool
    """Whether `delta` is shared by all floors, so that they hold together."""
    engines: Mapping[str, Bound]
    floors: tuple[Promise, ...]
    version: int = 1

    @property
    def claim(self) -> str:
        """What is promised, in one sentence."""
        wrong = "wrong" if self.mode == "labels" else "not those of the last engine"
        whole = "all floors together" if self.joint else "each floor"
        return (
            f"Of the answers that are kept, at most {self.risk:.2%} are {wrong}; this holds for "
            f"{whole} with {1 - self.delta:.2%} certainty."
        ).replace(".00%", "\u202f%")


@dataclass(frozen=True, slots=True)
class EngineCalibration:
    """The calibrations of one engine."""

    digest: str
    """`Facts.digest` of the engine that was measured."""
    cells: Mapping[str, Calibration] = field(default_factory=dict)
    questions: Mapping[str, Calibration] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CalibrationFile:
    """Engine name → its calibrations."""

    engines: Mapping[str, EngineCalibration]
    version: int = 1


def load_policy(path: Path) -> PolicyFile:
    """The policy in the file.

    Raises:
        ConfigError: it cannot be read, is not TOML, or says what cannot be.
    """
    return parsed_policy(path, PolicyFile)


def load_calibration(path: Path) -> CalibrationFile:
    """The calibrations in the file.

    Raises:
        ConfigError: it cannot be read, is not JSON, or says what cannot be.
    """
    return parsed_calibration(path, CalibrationFile)


def promise_by(certificate: Certificate, engine: str) -> Promise:
    """What a certificate says of an engine; which answers it is about is for the caller to add."""
    return Promise(
        engine,
        certificate.floor is not None,
        certificate.labels,
        certificate.delta,
        floor=certificate.floor,
        accepted=certificate.accepted,
        errors=certificate.errors,
        p_value=certificate.p_value,
        coverage=certificate.coverage,
        start_rule=certificate.start_rule,
        needs=certificate.needs,
    )


def floors_of(policy: PolicyFile, engine: str) -> Floors:
    """The floors of an engine; `NEVER` where nothing is promised or nothing is known."""
    of_engine = [one for one in policy.floors if one.engine == engine]
    return Floors(
        NEVER,
        {one.cell: _floor(one) for one in of_engine if one.cell is not None},
        {one.question: _floor(one) for one in of_engine if one.question is not None},
    )


def calibrations_of(calibration: CalibrationFile, engine: str) -> Calibrations:
    """The calibrations of an engine; none where the file does not know it."""
    known = calibration.engines.get(engine)
    return Calibrations() if known is None else Calibrations(known.cells, known.questions)


def suspended(
    policy: PolicyFile, calibration: CalibrationFile | None, engine: str, digest: str
) -> str | None:
    """Why the promise does not hold for an engine that is loaded; `None` = it holds.

    `digest` is the loaded engine's. The answer is a clause for logs, without paths or texts.
    """
    bound = policy.engines.get(engine)
    if bound is None:
        return "the policy does not know this engine"
    if bound.digest != digest:
        return "its weights, tokenizer or encoding are not those that were measured"
    known = None if calibration is None else calibration.engines.get(engine)
    if known is None:
        return "its calibration is missing"
    if known.digest != digest:
        return "its calibration is for other weights, another tokenizer or another encoding"
    if calibration_digest(known) != bound.calibration:
        return "its calibration is not the one that the floors were chosen with"
    return None


def calibration_digest(calibration: EngineCalibration) -> str:
    """SHA-256 of an engine's entry in `calibration.json`, as sorted JSON without blanks."""
    exact = json.dumps(_entry(calibration), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(exact.encode()).hexdigest()


def calibration_text(calibration: CalibrationFile) -> str:
    """The calibrations as JSON."""
    engines = {name: _entry(one) for name, one in calibration.engines.items()}
    content = {"version": calibration.version, "engines": engines}
    return json.dumps(content, indent=1) + "\n"


def policy_text(policy: PolicyFile) -> str:
    """The policy as TOML."""
    lines = [
        "# Written by `tiergate calibrate`. Change it by calibrating again.",
        f"version = {policy.version}",
        f"created = {toml(policy.created)}",
        f"risk = {toml(policy.risk)}",
        f"delta = {toml(policy.delta)}",
        f"mode = {toml(policy.mode)}",
        f"joint = {toml(policy.joint)}",
    ]
    for name, bound in policy.engines.items():
        lines += ["", f"[engines.{toml(name)}]"]
        lines += [f"digest = {toml(bound.digest)}", f"calibration = {toml(bound.calibration)}"]
    for promise in policy.floors:
        lines += ["", "[[floors]]", *_promise_lines(promise)]
    return "\n".join(lines) + "\n"


def evidence_of(promise: Promise) -> dict[str, Json]:
    """A floor and its evidence, in the order in which people read them."""
    return {
        "engine": promise.engine,
        "cell": promise.cell,
        "question": promise.question,
        "name": promise.name,
        "promised": promise.promised,
        "floor": promise.floor,
        "labels": promise.labels,
        "accepted": promise.accepted,
        "errors": promise.errors,
        "p_value": promise.p_value,
        "coverage": promise.coverage,
        "delta": promise.delta,
        "start_rule": promise.start_rule,
        "needs": promise.needs,
    }


def _promise_lines(promise: Promise) -> list[str]:
    said = evidence_of(promise)
    return [f"{key} = {_shown(value)}" for key, value in said.items() if value is not None]


def _shown(value: object) -> str:
    """As TOML; names that a labelled file chose may hold any character."""
    if not isinstance(value, str):
        return toml(value)
    whole = value.encode("utf-8", "replace").decode()  # half a surrogate pair cannot be written
    return json.dumps(whole, ensure_ascii=False).replace("\x7f", "\\u007f")


def _entry(calibration: EngineCalibration) -> dict[str, object]:
    """As it stands in the file."""
    return {
        "digest": calibration.digest,
        "cells": {name: _scale(one) for name, one in calibration.cells.items()},
        "questions": {name: _scale(one) for name, one in calibration.questions.items()},
    }


def _scale(calibration: Calibration) -> dict[str, object]:
    knots = [[x, y] for x, y in calibration.knots]
    return {"temperature": calibration.temperature, "knots": knots}


def _floor(promise: Promise) -> float:
    kept = promise.promised and promise.floor is not None and math.isfinite(promise.floor)
    return promise.floor if kept and promise.floor is not None else NEVER
