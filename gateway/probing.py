"""Asks engines the variants of questions, and collects what stands out."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from engines.contract import Inquiry, Noul, Question, Text, Unreadable
from gateway.plan import Reader
from policies.calibration import probabilities
from policies.steadiness import Answered, Shares, Steadiness, steadiness
from policies.variants import TESTS, Variant, samples, variants

_PATIENCE_S = 300.0
_AT_ONCE = 8
"""Inquiries in an engine's lane at a time."""

Told: TypeAlias = Callable[[int, int], None]
"""Told how many readings are done, and of how many."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What is asked."""

    questions: Mapping[str, Question]
    states: Sequence[Text] = ()
    """Empty = what each question's labels say of themselves."""
    twins: Mapping[str, str] = field(default_factory=dict)
    """Question id → id of the question that asks the opposite; both are noul."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How one engine stood the tests of one question."""

    engine: str
    question: str
    tests: tuple[Steadiness, ...]
    """In the order of `policies.variants.TESTS`."""
    unread: Mapping[str, int]
    """Why the engine could not read the question or a variant → how many."""

    @property
    def faults(self) -> list[str]:
        """Everything that is wrong, in words."""
        return [fault for test in self.tests for fault in test.faults]


async def probed(readers: Sequence[Reader], probe: Probe, told: Told) -> list[Verdict]:
    """A verdict per question and engine, by question, in the order of both.

    Raises:
        EngineError: an engine failed, other than by finding a question unreadable.
    """
    jobs = [_job(name, reader, probe) for name in probe.questions for reader in readers]
    total, done = sum(job.readings for job in jobs), 0

    def one_more() -> None:
        nonlocal done
        done += 1
        told(done, total)

    return [await job.verdict(one_more) for job in jobs]


@dataclass(frozen=True, slots=True)
class _Job:
    """One question to one engine."""

    name: str
    question: Question
    reader: Reader
    states: Sequence[Text]
    variants: Sequence[Variant]

    @property
    def readings(self) -> int:
        return len(self.states) * (1 + len(self.variants))

    async def verdict(self, one_more: Callable[[], None]) -> Verdict:
        same = Variant("id", self.name, self.question, ())
        asks = [(state, one) for state in self.states for one in (same, *self.variants)]
        gate = asyncio.Semaphore(_AT_ONCE)

        async def read(state: Text, variant: Variant) -> Shares | Unreadable:
            async with gate:
                found = await _read(self.reader, state, variant)
            one_more()
            return found

        found = await asyncio.gather(*(read(*ask) for ask in asks))
        unread = Counter(one.reason.value for one in found if isinstance(one, Unreadable))
        answered = self._answered(found)
        tests = [
            steadiness(test, answers)
            for test in TESTS
            if (answers := [one for one in answered if one.variant.test == test])
        ]
        return Verdict(self.reader.name, self.name, tuple(tests), dict(unread))

    def _answered(self, found: Sequence[Shares | Unreadable]) -> list[Answered]:
        """What could be read of the variants of what could be read."""
        answered, width = [], 1 + len(self.variants)
        for number in range(len(self.states)):
            original, *varied = found[number * width : (number + 1) * width]
            if isinstance(original, Unreadable):
                continue
            for variant, shares in zip(self.variants, varied, strict=True):
                if not isinstance(shares, Unreadable):
                    answered.append(Answered(number, variant, original, shares))
        return answered


def _job(name: str, reader: Reader, probe: Probe) -> _Job:
    question = probe.questions[name]
    twin = probe.questions.get(probe.twins.get(name, ""))
    opposite = twin if isinstance(twin, Noul) else None
    states = probe.states or samples(question)
    return _Job(name, question, reader, states, variants(name, question, probe.questions, opposite))


async def _read(reader: Reader, state: Text, variant: Variant) -> Shares | Unreadable:
    questions = {variant.name: variant.question, **variant.neighbours}
    try:
        readings = await reader.read(Inquiry(state, questions), patience_s=_PATIENCE_S)
    except Unreadable as error:
        return error
    return probabilities(readings[variant.name].log_weights)
