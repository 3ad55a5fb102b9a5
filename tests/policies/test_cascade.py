"""Floors, cells, gates, and what escalating is worth."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.contract import Choice, Noul, Question, Score
from policies.calibration import Calibration
from policies.cascade import (
    NEVER,
    Calibrations,
    Floors,
    within_share,
    worth_escalating,
)
from policies.cells import CELLS, cell, fingerprint
from policies.gates import Gate, gated


@pytest.mark.parametrize(
    ("kind", "labels", "expected"),
    [
        ("noul", 2, "noul"),
        ("choice", 1, "choice:2"),
        ("choice", 2, "choice:2"),
        ("choice", 3, "choice:3-5"),
        ("choice", 10, "choice:6-10"),
        ("choice", 11, "choice:11+"),
        ("score", 5, "score:3-5"),
    ],
)
def test_a_cell_is_a_kind_and_a_size(kind: str, labels: int, expected: str) -> None:
    assert cell(kind, labels) == expected  # type: ignore[arg-type]
    assert expected in CELLS


def test_the_closest_floor_wins() -> None:
    floors = Floors(0.9, {"choice": 0.8, "choice:11+": 0.7}, {"abc": 0.6})

    assert floors.of("choice:11+", "abc") == 0.6
    assert floors.of("choice:11+", "other") == 0.7
    assert floors.of("choice:2", "other") == 0.8
    assert floors.of("noul", "other") == 0.9


def test_without_a_floor_no_answer_is_kept() -> None:
    assert Floors().of("noul", "abc") == NEVER > 1.0


def test_a_question_may_have_a_calibration_of_its_own() -> None:
    own, of_cell = Calibration(2.0), Calibration(3.0)
    calibrations = Calibrations({"noul": of_cell}, {"abc": own})

    assert calibrations.of("noul", "abc") is own
    assert calibrations.of("noul", "other") is of_cell
    assert calibrations.of("choice:2", "other") == Calibration()


@given(st.floats(0, 1))
def test_without_knots_a_probability_means_itself(top: float) -> None:
    assert Calibration().likelihood(top) == top


def test_knots_are_joined_by_lines_and_flat_outside() -> None:
    calibration = Calibration(knots=((0.5, 0.4), (0.75, 0.4), (1.0, 0.9)))

    assert calibration.likelihood(0.2) == 0.4
    assert calibration.likelihood(0.6) == pytest.approx(0.4)
    assert calibration.likelihood(0.875) == pytest.approx(0.65)
    assert calibration.likelihood(1.0) == 0.9


def test_a_fingerprint_depends_on_everything_but_the_id() -> None:
    questions: list[Question] = [
        Noul("Is it?"),
        Noul("Is it?", true="yes"),
        Noul("Is it?", false="yes"),
        Choice({"a": None, "b": None}, "Is it?"),
        Choice({"b": None, "a": None}, "Is it?"),
        Choice({"a": "b"}, "Is it?"),
        Score(["a", "b"], "Is it?"),
        Score(["b", "a"], "Is it?"),
        Noul("\ud800"),
    ]
    found = {fingerprint(question) for question in questions}

    assert len(found) == len(questions)
    assert all(len(one) == 16 for one in found)
    assert fingerprint(Noul("Is it?")) == "438dda3bbcd7dedb"


@pytest.mark.parametrize(
    ("gate", "question", "images", "language", "expected"),
    [
        (Gate(), Noul("?"), False, None, None),
        (Gate(), Noul("?"), True, None, "images"),
        (Gate(images=True), Noul("?"), True, None, None),
        (Gate(languages=frozenset({"en"})), Noul("?"), False, "de-AT", "language"),
        (Gate(languages=frozenset({"en"})), Noul("?"), False, "EN_gb", None),
        (Gate(languages=frozenset({"en"})), Noul("?"), False, None, None),
        (Gate(max_options=1), Choice({"a": None, "b": None}), False, None, "too_many_options"),
        (Gate(max_options=2), Choice({"a": None, "b": None}), False, None, None),
        (Gate(max_options=1), Score(["a", "b"]), False, None, None),
        (Gate(not_competent=frozenset({"noul"})), Noul("?"), False, None, "not_competent"),
        (Gate(known_bad=frozenset({"f"})), Noul("?"), False, None, "known_bad"),
    ],
)
def test_a_gate_names_its_reason(
    gate: Gate, question: Question, images: bool, language: str | None, expected: str | None
) -> None:
    assert gated(gate, question, "f", images=images, language=language) == expected


def test_escalating_is_worth_what_a_wrong_answer_costs() -> None:
    assert worth_escalating(0.9, cost_of_error=1.0, step_cost=0.09)
    assert not worth_escalating(0.9, cost_of_error=1.0, step_cost=0.11)
    assert not worth_escalating(1.0, cost_of_error=1.0, step_cost=0.0)


@given(st.integers(0, 1000), st.integers(1, 1000), st.integers(0, 255), st.floats(0, 1))
def test_the_share_holds_with_those_that_may_go(
    escalated: int, window: int, more: int, share: float
) -> None:
    allowed = within_share(escalated, window, more, share)

    assert 0 <= allowed <= more
    if allowed:
        assert escalated + allowed <= share * window + 1e-6
    if allowed < more:
        assert escalated + allowed + 1 > share * window - 1e-6
