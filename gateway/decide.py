"""The use case: an inquiry and who can read it, to a decision. Knows no HTTP and no SQL."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from engines.contract import Cut, Inquiry, Reading, Tally
from policies.answers import Answer, answer, restated
from policies.confidence import Formula


class Reader(Protocol):
    """Something that reads whole inquiries: an engine behind its lane."""

    @property
    def name(self) -> str:
        """The engine's name in the configuration."""
        ...

    async def read(
        self, inquiry: Inquiry, *, patience_s: float, tally: Tally | None = None
    ) -> Mapping[str, Reading]:
        """Question id → reading for every question; see `engines.lane.Lane.read`."""
        ...


@dataclass(frozen=True, slots=True)
class Step:
    """One engine's share in a decision."""

    engine: str
    tokens: int
    seconds: float
    """Engine time: reading without the wait for it; a batch's time is shared by its pieces."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What the caller gets, and what it took."""

    model: str
    """The concrete model that answered, never an alias."""
    answers: Mapping[str, Answer]
    """Question id → answer, in the asker's order."""
    steps: tuple[Step, ...]
    cuts: Mapping[str, Cut] = field(default_factory=dict)
    """Question id → what the engine left out, for questions that were truncated."""

    @property
    def tokens(self) -> int:
        """Every token every engine read."""
        return sum(step.tokens for step in self.steps)

    def by(self, formula: Formula) -> "Decision":
        """The same decision with confidences by another formula."""
        answers = {name: restated(one, formula) for name, one in self.answers.items()}
        return Decision(self.model, answers, self.steps, self.cuts)


async def decide(
    inquiry: Inquiry,
    model: str,
    reader: Reader,
    *,
    patience_s: float,
    tally: Tally | None = None,
) -> Decision:
    """The answers of `reader` to every question of the inquiry; `tally` grows in any case.

    Raises:
        EngineError: the reader does not answer; see `Lane.read`.
    """
    spent = Tally() if tally is None else tally
    readings = await reader.read(inquiry, patience_s=patience_s, tally=spent)
    tokens = sum(reading.tokens for reading in readings.values())
    step = Step(reader.name, tokens, spent.spent_s)
    answers = {
        name: answer(question, readings[name]) for name, question in inquiry.questions.items()
    }
    cuts = {name: reading.cut for name, reading in readings.items() if reading.cut is not None}
    return Decision(model, answers, (step,), cuts)
