"""Questions in Laya's own format, as its package takes them. For goldens and `engine verify`.

The gateway's dialects never pass through here: they decode to the contract's questions.
"""

from collections.abc import Mapping
from typing import Any

from engines.contract import Kind
from engines.laya.wording import (
    Wording,
    choice_options,
    noul_options,
    score_options,
    state_text,
)

_KINDS: dict[str, Kind] = {"choice": "choice", "score": "score", "noul": "noul"}


class DefinitionError(ValueError):
    """Not a question in Laya's format; the message names the question."""


def wordings(
    state: object, questions: Mapping[Any, Any], min_confidence: Any = None
) -> dict[str, Wording]:
    """Question id → wording, in the asker's order.

    Raises:
        DefinitionError: a request that Laya's package refuses too.
    """
    if state is None:
        raise DefinitionError("the state must not be null")
    if min_confidence is not None:
        _refuse_floor(min_confidence)
    found = {}
    for name, definition in questions.items():
        if isinstance(name, bool) or not isinstance(name, str | int):
            raise DefinitionError(f"question {name!r}: an id is a string or an integer")
        if not str(name).strip():
            raise DefinitionError("a question id must not be blank")
        try:
            found[str(name)] = _wording(definition)
        except DefinitionError as error:
            raise DefinitionError(f"question '{name}': {error}") from None
    return found


def _wording(definition: object) -> Wording:
    if not isinstance(definition, dict):
        raise DefinitionError("must be an object")
    kind = _KINDS.get(definition["type"]) if isinstance(definition.get("type"), str) else None
    if kind is None:
        raise DefinitionError("'type' is one of choice, score, noul")
    words = _words(kind, definition.get("labels"))
    criteria = definition.get("criteria")
    match kind:
        case "choice":
            options: tuple[str, ...] = choice_options(_choice(criteria))
        case "score":
            options = score_options(_score(criteria))
        case "noul":
            options = noul_options(_noul(criteria), words)
    order = _order(definition.get("option_order"), len(options))
    return Wording(kind, _instructions(definition.get("instructions")), options, order)


def _instructions(instructions: object) -> str:
    if instructions is None or instructions in ([], {}):
        raise DefinitionError("'instructions' must say something")
    if not isinstance(instructions, str | dict | list | int | float):
        raise DefinitionError("'instructions' is a string, an object, a list or a number")
    text = state_text(instructions)
    if not text.strip():
        raise DefinitionError("'instructions' must not be blank")
    return text


def _choice(criteria: object) -> Mapping[Any, Any]:
    if isinstance(criteria, dict):
        labels = list(criteria)
    elif isinstance(criteria, list):
        labels = criteria
    else:
        raise DefinitionError("a choice takes an object or a list of labels as 'criteria'")
    if not labels:
        raise DefinitionError("a choice needs at least one option")
    seen: set[Any] = set()
    for i, label in enumerate(labels):
        if not isinstance(label, str | int | float):
            raise DefinitionError(f"label {i} must be a string, a number or a boolean")
        if label in seen:
            raise DefinitionError(f"label {i} is given twice")
        seen.add(label)
    return criteria if isinstance(criteria, dict) else dict.fromkeys(labels)


def _score(criteria: object) -> list[Any]:
    if not isinstance(criteria, list) or not criteria:
        raise DefinitionError("a score takes a list of levels as 'criteria', at least one")
    if any(level is None for level in criteria):
        raise DefinitionError(f"level {criteria.index(None)} is null")
    return criteria


def _noul(criteria: object) -> dict[str, Any]:
    if criteria is None:
        return {}
    if not isinstance(criteria, dict):
        raise DefinitionError("a noul takes an object with 'true' and 'false' as 'criteria'")
    lowered = {str(key).lower(): value for key, value in criteria.items()}
    if not lowered.keys() <= {"true", "false"}:
        raise DefinitionError("a noul's 'criteria' has the keys 'true' and 'false' only")
    return lowered


def _words(kind: Kind, labels: object) -> tuple[str, str]:
    if labels is None:
        return ("false", "true")
    if kind != "noul":
        raise DefinitionError("only a noul has 'labels'")
    if not isinstance(labels, dict) or labels.keys() != {"true", "false"}:
        raise DefinitionError("'labels' has the keys 'true' and 'false'")
    if not all(isinstance(word, str) and word.strip() for word in labels.values()):
        raise DefinitionError("a label must not be blank")
    no, yes = labels["false"].strip(), labels["true"].strip()
    if no == yes:
        raise DefinitionError("the two labels must differ")
    return (no, yes)


def _order(order: object, options: int) -> tuple[int, ...] | None:
    if order is None:
        return None
    slots = list(order) if isinstance(order, list | tuple) else []
    whole = all(isinstance(slot, int) and not isinstance(slot, bool) for slot in slots)
    if not whole or sorted(slots) != list(range(options)):
        raise DefinitionError(f"'option_order' must hold 0 to {options - 1}, each once")
    return tuple(slots)


def _refuse_floor(floor: Any) -> None:
    floors = list(floor.values()) if isinstance(floor, dict) else [floor]
    for value in floors:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not 0.0 <= float(value) <= 1.0:
            raise DefinitionError("'min_confidence' is in [0, 1]")
