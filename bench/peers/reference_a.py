"""Reference app A: the least that a careful System One server in Python costs. Frozen.

Starlette on uvicorn (uvloop, httptools), orjson, a validator written by hand, no pydantic. It has
no engine, no lane, no auth and no limits: the distribution comes from a table by number of labels;
the answer around it is built for each request. Changing this file changes the yardstick, so
results before and after cannot be compared; `VERSION` says so.
"""

import math
import sys
from operator import mul
from typing import Any

import orjson
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

VERSION = 1

Fault = dict[str, Any]

_REQUIRED = ("state", "questions")
_STATE = (str, dict, list)
_CRITERIA = {
    "choice": ("dict_type", "Input should be a dictionary of 1 to 255 options"),
    "score": ("list_type", "Input should be a list of 1 to 10 levels"),
    "noul": ("dict_type", "Input should be a dictionary"),
}
_TEXT = (str, dict, list, type(None))
_LEVELS = tuple(str(i) for i in range(10))


def _shares(n: int) -> tuple[float, ...]:
    """A fixed distribution over n labels, in steps of 1e-6."""
    raised = [math.exp(i * 7919 % 97 / 24.25) for i in range(n)]
    return tuple(round(r / sum(raised), 6) for r in raised)


_SHARES = tuple(_shares(n) for n in range(256))


def faults_of(body: Any) -> list[Fault]:
    """What is wrong with a parsed body, in FastAPI's shape; empty when nothing is."""
    if not isinstance(body, dict):
        return [_fault("dict_type", "Input should be a valid dictionary")]
    faults = [_fault("missing", "Field required", n) for n in _REQUIRED if n not in body]
    if not isinstance(body.get("state", ""), _STATE):
        faults.append(_fault("text_type", "Input should be a string, object or array", "state"))
    if not isinstance(body.get("model", ""), str):
        faults.append(_fault("string_type", "Input should be a valid string", "model"))
    questions = body.get("questions")
    if isinstance(questions, dict):
        for name, question in questions.items():
            _check(name, question, faults)
    elif "questions" in body:
        faults.append(_fault("dict_type", "Input should be a valid dictionary", "questions"))
    return faults


def _check(name: str, question: Any, faults: list[Fault]) -> None:
    if not isinstance(question, dict):
        faults.append(_fault("dict_type", "Input should be a dictionary", "questions", name))
        return
    kind = question.get("type")
    where = ("questions", name, kind)
    if not isinstance(question.get("instructions", ""), _TEXT):
        faults.append(_fault("text_type", "Input should be a text", *where, "instructions"))
    criteria = question.get("criteria")
    if kind == "choice" and isinstance(criteria, dict) and 1 <= len(criteria) <= 255:
        texts: Any = criteria.items()
    elif kind == "score" and isinstance(criteria, list) and 1 <= len(criteria) <= 10:
        texts = enumerate(criteria)
    elif kind == "noul" and isinstance(criteria, dict):
        texts = criteria.items()
    elif kind == "noul" and criteria is None:
        return
    elif kind in _CRITERIA:
        faults.append(_fault(*_CRITERIA[kind], *where, "criteria"))
        return
    else:
        faults.append(_fault("union_tag_invalid", "Unknown type", "questions", name))
        return
    for key, text in texts:
        if not isinstance(text, _TEXT):
            faults.append(_fault("text_type", "Input should be a text", *where, "criteria", key))


def _fault(type_: str, message: str, *loc: object) -> Fault:
    return {"type": type_, "loc": ("body", *loc), "msg": message}


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """The answer to one valid question, with every field the gateway's has."""
    kind = question["type"]
    criteria: Any = question.get("criteria")
    if kind == "choice":
        names = list(criteria)
        p = _SHARES[len(names)]
        top = max(p)
        return {
            "type": "choice",
            "choice": names[p.index(top)],
            "confidence": _confidence(top, len(p)),
            "probabilities": dict(zip(names, p, strict=True)),
        }
    if kind == "noul":
        return {"type": "noul", "noul": _SHARES[2][0]}
    p = _SHARES[len(criteria)]
    return {
        "type": "score",
        "score": round(sum(map(mul, p, range(len(p)))), 6),
        "confidence": _confidence(max(p), len(p)),
        "legend": dict(zip(_LEVELS, criteria, strict=False)),
        "probabilities": dict(zip(_LEVELS, p, strict=False)),
    }


def _confidence(top: float, n: int) -> float:
    return round((n * top - 1) / (n - 1), 6) if n > 1 else 1.0


async def ask(request: Request) -> Response:
    """`POST /v1/systemone`."""
    try:
        body = orjson.loads(await request.body())
    except orjson.JSONDecodeError as error:
        wrong = [_fault("json_invalid", str(error), error.pos)]
        return Response(orjson.dumps({"detail": wrong}), 422, media_type="application/json")
    if faults := faults_of(body):
        return Response(orjson.dumps({"detail": faults}), 422, media_type="application/json")
    answers = {name: answer(question) for name, question in body["questions"].items()}
    state = body["state"]
    tokens = state.count(" ") + 1 if isinstance(state, str) else len(state)
    wire = {
        "model": "reference-a",
        "answers": answers,
        "usage": {"input_tokens": tokens * len(answers), "output_tokens": 0},
    }
    return Response(orjson.dumps(wire), media_type="application/json")


async def health(_: Request) -> Response:
    """`GET /health`."""
    return Response(b'{"status":"ok"}', media_type="application/json")


app = Starlette(
    routes=[Route("/v1/systemone", ask, methods=["POST"]), Route("/health", health)],
)


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
