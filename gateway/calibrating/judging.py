"""Which answers of an engine are right: compared with labels, or with another engine's answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engines.contract import Choice, Question, Reading, kind_of, label_count
from gateway.calibrating.results import Read
from gateway.labelled import Row
from policies.answers import answer
from policies.calibration import Calibration
from policies.cells import cell, fingerprint
from policies.gates import Gate, gated

Reads = Sequence[Mapping[str, Read]]
"""For each row: question id → what an engine made of it."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One question about one state: what one engine makes of it, and what is right."""

    row: int
    """Index of its row among those judged."""
    name: str
    """The question's id."""
    question: Question
    cell: str
    fingerprint: str
    read: Read
    label: int | None
    """Index of the right label; `None` = nobody says."""
    off: str | None
    """Why the answer is never kept: a gate, a refusal or a doubt; `None` = it may be."""

    @property
    def answered(self) -> int:
        """Index of the first likeliest label; the engine did not refuse."""
        weights = self.read.log_weights
        return max(range(len(weights)), key=weights.__getitem__)

    @property
    def right(self) -> bool:
        """Whether the answer is the right one; the engine did not refuse, and there is a label."""
        return self.answered == self.label

    def likelihood(self, calibration: Calibration) -> float:
        """The calibrated probability that the answer is right, as the gateway computes it."""
        reading = Reading(self.read.log_weights, self.read.tokens)
        top = answer(self.question, reading, calibration.temperature).likelihood
        return calibration.likelihood(top)


def judged(
    rows: Sequence[Row], reads: Reads, gate: Gate, truth: Reads | None = None
) -> list[Judged]:
    """Every question of every row that the engine was asked.

    What is right say the labels; or, if given, the answers of another engine, its first likeliest
    labels. Where that one refuses, nobody does.
    """
    known: dict[int, _Asked] = {}  # rows of one file share their questions
    found = []
    for i, (row, of_row) in enumerate(zip(rows, reads, strict=True)):
        for name, read in of_row.items():
            question = row.questions[name]
            if id(question) not in known:
                known[id(question)] = _asked(question, gate)
            asked = known[id(question)]
            label = row.labels.get(name) if truth is None else _likeliest(truth[i].get(name))
            off = asked.gated or read.refused or read.doubt
            found.append(Judged(i, name, question, asked.cell, asked.fingerprint, read, label, off))
    return found


@dataclass(frozen=True, slots=True)
class _Asked:
    """What does not depend on the state."""

    cell: str
    fingerprint: str
    gated: str | None


def _asked(question: Question, gate: Gate) -> _Asked:
    mark = fingerprint(question)
    why = gated(gate, question, mark, images=False, language=None)
    return _Asked(cell(kind_of(question), label_count(question)), mark, why)


def _likeliest(read: Read | None) -> int | None:
    if read is None or read.refused is not None:
        return None
    return max(range(len(read.log_weights)), key=read.log_weights.__getitem__)


def label_names(question: Question) -> list[str]:
    """The labels of a question for people, in label order."""
    if isinstance(question, Choice):
        return list(question.options)
    if kind_of(question) == "noul":
        return ["true", "false"]
    return [str(level) for level in range(label_count(question))]
