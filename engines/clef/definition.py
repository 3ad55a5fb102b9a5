"""Questions as the reference takes them, in JSON: for golden requests, never for callers."""

from collections.abc import Mapping
from typing import Any

from engines.clef.rendering import Worded, option, rendered

_DEFAULTS = {
    "true": "The proposition is true or the answer is yes.",
    "false": "The proposition is false or the answer is no.",
}


def wordings(questions: Mapping[str, Any]) -> dict[str, Worded]:
    """Question id → question in Clef's words; everything the reference accepts is accepted."""
    return {name: _wording(definition) for name, definition in questions.items()}


def _wording(definition: Mapping[str, Any]) -> Worded:
    kind: str = definition["type"]
    criteria: Any = definition.get("criteria")
    instructions = definition.get("instructions")
    said = "" if instructions is None or instructions == "" else rendered(instructions)
    match kind:
        case "noul":
            given = {name: text for name, text in (criteria or {}).items() if name in _DEFAULTS}
            texts = _DEFAULTS | given  # null is given too: it takes the description away
            labels: tuple[int, ...] = (0, 1)
        case "choice":
            names = list(criteria)
            labels = tuple(sorted(range(len(names)), key=names.__getitem__))
            texts = {names[at]: criteria[names[at]] for at in labels}
        case _:
            texts = {str(i): level for i, level in enumerate(criteria)}
            labels = tuple(range(len(texts)))
    number = ("noul", "choice", "score").index(kind)
    return Worded(kind, number, said, tuple(option(n, t) for n, t in texts.items()), labels)
