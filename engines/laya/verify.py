"""Is this checkpoint read correctly here? Golden requests against the weights in a directory.

Without the reference package only what must hold for any weights is checked; with it, parity.
"""

import importlib
import importlib.util
import json
import shutil
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from engines.laya.artifact import Precision, artifact, imported
from engines.laya.definition import wordings
from engines.laya.desk import Desk, opened
from engines.laya.network import BatchNetwork
from engines.laya.rows import Budget, Row
from engines.laya.settings import LayaSettings

PARITY = 2e-4
"""Most that a probability may differ from the reference's: 1e-4, and half of its last digit."""

_BATCH_DRIFT = 1e-4
_SHORT_TOKENS = 160
"""Rows up to this length are read in one padded batch."""

Status = Literal["ok", "failed", "measured", "skipped"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the table."""

    check: str
    status: Status
    detail: str


@dataclass(frozen=True, slots=True)
class _Asked:
    """A golden request, worded and encoded."""

    request: dict[str, Any]
    rows: tuple[Row, ...]
    budget: Budget


def findings(path: Path, *, max_delta: float | None = None) -> Iterator[Finding]:
    """What is found out about the checkpoint in `path`, one check after the other.

    `max_delta` is how far an int8 probability may be from fp32's; without it the distance is
    reported only.

    Raises:
        CheckpointError: it cannot be loaded at all.
    """
    desk = _opened(path, "fp32")
    asked = _encoded(desk)
    rows = [row for one in asked for row in one.rows]
    yield Finding("load", "ok", f"{desk.checkpoint.directory.name}: {len(rows)} golden rows")
    yield _rows_are_well_formed(desk, asked)
    plain = _probabilities(desk, rows)
    yield _reads_the_same_again(desk, rows, plain)
    yield _reads_the_same_in_a_batch(desk, rows)
    yield _int8(path, rows, plain, max_delta)
    yield _parity(path, asked, plain)


def _opened(path: Path, precision: Precision) -> Desk:
    return opened(path, LayaSettings(path, precision=precision, harden=False))


def _encoded(desk: Desk) -> list[_Asked]:
    text = (files("engines.laya") / "verify_requests.json").read_text("utf-8")
    found = []
    for request in json.loads(text):
        limits = request["kwargs"]
        budget = Budget(
            limits.get("max_len", desk.budget.max_len),
            limits.get("head_max_len", desk.budget.head_max_len),
        )
        state = desk.tokens.state(request["state"])
        texts = wordings(request["state"], request["questions"]).values()
        rows = tuple(desk.tokens.row(wording, state, budget) for wording in texts)
        found.append(_Asked(request, rows, budget))
    return found


def _rows_are_well_formed(desk: Desk, asked: Sequence[_Asked]) -> Finding:
    special = desk.checkpoint.specials
    for one in asked:
        for row in one.rows:
            fits = len(row.ids) <= one.budget.max_len and len(row.markers) == row.options
            masks = all(row.ids[at] == special.mask for at in row.markers)
            framed = row.ids[0] == special.cls and row.ids[-1] == special.sep
            if not (fits and masks and framed):
                return Finding("rows", "failed", f"malformed row for '{one.request['name']}'")
    return Finding("rows", "ok", "frames, option markers and lengths are as they must be")


def _reads_the_same_again(
    desk: Desk, rows: Sequence[Row], first: Sequence[NDArray[np.float64]]
) -> Finding:
    again = _probabilities(desk, rows[::-1])[::-1]
    if all(np.array_equal(a, b) for a, b in zip(first, again, strict=True)):
        return Finding("alone and in company", "ok", "bit for bit the same in any order")
    return Finding("alone and in company", "failed", "an answer depends on what was read before")


def _reads_the_same_in_a_batch(desk: Desk, rows: Sequence[Row]) -> Finding:
    check = "padded batch"
    if desk.checkpoint.encoder is None:
        return Finding(check, "skipped", "an exported graph is read one row at a time")
    kept = artifact(desk.checkpoint, "fp32", "batch")
    graph = (kept or imported(desk.checkpoint, "fp32", "batch")).graph
    network = BatchNetwork(graph, "cpu", desk.checkpoint.specials.pad)
    if kept is None:
        shutil.rmtree(graph.parent)  # as large as the weights, and nothing else reads it
    short = [row for row in rows if len(row.ids) <= _SHORT_TOKENS]
    alone, together = desk.network.logits(short), network.together(short)
    drift = max(float(np.abs(a - b).max()) for a, b in zip(alone, together, strict=True))
    status: Status = "ok" if drift <= _BATCH_DRIFT else "failed"
    return Finding(check, status, f"logits move by at most {drift:.1e}")


def _int8(
    path: Path,
    rows: Sequence[Row],
    plain: Sequence[NDArray[np.float64]],
    max_delta: float | None,
) -> Finding:
    desk = _opened(path, "int8")
    if desk.checkpoint.encoder is None:
        return Finding("int8", "skipped", "an exported graph keeps its own precision")
    coarse = _probabilities(desk, rows)
    pairs = list(zip(plain, coarse, strict=True))
    delta = max(float(np.abs(a - b).max()) for a, b in pairs)
    flips = sum(int(a.argmax() != b.argmax()) for a, b in pairs)
    detail = f"max |Δp| {delta:.4f}, other answer in {flips} of {len(pairs)} rows"
    if max_delta is None:
        return Finding("int8 against fp32", "measured", detail)
    return Finding("int8 against fp32", "failed" if delta > max_delta else "ok", detail)


def _parity(path: Path, asked: Sequence[_Asked], plain: Sequence[NDArray[np.float64]]) -> Finding:
    check = "reference package"
    if not all(importlib.util.find_spec(name) for name in ("laya", "torch")):
        return Finding(check, "skipped", "needs laya and torch: requirements/parity.txt")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agent = importlib.import_module("laya").load(str(path))
        answers = [
            answer
            for one in asked
            for answer in agent.predict(
                one.request["state"], one.request["questions"], **one.request["kwargs"]
            )["answers"].values()
        ]
    pairs = list(zip(plain, (_stated(answer) for answer in answers), strict=True))
    delta = max(float(np.abs(a - b).max()) for a, b in pairs)
    status: Status = "ok" if delta <= PARITY else "failed"
    return Finding(check, status, f"{len(pairs)} answers, max |Δp| {delta:.1e}")


def _stated(answer: dict[str, Any]) -> NDArray[np.float64]:
    """The reference's probabilities in canonical order."""
    if "noul" in answer:
        return np.array([1.0 - answer["noul"], answer["noul"]])
    return np.array(list(answer["probabilities"].values()))


def _probabilities(desk: Desk, rows: Sequence[Row]) -> list[NDArray[np.float64]]:
    found = []
    for weights in desk.log_weights(rows):
        shares = np.exp(np.array(weights) - max(weights))
        found.append(shares / shares.sum())
    return found
