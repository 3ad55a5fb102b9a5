"""What is kept of a request's texts where `ledger.store_text` allows it: JSON, cut to a length."""

import json
from collections.abc import Mapping

import orjson

from engines.contract import Choice, Inquiry, Noul, Question, Score
from gateway.decision import Decision
from gateway.ledger.store import KeptText
from policies.answers import Answer, ChoiceAnswer, NoulAnswer, ScoreAnswer


def text_of(inquiry: Inquiry, decision: Decision | None, max_bytes: int) -> KeptText:
    """State and questions, and the answers if there are any; each at most `max_bytes` of UTF-8.

    Files that came with the request are not kept.
    """
    questions = {name: _question(one) for name, one in inquiry.questions.items()}
    asked = _json({"state": inquiry.state, "questions": questions})
    answered = None
    if decision is not None:
        answered = _json({name: _answer(one) for name, one in decision.answers.items()})
    longest = max(len(asked), len(answered or b""))
    return KeptText(
        _cut(asked, max_bytes),
        None if answered is None else _cut(answered, max_bytes),
        longest > max_bytes,
    )


def _question(question: Question) -> Mapping[str, object]:
    match question:
        case Noul():
            criteria = {"true": question.true, "false": question.false}
            return {"type": "noul", "instructions": question.instructions, "criteria": criteria}
        case Choice():
            options = question.options
            return {"type": "choice", "instructions": question.instructions, "criteria": options}
        case Score():
            levels = question.levels
            return {"type": "score", "instructions": question.instructions, "criteria": levels}


def _answer(answer: Answer) -> Mapping[str, object]:
    match answer:
        case NoulAnswer():
            return {"noul": answer.noul}
        case ChoiceAnswer():
            return {"choice": answer.choice, "confidence": answer.confidence}
        case ScoreAnswer():
            return {"score": answer.score, "confidence": answer.confidence}


def _json(value: object) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:  # whole numbers beyond 64 bits, lone surrogates
        return json.dumps(value).encode()


def _cut(text: bytes, max_bytes: int) -> str:
    """At most `max_bytes`, without half a character at the end."""
    return text[:max_bytes].decode("utf-8", "ignore")
