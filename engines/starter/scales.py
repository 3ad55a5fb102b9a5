"""How far apart cosines must lie to mean something, per kind: fitted, stored, read."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from engines.contract import Broken, Kind
from engines.minilm.pinned import read_file

_KINDS: tuple[Kind, ...] = ("noul", "choice", "score")
_STORED = Path(__file__).parent / "weights" / "calibration.json"


@dataclass(frozen=True, slots=True)
class Scale:
    """How far apart cosines must lie to mean something, for one kind of question."""

    temperature: float
    """Above 0; a difference of one temperature between two cosines is odds of e to 1."""
    unsaid_no: float = 0.0
    """Log-weight of the no of a yes/no question that says nothing about what no means."""


@dataclass(frozen=True, slots=True)
class Scales:
    """A scale for every kind."""

    of: Mapping[Kind, Scale]
    digest: str
    """SHA-256 of the file, as hex."""


def load(stored: Path = _STORED) -> Scales:
    """The scales that come with the install, or those of another file.

    Raises:
        Broken: the file is missing or a scale in it is no scale.
    """
    content = read_file(stored)
    fitted = json.loads(content)["kinds"]
    scales: dict[Kind, Scale] = {}
    for kind in _KINDS:
        scale = Scale(**fitted[kind]["scale"])
        if not (0.0 < scale.temperature < math.inf and math.isfinite(scale.unsaid_no)):
            raise Broken(f"the starter engine's calibration for {kind} is not usable")
        scales[kind] = scale
    return Scales(scales, hashlib.sha256(content).hexdigest())
