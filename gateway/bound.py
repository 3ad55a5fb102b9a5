"""How many tokens answering may take at most, before anything is tokenised.

Every tokenizer here makes at most one token of each UTF-8 byte, and engines read the state once
per question; what they add around a text is a few special tokens.
"""

from collections.abc import Collection

import orjson

from engines.contract import Choice, Inquiry, Noul, Question, Score, Text

_AROUND = 16
"""Special tokens and words that an engine puts around a text."""


def token_bound(inquiry: Inquiry) -> int:
    """An upper bound of the tokens that one engine reads for the inquiry."""
    state = _bytes(inquiry.state) + _AROUND
    bound = 0
    for one in inquiry.questions.values():
        bound += state + _of_question(one)
    return bound


def _of_question(question: Question) -> int:
    match question:
        case Choice():
            options = question.options
            texts = _sum_of_bytes(options) + _sum_of_bytes(options.values())
            count = len(options)
        case Score():
            texts, count = _sum_of_bytes(question.levels), len(question.levels)
        case Noul():
            texts, count = _bytes(question.true) + _bytes(question.false), 2
    return _bytes(question.instructions) + texts + _AROUND * (count + 1)


def _sum_of_bytes(texts: Collection[Text | None]) -> int:
    """As `_bytes` of each, in one go where all of them are strings."""
    try:
        return _bytes("".join(texts))  # type: ignore[arg-type]
    except TypeError:
        return sum(map(_bytes, texts))


def _bytes(text: Text | None) -> int:
    if text is None:
        return 0
    if isinstance(text, str):
        return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return 2 * len(orjson.dumps(text))  # room for the separators of another notation
