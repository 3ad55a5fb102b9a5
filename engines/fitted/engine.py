"""The fitted engine: reads the questions it has a head for, and calls every other unknown.

A head is a linear map on the state's vector, fitted to labelled examples of one question and
calibrated on examples it was not fitted to. So it needs no text of the question to read it.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engines.contract import (
    Broken,
    Engine,
    Facts,
    Inquiry,
    Question,
    Reading,
    Reason,
    Unreadable,
    label_count,
)
from engines.fingerprint import fingerprint
from engines.fitted.heads import Head, loaded
from engines.minilm import render
from engines.minilm.encode import MAX_CHARS, MAX_TOKENS
from engines.minilm.sentences import DIGEST, MODEL, Passage, Sentences, too_long


@dataclass(frozen=True, slots=True)
class _Piece:
    """One question: the head that reads it, and the state it is asked about."""

    question: str
    head: Head
    state: Passage

    @property
    def tokens(self) -> int:
        return self.state.row.tokens


class FittedEngine(Engine[_Piece]):
    """Heads on all-MiniLM-L6-v2 in int8; any number of lane threads may share it."""

    def __init__(self, *, path: str) -> None:
        """Reads every head in the folder `path`; what is put there later is not seen.

        Raises:
            HeadError: a file there is no head of the encoder installed, or there is none.
            Broken: the encoder's files are not the ones it was measured with.
        """
        self._heads = loaded(Path(path))
        self._sentences = Sentences()
        several = "one question" if len(self._heads) == 1 else f"{len(self._heads)} questions"
        self._facts = Facts(
            model=f"heads on {MODEL}",
            digest=digest_of(self._heads),
            max_tokens=MAX_TOKENS,
            notes=f"Reads {several} that it was fitted to with labelled examples, and no other.",
        )

    @property
    def facts(self) -> Facts:
        return self._facts

    def prepare(self, inquiry: Inquiry) -> Sequence[_Piece]:
        """One piece per question, in the inquiry's order; the state is read once for all.

        Raises:
            Unreadable: there is an image; questions are not known (all of them are in `of_each`);
                or the state does not fit.
        """
        if inquiry.assets:
            raise Unreadable(
                "this model cannot see images, and the inquiry carries at least one",
                reason=Reason.IMAGES,
            )
        heads = self._known(inquiry.questions)
        row = self._sentences.row(render.line(inquiry.state, MAX_CHARS))
        if not row.fits:
            raise too_long("the state", row, Reason.TOO_LONG, None)
        state = Passage(row)
        return [_Piece(name, head, state) for name, head in heads.items()]

    def read(self, batch: Sequence[_Piece]) -> Sequence[Mapping[str, Reading]]:
        """For each piece: its question's reading; what the others are changes nothing.

        Raises:
            Broken: the engine is closed, or the encoder gave no numbers.
        """
        return [{piece.question: self._reading(piece)} for piece in batch]

    def close(self) -> None:
        """Drops the weights."""
        self._sentences.close()

    def _known(self, questions: Mapping[str, Question]) -> dict[str, Head]:
        """Question id → its head, in the asker's order."""
        found = {name: self._heads.get(fingerprint(one)) for name, one in questions.items()}
        unknown = [name for name, head in found.items() if head is None]
        if unknown:
            raise _unknown(unknown)
        known = {name: head for name, head in found.items() if head is not None}
        for name, head in known.items():
            if len(head.bias) != label_count(questions[name]):
                raise Broken("a head has another number of labels than its question")
        return known

    def _reading(self, piece: _Piece) -> Reading:
        vector = self._sentences.vector(piece.state)
        return Reading(piece.head.log_weights(vector), piece.tokens)


def digest_of(heads: Mapping[str, Head]) -> str:
    """What identifies an engine with these heads: SHA-256 over the encoder and each of them."""
    each = sorted(head.digest for head in heads.values())
    return hashlib.sha256(" ".join([DIGEST, *each]).encode()).hexdigest()


def _unknown(names: Sequence[str]) -> Unreadable:
    error = Unreadable(
        f"this model was not fitted to '{names[0]}'; it reads exactly the questions that it was "
        "fitted to, word for word",
        reason=Reason.UNKNOWN_QUESTION,
        question=names[0],
    )
    error.of_each = dict.fromkeys(names, Reason.UNKNOWN_QUESTION)
    return error
