"""`POST /v1/outcomes` in the OpenAPI document."""

from typing import Any, TypeAlias

from gateway.dialects.outcomes import OUTCOMES

Node: TypeAlias = dict[str, Any]

_SCHEMAS = "#/components/schemas/"

_REFUSALS = {
    "400": "The body was damaged on its way.",
    "401": "The API key is wrong, revoked or expired.",
    "403": "There is no API key, or it may not do this.",
    "404": "There is no ledger, so no answer is remembered.",
    "408": "The body did not arrive in time.",
    "413": "The body is too large, as sent or decompressed.",
    "415": "A Content-Type or Content-Encoding that is not understood.",
    "422": "Something is wrong with an outcome; each fault has its location. None was kept.",
    "429": "Too many requests.",
    "503": "The ledger cannot be used.",
}


def operation() -> Node:
    """The operation `POST`."""
    return {
        "operationId": "outcomes",
        "summary": "Tell what turned out to be true about earlier answers of cascades.",
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"$ref": f"{_SCHEMAS}Outcomes"}}},
        },
        "responses": {
            "200": _response("Every outcome was kept.", "Accepted"),
            **{
                status: _response(about, "Faults" if status == "422" else "Refusal")
                for status, about in _REFUSALS.items()
            },
        },
    }


def schemas() -> Node:
    """The schemas that the operation refers to and that are not those of the System One routes."""
    outcomes = OUTCOMES.json_schema(ref_template=_SCHEMAS + "{model}")
    entries: Node = outcomes.pop("$defs")
    accepted = {
        "type": "object",
        "required": ["accepted"],
        "properties": {"accepted": {"type": "integer", "minimum": 1}},
        "additionalProperties": False,
    }
    return {"Outcomes": outcomes, "Accepted": accepted, **entries}


def _response(about: str, body: str) -> Node:
    header = {"$ref": "#/components/headers/x-typesafe-request-id"}
    return {
        "description": about,
        "headers": {"x-typesafe-request-id": header},
        "content": {"application/json": {"schema": {"$ref": _SCHEMAS + body}}},
    }
