"""What a reading means: the distribution as it is reported, and the answer it gives.

Probabilities are reported in steps of 1e-6, rounded down, with what is missing to 1 added to the
likeliest label: they sum to exactly 1 as decimals and the likeliest label stays the likeliest.
Everything else is computed from the reported values, so a client that recomputes agrees.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import exp, floor
from operator import mul
from typing import TypeAlias

from engines.contract import Choice, Noul, Question, Reading, Text
from engines.value import value
from policies import confidence
from policies.calibration import probability_of_first

_STEPS = 1_000_000


@value
class NoulAnswer:
    """How likely the answer is yes."""

    noul: float
    """In [0, 1], steps of 1e-6."""
    doubt: str | None = None

    @property
    def likelihood(self) -> float:
        """Probability that the likelier of yes and no is right."""
        return max(self.noul, 1.0 - self.noul)


@value
class ChoiceAnswer:
    """Which option, and how likely each is."""

    choice: str
    """The option of the largest reported probability; the first in the asker's order on ties."""
    confidence: float
    probabilities: dict[str, float]
    """Option name → probability, in the asker's order; their decimals sum to 1."""
    doubt: str | None = None

    @property
    def likelihood(self) -> float:
        """Probability that the chosen option is right."""
        return self.probabilities[self.choice]


@value
class ScoreAnswer:
    """Where on the scale, and how likely each level is."""

    score: float
    """Σ i·pᵢ over the reported probabilities, in [0, n-1], steps of 1e-6."""
    confidence: float
    probabilities: tuple[float, ...]
    """Lowest level first; their decimals sum to 1."""
    levels: tuple[Text, ...]
    """The asker's own level texts, unchanged."""
    doubt: str | None = None

    @property
    def likelihood(self) -> float:
        """Probability that the likeliest level is right."""
        return max(self.probabilities)


Answer: TypeAlias = NoulAnswer | ChoiceAnswer | ScoreAnswer


def reported(log_weights: Sequence[float], temperature: float = 1.0) -> list[int]:
    """The distribution in millionths: at least 0 each, exactly 1,000,000 together.

    Softmax of `log_weights / temperature`, rounded down; the remainder goes to the first of the
    largest, which so stays the largest.
    """
    top = max(log_weights)
    weights = []  # loops: a comprehension costs a call, which is more than a few labels do
    for weight in log_weights:
        weights.append(exp((weight - top) / temperature))
    unit = _STEPS / sum(weights)
    steps = []
    for weight in weights:
        steps.append(floor(weight * unit))
    steps[log_weights.index(top)] += _STEPS - sum(steps)
    return steps


def answer(question: Question, reading: Reading, temperature: float = 1.0) -> Answer:
    """The reading's distribution at `temperature`, as an answer to `question`."""
    if isinstance(question, Noul):
        yes, no = reading.log_weights
        return NoulAnswer(_six(probability_of_first(yes, no, temperature)), reading.doubt)
    steps = reported(reading.log_weights, temperature)
    if isinstance(question, Choice):
        return _choice(question.options, steps, reading.doubt)
    shares = tuple([step / _STEPS for step in steps])
    return ScoreAnswer(
        sum(map(mul, steps, range(len(steps)))) / _STEPS,
        _six(confidence.of_score(shares)),
        shares,
        tuple(question.levels),
        reading.doubt,
    )


def _choice(options: Iterable[str], steps: Sequence[int], doubt: str | None) -> ChoiceAnswer:
    """In one pass over the options, as many as steps."""
    probabilities = {}
    choice, most = "", -1
    for at, option in enumerate(options):
        step = steps[at]
        probabilities[option] = step / _STEPS
        if step > most:
            choice, most = option, step
    sure = confidence.of_best(most / _STEPS, len(steps))
    return ChoiceAnswer(choice, _six(sure), probabilities, doubt)


def distribution(one: Answer) -> tuple[float, ...]:
    """The reported probabilities in label order; of a noul those of yes and no."""
    if isinstance(one, NoulAnswer):
        return (one.noul, _six(1.0 - one.noul))
    p = one.probabilities
    return p if isinstance(p, tuple) else tuple(p.values())


def restated(one: Answer, formula: confidence.Formula) -> Answer:
    """The answer with its confidence by another formula than TypeSafe's."""
    measure = confidence.OTHERS.get(formula)
    if measure is None or isinstance(one, NoulAnswer):
        return one
    return replace(one, confidence=_six(measure(distribution(one))))


def _six(x: float) -> float:
    """To six decimals; a quarter of the cost of `round(x, 6)`."""
    return round(x * 1e6) / 1e6
