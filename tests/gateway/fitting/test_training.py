"""A fitted head is right as often as it says, and nothing is promised of what it was fitted to."""

import math

import numpy as np
import pytest

from engines.contract import Choice, Noul, Question, Score
from gateway.fitting.crossing import FOLDS, STEPS, Training, crossed
from gateway.fitting.examples import Examples, held_out
from gateway.fitting.heads import regression
from gateway.fitting.scaling import fitted_temperature, negative_log_likelihood, probabilities
from gateway.fitting.training import Fitted, Terms, TooFew, fitted
from gateway.fitting.vectors import Vectors
from policies import calibration

from .made import TOPICS, drawn

TERMS = Terms()
QUESTIONS: list[Question] = [Noul("Is it spam?"), TOPICS, Score(["low", "middle", "high", "top"])]


def fit(examples: Examples, vectors: Vectors, terms: Terms = TERMS) -> Fitted:
    found = fitted(examples, vectors, terms, lambda: None)
    assert isinstance(found, Fitted)
    return found


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda one: type(one).__name__)
def test_a_head_learns_what_separates_the_labels(question: Question) -> None:
    examples, vectors = drawn(question, spread=0.8)

    found = fit(examples, vectors)

    assert found.evidence.crossed.accuracy > 0.9
    assert found.evidence.held_out is not None
    assert found.evidence.held_out.accuracy > 0.9
    said = [int(np.argmax(found.head.log_weights(vectors[t]))) for t in examples.texts]
    assert np.mean(np.array(said) == examples.labels) > 0.9


def test_the_probabilities_mean_what_they_say_where_labels_mingle() -> None:
    examples, vectors = drawn(rows=3000, spread=10.0)

    found = fit(examples, vectors)

    assert 0.5 < found.evidence.crossed.accuracy < 0.9
    assert found.evidence.crossed.ece < 0.04
    assert found.evidence.held_out is not None
    assert found.evidence.held_out.ece < 0.06
    assert abs(found.evidence.held_out.accuracy - found.evidence.crossed.accuracy) < 0.06


def test_what_is_kept_back_is_not_fitted_to() -> None:
    """Labels that hang on nothing: a head scores on its own examples and nowhere else."""
    draw = np.random.default_rng(1)
    labels = draw.integers(3, size=600).tolist()
    examples, vectors = drawn(rows=600, labels=[0] * 600)
    examples.labels = labels
    kept = held_out(examples.texts, 0.3)

    found = fit(examples, vectors)

    assert found.evidence.held_out is not None
    assert found.evidence.held_out.rows == sum(kept)
    assert found.evidence.trained_on == len(kept) - sum(kept)
    assert found.evidence.held_out.accuracy < 0.45
    assert found.evidence.crossed.accuracy < 0.45
    assert found.evidence.certificate is not None
    assert found.evidence.certificate.floor is None


def test_a_promise_holds_its_own_arithmetic() -> None:
    examples, vectors = drawn(rows=2000, spread=8.0)

    found = fit(examples, vectors, Terms(risk=0.05, delta=0.1))

    promise = found.evidence.certificate
    assert promise is not None
    assert promise.floor is not None
    assert promise.errors / promise.accepted <= 0.05
    assert found.evidence.held_out is not None
    assert promise.labels == found.evidence.held_out.rows


def test_without_enough_to_promise_on_everything_is_fitted_to() -> None:
    examples, vectors = drawn(rows=60)

    found = fit(examples, vectors, Terms(risk=0.05, delta=0.1, hold_out=0.3))

    assert found.evidence.trained_on == 60
    assert found.evidence.held_out is None
    assert found.evidence.certificate is None


@pytest.mark.parametrize(
    ("labels", "why"),
    [([0, 1] * 5, "10 examples"), ([1] * 50, "same label"), ([0] * 50 + [1] * 3, "only one label")],
)
def test_too_few_examples_give_no_head(labels: list[int], why: str) -> None:
    found = fitted(*drawn(Noul("Is it?"), labels=labels), Terms(hold_out=0), lambda: None)

    assert isinstance(found, TooFew)
    assert why in found.why


def test_a_label_without_an_example_is_named_and_all_but_never_said() -> None:
    question = Choice({"a": None, "never": None, "b": None})
    examples, vectors = drawn(question, labels=[0, 2] * 150, spread=3.0)

    found = fit(examples, vectors)

    assert found.never_seen == ("never",)
    shares = probabilities(np.array([found.head.log_weights(vectors[t]) for t in examples.texts]))
    assert shares[:, 1].max() < 0.05
    assert (shares[:, 1] > 0).all()


def test_texts_that_did_not_fit_the_window_are_counted_and_left_out() -> None:
    examples, vectors = drawn(rows=200)
    for text in examples.texts[:7]:
        del vectors[text]

    found = fit(examples, vectors, Terms(hold_out=0))

    assert found.too_long == 7
    assert found.evidence.trained_on == 193


def test_fitting_twice_gives_the_same_head() -> None:
    examples, vectors = drawn(spread=2.0)

    assert fit(examples, vectors).head.digest == fit(examples, vectors).head.digest


def test_progress_is_told_of_every_regression() -> None:
    steps = []
    fitted(*drawn(), Terms(), lambda: steps.append(1))

    assert len(steps) == STEPS


def test_the_learning_curve_rises_to_the_cross_validated_accuracy() -> None:
    examples, vectors = drawn(rows=1500, spread=10.0)

    found = fit(examples, vectors, Terms(hold_out=0))

    rows = [n for n, _ in found.evidence.curve]
    assert rows == sorted(rows)
    assert rows[-1] == pytest.approx(1200, abs=3)
    assert found.evidence.curve[-1][1] > found.evidence.curve[0][1]
    assert found.evidence.curve[-1][1] == pytest.approx(found.evidence.crossed.accuracy, abs=0.005)


def test_no_row_is_judged_by_a_regression_that_saw_it() -> None:
    examples, vectors = drawn(rows=100, spread=2.0)
    matrix = np.stack([vectors[text] for text in examples.texts]).astype(float)
    labels = np.array(examples.labels)
    dealt = np.arange(100) % FOLDS
    found = crossed(Training(matrix, labels, 3, dealt), lambda: None)

    for fold in range(FOLDS):
        others, left = np.flatnonzero(dealt != fold), np.flatnonzero(dealt == fold)
        line = regression(matrix[others], labels[others], 3, found.strength)
        assert np.allclose(found.log_weights[left], line.log_weights(matrix[left]))


def test_two_labels_give_the_odds_of_a_logistic_curve() -> None:
    examples, vectors = drawn(Noul("Is it?"), rows=100, spread=2.0)
    matrix = np.stack([vectors[text] for text in examples.texts]).astype(float)

    line = regression(matrix, np.array(examples.labels), 2, 1.0)

    assert np.allclose(line.weights[0], -line.weights[1])
    assert line.bias[0] == -line.bias[1]


def test_arrays_give_the_policies_temperature_and_likelihood() -> None:
    draw = np.random.default_rng(0)
    log_weights, labels = draw.normal(size=(200, 4)) * 3, draw.integers(4, size=200)
    labels[:120] = log_weights.argmax(axis=1)[:120]
    rows, right = log_weights.tolist(), labels.tolist()

    temperature = fitted_temperature(log_weights, labels)

    assert math.isclose(temperature, calibration.fitted_temperature(rows, right), rel_tol=1e-3)
    assert math.isclose(
        negative_log_likelihood(log_weights, labels, temperature),
        calibration.negative_log_likelihood(rows, right, temperature),
        rel_tol=1e-9,
    )
