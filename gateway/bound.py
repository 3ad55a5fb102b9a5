"""How many tokens answering may take at most, before anything is tokenised.

Every tokenizer here makes at most one token of each UTF-8 byte, and engines read the state once
per question; what they add around a text is a few special tokens.
"""

import orjson

from engines.contract import Choice, Inquiry, Noul, Question, Score, Text

_AROUND = 16
"""Special tokens and words that an engine puts around a text."""


def token_bound(inquiry: Inquiry) -> int:
    """An upper bound of the tokens that one engine reads for the inquiry."""
    state = _bytes(inquiry.state) + _AROUND
    return sum(state + _of_question(one) for one in inquiry.questions.values())


def _of_question(question: Question) -> int:
    match question:
        case Choice():
            texts = [_bytes(name) + _bytes(text) for name, text in question.options.items()]
        case Score():
            texts = [_bytes(level) for level in question.levels]
        case Noul():
            texts = [_bytes(question.true), _bytes(question.false)]
    return _bytes(question.instructions) + sum(texts) + _AROUND * (len(texts) + 1)


def _bytes(text: Text | None) -> int:
    if text is None:
        return 0
    if isinstance(text, str):
        return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return 2 * len(orjson.dumps(text))  # room for the separators of another notation
