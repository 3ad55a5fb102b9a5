"""A System One server as FastAPI's documentation would have it: typed models in and out."""

import math
import sys
from typing import Annotated, Any, Literal

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel, Field

Text = str | dict[str, Any] | list[Any]


class NoulQuestion(BaseModel):
    """A yes/no question."""

    type: Literal["noul"]
    instructions: Text | None = None
    criteria: dict[Literal["true", "false"], Text | None] | None = None


class ChoiceQuestion(BaseModel):
    """One of several named options."""

    type: Literal["choice"]
    instructions: Text | None = None
    criteria: dict[str, Text | None] = Field(min_length=1, max_length=255)


class ScoreQuestion(BaseModel):
    """A level on an ordered scale."""

    type: Literal["score"]
    instructions: Text | None = None
    criteria: list[Text] = Field(min_length=1, max_length=10)


Question = Annotated[NoulQuestion | ChoiceQuestion | ScoreQuestion, Field(discriminator="type")]


class Ask(BaseModel):
    """A state and questions about it."""

    state: Text
    model: str | None = None
    questions: dict[str, Question] = Field(min_length=1)


class NoulAnswer(BaseModel):
    """How likely yes is."""

    type: Literal["noul"] = "noul"
    noul: float


class ChoiceAnswer(BaseModel):
    """Which option, and how likely each is."""

    type: Literal["choice"] = "choice"
    choice: str
    confidence: float
    probabilities: dict[str, float]


class ScoreAnswer(BaseModel):
    """Where on the scale."""

    type: Literal["score"] = "score"
    score: float
    confidence: float
    legend: dict[str, Text]
    probabilities: dict[str, float]


class Usage(BaseModel):
    """What was read."""

    input_tokens: int
    output_tokens: int = 0


class Decision(BaseModel):
    """The body of a 200."""

    model: str
    answers: dict[str, NoulAnswer | ChoiceAnswer | ScoreAnswer]
    usage: Usage


def _shares(n: int) -> list[float]:
    """A fixed distribution over n labels, in steps of 1e-6."""
    raised = [math.exp(i * 7919 % 97 / 24.25) for i in range(n)]
    return [round(r / sum(raised), 6) for r in raised]


_SHARES = [_shares(n) for n in range(256)]


def answer(question: NoulQuestion | ChoiceQuestion | ScoreQuestion) -> Any:
    """The answer to one question, from a table of distributions by number of labels."""
    if isinstance(question, NoulQuestion):
        return NoulAnswer(noul=_SHARES[2][0])
    p = _SHARES[len(question.criteria)]
    n, top = len(p), max(p)
    confidence = round((n * top - 1) / (n - 1), 6) if n > 1 else 1.0
    if isinstance(question, ChoiceQuestion):
        names = list(question.criteria)
        return ChoiceAnswer(
            choice=names[p.index(top)],
            confidence=confidence,
            probabilities=dict(zip(names, p, strict=True)),
        )
    levels = [str(i) for i in range(n)]
    return ScoreAnswer(
        score=round(sum(i * q for i, q in enumerate(p)), 6),
        confidence=confidence,
        legend=dict(zip(levels, question.criteria, strict=True)),
        probabilities=dict(zip(levels, p, strict=True)),
    )


app = FastAPI()


@app.post("/v1/systemone")
async def ask(body: Ask) -> Decision:
    """Answers from a table."""
    answers = {name: answer(question) for name, question in body.questions.items()}
    words = body.state.count(" ") + 1 if isinstance(body.state, str) else len(body.state)
    return Decision(
        model="fastapi-echo", answers=answers, usage=Usage(input_tokens=words * len(answers))
    )


@app.get("/health")
async def health() -> dict[str, str]:
    """Alive."""
    return {"status": "ok"}


def main(port: int) -> None:
    """Serve on a loopback port until told to stop."""
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=port,
        loop="uvloop",
        http="httptools",
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
    )


if __name__ == "__main__":
    main(int(sys.argv[1]))
