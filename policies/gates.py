"""What must not reach an engine, however sure it would be. Looked at before anything is read.

A gate looks at the state and one question, never at its neighbours. What only the engine can
count, as tokens, it refuses itself: see `engines.contract.Unreadable`.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from engines.contract import Kind, Question, kind_of, label_count

GateReason: TypeAlias = Literal[
    "images", "language", "too_many_options", "not_competent", "known_bad"
]


@dataclass(frozen=True, slots=True)
class Gate:
    """What one engine is trusted with."""

    images: bool = False
    """Whether it can see."""
    languages: frozenset[str] | None = None
    """Primary subtags as `en`; `None` = every language."""
    max_options: int | None = None
    """Most options of a choice; `None` = as many as it reads."""
    not_competent: frozenset[Kind] = frozenset()
    """Kinds that it does not vouch for."""
    known_bad: frozenset[str] = frozenset()
    """Fingerprints of questions that it is known to be bad at."""


def gated(
    gate: Gate, question: Question, fingerprint: str, *, images: bool, language: str | None
) -> GateReason | None:
    """Why the question is not for the engine; `None` = it may read it.

    `images`: whether the inquiry has any. `language`: the asker's hint, as `de-AT`; without one
    the engine finds out by itself.
    """
    if images and not gate.images:
        return "images"
    if gate.languages is not None and language and _primary(language) not in gate.languages:
        return "language"
    kind = kind_of(question)
    most = gate.max_options
    if most is not None and kind == "choice" and label_count(question) > most:
        return "too_many_options"
    if kind in gate.not_competent:
        return "not_competent"
    return "known_bad" if fingerprint in gate.known_bad else None


def _primary(language: str) -> str:
    return language.replace("_", "-").split("-", 1)[0].strip().lower()
