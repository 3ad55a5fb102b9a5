"""Requests that the wire tests send, and what must come of them."""

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

import httpx

from .wellformed import decision, refusal

Body: TypeAlias = dict[str, Any]

STATE = "I was charged twice for my March invoice, please send the money back."

NOUL: Body = {"type": "noul", "instructions": "Does the customer ask for money back?"}
CHOICE: Body = {
    "type": "choice",
    "instructions": "Which team should handle this ticket?",
    "criteria": {
        "billing": "Payments, invoices and refunds",
        "technical": "Bugs, outages and integrations",
        "sales": None,
    },
}
SCORE: Body = {
    "type": "score",
    "instructions": "How upset is the customer?",
    "criteria": ["Calm", "Annoyed", "Angry"],
}
MIXED: Body = {"refund": NOUL, "team": CHOICE, "mood": SCORE}
"""One question of each kind."""


def ask(questions: Mapping[str, Any] = MIXED, state: object = STATE, **fields: Any) -> Body:
    """A body as the SDK builds it."""
    return {"state": state, "model": "jev-latest", "questions": dict(questions), **fields}


def raw(body: object = None) -> bytes:
    """A body as bytes; the mixed one for `None`."""
    return json.dumps(ask() if body is None else body).encode()


def answered(http: httpx.Client, body: dict[str, Any]) -> dict[str, Any]:
    """The answers to a body that must be answered, well-formed."""
    response = http.post("/v1/systemone", json=body)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = decision(body, response.content)["answers"]
    return found


def refused(http: httpx.Client, body: object, status: int = 422) -> Any:
    """The `detail` of a body that must be refused."""
    response = http.post("/v1/systemone", json=body)
    assert response.status_code == status, response.text
    return refusal(response.content)["detail"]
