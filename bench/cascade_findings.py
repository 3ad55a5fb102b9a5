"""A small and a large engine on one set: the numbers, as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench import cascade_curves as curves
from bench.cascade_curves import Pair
from bench.cascade_promises import Population, drawn
from bench.cascade_readings import Floats, Readings
from policies.benefit import mcnemar
from policies.binomial import Interval
from policies.calibration import Calibration, expected_calibration_error
from policies.certify import Certificate, certified, grid

DELTA = 0.1
RISKS = (0.05, 0.1)
DEFAULT_FLOOR = 0.8
SHARES = (0.1, 0.2, 0.3, 0.5)
POINTS = 101
"""Of each curve, in the results."""
_LABELS_DRAWN = (200, 500, 1000)


@dataclass(frozen=True, slots=True, eq=False)
class Trained:
    """What is known of the small engine before any test row is read."""

    temperature: float
    elsewhere: Floats
    """Likelihoods of rows that the floors' grid comes from."""
    promises: Mapping[float, Certificate]
    """Risk → floor, certified on rows that neither the engine nor the temperature saw."""


def trained(small: Readings, calibrate_on: int) -> Trained:
    """From readings of train rows: the first ones calibrate, the others certify."""
    first = np.arange(len(small.labels)) < calibrate_on
    temperature = small.of(first).temperature()
    calibrated = small.calibrated(Calibration(temperature))
    elsewhere = calibrated.of(first).top
    tested = calibrated.of(~first)
    promises = {
        risk: certified(
            tested.top.tolist(),
            tested.right.tolist(),
            grid(elsewhere.tolist()),
            risk=risk,
            delta=DELTA,
        )
        for risk in RISKS
    }
    return Trained(temperature, elsewhere, promises)


def findings(small: Readings, large: Readings, known: Trained) -> dict[str, Any]:
    """Everything about a pair of engines on test rows."""
    sure = small.calibrated(Calibration(known.temperature))
    pair = Pair(sure.top, sure.right, large.right)
    savings = {"equal": curves.saving(pair), "within_1": curves.saving(pair, curves.EQUAL_WITHIN)}
    beats = {str(share): curves.beats_random(pair, share) for share in SHARES}
    return {
        "rows": pair.rows,
        "small": alone(sure, known),
        "large": _engine(large),
        "recovered": curves.recovered(pair),
        "saved": {
            name: {"share": one.share, "interval": _pair(one.interval)}
            for name, one in savings.items()
        },
        "above_random": {
            share: {"points": points, "interval": _pair(interval)}
            for share, (points, interval) in beats.items()
        },
        "policies": [
            _policy(name, escalated, sure, large, pair)
            for name, escalated in _policies(pair, known)
        ],
        "curves": {
            "cascade": _thinned(curves.by_share(pair)),
            "random": _thinned(curves.at_random(pair)),
            "oracle": _thinned(curves.by_oracle(pair)),
        },
    }


def alone(sure: Readings, known: Trained) -> dict[str, Any]:
    """One engine and the promises about it."""
    coverage, error = curves.selective(sure.top, sure.right)
    every = Population(sure.top, sure.right, known.elsewhere)
    picked = np.unique(np.linspace(0, len(coverage) - 1, POINTS).round().astype(int))
    return _engine(sure) | {
        "temperature": known.temperature,
        "automation": {str(risk): curves.automation(sure.top, sure.right, risk) for risk in RISKS},
        "promised": {str(risk): _promise(one, sure) for risk, one in known.promises.items()},
        "violations": {
            str(risk): [_fields(drawn(every, n, risk, DELTA)) for n in _LABELS_DRAWN]
            for risk in RISKS
        },
        "risk_coverage": [coverage[picked].tolist(), error[picked].tolist()],
    }


def _engine(read: Readings) -> dict[str, Any]:
    share, interval = curves.accuracy(read.right)
    return {
        "accuracy": share,
        "interval": _pair(interval),
        "ece": expected_calibration_error(read.top.tolist(), read.right.tolist()),
        "informative": curves.informative(read.top, read.right),
        "tokens": float(read.tokens.mean()),
        "cpu_ms": float(read.cpu_ms.mean()),
        "p50_ms": float(np.quantile(read.wall_ms, 0.5)),
        "p99_ms": float(np.quantile(read.wall_ms, 0.99)),
    }


def _promise(found: Certificate, sure: Readings) -> dict[str, Any]:
    """The promise of the train rows, and what became of it on the test rows."""
    floor = 2.0 if found.floor is None else found.floor
    kept = sure.top >= floor
    wrong = int((~sure.right[kept]).sum())
    return {
        "floor": found.floor,
        "labels": found.labels,
        "needs": found.needs,
        "coverage": float(kept.mean()),
        "error": wrong / int(kept.sum()) if kept.any() else None,
    }


def _policies(pair: Pair, known: Trained) -> Sequence[tuple[str, "np.ndarray"]]:
    """Name of a policy and which rows it lets go up."""
    floors = {f"floor {DEFAULT_FLOOR}": DEFAULT_FLOOR}
    for risk, one in known.promises.items():
        floors[f"certified {risk:.0%}"] = 2.0 if one.floor is None else one.floor
    found = [(name, pair.likelihood < floor) for name, floor in floors.items()]
    order = np.argsort(pair.likelihood, kind="stable")
    for share in SHARES:
        up = np.zeros(pair.rows, dtype=bool)
        up[order[: round(share * pair.rows)]] = True
        found.append((f"least sure {share:.0%}", up))
    return found


def _policy(
    name: str, up: "np.ndarray", small: Readings, large: Readings, pair: Pair
) -> dict[str, Any]:
    right = np.where(up, pair.large, pair.small)
    share, interval = curves.accuracy(right)
    count = int(up.sum())
    wall_ms = small.wall_ms + np.where(up, large.wall_ms, 0.0)
    fixed = int((up & pair.large & ~pair.small).sum())
    broken = int((up & ~pair.large & pair.small).sum())
    return {
        "policy": name,
        "escalated": count / pair.rows,
        "accuracy": share,
        "interval": _pair(interval),
        "random": float(curves.at_random(pair)[count]),
        "oracle": float(curves.by_oracle(pair)[count]),
        "kept_error": float((~pair.small[~up]).mean()) if count < pair.rows else None,
        "tokens": float((small.tokens + np.where(up, large.tokens, 0)).mean()),
        "cpu_ms": float((small.cpu_ms + np.where(up, large.cpu_ms, 0.0)).mean()),
        "p50_ms": float(np.quantile(wall_ms, 0.5)),
        "p99_ms": float(np.quantile(wall_ms, 0.99)),
        "fixed": fixed,
        "broken": broken,
        "mcnemar": mcnemar(fixed, broken),
    }


def _thinned(curve: Floats) -> list[float]:
    """`POINTS` values at equal steps from none to all."""
    places = np.linspace(0, len(curve) - 1, POINTS).round().astype(int)
    return [round(float(value), 4) for value in curve[places]]


def _pair(interval: Interval) -> list[float]:
    return [interval.low, interval.high]


def _fields(one: Any) -> dict[str, Any]:
    return {name: getattr(one, name) for name in one.__slots__}
