"""One question's labelled examples to a calibrated head, and everything worth saying about it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from engines.contract import Json, kind_of, label_count
from engines.fitted.heads import Head
from gateway.fitting.crossing import FOLDS, STEPS, Crossed, Step, Training, crossed
from gateway.fitting.examples import Examples, folds, held_out, label_names
from gateway.fitting.heads import Floats, Ints, Line, one_thread
from gateway.fitting.measures import Measures, confusions, measured
from gateway.fitting.scaling import probabilities
from gateway.fitting.vectors import Vectors
from policies.certify import Certificate, certified, fewest_trials, grid

FEWEST = 20
"""Examples to fit to; below, cross-validation says nothing."""

__all__ = ["FEWEST", "STEPS", "Evidence", "Fitted", "Terms", "TooFew", "fitted"]


@dataclass(frozen=True, slots=True)
class Terms:
    """What is to be promised, and what is kept back to promise it on."""

    risk: float = 0.05
    delta: float = 0.1
    hold_out: float = 0.3
    """Share of the examples that the head is not fitted to; 0 = promise nothing."""


@dataclass(frozen=True, slots=True)
class TooFew:
    """A question that no head was made for."""

    examples: Examples
    why: str


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """How good a head is, by rows that it was not fitted to."""

    trained_on: int
    strength: float
    """Inverse of the penalty."""
    temperature: float
    """By which the head's arrays are already divided."""
    crossed: Measures
    """Of rows that the regression did not see, by cross-validation on the examples fitted to."""
    crossed_likelihoods: Floats
    """Of the same rows, the calibrated probability of the likeliest label, float64[rows]."""
    uncalibrated_ece: float
    """The same before the temperature."""
    held_out: Measures | None
    """Of the head itself on what was kept back; `None` = nothing was."""
    certificate: Certificate | None
    curve: tuple[tuple[int, float], ...]
    """(examples fitted to, share right by cross-validation)."""
    confused: tuple[tuple[str, str, int], ...]
    """(right label, said label, how often), most frequent first, by cross-validation."""


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """A head and its evidence."""

    examples: Examples
    head: Head
    evidence: Evidence
    too_long: int
    """Examples whose state does not fit the encoder's window."""
    never_seen: tuple[str, ...]
    """Labels that no example has, by name."""


@dataclass(frozen=True, slots=True, eq=False)
class _Test:
    """What the head says of the rows kept back."""

    shares: Floats
    labels: Ints
    names: Sequence[str]
    """Of the labels."""


def fitted(examples: Examples, vectors: Vectors, terms: Terms, step: Step) -> Fitted | TooFew:
    """The head of a question; `step` is told of each of its `STEPS` regressions."""
    rows = [i for i, text in enumerate(examples.texts) if text in vectors]
    texts = [examples.texts[i] for i in rows]
    labels = np.array([examples.labels[i] for i in rows], dtype=np.int64)
    kept_back = np.array(_kept_back(texts, terms), dtype=bool)
    fits_to, tests_on = np.flatnonzero(~kept_back), np.flatnonzero(kept_back)
    if why := _too_few(labels[fits_to]):
        return TooFew(examples, why)
    matrix = np.stack([vectors[text] for text in texts]).astype(np.float64)
    training = Training(
        matrix[fits_to],
        labels[fits_to],
        label_count(examples.question),
        np.array(folds([texts[i] for i in fits_to], labels[fits_to].tolist(), FOLDS)),
    )
    with one_thread():
        found = crossed(training, step)
        line = training.fitted(np.arange(len(fits_to)), found.strength).over(found.temperature)
        step()
    shares = probabilities(line.log_weights(matrix[tests_on]))
    names = label_names(examples.question)
    evidence = _evidence(training, found, _Test(shares, labels[tests_on], names), terms)
    seen = set(labels.tolist())
    return Fitted(
        examples,
        _head(examples, line, evidence),
        evidence,
        too_long=len(examples.texts) - len(rows),
        never_seen=tuple(name for i, name in enumerate(names) if i not in seen),
    )


def _evidence(training: Training, found: Crossed, test: _Test, terms: Terms) -> Evidence:
    calibrated = probabilities(found.calibrated(training.folds))
    tested = measured(test.shares, test.labels) if len(test.labels) else None
    return Evidence(
        trained_on=len(training.labels),
        strength=found.strength,
        temperature=found.temperature,
        crossed=measured(calibrated, training.labels),
        crossed_likelihoods=calibrated.max(axis=1),
        uncalibrated_ece=measured(probabilities(found.log_weights), training.labels).ece,
        held_out=tested,
        certificate=_certificate(calibrated, test, terms),
        curve=found.curve,
        confused=confusions(calibrated, training.labels, test.names),
    )


def _head(examples: Examples, line: Line, evidence: Evidence) -> Head:
    return Head(
        fingerprint=examples.fingerprint,
        kind=kind_of(examples.question),
        weights=line.weights.astype(np.float32),
        bias=line.bias.astype(np.float32),
        name=examples.name,
        made=_made(evidence),
    )


def _kept_back(texts: Sequence[str], terms: Terms) -> list[bool]:
    """Nothing, where too few would be kept back to promise anything on."""
    least = fewest_trials(0, terms.risk, terms.delta)
    if terms.hold_out * len(texts) <= least:
        return [False] * len(texts)
    return held_out(texts, terms.hold_out)


def _too_few(labels: Ints) -> str | None:
    """Why nothing can be fitted to these labels."""
    counts = Counter(labels.tolist())
    if len(labels) < FEWEST:
        return f"{len(labels)} examples to fit to, at least {FEWEST} are needed"
    if len(counts) < 2:
        return "all examples have the same label"
    if sorted(counts.values())[-2] < FOLDS:
        return f"only one label has {FOLDS} examples or more; give at least {FOLDS} of two labels"
    return None


def _certificate(calibrated: Floats, test: _Test, terms: Terms) -> Certificate | None:
    """What can be promised of the head, tested on what was kept back; the floors come from rows
    that were not."""
    if not len(test.labels):
        return None
    right = test.shares.argmax(axis=1) == test.labels
    floors = grid(calibrated.max(axis=1).tolist())
    likelihoods = test.shares.max(axis=1).tolist()
    return certified(likelihoods, right.tolist(), floors, risk=terms.risk, delta=terms.delta)


def _made(evidence: Evidence) -> Mapping[str, Json]:
    """What the head's file says of its making."""
    held_out = evidence.held_out
    return {
        "rows": evidence.trained_on,
        "strength": evidence.strength,
        "temperature": round(evidence.temperature, 4),
        "crossed": _short(evidence.crossed),
        "held_out": None if held_out is None else _short(held_out),
    }


def _short(found: Measures) -> dict[str, Json]:
    return {
        "rows": found.rows,
        "accuracy": round(found.accuracy, 4),
        "ece": round(found.ece, 4),
    }
