"""What pydantic finds wrong with a request, as the dialect tells it."""

from collections import Counter
from collections.abc import Sequence

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from gateway.errors import Fault, Refusal, invalid

MAX_FAULTS = 100
"""Of one request, the most that are told."""

_TEXT_BRANCHES = {"str": "string_type", "dict[str,any]": "dict_type", "list[any]": "list_type"}
_MESSAGES = {
    "union_tag_invalid": "Unknown question type; expected 'noul', 'choice', 'score' or 'box'",
    "union_tag_not_found": "The question has no type; expected 'noul', 'choice', 'score' or 'box'",
}


def found_by(error: ValidationError) -> list[ErrorDetails]:
    """What is wrong, without what was sent."""
    return error.errors(include_url=False, include_input=False, include_context=False)


def unfit(found: Sequence[ErrorDetails], *, rest: bool = False) -> Refusal:
    """Every fault once, with the location in the body; the three shapes of a text as one.

    `rest`: there is more that nobody has looked at.
    """
    faults: dict[tuple[str | int, ...], Fault] = {}
    branches = Counter(f["loc"][:-1] for f in found if _is_text_branch(f))
    for fault in found:
        loc: tuple[str | int, ...] = ("body", *fault["loc"])
        type_, message = fault["type"], _MESSAGES.get(fault["type"], fault["msg"])
        if _is_text_branch(fault) and branches[fault["loc"][:-1]] == len(_TEXT_BRANCHES):
            loc, type_ = loc[:-1], "text_type"
            message = "Input should be a string, an object or an array"
        faults.setdefault(loc, Fault(type_, loc, message))
    shown = list(faults.values())[:MAX_FAULTS]
    if (more := len(faults) - len(shown)) > 0:
        least = "at least " if rest else ""
        shown.append(Fault("too_many_faults", ("body",), f"And {least}{more} more faults"))
    return invalid(*shown)


def _is_text_branch(fault: ErrorDetails) -> bool:
    loc = fault["loc"]
    return bool(loc) and _TEXT_BRANCHES.get(str(loc[-1])) == fault["type"]
