"""TypeSafe's System One API: `POST /v1/systemone`, in and out.

Errors have FastAPI's shapes, as the hosted API's do: a `detail` list with locations for 422, a
`detail` object with `error_type` and `message` for everything else.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, get_args

import orjson
from pydantic import ValidationError

from engines.contract import Choice, Inquiry, Noul, Question, Score
from gateway.decision import Decision, Route
from gateway.dialects.systemone_assets import claimed_assets
from gateway.dialects.systemone_careful import careful_ask, hasty_ask, is_large
from gateway.dialects.systemone_faults import found_by, unfit
from gateway.dialects.systemone_schema import ASK, Ask
from gateway.dialects.systemone_text import TextLimits, refuse_unfit_text
from gateway.errors import Fault, Kind, Problem, Refusal, invalid
from policies.answers import Answer, ChoiceAnswer, NoulAnswer
from policies.confidence import Formula

PATH = "/v1/systemone"

_FEW_BYTES = 4096
"""Too short to have many faults."""
_LEVEL_NAMES = tuple(str(level) for level in range(255))

_ERROR_TYPES: dict[Kind, str] = {
    "key_missing": "authentication_error",
    "key_wrong": "authentication_error",
    "forbidden": "authentication_error",
    "rate_limited": "rate_limit_error",
    "budget_exhausted": "budget_error",
    "ledger_down": "overloaded_error",
    "max_tokens_exceeded": "max_tokens_exceeded",
    "overloaded": "overloaded_error",
    "late": "timeout_error",
    "not_ready": "overloaded_error",
    "broken": "server_error",
    "internal": "server_error",
    "body_late": "timeout_error",
}
"""`error_type` by kind; everything that is not listed is an `api_usage_error`."""


@dataclass(frozen=True, slots=True)
class AskLimits:
    """What one request may contain."""

    max_values: int
    max_questions: int
    max_id_chars: int
    max_option_chars: int
    max_assets: int
    text: TextLimits


def decode(
    body: bytes, parts: Mapping[str, bytes] | None, limits: AskLimits
) -> tuple[str | None, Inquiry]:
    """The model asked for (`None` = the default) and the inquiry.

    `parts` are the other parts of a multipart body, `None` for a JSON body.

    Raises:
        Refusal: 422 with the location of everything that is wrong; 400 for assets that do not fit.
    """
    if len(body) >= limits.max_values and _values(body) > limits.max_values:
        message = f"At most {limits.max_values} JSON values."
        raise invalid(Fault("too_many_values", ("body",), message))
    structures: list[object] = []
    ask = hasty_ask(body, structures) or _searched(body, limits)
    asked = ask["questions"]
    _refuse_unfit_ids(limits, asked)
    if structures or len(body) > limits.text.max_chars:  # no text can be unfit otherwise
        refuse_unfit_text(ask, limits.text)
    questions = {name: _question(name, one, limits) for name, one in asked.items()}
    language = ask.get("x_lang")
    if "assets" not in ask and not parts:
        return ask.get("model"), Inquiry(ask["state"], questions, language=language)
    assets = claimed_assets(ask, parts or {}, limits.max_assets)
    return ask.get("model"), Inquiry(ask["state"], questions, assets, language)


def _searched(body: bytes, limits: AskLimits) -> Ask:
    """The request in a body in which something is wrong, so none. Raises: Refusal: see `decode`."""
    values = _values(body) if len(body) > _FEW_BYTES else 0
    try:
        if is_large(body, values):
            return careful_ask(body, partial(_refuse_unfit_ids, limits), limits.max_assets)
        return ASK.validate_json(body)
    except ValidationError as error:
        raise unfit(found_by(error)) from None


def encode(decision: Decision) -> bytes:
    """The body of a 200: model, answers in the asker's order, usage and its share by engine."""
    answers = {name: _answer(answer) for name, answer in decision.answers.items()}
    if decision.natives or decision.routes or decision.cuts:
        _add_more(answers, decision)
    by_engine: dict[str, dict[str, int]] = {}
    tokens = 0
    for step in decision.steps:
        tokens += step.tokens
        before = by_engine.get(step.engine)
        by_engine[step.engine] = {
            "input_tokens": step.tokens + (before["input_tokens"] if before else 0)
        }
    body: dict[str, object] = {
        "model": decision.model,
        "answers": answers,
        "usage": {"input_tokens": tokens, "output_tokens": 0},
        "x_usage": by_engine,
    }
    if decision.routes:
        read = {engine: used["input_tokens"] for engine, used in by_engine.items()}
        body["x_cascade"] = {"escalated": decision.escalated, "tokens": read}
    return _json(body)


