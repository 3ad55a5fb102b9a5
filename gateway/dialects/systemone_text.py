"""Limits on the texts of a request: length, nesting, and numbers that JSON cannot give back."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gateway.dialects.systemone_schema import Ask
from gateway.errors import Fault, invalid

Loc = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class TextLimits:
    """How long and how deep a text may be."""

    max_chars: int
    max_depth: int


def refuse_unfit_text(ask: Ask, limits: TextLimits) -> None:
    """Nothing, if every text keeps to the limits.

    Raises:
        Refusal: 422 naming the first text that does not.
    """
    for loc, text in texts(ask):
        if isinstance(text, str):
            if len(text) > limits.max_chars:
                raise _unfit("string_too_long", loc, f"At most {limits.max_chars} characters")
        elif text is not None:
            _refuse_unfit_structure(text, loc, limits)


def texts(ask: Ask) -> Iterator[tuple[Loc, Any]]:
    """Location → text for state, instructions and criteria, absent ones as `None`."""
    yield ("body", "state"), ask["state"]
    question: Any
    for name, question in ask["questions"].items():
        kind = question["type"]
        yield ("body", "questions", name, kind, "instructions"), question.get("instructions")
        criteria = question.get("criteria")
        if not criteria:
            continue
        for key, text in enumerate(criteria) if kind == "score" else criteria.items():
            yield ("body", "questions", name, kind, "criteria", key), text


def _refuse_unfit_structure(text: Any, loc: Loc, limits: TextLimits) -> None:
    level = [text]
    for _ in range(limits.max_depth):
        below: list[Any] = []
        for node in level:
            match node:
                case dict():
                    below.extend(node.values())
                    below.extend(node.keys())
                case list():
                    below.extend(node)
                case str() if len(node) > limits.max_chars:
                    raise _unfit("string_too_long", loc, f"At most {limits.max_chars} characters")
                case float() if not math.isfinite(node):
                    raise _unfit("finite_number", loc, "Numbers must be finite")
        if not below:
            return
        level = below
    raise _unfit("too_deep", loc, f"At most {limits.max_depth} levels of nesting")


def _unfit(type_: str, loc: Loc, message: str) -> Exception:
    return invalid(Fault(type_, loc, message))
