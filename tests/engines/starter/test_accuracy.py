"""What the engine is shipped for: intents by name, on the whole test sets."""

import statistics
from pathlib import Path

import pytest

from bench.starter import Readings, cases, readings
from engines.starter.engine import StarterEngine
from policies.calibration import expected_calibration_error, probabilities

DATA = Path(__file__).parents[2] / "data"
CLOSE_TO_A_GUESS = {"noul": 0.85, "score": 0.35}
"""Above any probability seen on whole test sets, far below certainty."""


def answered(engine: StarterEngine, name: str, rows: int) -> Readings:
    read = readings(engine, list(cases(DATA, name, "test")))["choice"]
    assert len(read.right) == rows
    assert read.refused == 0
    return read


def accuracy(read: Readings) -> float:
    return statistics.fmean(
        max(range(len(row)), key=row.__getitem__) == right
        for row, right in zip(read.log_weights, read.right, strict=True)
    )


@pytest.mark.slow
def test_banking77_is_routed_right_in_62_of_100_and_sure_to_the_degree_it_is_right(
    engine: StarterEngine,
) -> None:
    read = answered(engine, "banking77", 1001)

    assert accuracy(read) >= 0.62
    p = [probabilities(row) for row in read.log_weights]
    hits = [row[right] == max(row) for row, right in zip(p, read.right, strict=True)]
    assert expected_calibration_error([max(row) for row in p], hits) <= 0.15


@pytest.mark.slow
def test_clinc150_is_routed_right_in_57_of_100(engine: StarterEngine) -> None:
    assert accuracy(answered(engine, "clinc150", 1250)) >= 0.57


@pytest.mark.parametrize("name", ["sms_spam", "stsb", "sys1bench_canary"])
def test_what_it_is_not_competent_for_stays_close_to_a_guess(
    engine: StarterEngine, name: str
) -> None:
    found = readings(engine, list(cases(DATA, name, "test")))

    for kind in engine.facts.not_competent & found.keys():
        for row in found[kind].log_weights:
            assert max(probabilities(row)) < CLOSE_TO_A_GUESS[kind]
