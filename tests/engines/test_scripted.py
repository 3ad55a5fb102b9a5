"""The scripted engine: the faults that it is told to have come in their turns."""

import math

import pytest

from engines.contract import Busy, Inquiry, Noul
from engines.scripted import ScriptedEngine

ASK = Inquiry("a state", {"q": Noul("Is it?")})


def outcomes(engine: ScriptedEngine, times: int) -> list[str]:
    """What came of each read."""
    found = []
    for _ in range(times):
        try:
            (read,) = engine.read(engine.prepare(ASK))
        except (RuntimeError, Busy) as error:
            found.append(type(error).__name__)
        else:
            found.append("fine" if math.isfinite(sum(read["q"].log_weights)) else "nan")
    return found


def test_every_so_many_reads_go_wrong_as_told() -> None:
    engine = ScriptedEngine(faults={"raise": 4, "nan": 3, "busy": 5})

    assert outcomes(engine, 6) == ["fine", "fine", "nan", "RuntimeError", "Busy", "nan"]


def test_a_stall_ends_in_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("engines.scripted.time.sleep", slept.append)

    assert outcomes(ScriptedEngine(faults={"stall": 2}), 4) == ["fine"] * 4
    assert slept == [1.0, 1.0]
