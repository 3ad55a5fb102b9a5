"""The embedded default engine: compares a state with what each label says, by embeddings.

Similarity tells topics apart, so it answers `choice`. It cannot tell a statement from its
opposite or one level from the next, so every `noul` and `score` reading carries a doubt.
"""

import hashlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

import numpy as np
from cachetools import LRUCache

from engines.contract import (
    Choice,
    Engine,
    Facts,
    Inquiry,
    Kind,
    Noul,
    Question,
    Reading,
    Reason,
    Score,
    Unreadable,
    kind_of,
    prepared_each,
)
from engines.minilm import render
from engines.minilm.encode import MAX_CHARS, MAX_TOKENS
from engines.minilm.pinned import MODEL_SHA256, TOKENIZER_SHA256
from engines.minilm.sentences import MODEL, Passage, Sentences, too_long
from engines.starter.scales import load

NOT_COMPETENT: frozenset[Kind] = frozenset({"noul", "score"})
DOUBT = "not_competent"

INSTRUCTIONS_SHARE = 0.1
"""Length of the instructions' vector added to the state's (length 1), chosen on train rows."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """One question: the passages it is read from."""

    question: str
    kind: Kind
    state: Passage
    instructions: Passage | None
    labels: tuple[Passage, ...]
    """In label order; without the no of a yes/no question that does not say what no means."""
    tokens: int
    """Of every passage, remembered or not: the same question costs the same each time."""


@dataclass(frozen=True, slots=True)
class _Label:
    """What a label says, and how a refusal speaks of it."""

    what: str
    text: str
    too_long: Reason = Reason.OPTIONS_CUT


class StarterEngine(Engine[_Piece]):
    """all-MiniLM-L6-v2 in int8 on one CPU thread; any number of lane threads may share it."""

    def __init__(self, *, option_cache: int = 4096) -> None:
        """Remembers up to `option_cache` texts of options, levels and instructions; 0 = none.

        Raises:
            Broken: weights or tokenizer are not the ones this engine was measured with.
        """
        scales = load()
        self._scales = scales.of
        self._sentences = Sentences()
        self._known: LRUCache[str, Passage] = LRUCache(maxsize=option_cache)
        self._lock = threading.Lock()
        weights = _sha256(MODEL_SHA256 + TOKENIZER_SHA256 + scales.digest)
        encoding = f"1 {MAX_TOKENS} {MAX_CHARS} {INSTRUCTIONS_SHARE}"
        self._facts = Facts(
            model=MODEL,
            digest=_sha256(f"{weights} {encoding}"),
            max_tokens=MAX_TOKENS,
            not_competent=NOT_COMPETENT,
            notes=(
                "Routes short English texts by topic (choice); its noul and score answers are "
                "close to a guess and say so."
            ),
        )

    @property
    def facts(self) -> Facts:
        return self._facts

    def prepare(self, inquiry: Inquiry) -> Sequence[_Piece]:
        """One piece per question, in the inquiry's order.

        Raises:
            Unreadable: there is an image, or a text does not fit the window.
        """
        if inquiry.assets:
            raise Unreadable(
                "this model cannot see images, and the inquiry carries at least one",
                reason=Reason.IMAGES,
            )
        row = self._sentences.row(render.line(inquiry.state, MAX_CHARS))
        if not row.fits:
            raise too_long("the state", row, Reason.TOO_LONG, None)
        state = Passage(row)
        return prepared_each(inquiry.questions, lambda name, ask: self._piece(name, ask, state))

    def read(self, batch: Sequence[_Piece]) -> Sequence[Mapping[str, Reading]]:
        """For each piece: its question's reading; what the others are changes nothing.

        Raises:
            Broken: the engine is closed, or the model gave no numbers.
        """
        return [{piece.question: self._reading(piece)} for piece in batch]

    def close(self) -> None:
        """Drops the weights and every remembered text."""
        self._sentences.close()
        with self._lock:
            self._known.clear()

    def _piece(self, name: str, ask: Question, state: Passage) -> _Piece:
        labels = tuple(
            self._passage(label.text, label.what, label.too_long, name) for label in _labels(ask)
        )
        instructions = None
        if ask.instructions and not _asks_for_its_instructions(ask):
            said = render.line(ask.instructions, MAX_CHARS)
            instructions = self._passage(said, "the instructions", Reason.INSTRUCTIONS_CUT, name)
        passages = [state, *labels] if instructions is None else [state, instructions, *labels]
        tokens = sum(passage.row.tokens for passage in passages)
        return _Piece(name, kind_of(ask), state, instructions, labels, tokens)

    def _passage(self, text: str, what: str, reason: Reason, question: str) -> Passage:
        """The remembered passage of this text, or a new one that is remembered from now on."""
        with self._lock:
            known = self._known.get(text)
        if known is not None:
            return known
        row = self._sentences.row(text)
        if not row.fits:
            raise too_long(what, row, reason, question)
        if self._known.maxsize == 0:
            return Passage(row)
        with self._lock:
            return self._known.setdefault(text, Passage(row))

    def _reading(self, piece: _Piece) -> Reading:
        vector = self._sentences.vector
        about = vector(piece.state)
        if piece.instructions is not None:
            about = about + np.float32(INSTRUCTIONS_SHARE) * vector(piece.instructions)
            about = about / np.linalg.norm(about)
        scale = self._scales[piece.kind]
        # One product per label, not a matrix: a matrix product may round by a row's place in it.
        log_weights = [
            float(np.dot(about, vector(label))) / scale.temperature for label in piece.labels
        ]
        if piece.kind == "noul" and len(log_weights) == 1:
            log_weights.append(scale.unsaid_no)
        return Reading(log_weights, piece.tokens, DOUBT if piece.kind in NOT_COMPETENT else None)


def _labels(ask: Question) -> list[_Label]:
    """What a state is compared with, in label order; a no that nobody described is left out.

    A yes that nobody described is what the instructions ask for.
    """
    match ask:
        case Choice():
            texts = [render.option(name, text, MAX_CHARS) for name, text in ask.options.items()]
            return [_Label(f"option {n}", text) for n, text in enumerate(texts, start=1)]
        case Score():
            texts = [render.line(level, MAX_CHARS) for level in ask.levels]
            return [_Label(f"level {n}", text) for n, text in enumerate(texts)]
        case Noul():
            if _asks_for_its_instructions(ask):
                said = render.line(ask.instructions or "yes", MAX_CHARS)
                yes = _Label("the instructions", said, Reason.INSTRUCTIONS_CUT)
            else:
                yes = _Label("the meaning of yes", render.line(ask.true or "", MAX_CHARS))
            if not ask.false:
                return [yes]
            return [yes, _Label("the meaning of no", render.line(ask.false, MAX_CHARS))]
    assert_never(ask)


def _asks_for_its_instructions(ask: Question) -> bool:
    """Whether yes means what the instructions say, because nothing else says what it means."""
    return isinstance(ask, Noul) and not ask.true


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
