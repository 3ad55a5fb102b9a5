"""Prompts of a given length, of random tokens."""

import random

from engines.clef.prompt import Asked, Opening, Prompt

_OPTIONS = 3
_OPTION_TOKENS = 12
_LABEL_TOKENS = 6


def prompt(state_tokens: int, question_tokens: int, vocabulary: int, seed: int = 0) -> Prompt:
    """A choice of three options about a state; the same seed asks about the same state."""
    draw = random.Random(seed // 100)
    state = tuple(draw.randrange(vocabulary) for _ in range(state_tokens))
    draw = random.Random(seed)
    schema = tuple(draw.randrange(vocabulary) for _ in range(question_tokens))
    step = _OPTION_TOKENS + _LABEL_TOKENS
    first = question_tokens - _OPTIONS * step - _LABEL_TOKENS
    options = tuple((first + i * step, first + i * step + _OPTION_TOKENS) for i in range(_OPTIONS))
    asked = Asked("q", 1, (4, first - 4), options, tuple(range(_OPTIONS)))
    key = f"{state_tokens} {seed // 100}".encode()
    return Prompt(Opening(state, (), (), key), schema, (asked,), None)
