"""Reads the files that `tiergate calibrate` writes, and says what is wrong with them and where."""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from gateway.config_file import ConfigError
from gateway.documents import ENDLESS, endless_number, json_tree, toml_tree
from gateway.lines import Key, json_lines, line_of, toml_lines
from gateway.text_file import text_of
from policies.cells import CELLS

if TYPE_CHECKING:
    from gateway.policy_file import CalibrationFile, PolicyFile, Promise
    from policies.calibration import Calibration

T = TypeVar("T")

_FORM = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
_FINGERPRINT = re.compile(r"[0-9a-f]{16}")
_KINDS = ("choice", "score")


def parsed_policy(path: Path, form: "type[PolicyFile]") -> "PolicyFile":
    """The content of a `policy.toml` in the form given.

    Raises:
        ConfigError: naming the file, the line and the key.
    """
    text = _read(path)
    try:
        tree = toml_tree(text)
    except ValueError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from None
    told = _Told(path, cache(lambda: toml_lines(text)))
    if (key := endless_number(tree)) is not None:
        raise ConfigError(told.fault(key, ENDLESS))
    policy = _validated(tree, form, told)
    for key, wrong in _policy_faults(policy):
        raise ConfigError(told.fault(key, wrong))
    return policy


def parsed_calibration(path: Path, form: "type[CalibrationFile]") -> "CalibrationFile":
    """The content of a `calibration.json` in the form given.

    Raises:
        ConfigError: naming the file, the line and the key.
    """
    text = _read(path)
    try:
        tree = json_tree(text)
    except ValueError as error:
        raise ConfigError(f"{path}: not valid JSON: {error}") from None
    told = _Told(path, cache(lambda: json_lines(text)))
    calibration = _validated(tree, form, told)
    if calibration.version != 1:
        raise ConfigError(told.fault(("version",), _OTHER_VERSION))
    for engine, one in calibration.engines.items():
        for table, named in (("cells", one.cells), ("questions", one.questions)):
            for name, scale in named.items():
                if wrong := _scale_fault(scale):
                    raise ConfigError(told.fault(("engines", engine, table, name), wrong))
    return calibration


@dataclass(frozen=True, slots=True)
class _Told:
    """Says where in a file a fault is."""

    path: Path
    lines: Callable[[], Mapping[Key, int]]
    """Called only when there is a fault."""

    def fault(self, key: Sequence[str], wrong: str) -> str:
        """`FILE:LINE: key: what is wrong`."""
        line = line_of(key, self.lines())
        place = str(self.path) if line is None else f"{self.path}:{line}"
        return ": ".join(part for part in (place, ".".join(key), wrong) if part)


_OTHER_VERSION = "this version of tiergate reads version 1; calibrate again"


def _read(path: Path) -> str:
    try:
        return text_of(path)
    except ValueError as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from None


def _adapter(form: type[T]) -> TypeAdapter[tuple[T]]:
    """A tuple of one, because pydantic takes a configuration for dataclasses only from around."""
    return TypeAdapter(tuple[form], config=_FORM)  # type: ignore[arg-type, valid-type]


def _validated(tree: object, form: type[T], told: _Told) -> T:
    """The tree as `form`; JSON's rules, under which a list is a tuple."""
    try:
        found: tuple[T] = _adapter(form).validate_json(json.dumps([tree], default=str))
        return found[0]
    except ValidationError as error:
        faults = []
        for fault in error.errors(include_url=False, include_input=False, include_context=False):
            key = [str(part) for part in fault["loc"][1:]]
            message = _MESSAGES.get(fault["type"], fault["msg"])
            faults.append(told.fault(key, message))
        raise ConfigError("\n".join(faults)) from None


_MESSAGES = {
    "unexpected_keyword_argument": "there is no such key",
    "missing": "this is missing",
    "missing_argument": "this is missing",
}


def _policy_faults(policy: "PolicyFile") -> list[tuple[tuple[str, ...], str]]:
    """What no single field shows, with its key."""
    faults: list[tuple[tuple[str, ...], str]] = []
    if policy.version != 1:
        faults.append((("version",), _OTHER_VERSION))
    for name, value in (("risk", policy.risk), ("delta", policy.delta)):
        if not 0.0 < value < 1.0:
            faults.append(((name,), f"{value:g} is not between 0 and 1"))
    seen: set[tuple[str, str | None, str | None]] = set()
    for i, promise in enumerate(policy.floors):
        about = (promise.engine, promise.cell, promise.question)
        if promise.engine not in policy.engines:
            wrong = f"there is no [engines.{promise.engine}] in this file"
            faults.append((("floors", str(i), "engine"), wrong))
        if about in seen:
            faults.append((("floors", str(i)), "there is a floor for the same answers above"))
        seen.add(about)
        faults += [(("floors", str(i), *key), wrong) for key, wrong in _promise_faults(promise)]
    return faults


def _promise_faults(promise: "Promise") -> list[tuple[tuple[str, ...], str]]:
    faults: list[tuple[tuple[str, ...], str]] = []
    if (promise.cell is None) == (promise.question is None):
        faults.append(((), "a floor is for a cell or for a question: give one of them"))
    if promise.cell is not None and promise.cell not in (*CELLS, *_KINDS):
        faults.append((("cell",), f"no such cell; there are: {', '.join((*CELLS, *_KINDS))}"))
    if promise.question is not None and not _FINGERPRINT.fullmatch(promise.question):
        faults.append((("question",), "not a fingerprint: 16 hexadecimal digits"))
    if promise.promised != (promise.floor is not None):
        faults.append((("promised",), "what is promised has a floor, and only that"))
    for name in ("floor", "p_value", "coverage", "delta"):
        value: float | None = getattr(promise, name)
        if value is not None and not 0.0 <= value <= 1.0:
            faults.append(((name,), f"{value:g} is not a probability"))
    if not 0 <= promise.errors <= promise.accepted <= promise.labels:
        faults.append(
            (("errors",), "errors are some of the accepted, and these some of the labels")
        )
    return faults


def _scale_fault(scale: "Calibration") -> str | None:
    """What is wrong with a calibration; `None` = nothing."""
    if not (scale.temperature > 0 and math.isfinite(scale.temperature)):
        return f"the temperature is {scale.temperature:g}, but it must be positive"
    if len(scale.knots) == 1:
        return "one knot makes no map; give none or at least two"
    for (x0, y0), (x1, y1) in pairwise(scale.knots):
        if x1 <= x0 or y1 < y0:
            return "the knots do not rise"
    if any(not 0.0 <= y <= 1.0 for _, y in scale.knots):
        return "a knot's probability is not in [0, 1]"
    return None
