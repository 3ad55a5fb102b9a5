"""What a cascade decided, as it is kept: numbers and digests of one question, no text."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, TypeAlias

from engines.contract import Choice, Kind, Question
from policies.sequential import Evidence

AlarmKind: TypeAlias = Literal["disagreement", "model_changed", "drift"]


class Glance(NamedTuple):
    """What one engine made of a question."""

    engine: str
    tokens: int
    likelihood: float
    """Calibrated probability in [0, 1] that its likeliest label is right; steps of 1e-6."""
    probabilities: tuple[float, ...]
    """In label order, steps of 1e-6."""

    @property
    def label(self) -> int:
        """Place of the likeliest label, the first on ties."""
        return self.probabilities.index(max(self.probabilities))


class Logged(NamedTuple):
    """One question of one request, answered by a model with several engines."""

    decision_id: int
    """Rises with time."""
    at_s: float
    key_id: str
    request_id: str
    question: bytes
    """See `question_digest`."""
    model: str
    fingerprint: str
    kind: Kind
    labels: int
    tier: int
    """Of the engine that answered, 1 = the cheapest."""
    engine: str
    reason: str
    looks: tuple[Glance, ...]
    """Of every engine that read it before the answer, the cheapest first."""
    sampling: float = 0.0
    """Probability of a second opinion at that moment; 0 = none was wanted."""
    drawn: bool = False
    """Whether the lot fell on it."""
    shadow: Glance | None = None
    """The second opinion, if there is one."""
    truth: int | None = None
    """Place of the true label, if told."""


class Asked(NamedTuple):
    """A question as the log knows it."""

    fingerprint: str
    labels: bytes
    """See `label_digests`."""
    seen_s: float


@dataclass(frozen=True, slots=True)
class Period:
    """Which decisions are wanted."""

    since_s: float = 0.0
    until_s: float = float("inf")
    """Exclusive."""
    model: str | None = None
    """`None` = all."""
    latest: int | None = None
    """Only so many, the latest; `None` = all."""


class Trial(NamedTuple):
    """How the sequential test of one promise stands."""

    engine: str
    what: str
    """A cell, or a fingerprint."""
    digest: str
    """Of the engine that is trial."""
    since_s: float
    evidence: Evidence


class Alarm(NamedTuple):
    """Something that a person must see to."""

    kind: AlarmKind
    engine: str
    what: str
    message: str
    at_s: float
    alarm_id: int = 0
    """0 = not in the store yet."""
    cleared_s: float | None = None


class DecisionLog(Protocol):
    """The part of a store that keeps what cascades decided, and what came of watching them."""

    def log_decisions(self, decisions: Sequence[Logged], asked: Sequence[Asked]) -> None:
        """Append decisions, and the questions that were asked for the first time that day."""
        ...

    def log_shadow(self, decision_id: int, shadow: Glance) -> None:
        """Add a second opinion; for a decision that is not there any more, nothing."""
        ...

    def decisions_of(self, key_id: str, request_id: str, at_most: int) -> list[Logged]:
        """Decisions of a key's requests of that id, the latest first."""
        ...

    def decisions_since(
        self, key_id: str, request_id: str, since_s: float, at_most: int
    ) -> list[Logged]:
        """Decisions of a key's requests of that id, the first of them from `since_s` on first."""
        ...

    def label_digests(self, fingerprint: str) -> tuple[bytes, ...]:
        """See the function of that name; empty = the question is not known."""
        ...

    def tell_truth(self, decision_id: int, truth: int, at_s: float) -> None:
        """Note the place of the true label; what was told before is replaced."""
        ...

    def decisions(self, period: Period) -> Iterable[Logged]:
        """Every decision of the period, oldest first, one at a time."""
        ...

    def shadow_tokens(self, since_s: float) -> int:
        """What second opinions on decisions since then have read."""
        ...

    def forget_decisions(self, before_s: float, at_most: int) -> int:
        """Delete the oldest decisions made before; how many."""
        ...

    def engine_seen(self, engine: str, digest: str, at_s: float) -> str | None:
        """Note that this engine answers; the digest it had before, if that was another."""
        ...

    def engine_changes(self, since_s: float) -> list[tuple[str, str, float]]:
        """Engine, digest and when it first answered, for every change since then, oldest first."""
        ...

    def trial(self, engine: str, what: str) -> Trial | None:
        """How a test stands; `None` = it has not begun."""
        ...

    def every_trial(self) -> list[Trial]:
        """How every trial stands."""
        ...

    def keep_trial(self, trial: Trial) -> None:
        """Keep how a test stands now."""
        ...

    def forget_trial(self, engine: str, what: str) -> None:
        """Begin this test anew."""
        ...

    def raise_alarm(self, alarm: Alarm) -> bool:
        """Whether it is new: one of the same kind, engine and subject may hold already."""
        ...

    def alarms(self, *, cleared: bool = False) -> list[Alarm]:
        """Every alarm that holds, oldest first; with `cleared` also those that do not."""
        ...

    def clear_alarm(self, alarm_id: int, at_s: float) -> Alarm | None:
        """End an alarm; it as it was, or `None` = none of that number holds."""
        ...


def question_digest(request_id: str, question: str) -> bytes:
    """Eight bytes by which a question of a request is found again from its id."""
    return _digest(request_id, question)


def label_digests(fingerprint: str, question: Question) -> bytes:
    """Eight bytes for each option of a choice, by which it is found again from its name.

    Empty for other kinds: their labels are numbers, or yes and no.
    """
    if not isinstance(question, Choice):
        return b""
    return b"".join(label_digest(fingerprint, name) for name in question.options)


def label_digest(fingerprint: str, option: str) -> bytes:
    """Eight bytes that stand for an option of the question with this fingerprint."""
    return _digest(fingerprint, option)


def _digest(salt: str, text: str) -> bytes:
    exact = f"{salt}\0{text}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(exact).digest()[:8]
