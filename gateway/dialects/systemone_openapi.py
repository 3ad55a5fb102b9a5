"""The OpenAPI document of the System One routes: requests from the schema, answers by hand.

What pydantic reads is what it says; tests/wire/test_openapi.py holds what `encode` writes to it.
"""

from typing import Any

from gateway import __version__
from gateway.dialects import systemone_openapi_cascade as cascade
from gateway.dialects.systemone_openapi_cascade import Node
from gateway.dialects.systemone_schema import ASK
from gateway.errors import STATUS, Kind

_COMPONENTS = "#/components"
_SAID = ("x-tiergate-engine",)
_UNASKED: frozenset[Kind] = frozenset({"not_found", "method_not_allowed", "name_taken"})
"""Problems that no documented route has."""
_LISTED: frozenset[Kind] = frozenset({"key_missing", "key_wrong", "forbidden", "not_ready"})
"""Problems that `GET /v1/models` can have too."""

_MEANINGS: dict[int, str] = {
    400: "Unknown model, too many tokens, a damaged body, or assets that do not fit.",
    401: "The API key is wrong, revoked or expired.",
    403: "There is no API key, or it may not do this.",
    408: "The body did not arrive in time.",
    409: "The Idempotency-Key was used with another body.",
    413: "The body is too large, as sent or decompressed.",
    415: "A Content-Type or Content-Encoding that is not understood.",
    422: "The body does not say what it must; each fault has its location.",
    429: "Too many requests, or a budget is used up.",
    431: "The request line and headers are too long.",
    500: "The gateway or its model failed.",
    503: "The models are still loading, or the ledger cannot be used.",
    504: "No answer within the deadline.",
    529: "Overloaded: too many requests are waiting.",
}


def document() -> Node:
    """The OpenAPI 3.1 document, as JSON content; the same value for the same code."""
    asked = ASK.json_schema(ref_template=_COMPONENTS + "/schemas/{model}")
    requests: Node = asked.pop("$defs")
    requests["NoulQuestion"] |= {"anyOf": _SAYS_SOMETHING}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "tiergate",
            "version": __version__,
            "description": "Typed decisions with calibrated probabilities (System One API). "
            "Every route under /v1 is also there under /v1/v1.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "http://127.0.0.1:8080"}],
        "security": [{}, {"key": []}],
        "paths": {
            "/v1/systemone": {"post": _ask()},
            "/v1/models": {"get": _models()},
            "/health": {"get": _state("health", "Whether the process answers.", 200)},
            "/ready": {"get": _state("ready", "Whether every model is loaded.", 200, 503)},
        },
        "components": {
            "schemas": {"Ask": asked, **requests, **_ANSWERS, **_REFUSALS},
            "headers": _HEADERS,
            "securitySchemes": {
                "key": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "Only where keys are configured; ignored otherwise.",
                }
            },
        },
    }


def _ask() -> Node:
    schema = _ref("schemas", "Ask")
    return {
        "operationId": "ask",
        "summary": "Answer typed questions about a state.",
        "parameters": [cascade.CONFIDENCE],
        "requestBody": {
            "required": True,
            "description": "May be sent with Content-Encoding zstd or gzip.",
            "content": {
                "application/json": {"schema": schema},
                "multipart/form-data": {
                    "schema": {
                        "type": "object",
                        "required": ["request"],
                        "properties": {"request": schema},
                        "additionalProperties": {"type": "string", "format": "binary"},
                    },
                    "encoding": {"request": {"contentType": "application/json"}},
                },
            },
        },
        "responses": {
            "200": _response(
                "One answer per question, in their order.", "Decision", *_SAID, *cascade.HEADERS
            ),
            **_refusals(STATUS.keys() - _UNASKED),
        },
    }


def _models() -> Node:
    return {
        "operationId": "models",
        "summary": "Every model name and alias that may be asked for.",
        "responses": {
            "200": _response("The System One list and, beside it, an OpenAI one.", "Models"),
            **_refusals(_LISTED),
        },
    }


def _state(name: str, summary: str, *statuses: int) -> Node:
    answer = _response("The state, in a word.", "State")
    return {
        "operationId": name,
        "summary": summary,
        "security": [],
        "responses": {str(status): answer for status in statuses},
    }


def _refusals(kinds: "frozenset[Kind] | set[Kind]") -> Node:
    """Status → response for each status that the kinds have."""
    responses: Node = {}
    for status in sorted({STATUS[kind] for kind in kinds}):
        hints = ("retry-after-ms", "retry-after") if status in (429, 503, 529) else ()
        body = "Faults" if status == 422 else "Refusal"
        responses[str(status)] = _response(_MEANINGS[status], body, *hints)
    return responses


def _response(about: str, body: str, *headers: str) -> Node:
    return {
        "description": about,
        "headers": {name: _ref("headers", name) for name in ("x-typesafe-request-id", *headers)},
        "content": {"application/json": {"schema": _ref("schemas", body)}},
    }


def _ref(room: str, name: str) -> Node:
    return {"$ref": f"{_COMPONENTS}/{room}/{name}"}


