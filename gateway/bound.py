"""How many tokens answering may take at most, before anything is tokenised.

Every tokenizer here makes at most one token of each UTF-8 byte, after putting characters together
(Unicode NFC), which makes some of them longer. What an engine adds says its appetite.
"""

import json
import unicodedata
from collections.abc import Collection

import orjson

from engines.appetite import USUAL, Appetite
from engines.contract import Choice, Inquiry, Noul, Question, Score, Text

_SLACK = 2
"""Room for the separators of another notation of structured texts."""


def token_bound(inquiry: Inquiry, appetite: Appetite = USUAL) -> int:
    """An upper bound of the tokens that one engine reads for the inquiry."""
    state = _bytes(inquiry.state) + appetite.question
    bound = 0
    for name, one in inquiry.questions.items():
        bound += state + _of_question(one, state, appetite)
        if appetite.named:
            bound += 2 * _bytes(name)  # and once more in the place of instructions
    if inquiry.assets:
        bound += len(inquiry.questions) * appetite.pictures
    return bound


def _of_question(question: Question, state: int, appetite: Appetite) -> int:
    size = _quoted if appetite.quoted else _sum_of_bytes
    match question:
        case Choice():
            options = question.options
            texts = size(options) + size(options.values())
            count = len(options)
            if 0 < appetite.group < count:
                return _in_groups(question, state, appetite)
        case Score():
            texts, count = size(question.levels), len(question.levels)
        case Noul():
            texts, count = _sides(question, appetite), 2
    return _bytes(question.instructions) + texts + appetite.text * count


def _sides(question: Noul, appetite: Appetite) -> int:
    if appetite.quoted:
        return _quoted((question.true, question.false))
    return _bytes(question.true) + _bytes(question.false)


def _in_groups(question: Choice, state: int, appetite: Appetite) -> int:
    """As many rows as a tournament may have, the heaviest options winning; without one state."""
    size = _quoted if appetite.quoted else _sum_of_bytes
    weights = [size((name, text)) for name, text in question.options.items()]
    texts, heaviest, left, rows = sum(weights), max(weights), len(weights), 1
    while left > appetite.group:
        texts += appetite.text * left
        left = -(-left // appetite.group)
        texts += heaviest * left
        rows += left
    instructions = _bytes(question.instructions)
    return rows * instructions + (rows - 1) * state + texts + appetite.text * left


def _sum_of_bytes(texts: Collection[Text | None]) -> int:
    """As `_bytes` of each, in one go where all of them are strings."""
    try:
        return _bytes("".join(texts))  # type: ignore[arg-type]
    except TypeError:
        return sum(map(_bytes, texts))


def _quoted(texts: Collection[Text | None]) -> int:
    """As `_sum_of_bytes`, of the texts as JSON."""
    return sum(_notation(text) for text in texts if text is not None)


def _bytes(text: Text | None) -> int:
    if text is None:
        return 0
    if not isinstance(text, str):
        return _SLACK * _notation(text)
    if text.isascii():
        return len(text)
    raw = len(text.encode("utf-8", "surrogatepass"))
    if unicodedata.is_normalized("NFC", text):
        return raw
    return max(raw, len(unicodedata.normalize("NFC", text).encode("utf-8", "surrogatepass")))


def _notation(text: Text) -> int:
    """The bytes of a text as JSON."""
    try:
        written = orjson.dumps(text)
    except TypeError:  # whole numbers beyond 64 bits, lone surrogates
        return len(json.dumps(text))
    if written.isascii():
        return len(written)
    return _bytes(written.decode())
