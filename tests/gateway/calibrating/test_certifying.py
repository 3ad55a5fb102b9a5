"""From judged answers to calibrations and floors: groups, shares of δ, tiers, what never stays."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from engines.contract import Choice, Noul, Question
from gateway.calibrating.certifying import Measured, Terms, calibrations, promises
from gateway.calibrating.judging import Judged, judged
from gateway.calibrating.results import Read
from gateway.policy_file import EngineCalibration
from policies.calibration import Calibration
from policies.gates import Gate
from tests.gateway.calibrating.rows import DESK, TEAM, honest, row, truth

TERMS = Terms(risk=0.1, delta=0.1, per="cell", joint=True)
OPEN = Gate(images=True)


def answers(
    first: int, n: int, question: Question = TEAM, name: str = "q", sharpness: float = 1.0
) -> list[Judged]:
    """Of an honest engine, whose log-weights are multiplied by `sharpness`."""
    rows = [row(i, truth(i), question, name) for i in range(first, first + n)]
    reads = [
        {name: Read(tuple(sharpness * w for w in honest(one.state, question)), 10)} for one in rows
    ]
    return [replace(one, row=first + one.row) for one in judged(rows, reads, OPEN)]


def measured(
    engine: str, calibrate: Sequence[Judged], certify: Sequence[Judged]
) -> tuple[Measured, EngineCalibration]:
    one = Measured(engine, f"digest of {engine}", calibrate, certify)
    return one, calibrations(one)


def test_an_honest_engine_is_kept_where_it_is_sure() -> None:
    ((group,),) = promises([measured("e", answers(0, 400), answers(400, 900))], TERMS).values()
    promise = group.promise

    assert promise.promised
    assert promise.floor is not None
    assert 0.5 < promise.floor < 0.95
    assert (promise.engine, promise.cell, promise.question) == ("e", "choice:3-5", None)
    assert promise.labels == len(group.answers) == 900
    assert promise.errors / promise.accepted < 0.1
    assert promise.accepted == sum(p >= promise.floor for p in group.likelihoods)


def test_a_temperature_undoes_what_an_engine_overstates() -> None:
    _, own = measured("e", answers(0, 400, sharpness=3.0), [])

    assert own.digest == "digest of e"
    assert own.cells["choice:3-5"].temperature == pytest.approx(3.0, rel=0.35)


def test_a_question_asked_often_has_a_calibration_of_its_own() -> None:
    often, seldom = answers(0, 300, sharpness=4.0), answers(300, 30, DESK, "d")
    _, own = measured("e", [*often, *seldom], [])
    _, single = measured("e", often, [])

    assert list(own.questions) == [often[0].fingerprint]
    assert own.questions[often[0].fingerprint].temperature > 2.0
    assert single.questions == {}


def test_few_labels_leave_log_weights_as_they_are() -> None:
    _, own = measured("e", answers(0, 5), [])

    assert own.cells == {"choice:3-5": Calibration()}


def test_floors_share_delta_unless_each_has_all_of_it() -> None:
    certify = [*answers(400, 300), *answers(900, 300, DESK, "d")]
    both = measured("e", answers(0, 400), certify)
    by_question = replace(TERMS, per="question")

    joint = promises([both], by_question)["e"]
    separate = promises([both], replace(by_question, joint=False))["e"]

    assert [one.promise.delta for one in joint] == [0.05, 0.05]
    assert [one.promise.delta for one in separate] == [0.1, 0.1]
    assert {one.promise.name for one in joint} == {"q", "d"}
    assert {one.promise.question for one in joint} == {one.fingerprint for one in certify}


def test_too_few_labels_say_how_many_it_takes_in_all() -> None:
    calibrate, certify = answers(0, 10), answers(10, 20)
    ((group,),) = promises([measured("e", calibrate, certify)], TERMS).values()

    assert not group.promise.promised
    assert group.promise.needs == math.ceil(23 * 30 / 20)
    assert group.promise.labels == 20


def test_what_is_never_kept_is_not_tested() -> None:
    gate = Gate(images=True, not_competent=frozenset({"noul"}))
    rows = [row(i, i % 2, Noul("Is it?"), "n") for i in range(50)]
    nouls = judged(rows, [{"n": Read((0.0, 0.0))}] * 50, gate)
    refused = judged([row(99)], [{"q": Read((), refused="too_long")}], gate)
    doubted = judged([row(98)], [{"q": Read((1.0, 0.0, 0.0), doubt="not_competent")}], gate)
    certify = [*answers(400, 300), *nouls, *refused, *doubted]

    choice, noul = promises([measured("e", answers(0, 300), certify)], TERMS)["e"]

    assert choice.off == {"too_long": 1, "not_competent": 1}
    assert choice.promise.labels == 300
    assert noul.off == {"not_competent": 50}
    assert (noul.promise.promised, noul.promise.needs) == (False, None)
    assert noul.promise.start_rule == "none: never kept (not_competent)"


def test_a_gate_on_options_keeps_a_question_away() -> None:
    gate = Gate(images=True, max_options=2)
    (one,) = judged([row(1)], [{"q": Read((1.0, 0.0, 0.0))}], gate)

    assert one.off == "too_many_options"


def test_what_is_right_may_be_what_another_engine_says() -> None:
    rows = [row(1, 0), row(2, 0), row(3, 0)]
    reads = [{"q": Read((2.0, 1.0, 0.0))}] * 3
    other = [
        {"q": Read((0.0, 1.0, 1.0))},
        {"q": Read((3.0, 1.0, 1.0))},
        {"q": Read((), refused="x")},
    ]
    found = judged(rows, reads, OPEN, other)

    assert [one.label for one in found] == [1, 0, None]
    assert [one.right for one in found[:2]] == [False, True]


def test_a_second_tier_is_tested_on_rows_of_its_own_that_the_first_does_not_keep() -> None:
    calibrate, certify = answers(0, 400), answers(400, 1600)
    first = measured("first", calibrate, certify)
    second = measured("second", calibrate, certify)

    found = promises([first, second], TERMS)
    (lower,), (upper,) = found["first"], found["second"]
    tested = {one.row for one in lower.answers}, {one.row for one in upper.answers}

    assert not tested[0] & tested[1]
    assert 700 < len(tested[0]) < 900
    assert lower.promise.floor is not None
    assert all(p < lower.promise.floor for p in upper.likelihoods)
    assert lower.promise.delta == upper.promise.delta == 0.05


def test_labels_of_unlabelled_rows_are_not_needed_for_the_grid() -> None:
    silent = [replace(one, label=None) for one in answers(2000, 500)]
    without = promises([measured("e", [], [*answers(400, 600), *silent])], TERMS)["e"][0]

    assert without.promise.promised
    assert without.promise.labels == 600


def test_likelihoods_are_those_that_the_gateway_computes() -> None:
    """The cascade compares the floor with calibration.likelihood of the reported probability."""
    from engines.contract import Reading
    from policies.answers import answer

    (one,) = answers(7, 1)
    scale = Calibration(0.7, ((0.3, 0.2), (0.99, 0.9)))
    there = answer(TEAM, Reading(one.read.log_weights, 1), 0.7).likelihood

    assert one.likelihood(scale) == scale.likelihood(there)
    assert isinstance(TEAM, Choice)
