"""Refusals, and the one table that says which HTTP status each becomes.

Nothing here knows how a dialect words a body; a `Problem` carries what any of them needs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from engines.contract import Broken, Busy, EngineError, Json, Loading, Reason, Unreadable

Kind = Literal[
    "invalid",
    "images_unseen",
    "bad_request",
    "unknown_model",
    "max_tokens_exceeded",
    "key_missing",
    "key_wrong",
    "forbidden",
    "rate_limited",
    "budget_exhausted",
    "idempotency_conflict",
    "name_taken",
    "not_found",
    "method_not_allowed",
    "body_late",
    "head_too_large",
    "body_too_large",
    "body_coding",
    "media_type",
    "overloaded",
    "late",
    "not_ready",
    "ledger_down",
    "broken",
    "internal",
]

STATUS: dict[Kind, int] = {
    "invalid": 422,
    "images_unseen": 422,
    "bad_request": 400,
    "unknown_model": 400,
    "max_tokens_exceeded": 400,
    "key_missing": 403,
    "key_wrong": 401,
    "forbidden": 403,
    "rate_limited": 429,
    "budget_exhausted": 429,
    "idempotency_conflict": 409,
    "name_taken": 409,
    "not_found": 404,
    "method_not_allowed": 405,
    "body_late": 408,
    "head_too_large": 431,
    "body_too_large": 413,
    "body_coding": 415,
    "media_type": 415,
    "overloaded": 529,
    "late": 504,
    "not_ready": 503,
    "ledger_down": 503,
    "broken": 500,
    "internal": 500,
}
"""Clients built on the official SDKs repeat 408, 429 and every 5xx; a bad request is neither."""

MAX_RETRY_AFTER_S = 10.0
"""The official SDK gives up at once when it is told to wait for 30 s or more."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with a request."""

    type: str
    """Machine-readable, in pydantic's vocabulary where it has a word for it."""
    loc: tuple[str | int, ...]
    """Path to the value, beginning with `"body"`."""
    msg: str
    """A sentence for a person."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a request was refused, before any dialect words it."""

    kind: Kind
    message: str
    faults: Sequence[Fault] = ()
    """The single things that are wrong, for kinds of status 422."""
    details: Mapping[str, Json] = field(default_factory=dict)
    """Machine-readable extras, e.g. token counts."""
    retry_after_s: float | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def status(self) -> int:
        """The HTTP status."""
        return STATUS[self.kind]


class Refusal(Exception):
    """A request is refused for a reason that the caller may know."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def refusal(kind: Kind, message: str, **headers: str) -> Refusal:
    """A refusal that needs no more than a sentence (and perhaps headers)."""
    return Refusal(Problem(kind, message, headers=headers))


def invalid(*faults: Fault) -> Refusal:
    """A refusal for a body that parses but does not say what it must."""
    return Refusal(Problem("invalid", "; ".join(fault.msg for fault in faults), faults))


def problem(error: Refusal | EngineError) -> Problem:
    """The problem behind whatever was raised on purpose."""
    match error:
        case Refusal():
            return error.problem
        case Unreadable():
            return _unreadable(error)
        case Loading():
            wait_s = min(error.retry_after_s, MAX_RETRY_AFTER_S)
            return Problem("not_ready", "The model is being loaded.", retry_after_s=wait_s)
        case Busy():
            wait_s = min(error.retry_after_s, MAX_RETRY_AFTER_S)
            return Problem("overloaded", f"Overloaded: {error}.", retry_after_s=wait_s)
        case Broken():
            return Problem("broken", "The model failed on this request.")
        case _:
            return Problem("internal", "Internal error.")


def _unreadable(error: Unreadable) -> Problem:
    """Over-long inquiries are 400, as the hosted API has it; the rest is 422 with a location."""
    details: dict[str, Json] = {"reason": error.reason.value}
    if error.question is not None:
        details["question"] = error.question
    if error.tokens is not None:
        details["tokens"] = error.tokens
    if error.max_tokens is not None:
        details["max_tokens"] = error.max_tokens
    message = f"{str(error)[:1].upper()}{str(error)[1:]}."
    if error.reason is Reason.TOO_LONG:
        return Problem("max_tokens_exceeded", message, details=details)
    images = error.reason is Reason.IMAGES
    where = ("body", "assets") if images else ("body", "questions")
    loc = where if error.question is None else (*where, error.question)
    kind: Kind = "images_unseen" if images else "invalid"
    return Problem(kind, message, (Fault(error.reason.value, loc, message),), details)
