"""What the tests of calibrating have in common: rows, and engines whose truth is known."""

import hashlib
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engines.contract import Choice, Question, Text
from gateway.labelled import Row

TEAM = Choice({"a": None, "b": None, "c": None}, "Which team?")
DESK = Choice({"a": None, "b": None, "c": None}, "Which desk?")
QUESTION: dict[str, Any] = {
    "type": "choice",
    "instructions": "Which team?",
    "criteria": {"a": None, "b": None, "c": None},
}


def chance(*parts: object) -> float:
    """A number in [0, 1) that depends on the parts alone."""
    digest = hashlib.sha256(json.dumps(parts).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def row(i: int, label: int | None = 0, question: Question = TEAM, name: str = "q") -> Row:
    labels = {} if label is None else {name: label}
    return Row(f"state {i}", {name: question}, labels, f"rows.jsonl:{i}")


def honest(state: Text, question: Question) -> Sequence[float]:
    """Says 0 with a probability between 1/3 and 1 that depends on the state."""
    p = 1 / 3 + 2 / 3 * chance("sure", state)
    p = min(max(p, 0.34), 0.9999)
    rest = math.log((1 - p) / 2)
    return [math.log(p), rest, rest]


def truth(i: int) -> int:
    """A label that `honest` is right about as often as it says."""
    p = math.exp(honest(f"state {i}", TEAM)[0])
    return 0 if chance("truth", i) < p else 1


def labelled_file(path: Path, n: int, *, first: int = 0, labels: bool = True) -> Path:
    """Rows that `honest` is right about as often as it says, as JSONL."""
    names = ["a", "b", "c"]
    rows = [
        {"state": f"state {i}", "questions": {"q": QUESTION}}
        | ({"labels": {"q": names[truth(i)]}} if labels else {})
        for i in range(first, first + n)
    ]
    path.write_text("\n".join(json.dumps(one) for one in rows))
    return path
