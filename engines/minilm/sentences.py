"""Texts to unit vectors, in one place for every engine that reads them. Knows no question."""

import hashlib

from engines.contract import Reason, Unreadable
from engines.minilm.embed import Embedder, Vector
from engines.minilm.encode import MAX_CHARS, MAX_TOKENS, Encoder, Row
from engines.minilm.pinned import MODEL_SHA256, TOKENIZER_SHA256, load

MODEL = "all-MiniLM-L6-v2-int8"
WIDTH = 384
"""Numbers in a vector."""
DIGEST = hashlib.sha256(
    f"{MODEL_SHA256} {TOKENIZER_SHA256} 1 {MAX_TOKENS} {MAX_CHARS}".encode()
).hexdigest()
"""Of weights, tokenizer and encoding together: texts keep their vectors while this stays."""


class Passage:
    """A text that fits the window, and its vector once somebody has read it."""

    __slots__ = ("row", "vector")

    def __init__(self, row: Row) -> None:
        self.row = row
        self.vector: Vector | None = None


class Sentences:
    """Tokenizer and network of the encoder; any number of threads may share them."""

    def __init__(self) -> None:
        """Opens the files that come with the install.

        Raises:
            Broken: weights or tokenizer are not the ones the encoder was measured with.
        """
        files = load()
        self._encoder = Encoder(files.tokenizer)
        self._embedder = Embedder(files.model)

    def row(self, text: str) -> Row:
        """The text's tokens; see `Encoder.row`."""
        return self._encoder.row(text)

    def vector(self, passage: Passage) -> Vector:
        """The passage's vector, float32[384] of length 1.

        Two threads may both work it out and find the same.

        Raises:
            Broken: the encoder is closed, or gave something that is no number.
        """
        if passage.vector is None:
            passage.vector = self._embedder.vector(passage.row.ids)
        return passage.vector

    def close(self) -> None:
        """Drop the weights; running reads finish, later ones are `Broken`."""
        self._embedder.close()


def too_long(what: str, row: Row, reason: Reason, question: str | None) -> Unreadable:
    """The refusal of a text that does not fit; `what` names it, as `option 3`."""
    return Unreadable(
        f"{what} is too long for this model: {row.size}, at most {MAX_TOKENS} tokens fit",
        reason=reason,
        question=question,
        tokens=row.tokens,
        max_tokens=MAX_TOKENS,
    )