def _add_more(answers: Mapping[str, dict[str, object]], decision: Decision) -> None:
    """What only some answers carry."""
    for name, native in decision.natives.items():
        answers[name]["x_native_confidence"] = native
    for name, route in decision.routes.items():
        _add_route(answers[name], route)
    for name, cut in decision.cuts.items():
        answers[name]["x_truncated"] = {"kept": cut.kept_tokens, "dropped": cut.dropped_tokens}


def route_headers(decision: Decision) -> list[tuple[bytes, bytes]]:
    """For the answer of a cascade: the highest tier that answered, how many questions went up."""
    highest = max(route.tier for route in decision.routes.values())
    return [
        (b"x-tiergate-tier", str(highest).encode()),
        (b"x-tiergate-escalated", str(decision.escalated).encode()),
    ]


def formula(header: bytes | None) -> Formula | None:
    """The formula that the header `x-tiergate-confidence` asks for; `None` without the header.

    Raises:
        Refusal: 422 for another one than there are.
    """
    if header is None:
        return None
    for one in get_args(Formula):
        if header == one.encode():
            found: Formula = one
            return found
    message = f"Input should be one of: {', '.join(get_args(Formula))}"
    raise invalid(Fault("literal_error", ("header", "x-tiergate-confidence"), message))


def _add_route(wire: dict[str, object], route: Route) -> None:
    """Who answered and why; what the engine itself doubts moves out of the reason's way."""
    if (doubt := wire.get("x_reason")) is not None:
        wire["x_doubt"] = doubt
    wire["x_tier"], wire["x_engine"], wire["x_reason"] = route[:3]


def encode_problem(problem: Problem) -> bytes:
    """The body of everything else."""
    if problem.faults:
        detail: object = [
            {"type": f.type, "loc": f.loc, "msg": f.msg}
            | ({"ctx": dict(problem.details)} if problem.details else {})
            for f in problem.faults
        ]
    else:
        detail = {
            "error_type": _ERROR_TYPES.get(problem.kind, "api_usage_error"),
            "message": problem.message,
            **{f"x_{name}": value for name, value in problem.details.items()},
        }
    return _json({"detail": detail})


def _refuse_unfit_ids(limits: AskLimits, asked: Mapping[str, object]) -> None:
    """Raises: Refusal: 422 for too many questions, or an id that is too long."""
    if len(asked) > limits.max_questions:
        raise _one_fault("too_many_questions", f"At most {limits.max_questions} questions.")
    if max(map(len, asked), default=0) > limits.max_id_chars:
        message = f"A question id has at most {limits.max_id_chars} characters."
        raise _one_fault("id_too_long", message)


def _values(body: bytes) -> int:
    """An upper bound of the number of JSON values, without parsing."""
    return 1 + body.count(b",") + body.count(b"[") + body.count(b"{")


def _question(name: str, asked: Any, limits: AskLimits) -> Question:
    """One validated question as the engines know it."""
    instructions = asked.get("instructions")
    criteria = asked.get("criteria")
    match asked["type"]:
        case "choice":
            for option in criteria:
                if len(option) > limits.max_option_chars:
                    raise _one_fault(
                        "option_too_long",
                        f"An option name has at most {limits.max_option_chars} characters.",
                        name,
                        "choice",
                        "criteria",
                    )
            return Choice(criteria, instructions)
        case "score":
            return Score(criteria, instructions)
        case "noul":
            true, false = (
                (criteria.get("true"), criteria.get("false")) if criteria else (None, None)
            )
            if instructions is None and true is None and false is None:
                raise _one_fault(
                    "missing",
                    "A noul question needs instructions or a described outcome in criteria.",
                    name,
                    "noul",
                    "instructions",
                )
            return Noul(instructions, true, false)
        case _:
            raise _one_fault(
                "box_unsupported", "No model here answers box questions.", name, "box", "type"
            )


def _answer(answer: Answer) -> dict[str, object]:
    wire: dict[str, object]
    if isinstance(answer, ChoiceAnswer):
        wire = {
            "type": "choice",
            "choice": answer.choice,
            "confidence": answer.confidence,
            "probabilities": answer.probabilities,
        }
    elif isinstance(answer, NoulAnswer):
        wire = {"type": "noul", "noul": answer.noul}
    else:
        legend, probabilities = {}, {}
        for level, text in enumerate(answer.levels):
            name = _LEVEL_NAMES[level]
            legend[name] = text
            probabilities[name] = answer.probabilities[level]
        wire = {
            "type": "score",
            "score": answer.score,
            "confidence": answer.confidence,
            "legend": legend,
            "probabilities": probabilities,
        }
    if answer.doubt is not None:
        wire["x_reason"] = answer.doubt
    return wire


def _json(value: object) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:  # an integer of more than 64 bits in a legend; slower, but exact
        import json

        return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()


def _one_fault(type_: str, message: str, *loc: str) -> Refusal:
    return invalid(Fault(type_, ("body", "questions", *loc), message))
