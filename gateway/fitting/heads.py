"""Logistic regression on vectors: the only file that knows scikit-learn."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """Log-weights as a linear function of a vector."""

    weights: Floats
    """float64[labels, 384]."""
    bias: Floats
    """float64[labels]."""

    def log_weights(self, vectors: Floats) -> Floats:
        """float64[rows, labels] of float64[rows, 384]."""
        found: Floats = vectors @ self.weights.T + self.bias
        return found

    def over(self, temperature: float) -> "Line":
        """The line whose log-weights are these over the temperature."""
        return Line(self.weights / temperature, self.bias / temperature)


@contextmanager
def one_thread() -> Iterator[None]:
    """Products on one thread: matrices this small gain nothing from more, and where other programs
    are busy more of them wait for each other ten times as long as they work."""
    with threadpool_limits(1):
        yield


def regression(vectors: Floats, labels: Ints, label_count: int, strength: float) -> Line:
    """The multinomial logistic regression with an L2 penalty of `1 / strength`.

    A label that no row has gets the mean probability `0.5 / (rows + 1)`, the estimate of
    Krichevsky and Trofimov for what was never seen: it is all but never chosen.
    """
    seen = np.unique(labels)
    width = vectors.shape[1]
    weights, bias = np.zeros((label_count, width)), np.zeros(label_count)
    if len(seen) > 1:
        with warnings.catch_warnings():
            # The penalty decides the fit well before the last digits do.
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
            model = LogisticRegression(C=strength, max_iter=500).fit(vectors, labels)
        if len(seen) == 2:  # one row, for the second label against the first
            weights[seen], bias[seen] = _halves(model.coef_[0]), _halves(model.intercept_[0])
        else:
            weights[seen], bias[seen] = model.coef_, model.intercept_
    unseen = np.setdiff1d(np.arange(label_count), seen)
    if len(unseen):
        seen_weights = vectors @ weights[seen].T + bias[seen]
        level = np.logaddexp.reduce(seen_weights, axis=1).mean()
        bias[unseen] = level + np.log(0.5 / (len(labels) + 1))
    return Line(weights, bias)


def _halves(one: Floats) -> Floats:
    """Half against the first label and half for the second: the same odds as a softmax of two."""
    return np.stack([-one / 2, one / 2])
