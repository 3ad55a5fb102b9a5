"""Heads with drawn numbers instead of fitted ones: what the laws need is that they are there."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from engines.contract import Choice, Noul, Question, Score, kind_of, label_count
from engines.fingerprint import fingerprint
from engines.fitted.engine import FittedEngine
from engines.fitted.heads import Head, saved
from engines.minilm.sentences import WIDTH

_LONG = "and another word " * 3000

KNOWN: Sequence[Question] = (
    Noul("Is it?"),
    Noul("Is it a cat?"),
    Noul("Is it urgent?", "at once", "whenever"),
    Noul(_LONG),
    Choice({"a": None, "b": None}, _LONG),
    Choice({"a": None, "b": None}, "Which?"),
    Choice({"a": "this", "b": "that"}, "Which?"),
    Choice({"refund": None, "password": None, "weather": None}, "What is it about?"),
    Choice({f"option {n}": None for n in range(77)}),
    Choice({"only": None}),
    Score(["low", "high"], "How much?"),
    Score(["0", "1", "2", "3", "4"]),
    Noul("Is it urgent?"),
)


def drawn(question: Question, name: str = "q") -> Head:
    """A head for the question, its numbers drawn by its fingerprint."""
    known_as = fingerprint(question)
    draw = np.random.default_rng(int(known_as, 16))
    labels = label_count(question)
    return Head(
        fingerprint=known_as,
        kind=kind_of(question),
        weights=draw.normal(scale=4.0, size=(labels, WIDTH)).astype(np.float32),
        bias=draw.normal(size=labels).astype(np.float32),
        name=name,
    )


def knowing_engine() -> FittedEngine:
    """An engine that knows `KNOWN`."""
    with tempfile.TemporaryDirectory() as folder:
        for question in KNOWN:
            saved(drawn(question), Path(folder))
        return FittedEngine(path=folder)
