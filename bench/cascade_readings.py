"""What engines say of labelled rows, one question at a time: log-weights, tokens, time."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.contract import Engine, Inquiry, Unreadable
from gateway.labelled import Row, load_rows
from policies.calibration import Calibration, fitted_temperature

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

Told = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, eq=False)
class Readings:
    """What one engine says of rows that ask one question each."""

    shares: Floats
    """float64[rows, labels]: probabilities, before any calibration; 0 beyond a row's labels."""
    labels: Ints
    """int64[rows]: which label is right."""
    tokens: Ints
    cpu_ms: Floats
    """Of preparing and reading, on one thread."""
    wall_ms: Floats

    @property
    def right(self) -> Mask:
        """Whether the likeliest label is the right one, bool[rows]."""
        found: Mask = self.shares.argmax(axis=1) == self.labels
        return found

    @property
    def top(self) -> Floats:
        """The probability of the likeliest label, float64[rows]."""
        found: Floats = self.shares.max(axis=1)
        return found

    def of(self, rows: Mask | Ints) -> "Readings":
        """The readings of some rows."""
        return Readings(
            self.shares[rows],
            self.labels[rows],
            self.tokens[rows],
            self.cpu_ms[rows],
            self.wall_ms[rows],
        )

    def calibrated(self, calibration: Calibration) -> "Readings":
        """The same with probabilities at the calibration's temperature."""
        powered = np.where(self.shares > 0, self.shares, 1e-300) ** (1 / calibration.temperature)
        powered = np.where(self.shares > 0, powered, 0.0)
        shares = powered / powered.sum(axis=1, keepdims=True)
        return Readings(shares, self.labels, self.tokens, self.cpu_ms, self.wall_ms)

    def temperature(self) -> float:
        """The temperature that suits them, by `policies.calibration`."""
        logs = [np.log(row[row > 0]).tolist() for row in self.shares]
        fits = [i for i, row in enumerate(logs) if self.labels[i] < len(row)]
        return fitted_temperature(
            [logs[i] for i in fits], [int(self.labels[i]) for i in fits], low=0.05, high=50.0
        )


def rows_of(folder: Path, name: str, split: str) -> list[Row]:
    """The rows of a set's split that ask exactly one question, in the file's order."""
    found = load_rows([folder / f"{name}.{split}.jsonl"])
    return [row for row in found if len(row.labels) == 1]


def read_by(
    engines: Sequence[Engine[Any]], rows: Sequence[Row], told: Told = lambda done, total: None
) -> tuple[list[Readings], int]:
    """Each engine's readings of the rows that all of them can read, and how many rows that drops.

    Engines take turns row by row, so that whatever else the machine does hits all alike.
    """
    kept: list[list[_One]] = []
    for number, row in enumerate(rows):
        with suppress(Unreadable):
            kept.append([_one(engine, row) for engine in engines])
        told(number + 1, len(rows))
    by_engine = [[ones[i] for ones in kept] for i in range(len(engines))]
    return [_stacked(ones) for ones in by_engine], len(rows) - len(kept)


@dataclass(frozen=True, slots=True)
class _One:
    log_weights: Sequence[float]
    label: int
    tokens: int
    cpu_ms: float
    wall_ms: float


def _one(engine: Engine[Any], row: Row) -> _One:
    (name,) = row.labels
    inquiry = Inquiry(row.state, {name: row.questions[name]})
    cpu_s, wall_s = time.thread_time(), time.perf_counter()
    (piece,) = engine.prepare(inquiry)
    reading = engine.read([piece])[0][name]
    return _One(
        reading.log_weights,
        row.labels[name],
        reading.tokens,
        (time.thread_time() - cpu_s) * 1000,
        (time.perf_counter() - wall_s) * 1000,
    )


def _stacked(ones: Sequence[_One]) -> Readings:
    widest = max(len(one.log_weights) for one in ones)
    shares = np.zeros((len(ones), widest))
    for at, one in enumerate(ones):
        weights = np.asarray(one.log_weights)
        powers = np.exp(weights - weights.max())
        shares[at, : len(weights)] = powers / powers.sum()
    return Readings(
        shares,
        np.array([one.label for one in ones], dtype=np.int64),
        np.array([one.tokens for one in ones], dtype=np.int64),
        np.array([one.cpu_ms for one in ones]),
        np.array([one.wall_ms for one in ones]),
    )
