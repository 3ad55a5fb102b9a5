"""Which questions are of a kind: the cells that temperatures and floors are kept for."""

import hashlib
import json

from engines.contract import Choice, Json, Kind, Noul, Question, Score

CELLS: tuple[str, ...] = (
    "noul",
    *(f"{kind}:{size}" for kind in ("choice", "score") for size in ("2", "3-5", "6-10", "11+")),
)
"""Every cell there is."""


def cell(kind: Kind, labels: int) -> str:
    """The cell of a question with so many labels, e.g. `choice:3-5`; a noul has one, `noul`."""
    if kind == "noul":
        return "noul"
    if labels <= 2:
        return f"{kind}:2"
    if labels <= 5:
        return f"{kind}:3-5"
    return f"{kind}:6-10" if labels <= 10 else f"{kind}:11+"


def fingerprint(question: Question) -> str:
    """16 hexadecimal digits that stand for a question whatever its id and its state are.

    The first 64 bits of SHA-256 over kind, instructions and labels with what they mean, in the
    asker's order: whoever reorders or rewords asks another question.
    """
    match question:
        case Noul():
            content: list[Json] = ["noul", question.instructions, question.true, question.false]
        case Choice():
            options: list[Json] = [[name, text] for name, text in question.options.items()]
            content = ["choice", question.instructions, options]
        case Score():
            content = ["score", question.instructions, list(question.levels)]
    exact = json.dumps(content, separators=(",", ":"))  # ASCII: lone surrogates are escaped
    return hashlib.sha256(exact.encode()).hexdigest()[:16]
