"""Temperatures of many rows: what `policies.calibration` does, with arrays and so quickly."""

import math

import numpy as np

from gateway.fitting.heads import Floats, Ints


def negative_log_likelihood(log_weights: Floats, labels: Ints, temperature: float = 1.0) -> float:
    """Mean of `-ln p(label)` in nats of float64[rows, labels] over the temperature."""
    scaled = log_weights / temperature
    total = np.logaddexp.reduce(scaled, axis=1)
    return float((total - scaled[np.arange(len(labels)), labels]).mean())


def fitted_temperature(log_weights: Floats, labels: Ints) -> float:
    """The temperature in [0.05, 20] of least negative log-likelihood, to 1e-4 of its logarithm.

    Golden-section search; the likelihood is unimodal in 1/T. The bounds keep a handful of rows,
    all of them right, from a head that is certain.
    """
    ratio = (math.sqrt(5.0) - 1.0) / 2.0
    a, b = math.log(0.05), math.log(20.0)
    while b - a > 1e-4:
        c, d = b - ratio * (b - a), a + ratio * (b - a)
        lower = negative_log_likelihood(log_weights, labels, math.exp(c))
        upper = negative_log_likelihood(log_weights, labels, math.exp(d))
        a, b = (a, d) if lower < upper else (c, b)
    return math.exp((a + b) / 2.0)


def probabilities(log_weights: Floats) -> Floats:
    """Softmax of each row, float64[rows, labels]."""
    found: Floats = np.exp(log_weights - np.logaddexp.reduce(log_weights, axis=1, keepdims=True))
    return found