def _object(about: str, optional: Node | None = None, /, **properties: Any) -> Node:
    """A closed object: the required properties, the optional ones, and anything named `x_…`."""
    return {
        "type": "object",
        "description": about,
        "required": list(properties),
        "properties": properties | (optional or {}),
        "patternProperties": {"^x_": {}},
        "additionalProperties": False,
    }


def _map(values: Node, **more: Any) -> Node:
    return {"type": "object", "additionalProperties": values, **more}


_SOMETHING: Node = {"not": {"type": "null"}}
_SAYS_SOMETHING: list[Node] = [
    {"required": ["instructions"], "properties": {"instructions": _SOMETHING}},
    *(
        {
            "required": ["criteria"],
            "properties": {
                "criteria": {
                    "type": "object",
                    "required": [outcome],
                    "properties": {outcome: _SOMETHING},
                }
            },
        }
        for outcome in ("true", "false")
    ),
]

_STRING: Node = {"type": "string"}
_DATE: Node = {"format": "date"}
_COUNT: Node = {"type": "integer", "minimum": 0}
_SHARE: Node = {"type": "number", "minimum": 0, "maximum": 1}
_TEXT: Node = {"type": ["string", "object", "array"]}
_DOUBT: Node = {
    **cascade.ON_ANSWERS,
    "x_truncated": {
        "type": "object",
        "description": "Tokens read and (at least) left out, where the operator allows truncating.",
        "properties": {"kept": _COUNT, "dropped": _COUNT},
    },
}
_LEVEL_KEYS: Node = {"propertyNames": {"pattern": "^[0-9]$"}, "minProperties": 1}

_ANSWERS: Node = {
    "Decision": _object(
        "Answers to one request.",
        cascade.ON_DECISIONS
        | {"x_usage": _map(_object("What this engine took.", input_tokens=_COUNT))},
        model={"type": "string", "description": "The model that answered, never an alias."},
        answers=_map(
            {"oneOf": [_ref("schemas", f"{kind}Answer") for kind in ("Noul", "Choice", "Score")]},
            minProperties=1,
        ),
        usage=_object("What it took.", input_tokens=_COUNT, output_tokens=_COUNT),
    ),
    "NoulAnswer": _object(
        "How likely the answer is yes.", _DOUBT, type={"const": "noul"}, noul=_SHARE
    ),
    "ChoiceAnswer": _object(
        "The likeliest option; on ties the first. Probabilities sum to exactly 1 as decimals.",
        _DOUBT,
        type={"const": "choice"},
        choice=_STRING,
        confidence=_SHARE,
        probabilities=_map(_SHARE, minProperties=1),
    ),
    "ScoreAnswer": _object(
        "The expected level, from 0. Probabilities sum to exactly 1 as decimals.",
        _DOUBT,
        type={"const": "score"},
        score={"type": "number", "minimum": 0, "maximum": 9},
        confidence=_SHARE,
        legend=_map(_TEXT, **_LEVEL_KEYS),
        probabilities=_map(_SHARE, **_LEVEL_KEYS),
    ),
    "Models": _object(
        "Models before their aliases.",
        models={
            "type": "array",
            "minItems": 1,
            "items": _object(
                "One name.", name=_STRING, description=_STRING, release_date=_STRING | _DATE
            ),
        },
        object={"const": "list"},
        data={
            "type": "array",
            "items": _object(
                "The same name for OpenAI-style clients.",
                id=_STRING,
                object={"const": "model"},
                created=_COUNT,
                owned_by=_STRING,
            ),
        },
    ),
    "State": {
        "type": "object",
        "required": ["status"],
        "properties": {"status": {"enum": ["ok", "ready", "loading"]}},
    },
}

_REFUSALS: Node = {
    "Refusal": _object(
        "Why there is no answer.",
        detail=_object("Machine-readable, then a sentence.", error_type=_STRING, message=_STRING),
    ),
    "Faults": _object(
        "Everything that is wrong with the body.",
        detail={
            "type": "array",
            "minItems": 1,
            "items": _object(
                "One fault.",
                {"ctx": {"type": "object"}},
                type=_STRING,
                loc={
                    "type": "array",
                    "minItems": 1,
                    "contains": {"enum": ["body", "header"]},
                    "items": {"type": ["string", "integer"]},
                },
                msg=_STRING,
            ),
        },
    ),
}

_HEADERS: Node = {
    "x-typesafe-request-id": {
        "description": "The id in the gateway's log; the caller's own if one was sent.",
        "required": True,
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9._:-]{1,128}$"},
    },
    "x-tiergate-engine": {"description": "Which engine answered last.", "schema": _STRING},
    **cascade.HEADERS,
    "retry-after-ms": {
        "description": "Milliseconds until asking again makes sense.",
        "schema": {"type": "integer", "minimum": 1, "maximum": 10_000},
    },
    "retry-after": {
        "description": "The same in seconds.",
        "schema": {"type": "integer", "minimum": 1, "maximum": 10},
    },
}
