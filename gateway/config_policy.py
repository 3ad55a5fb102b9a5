"""Reads the files that `tiergate calibrate` writes, and says what is wrong with them and where."""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from gateway.config_file import ConfigError
from gateway.documents import json_tree, toml_tree
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
    lines = _lines_of(text)

    def place(key: Sequence[str]) -> str:
        near = [lines[tuple(key[:n])] for n in range(len(key), 0, -1) if tuple(key[:n]) in lines]
        return f"{path}:{near[0]}" if near else str(path)

    policy = _validated(tree, form, place)
    for key, wrong in _policy_faults(policy):
        raise ConfigError(f"{place(key)}: {'.'.join(key)}: {wrong}")
    return policy


def parsed_calibration(path: Path, form: "type[CalibrationFile]") -> "CalibrationFile":
    """The content of a `calibration.json` in the form given.

    Raises:
        ConfigError: naming the file and the key; the line where it is no JSON.
    """
    try:
        tree = json_tree(_read(path))
    except ValueError as error:
        raise ConfigError(f"{path}: not valid JSON: {error}") from None
    calibration = _validated(tree, form, lambda _: str(path))
    if calibration.version != 1:
        raise ConfigError(f"{path}: version: {_OTHER_VERSION}")
    for engine, one in calibration.engines.items():
        for table, named in (("cells", one.cells), ("questions", one.questions)):
            for name, scale in named.items():
                if wrong := _scale_fault(scale):
                    raise ConfigError(f"{path}: engines.{engine}.{table}.{name}: {wrong}")
    return calibration


_OTHER_VERSION = "this version of tiergate reads version 1; calibrate again"


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:  # no UTF-8 text, or no path at all
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(f"{path}: cannot be read: {reason}") from None


def _adapter(form: type[T]) -> TypeAdapter[tuple[T]]:
    """A tuple of one, because pydantic takes a configuration for dataclasses only from around."""
    return TypeAdapter(tuple[form], config=_FORM)  # type: ignore[arg-type, valid-type]


def _validated(tree: object, form: type[T], place: Callable[[Sequence[str]], str]) -> T:
    """The tree as `form`; JSON's rules, under which a list is a tuple."""
    try:
        found: tuple[T] = _adapter(form).validate_json(json.dumps([tree], default=str))
        return found[0]
    except ValidationError as error:
        faults = []
        for fault in error.errors(include_url=False, include_input=False, include_context=False):
            key = [str(part) for part in fault["loc"][1:]]
            message = _MESSAGES.get(fault["type"], fault["msg"])
            faults.append(": ".join(part for part in (place(key), ".".join(key), message) if part))
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
    if promise.floor is not None and not 0.0 <= promise.floor <= 1.0:
        faults.append((("floor",), f"{promise.floor:g} is not a probability"))
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


_HEADER = re.compile(r"^\s*(\[\[?)([^\[\]]+)\]\]?\s*(#.*)?$")
_PART = re.compile(r"""[A-Za-z0-9_-]+|"[^"]*"|'[^']*'""")
_KEY = re.compile(r"^\s*([A-Za-z0-9_-]+)\s*=")


def _lines_of(text: str) -> Mapping[tuple[str, ...], int]:
    """Key → line, from 1; the tables of an array are numbered from 0."""
    lines: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    counts: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            table = tuple(part.strip("\"'") for part in _PART.findall(header[2]))
            if header[1] == "[[":
                at = counts[table[0]] = counts.get(table[0], -1) + 1
                table = (*table, str(at))
            lines.setdefault(table, number)
        elif key := _KEY.match(line):
            lines.setdefault((*table, key[1]), number)
    return lines
