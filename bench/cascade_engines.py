"""The engines of a cascade that is measured: real ones, fitted here or configured by the user."""

import random
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.cascade_readings import Told
from engines.contract import Engine
from engines.fitted.engine import FittedEngine
from engines.fitted.heads import saved
from engines.starter.engine import StarterEngine
from gateway.config_file import load
from gateway.fitting.examples import by_question
from gateway.fitting.training import Fitted, Terms, TooFew, fitted
from gateway.fitting.vectors import Memory, vectors_of
from gateway.labelled import Row
from gateway.wiring_engines import open_engine

FEW_PER_LABEL = 5


@contextmanager
def starter_and_fitted(
    rows: Sequence[Row], cache: Path | None, told: Told, terms: Terms
) -> Iterator[tuple[StarterEngine, FittedEngine, Fitted]]:
    """The starter, an engine with one head fitted to the rows, and what is known of that head."""
    (examples,) = by_question(rows).values()
    vectors = vectors_of(examples.texts, Memory(cache), threads=1, told=told)
    found = fitted(examples, vectors, terms, lambda: None)
    if isinstance(found, TooFew):
        raise SystemExit(f"{examples.name}: {found.why}")
    with tempfile.TemporaryDirectory() as folder:
        saved(found.head, Path(folder))
        head = FittedEngine(path=folder)
    starter = StarterEngine()
    try:
        yield starter, head, found
    finally:
        head.close()
        starter.close()


@contextmanager
def configured(path: str, model: str) -> Iterator[tuple[Engine[Any], Engine[Any]]]:
    """The first and the last engine of a model in somebody's configuration."""
    settings = load(Path(path)).settings
    names = settings.models[model].engines
    opened = [open_engine(name, settings.engines[name]) for name in (names[0], names[-1])]
    try:
        yield opened[0], opened[1]
    finally:
        for engine in opened:
            engine.close()


def few_of(rows: Sequence[Row], labels: int) -> list[Row]:
    """`FEW_PER_LABEL` rows for each label on average, drawn from all of them; at least 60."""
    wanted = min(len(rows), max(60, FEW_PER_LABEL * labels))
    return random.Random(0).sample(list(rows), wanted)
