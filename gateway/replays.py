"""A decision as numbers without any text, and back, given the same inquiry again."""

from collections.abc import Sequence
from typing import Any

import orjson

from engines.contract import Choice, Cut, Inquiry, Noul, Question, Score
from gateway.decision import Decision, Route, Step
from policies.answers import Answer, ChoiceAnswer, NoulAnswer, ScoreAnswer


def numbers_of(decision: Decision) -> bytes:
    """What `decision_of` needs beside the inquiry: numbers, engine names, doubts."""
    return orjson.dumps(
        {
            "model": decision.model,
            "steps": [[step.engine, step.tokens, step.seconds] for step in decision.steps],
            "answers": [_numbers(one) for one in decision.answers.values()],
            "cuts": [_cut(decision.cuts.get(name)) for name in decision.answers],
            "routes": [route[:4] for route in decision.routes.values()],
            "natives": [decision.natives.get(name) for name in decision.answers],
        }
    )


def decision_of(numbers: bytes, inquiry: Inquiry) -> Decision:
    """The decision that was kept; `inquiry` must be the one that it answered."""
    kept = orjson.loads(numbers)
    pairs = zip(inquiry.questions.items(), kept["answers"], strict=True)
    cuts = zip(inquiry.questions, kept["cuts"], strict=True)
    routes = zip(inquiry.questions, kept.get("routes", ()), strict=False)  # none, or one for each
    natives = zip(inquiry.questions, kept.get("natives", ()), strict=False)
    return Decision(
        kept["model"],
        {name: _answer(question, one) for (name, question), one in pairs},
        tuple(Step(*step) for step in kept["steps"]),
        {name: Cut(*cut) for name, cut in cuts if cut is not None},
        {name: Route(*route) for name, route in routes},
        {name: native for name, native in natives if native is not None},
    )


def _cut(cut: Cut | None) -> list[int] | None:
    return None if cut is None else [cut.kept_tokens, cut.dropped_tokens]


def _numbers(answer: Answer) -> list[Any]:
    match answer:
        case NoulAnswer():
            return [answer.doubt, answer.noul]
        case ChoiceAnswer():
            return [answer.doubt, answer.confidence, *answer.probabilities.values()]
        case ScoreAnswer():
            return [answer.doubt, answer.confidence, answer.score, *answer.probabilities]


def _answer(question: Question, kept: Sequence[Any]) -> Answer:
    doubt, *numbers = kept
    match question:
        case Noul():
            return NoulAnswer(numbers[0], doubt)
        case Choice():
            shares = dict(zip(question.options, numbers[1:], strict=True))
            likeliest = max(shares, key=shares.__getitem__)
            return ChoiceAnswer(likeliest, numbers[0], shares, doubt)
        case Score():
            return ScoreAnswer(
                numbers[1], numbers[0], tuple(numbers[2:]), tuple(question.levels), doubt
            )
