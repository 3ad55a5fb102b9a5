"""The checkpoint's own temperatures: which divides the logits of which question."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engines.contract import Kind
from engines.laya.tensors import CheckpointError

_LOWEST, _HIGHEST = 0.5, 5.0
_NEWEST = 2
KIND_INDEX: dict[Kind, int] = {"choice": 0, "score": 1, "noul": 2}
"""Where a kind stands in Laya's lists and in its type embedding."""


@dataclass(frozen=True, slots=True)
class Temperatures:
    """One per kind, and closer ones per number of options."""

    by_kind: tuple[float, float, float]
    """In the order of `KIND_INDEX`, each in [0.5, 5]."""
    by_bucket: Mapping[str, float]
    """`bucket(...)` → temperature in [0.5, 5]; wins over `by_kind`."""

    def of(self, kind: Kind, options: int) -> float:
        """The temperature for a question with so many options."""
        return self.by_bucket.get(bucket(kind, options), self.by_kind[KIND_INDEX[kind]])


def bucket(kind: Kind, options: int) -> str:
    """Laya's name for a class of questions, e.g. `choice:3-5`."""
    if options <= 2:
        return f"{kind}:2"
    if options <= 5:
        return f"{kind}:3-5"
    return f"{kind}:6-10" if options <= 10 else f"{kind}:11+"


def temperatures(tree: Mapping[str, Any], where: str) -> Temperatures:
    """The temperatures in a configuration or calibration; 1.0 for what is not a finite number.

    Everything is clamped to [0.5, 5], as the reference does.

    Raises:
        CheckpointError: not a list of three, or not a table of buckets.
    """
    listed = tree.get("temperature", [1.0, 1.0, 1.0])
    if not isinstance(listed, list) or len(listed) != 3:
        raise CheckpointError(
            f"{where}: 'temperature' must be a list of three: choice, score, noul"
        )
    buckets = tree.get("temperature_by_options") or {}
    if not isinstance(buckets, dict):
        raise CheckpointError(f"{where}: 'temperature_by_options' must be an object")
    first, second, third = (_clamped(value) for value in listed)
    return Temperatures(
        (first, second, third), {name: _clamped(value) for name, value in buckets.items()}
    )


def calibration(path: Path) -> Temperatures:
    """The temperatures of a `calibration.json`, which replace all of the checkpoint's own.

    Raises:
        CheckpointError: it cannot be read, or is of a version not known here.
    """
    try:
        tree = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path}: cannot be read ({error})") from error
    if not isinstance(tree, dict):
        raise CheckpointError(f"{path}: must be a JSON object")
    version = tree.get("version", 1)
    if version not in range(1, _NEWEST + 1):
        raise CheckpointError(f"{path}: 'version' is {version}; up to {_NEWEST} is read")
    return temperatures(tree, str(path))


def _clamped(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return 1.0
    return min(max(float(value), _LOWEST), _HIGHEST)
