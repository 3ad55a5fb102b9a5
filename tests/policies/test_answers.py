"""From readings to answers: what is reported is consistent to the last digit."""

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.contract import Choice, Noul, Reading, Score, Text
from policies import confidence
from policies.answers import ChoiceAnswer, NoulAnswer, ScoreAnswer, answer, reported

WEIGHTS = st.lists(st.floats(-50, 50), min_size=1, max_size=255)


def choice_of(weights: list[float]) -> ChoiceAnswer:
    options = {f"option {i}": None for i in range(len(weights))}
    given_answer = answer(Choice(options), Reading(weights, 1))
    assert isinstance(given_answer, ChoiceAnswer)
    return given_answer


def score_of(weights: list[float]) -> ScoreAnswer:
    given_answer = answer(Score([f"level {i}" for i in range(len(weights))]), Reading(weights, 1))
    assert isinstance(given_answer, ScoreAnswer)
    return given_answer


@given(WEIGHTS)
def test_reported_probabilities_sum_to_exactly_one_as_decimals(weights: list[float]) -> None:
    p = choice_of(weights).probabilities.values()

    assert sum(Decimal(repr(q)) for q in p) == 1
    assert all(0 <= q <= 1 for q in p)


@given(WEIGHTS, st.sampled_from([0.3, 1.0, 2.5]))
def test_what_is_reported_is_the_softmax_rounded_down_and_the_rest(
    weights: list[float], temperature: float
) -> None:
    top = max(weights)
    raised = [math.exp((w - top) / temperature) for w in weights]
    expected = [int(r * (1_000_000 / sum(raised))) for r in raised]
    expected[weights.index(top)] += 1_000_000 - sum(expected)

    assert reported(weights, temperature) == expected


@given(WEIGHTS)
def test_a_choice_and_a_score_report_the_same_millionths(weights: list[float]) -> None:
    expected = [steps / 1_000_000 for steps in reported(weights)]

    assert list(choice_of(weights).probabilities.values()) == expected
    assert list(score_of(weights).probabilities) == expected


@given(WEIGHTS)
def test_the_likeliest_label_stays_the_likeliest(weights: list[float]) -> None:
    given_answer = choice_of(weights)

    p = list(given_answer.probabilities.values())
    assert p.index(max(p)) == list(given_answer.probabilities).index(given_answer.choice)
    assert weights[p.index(max(p))] == pytest.approx(max(weights), abs=1e-5)


@given(st.integers(1, 255))
def test_a_tie_goes_to_the_first_option(n: int) -> None:
    assert choice_of([1.5] * n).choice == "option 0"


@given(WEIGHTS)
def test_probabilities_are_the_softmax_to_six_digits(weights: list[float]) -> None:
    total = sum(math.exp(w - max(weights)) for w in weights)

    reported_p = choice_of(weights).probabilities.values()

    for w, q in zip(weights, reported_p, strict=True):
        assert q == pytest.approx(math.exp(w - max(weights)) / total, abs=1e-6 * len(weights))


@given(st.lists(st.floats(-20, 20), min_size=1, max_size=10))
def test_score_is_the_expectation_of_the_reported_probabilities(weights: list[float]) -> None:
    given_answer = score_of(weights)

    exact = sum(
        (i * Decimal(repr(p)) for i, p in enumerate(given_answer.probabilities)), Decimal(0)
    )
    assert Decimal(repr(given_answer.score)) == exact.quantize(Decimal("0.000001"))


@given(st.lists(st.floats(-20, 20), min_size=2, max_size=10))
def test_confidence_is_computed_from_what_is_reported(weights: list[float]) -> None:
    choice, score = choice_of(weights), score_of(weights)

    p = list(choice.probabilities.values())
    assert choice.confidence == pytest.approx(confidence.of_choice(p), abs=1e-6)
    assert score.confidence == pytest.approx(confidence.of_score(score.probabilities), abs=1e-6)


def test_one_option_or_one_level_is_certain() -> None:
    assert choice_of([-3.0]).confidence == 1.0
    assert score_of([7.0]) == ScoreAnswer(0.0, 1.0, (1.0,), ("level 0",))


def test_a_noul_is_the_probability_of_yes() -> None:
    given_answer = answer(Noul("?"), Reading((math.log(3.0), 0.0), 1))

    assert given_answer == NoulAnswer(0.75)
    assert given_answer.likelihood == 0.75


def test_a_doubt_stays_with_the_answer() -> None:
    assert answer(Noul("?"), Reading((0.0, 0.0), 1, "not_competent")).doubt == "not_competent"


def test_a_temperature_flattens_and_keeps_the_order() -> None:
    reading = Reading((2.0, 1.0, 0.0), 1)
    options = Choice({"a": None, "b": None, "c": None})

    hot, cold = answer(options, reading, 4.0), answer(options, reading, 0.25)

    assert isinstance(hot, ChoiceAnswer)
    assert isinstance(cold, ChoiceAnswer)
    assert hot.choice == cold.choice == "a"
    assert hot.likelihood < cold.likelihood


def test_structured_levels_are_kept_as_they_are() -> None:
    levels: list[Text] = [{"name": "low"}, ["high", 1]]

    given_answer = answer(Score(levels), Reading((0.0, 0.0), 1))

    assert isinstance(given_answer, ScoreAnswer)
    assert list(given_answer.levels) == levels


def test_rounding_down_gives_the_remainder_to_the_largest() -> None:
    assert reported([2.0, 2.0, 2.0]) == [333_334, 333_333, 333_333]
    assert sum(reported([0.5] * 255)) == 1_000_000
