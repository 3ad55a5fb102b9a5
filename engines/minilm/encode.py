"""Texts to token rows: nothing truncated, nothing special from outside, cost bounded.

Two things differ from the tokenizer as published. Text that spells a special token (`[SEP]`)
is read as the characters it is. A word of more than 100 characters, which WordPiece would turn
into one unknown token whatever it says, is read in runs of 100.
"""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

MAX_TOKENS = 256
"""The length the model was tuned for; beyond it readings cost more and say no more."""
MAX_CHARS = 64 * MAX_TOKENS
"""A text of more characters is not read to its end; ordinary text has four or five a token."""

_RUN = re.compile(r"([^\s!-/:-@\[-`{-~]{100})(?=[^\s!-/:-@\[-`{-~])")


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """A text as the model reads it, or as much of it as was looked at."""

    ids: NDArray[np.int64]
    """Token ids with `[CLS]` first and `[SEP]` last, int64[tokens]."""
    cut: bool
    """The text goes on after these tokens, so the row must not be read."""

    @property
    def tokens(self) -> int:
        """How many ids there are, `[CLS]` and `[SEP]` included; at least 2."""
        return len(self.ids)

    @property
    def fits(self) -> bool:
        """Whether the whole text is in the row and the row in the model's window."""
        return not self.cut and self.tokens <= MAX_TOKENS

    @property
    def size(self) -> str:
        """The row's length, for a refusal: `300 tokens`."""
        if self.cut:
            return f"more than {MAX_CHARS} characters and at least {self.tokens} tokens"
        return f"{self.tokens} tokens"


class Encoder:
    """A WordPiece tokenizer without truncation and padding; safe to share between threads."""

    def __init__(self, tokenizer_json: bytes) -> None:
        self._tokenizer = Tokenizer.from_buffer(tokenizer_json)
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._tokenizer.encode_special_tokens = True
        # Decomposing accents can make a run of 100 characters four times as long.
        self._tokenizer.model.max_input_chars_per_word = 400

    def row(self, text: str) -> Row:
        """The text's tokens; of more than `MAX_CHARS` characters, the tokens of its beginning."""
        ids = self._tokenizer.encode(_RUN.sub(r"\1 ", text[:MAX_CHARS])).ids
        return Row(np.asarray(ids, dtype=np.int64), cut=len(text) > MAX_CHARS)
