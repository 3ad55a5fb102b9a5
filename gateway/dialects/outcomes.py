"""`POST /v1/outcomes`: what turned out to be true about answers given before.

Errors have the shapes of the System One routes.
"""

from typing import Annotated, Literal, NamedTuple, Required, TypeAlias

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from gateway.errors import Fault, invalid

PATH = "/v1/outcomes"

MAX_OUTCOMES = 1000
_MAX_FAULTS = 100

_FORM = ConfigDict(strict=True, extra="ignore", use_attribute_docstrings=True)

Truth: TypeAlias = bool | int | str


class OutcomeEntry(TypedDict, total=False):
    """One truth; `question` or `fingerprint` says about which question of the request."""

    __pydantic_config__ = _FORM  # type: ignore[misc]

    request_id: Required[Annotated[str, Field(min_length=1, max_length=128)]]
    """`x-typesafe-request-id` of the answer; of a request that this API key made."""
    question: str | None
    """The question's id in that request."""
    fingerprint: Annotated[str, Field(pattern="^[0-9a-f]{16}$")] | None
    """The question's fingerprint, as in `policy.toml`, where the id is not at hand."""
    truth: Required[Annotated[Truth, Field(union_mode="left_to_right")]]
    """True or false for a noul, the option's name for a choice, the level from 0 for a score."""


class Outcomes(TypedDict, total=False):
    """Truths about earlier answers; all are kept or none."""

    __pydantic_config__ = _FORM  # type: ignore[misc]

    outcomes: Required[Annotated[list[OutcomeEntry], Field(min_length=1, max_length=MAX_OUTCOMES)]]


OUTCOMES: TypeAdapter[Outcomes] = TypeAdapter(Outcomes)

By: TypeAlias = Literal["question", "fingerprint"]


class Outcome(NamedTuple):
    """One truth that somebody tells."""

    request_id: str
    by: By
    """What the question is named by."""
    name: str
    """Its id, or its fingerprint."""
    truth: Truth


_MOST_VALUES = 20_000
"""Parsing many small values holds up every other request; 1000 outcomes have fewer."""


def decode(body: bytes) -> list[Outcome]:
    """The outcomes in a body, at least one, in its order.

    Raises:
        Refusal: 422 with the location of everything that is wrong.
    """
    if len(body) > _MOST_VALUES and 1 + sum(map(body.count, (b",", b"[", b"{"))) > _MOST_VALUES:
        raise invalid(Fault("too_many_values", ("body",), f"At most {_MOST_VALUES} JSON values."))
    try:
        entries = OUTCOMES.validate_json(body)["outcomes"]
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False, include_context=False)
        faults = [Fault(one["type"], ("body", *one["loc"]), one["msg"]) for one in found]
        raise invalid(*faults[:_MAX_FAULTS]) from None
    unnamed = [
        at
        for at, one in enumerate(entries)
        if not one.get("question") and not one.get("fingerprint")
    ]
    if unnamed:
        message = "Either question or fingerprint is needed."
        raise invalid(
            *[Fault("missing", (*place(at), "question"), message) for at in unnamed[:_MAX_FAULTS]]
        )
    return [_outcome(one) for one in entries]


def place(at: int) -> tuple[str | int, ...]:
    """Where the outcome at this place stands in the body."""
    return ("body", "outcomes", at)


def _outcome(entry: OutcomeEntry) -> Outcome:
    question, fingerprint = entry.get("question"), entry.get("fingerprint")
    if question:
        return Outcome(entry["request_id"], "question", question, entry["truth"])
    return Outcome(entry["request_id"], "fingerprint", fingerprint or "", entry["truth"])
