"""An engine that says what it is told: for tests, benches and demonstrations. It judges nothing.

Under the script `hash` the log-weights come from a hash of the state, the instructions and each
label's text, so answers are stable, differ between inputs and ignore order, ids and company.
Under `even` they depend on nothing but how many labels there are, which costs next to nothing.
"""

import hashlib
import itertools
import json
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from engines.contract import (
    Busy,
    Choice,
    Engine,
    Facts,
    Inquiry,
    Json,
    Noul,
    Question,
    Reading,
    Reason,
    Score,
    Text,
    Unreadable,
    label_count,
)

Script = Callable[[Text, Question], Sequence[float]]
"""State and question → one log-weight per label."""
Fault = Literal["raise", "nan", "busy", "stall"]
"""An exception, weights that are not finite, a refusal to read now, a second of nothing."""

_STALL_S = 1.0


@dataclass(frozen=True, slots=True)
class _Piece:
    inquiry: Inquiry
    tokens: int


class ScriptedEngine(Engine[_Piece]):
    """Counts words as tokens; weighs labels by `script`."""

    def __init__(
        self,
        *,
        script: Script | Literal["hash", "even"] = "hash",
        max_tokens: int | None = 65_536,
        delay_s: float = 0.0,
        hold: threading.Event | None = None,
        faults: Mapping[Fault, int] | None = None,
    ) -> None:
        """`delay_s` is slept per read; a read waits for `hold` first, if there is one.

        `faults`: what goes wrong → in every which read.
        """
        self._script = _SCRIPTS[script] if isinstance(script, str) else script
        self._max_tokens = max_tokens
        self._delay_s = delay_s
        self._hold = hold
        self._faults = dict(faults or {})
        self._turns = itertools.count(1)
        self.entered = 0
        """Pieces whose reading has begun, for tests."""
        self.reads = 0
        """Pieces read so far, for tests."""

    @property
    def facts(self) -> Facts:
        return Facts(
            model="scripted",
            digest="scripted-even" if self._script is _SCRIPTS["even"] else "scripted",
            max_tokens=self._max_tokens,
            notes="Says what a script tells it; for tests only, it judges nothing.",
        )

    def prepare(self, inquiry: Inquiry) -> Sequence[_Piece]:
        """One piece per inquiry; refuses states of more than `max_tokens` words, and images."""
        if inquiry.assets:
            raise Unreadable("this model cannot see images", reason=Reason.IMAGES)
        state = inquiry.state if isinstance(inquiry.state, str) else json.dumps(inquiry.state)
        words = state.count(" ") + 1
        if self._max_tokens is not None and words > self._max_tokens:
            raise Unreadable(
                f"the state has {words} tokens, at most {self._max_tokens} fit",
                reason=Reason.TOO_LONG,
                tokens=words,
                max_tokens=self._max_tokens,
            )
        return [_Piece(inquiry, words * len(inquiry.questions))]

    def read(self, batch: Sequence[_Piece]) -> Sequence[Mapping[str, Reading]]:
        """For each piece: every question's reading."""
        self.entered += len(batch)
        if self._hold is not None:
            self._hold.wait()
        if self._delay_s:
            time.sleep(self._delay_s)
        script = self._faulty() if self._faults else self._script
        self.reads += len(batch)
        return [_answers(piece, script) for piece in batch]

    def _faulty(self) -> Script:
        """The script, or what goes wrong in this read.

        Raises:
            RuntimeError, Busy: where it is the turn of `raise` or `busy`.
        """
        turn = next(self._turns)
        match next((fault for fault, every in self._faults.items() if turn % every == 0), None):
            case "raise":
                raise RuntimeError("scripted to fail")
            case "busy":
                raise Busy("scripted to be busy", retry_after_s=0.1)
            case "nan":
                return lambda _, question: [math.nan] * label_count(question)
            case "stall":
                time.sleep(_STALL_S)
        return self._script

    def close(self) -> None:
        """Nothing to let go of."""


def _answers(piece: _Piece, script: Script) -> dict[str, Reading]:
    inquiry = piece.inquiry
    tokens = piece.tokens // len(inquiry.questions)
    return {
        name: Reading(script(inquiry.state, question), tokens)
        for name, question in inquiry.questions.items()
    }


def _hashed(state: Text, question: Question) -> list[float]:
    """One log-weight in [0, 4) per label, from a hash of what the label would be judged by."""
    match question:
        case Noul():
            labels: list[Json] = [question.true or "yes", question.false or "no"]
        case Choice():
            labels = [[name, text] for name, text in question.options.items()]
        case Score():
            labels = list(question.levels)
    about = hashlib.blake2b(json.dumps([state, question.instructions]).encode(), digest_size=16)
    weights = []
    for label in labels:
        own = about.copy()
        own.update(json.dumps(label).encode())
        weights.append(int.from_bytes(own.digest()[:2], "big") / 16_384)
    return weights


_EVEN = tuple(i * 7919 % 97 / 24.25 for i in range(255))


def _even(_: Text, question: Question) -> Sequence[float]:
    """One log-weight in [0, 4) per label, by its place alone."""
    n = label_count(question)
    return _EVEN[:n] if n <= len(_EVEN) else [*_EVEN, *(0.0 for _ in range(n - len(_EVEN)))]


_SCRIPTS: dict[str, Script] = {"hash": _hashed, "even": _even}
