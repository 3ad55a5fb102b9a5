"""Reads labelled sets (JSON lines and `questions.json`) as examples; knows no model.

A folder of sets holds `<set>.<split>.jsonl`, one object a line with `state`, `questions`
(an object, or "@name" of an entry of `questions.json`) and `labels`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["noul", "choice", "score"]
YES_NO = ("yes", "no")


@dataclass(frozen=True, slots=True)
class Example:
    """One question about one state, with the index of the right option."""

    kind: Kind
    instructions: str
    state: str
    options: tuple[str, ...]
    gold: int


def text_of(state: object) -> str:
    """A state as plain text: strings as they are, mappings as `key: value` lines."""
    if isinstance(state, str):
        return state
    if isinstance(state, Mapping):
        return "\n".join(f"{key}: {_flat(value)}" for key, value in state.items())
    return json.dumps(state, ensure_ascii=False)


def _flat(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def option_text(name: str, description: str | None) -> str:
    """The text that stands for a choice option: its description, led by its name if it differs."""
    words = name.replace("_", " ")
    if not description or description.lower() == words.lower():
        return words
    return f"{words}: {description}"


def level_texts(levels: Sequence[str]) -> tuple[str, ...]:
    """The texts that stand for the levels of a score, lowest first."""
    return tuple(f"level {i} of {len(levels)}: {text}" for i, text in enumerate(levels, start=1))


def rows(folder: Path, name: str, split: str) -> list[dict[str, object]]:
    """The rows of a split in file order, with "@name" questions replaced by their object."""
    shared = json.loads((folder / "questions.json").read_text(encoding="utf-8"))
    lines = (folder / f"{name}.{split}.jsonl").read_text(encoding="utf-8").splitlines()
    found: list[dict[str, object]] = []
    for line in lines:
        row = json.loads(line)
        if isinstance(row["questions"], str):
            row["questions"] = shared[row["questions"].removeprefix("@")]
        found.append(row)
    return found


def asked(row: Mapping[str, object]) -> Iterator[Example]:
    """The examples of a row as the set words them, in question order."""
    state = text_of(row["state"])
    questions, labels = row["questions"], row["labels"]
    if not isinstance(questions, Mapping) or not isinstance(labels, Mapping):
        raise ValueError("questions and labels are objects")
    for name, question in questions.items():
        kind, instructions, label = question["type"], question["instructions"], labels[name]
        if kind == "noul":
            yield Example("noul", instructions, state, YES_NO, 0 if label else 1)
        elif kind == "choice":
            criteria = question["criteria"]
            options = tuple(option_text(key, text) for key, text in criteria.items())
            yield Example("choice", instructions, state, options, list(criteria).index(label))
        else:
            options = level_texts(question["criteria"])
            yield Example("score", instructions, state, options, int(label))
