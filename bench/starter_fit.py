"""Temperatures for the starter engine's kinds, from cosines and right labels. Knows no engine."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from policies.calibration import fitted_temperature, negative_log_likelihood

NO_INFORMATION = 1000.0
"""The temperature of cosines that say nothing: two of them differ by 2, so odds by 0.2 %."""
_TEMPERATURES = [0.01 * 10 ** (step / 20) for step in range(101)]
"""0.01 to 1000, twenty to a decade."""


@dataclass(frozen=True, slots=True)
class Cosines:
    """Rows of one set: a cosine per label (for yes/no: of the yes alone), and the right label."""

    rows: Sequence[Sequence[float]]
    right: Sequence[int]


def ranked(sets: Mapping[str, Cosines]) -> tuple[dict[str, float], dict[str, Any]]:
    """Choice and score: the scale that suits all sets together, and the evidence for it."""
    rows = [row for part in sets.values() for row in part.rows]
    right = [label for part in sets.values() for label in part.right]
    temperature = fitted_temperature(rows, right, high=NO_INFORMATION)
    guess = sum(math.log(len(row)) for row in rows) / len(rows)
    evidence = {
        "nll": round(negative_log_likelihood(rows, right, temperature), 4),
        "nll_of_a_uniform_guess": round(guess, 4),
        "temperature_of_each_set_alone": {
            name: _short(fitted_temperature(part.rows, part.right, high=NO_INFORMATION))
            for name, part in sets.items()
        },
    }
    return {"temperature": _short(temperature)}, evidence


def yes_no(sets: Mapping[str, Cosines]) -> tuple[dict[str, float], dict[str, Any]]:
    """Yes/no: the temperature that holds up on sets it was not fitted on, and the base rate.

    A caller's question is always a new one. So each temperature is judged on every set in turn
    with the offset that suits the others, by what it gains there over the others' base rate. The
    one is taken under which the set that gains least gains most; then the offset is fitted on
    all sets together.
    """
    base = _left_out(sets, NO_INFORMATION)

    def least_gain(temperature: float) -> float:
        return min(base[name] - nll for name, nll in _left_out(sets, temperature).items())

    temperature = max(_TEMPERATURES, key=least_gain)
    rows = [row for part in sets.values() for row in part.rows]
    right = [label for part in sets.values() for label in part.right]
    evidence = {
        "base_rate": round(1 - sum(right) / len(right), 3),
        "nll_where_left_out": _rounded(_left_out(sets, temperature)),
        "nll_of_the_others_base_rate": _rounded(base),
    }
    scale = {
        "temperature": _short(temperature),
        "unsaid_no": _short(_unsaid_no(rows, right, temperature)),
    }
    return scale, evidence


def _left_out(sets: Mapping[str, Cosines], temperature: float) -> dict[str, float]:
    """The NLL on each set, the offset fitted on the others."""
    found: dict[str, float] = {}
    for name, part in sets.items():
        others = [other for key, other in sets.items() if key != name]
        rows = [row for other in others for row in other.rows]
        right = [label for other in others for label in other.right]
        offset = _unsaid_no(rows, right, temperature)
        weights = [(row[0] / temperature, offset) for row in part.rows]
        found[name] = negative_log_likelihood(weights, part.right, 1.0)
    return found


def _unsaid_no(rows: Sequence[Sequence[float]], right: Sequence[int], temperature: float) -> float:
    """The log-weight of no under which the mean probability of yes is the share of yes.

    That is where the likelihood is greatest. Bisection to 1e-6; the mean falls as no grows.
    """
    yes = 1 - sum(right) / len(right)
    weights = np.asarray([row[0] for row in rows]) / temperature
    low, high = -10 / temperature - 10, 10 / temperature + 10
    while high - low > 1e-6:
        middle = (low + high) / 2
        mean = float(np.mean(1 / (1 + np.exp(np.clip(middle - weights, -500, 500)))))
        low, high = (middle, high) if mean > yes else (low, middle)
    return (low + high) / 2


def _rounded(values: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in values.items()}


def _short(value: float) -> float:
    """Four significant digits."""
    return float(f"{value:.4g}")
