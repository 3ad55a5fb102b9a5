"""What a row shows of a question: its texts, worded as Laya was trained to read them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engines.contract import Choice, Kind, Noul, Question, Score, Text, kind_of

NEUTRAL: dict[Kind, str] = {
    "noul": "Is it true?",
    "choice": "Which one fits best?",
    "score": "Which level fits best?",
}
"""Stands in where the asker gave no instructions: Laya never saw a question without."""

_NO, _YES = "no, the statement does not hold", "yes, the statement holds"


@dataclass(frozen=True, slots=True)
class Wording:
    """The texts of one question, before tokens."""

    kind: Kind
    instructions: str
    options: tuple[str, ...]
    """One text per option in Laya's canonical order; a noul's are [false, true]."""
    order: tuple[int, ...] | None = None
    """Which option stands in which slot of the row; `None` = the canonical order."""


def wording(question: Question) -> Wording:
    """The question's texts; neutral instructions if it has none."""
    kind = kind_of(question)
    return Wording(kind, instructions_text(question.instructions) or NEUTRAL[kind], _of(question))


def _of(question: Question) -> tuple[str, ...]:
    match question:
        case Noul():
            return noul_options({"true": question.true, "false": question.false})
        case Choice():
            return choice_options(question.options)
        case Score():
            return score_options(question.levels)


def instructions_text(instructions: Text | None) -> str:
    """The instructions as text; empty if there are none or they are blank."""
    if instructions is None or instructions in ([], {}):
        return ""
    text = state_text(instructions)
    return text if text.strip() else ""


def state_text(state: object) -> str:
    """A string as it is, anything else as JSON in its own key order."""
    return state if isinstance(state, str) else json.dumps(state, ensure_ascii=False)


def noul_options(
    criteria: Mapping[str, Any], words: Sequence[str] = ("false", "true")
) -> tuple[str, str]:
    """[false, true]; `words` stand before the colons, criteria left out get fixed words."""
    said = (_said(criteria.get("false")) or _NO, _said(criteria.get("true")) or _YES)
    return (f"{words[0]}: {said[0]}", f"{words[1]}: {said[1]}")


def choice_options(options: Mapping[Any, Any]) -> tuple[str, ...]:
    """`label: description`, or the label alone where there is no description."""
    texts = ((str(label), _said(value)) for label, value in options.items())
    return tuple(label if said is None else f"{label}: {said}" for label, said in texts)


def score_options(levels: Sequence[Any]) -> tuple[str, ...]:
    """`level i: description`, from 0."""
    return tuple(
        f"level {i}: {_structured(level) if not isinstance(level, str) else level}"
        for i, level in enumerate(levels)
    )


def _said(value: object) -> str | None:
    """The description's text, or `None` where nothing is said; 0 and false say something."""
    if value is None or value == "":
        return None
    return value if isinstance(value, str) else _structured(value)


def _structured(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": "), default=str)
