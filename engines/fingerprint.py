"""What a question is, whatever its id and its state are. Stands on the standard library alone."""

import hashlib
import json

from engines.contract import Choice, Json, Noul, Question, Score


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
