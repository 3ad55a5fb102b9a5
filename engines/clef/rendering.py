"""State and questions as the text that Clef was trained on; formats are part of the weights."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from engines.contract import Choice, Json, Noul, Question, Score, Text

PREFIX = (
    "<|im_start|>system\nRead the complete state and schema. Decide every field jointly. "
    "Each answer must be exactly one of that field's allowed options.<|im_end|>\n"
    "<|im_start|>user\nSTATE:\n"
)
IMAGE = "<|vision_start|><|image_pad|><|vision_end|>"
IMAGE_PAD = "<|image_pad|>"
SCHEMA = "\n\nSCHEMA FIELDS:\n"
OPTIONS = "\nALLOWED OPTIONS:\n"
OPTION_END = "\n"
FIELD_END = "END FIELD\n"
SUFFIX = "\n<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\nJOINT SCHEMA DECISIONS:"

_YES = "The proposition is true or the answer is yes."
_NO = "The proposition is false or the answer is no."


@dataclass(frozen=True, slots=True)
class Worded:
    """A question in Clef's words."""

    kind: str
    type: int
    """Row of the head's table of types: 0 noul, 1 choice, 2 score."""
    instructions: str
    """Empty = the question's id stands in."""
    options: tuple[str, ...]
    """Each option's JSON, in the encoder's order."""
    labels: tuple[int, ...]
    """For each option of the encoder, its place among the asker's labels."""


def header(place: int, name: str, kind: str) -> str:
    """What stands before a question's instructions; `place` counts from 1."""
    return f"\nFIELD {place}\nID: {name}\nTYPE: {kind}\nINSTRUCTION: "


def label(place: int) -> str:
    """What stands before an option; `place` counts from 1."""
    return f"OPTION {place}: "


def rendered(content: Json) -> str:
    """A string as it is; anything else as compact JSON with keys sorted by code point."""
    if isinstance(content, str):
        return content
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def worded(question: Question) -> Worded:
    """The question's texts; choices sorted by name, as the reference has it."""
    match question:
        case Noul():
            texts: Mapping[str, Json] = {
                "true": _or(question.true, _YES),
                "false": _or(question.false, _NO),
            }
            return _worded("noul", 0, question.instructions, texts, (0, 1))
        case Choice():
            names = list(question.options)
            order = sorted(range(len(names)), key=names.__getitem__)
            texts = {names[at]: question.options[names[at]] for at in order}
            return _worded("choice", 1, question.instructions, texts, tuple(order))
        case Score():
            texts = {str(i): level for i, level in enumerate(question.levels)}
            return _worded("score", 2, question.instructions, texts, tuple(range(len(texts))))
        case _:
            assert_never(question)


def _or(text: Text | None, default: str) -> Text:
    return default if text is None else text


def _worded(
    kind: str,
    number: int,
    instructions: Text | None,
    texts: Mapping[str, Json],
    labels: tuple[int, ...],
) -> Worded:
    said = "" if instructions is None or instructions == "" else rendered(instructions)
    options = tuple(option(name, text) for name, text in texts.items())
    return Worded(kind, number, said, options, labels)


def option(name: str, text: Json) -> str:
    """An option as the model reads it; one without a description has no such key."""
    tree: dict[str, Json] = {"option_id": name}
    if text is not None:
        tree["description"] = text
    return rendered(tree)
