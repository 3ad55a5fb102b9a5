"""From the cheapest engine up: which question is answered where. Knows no HTTP and no SQL.

What happens to a question depends on the state, that question and, where a cap or a budget is
reached, on what was asked before; never on the questions beside it.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from engines.contract import (
    EngineError,
    Inquiry,
    Question,
    Reading,
    Unreadable,
    kind_of,
    label_count,
)
from gateway.decision import Decision, Look, Route, Spending
from gateway.errors import Problem, Refusal
from gateway.plan import Means, Plan, Tier
from policies.answers import Answer, answer, distribution
from policies.cascade import NEVER, worth_escalating
from policies.cells import cell, fingerprint
from policies.confidence import of_native
from policies.gates import gated

_LATE = Problem("late", "The larger model did not answer in time.")
_CAP_RETRY_S = 5.0
_LOWER_SHARE = 0.5
"""Of the time that is left, what an engine may take that has a better one above it."""
_LAST_WORD_S = 0.25
"""What is left of the deadline for the answer itself when the better engine is too slow."""


@dataclass(slots=True)
class _Case:
    """One question on its way."""

    question: Question
    cell: str
    fingerprint: str
    looks: list[Look] = field(default_factory=list)
    answer: Answer | None = None
    reading: Reading | None = None
    tier: int = 0
    """Of the engine whose answer it has, from 1; 0 = it has none."""
    left: str = ""
    """Why it left the first engine that did not do; empty = it never left one."""
    kept: str = ""
    """Why it has to do with the answer it has though that is not settled."""

    def leaves(self, why: str) -> None:
        """It goes up; the first reason counts."""
        self.left = self.left or why


_Cases = Mapping[str, _Case]


class Ascent:
    """One inquiry on its way through the tiers of a plan."""

    def __init__(self, inquiry: Inquiry, plan: Plan, means: Means, spending: Spending) -> None:
        self._inquiry = inquiry
        self._plan = plan
        self._tiers = plan.tiers  # as they are now: a demotion is for the next inquiry
        self._means = means
        self._spending = spending
        self._until_s = time.monotonic() + means.patience_s
        self._cases = {name: _case(question) for name, question in inquiry.questions.items()}

    async def decision(self) -> Decision:
        """Every question's answer, from the cheapest engine that can be trusted with it.

        Raises:
            EngineError: the last engine cannot read a question, or does not answer.
            Refusal: too many questions went up lately, or this caller's may not.
        """
        pending: _Cases = self._cases
        last = len(self._tiers) - 1
        if self._plan.mode != "enforce":
            for case in pending.values():
                case.leaves(self._plan.mode)
        else:
            for at in range(last):
                pending = await self._unsettled(at, pending)
                if at == 0:
                    pending = self._allowed(pending)
        if pending:
            await self._finish(pending)
        return self._decision()

    async def _unsettled(self, at: int, pending: _Cases) -> _Cases:
        """Ask a tier that has a better one above; the questions that go up."""
        tier = self._tiers[at]
        asked = self._ungated(tier, pending)
        try:
            readings = await self._read(tier, asked)
        except (EngineError, TimeoutError):  # failed, busy or slow: the better one is asked instead
            for case in asked.values():
                case.leaves("small_unavailable")
            return pending
        for name, reading in readings.items():
            self._look(at, asked[name], reading)
        return {name: case for name, case in pending.items() if not self._settled(at, case)}

    def _ungated(self, tier: Tier, pending: _Cases) -> _Cases:
        """Those that the tier may read; the others leave with the reason."""
        free = {}
        images, language = bool(self._inquiry.assets), self._inquiry.language
        for name, case in pending.items():
            why = gated(
                tier.gate, case.question, case.fingerprint, images=images, language=language
            )
            if why is None:
                free[name] = case
            else:
                case.leaves(why)
        return free

    async def _read(self, tier: Tier, asked: _Cases) -> Mapping[str, Reading]:
        """The tier's readings of what it can read; the rest leaves with the reason."""
        left = dict(asked)
        while left:
            try:
                return await self._one_read(tier, left)
            except Unreadable as error:
                for name, why in _unfit(error, left).items():
                    left.pop(name).leaves(why)
        return {}

    async def _finish(self, pending: _Cases) -> None:
        """Ask the last tier; whatever it says is the answer."""
        at = len(self._tiers) - 1
        left = dict(pending)
        while left:
            try:
                readings = await self._one_read(self._tiers[at], left, last=True)
            except Unreadable as error:
                if not self._made_do({name: left.pop(name) for name in _unfit(error, left)}):
                    raise
                continue
            except (EngineError, TimeoutError) as error:
                if self._made_do(left):
                    return
                if isinstance(error, TimeoutError):
                    raise Refusal(_LATE) from None
                raise
            for name, case in left.items():
                self._look(at, case, readings[name])
            return

    def _made_do(self, cases: _Cases) -> bool:
        """Whether the answers there are may do: the plan allows that, and all have one."""
        if self._plan.rules.on_unavailable != "small" or not all(c.tier for c in cases.values()):
            return False
        for case in cases.values():
            case.kept = "large_unavailable"
        return True

    async def _one_read(
        self, tier: Tier, cases: _Cases, *, last: bool = False
    ) -> Mapping[str, Reading]:
        """Readings of at least these questions.

        Raises:
            EngineError: see `Reader.read`.
            TimeoutError: it takes so long that there is just time for another answer, where there
                may be one: always but for the `last` engine.
        """
        whole = tier.joint or len(cases) == len(self._cases)
        inquiry = self._inquiry if whole else _part(self._inquiry, cases)
        left_s = self._until_s - time.monotonic()
        hurried_s: float | None = left_s - _LAST_WORD_S
        if not last:
            hurried_s = left_s = left_s * _LOWER_SHARE
        elif self._plan.rules.on_unavailable != "small":
            hurried_s = None
        tally = self._spending.begin(tier.name)
        try:
            async with asyncio.timeout(hurried_s):
                readings = await tier.reader.read(inquiry, patience_s=left_s, tally=tally)
        except (EngineError, TimeoutError):
            self._spending.end()
            raise
        self._spending.end(sum(reading.tokens for reading in readings.values()))
        self._plan.timed(tier.name, tally.spent_s, len(readings))
        return readings if tier.joint else {name: readings[name] for name in cases}

    def _look(self, at: int, case: _Case, reading: Reading) -> None:
        """Note what the tier says; it is the answer for now."""
        tier = self._tiers[at]
        calibration = tier.calibrations.of(case.cell, case.fingerprint)
        found = answer(case.question, reading, calibration.temperature)
        likelihood = calibration.likelihood(found.likelihood)
        case.looks.append(Look(tier.name, distribution(found), likelihood, reading.tokens))
        case.answer, case.reading, case.tier = found, reading, at + 1

    def _settled(self, at: int, case: _Case) -> bool:
        """Whether the tier's answer stays; if not, the question leaves with the reason."""
        if case.tier != at + 1 or case.reading is None:
            return False
        tier, look = self._tiers[at], case.looks[-1]
        floor, why = tier.floor(case.cell, case.fingerprint)
        cost_of_error = self._means.cost_of_error
        if cost_of_error is None:
            cost_of_error = self._plan.rules.cost_of_error
        settled = look.likelihood >= floor
        if case.reading.doubt is not None:
            settled, why = False, case.reading.doubt
        elif cost_of_error is not None and floor < NEVER:
            above = self._tiers[at + 1].name
            price = self._plan.step_cost(above, look.tokens, time.time())
            settled = not worth_escalating(look.likelihood, cost_of_error, price)
            why = "cost_of_error"
        if not settled:
            case.leaves(why)
        return settled

    def _allowed(self, pending: _Cases) -> _Cases:
        """Those that go up: all without an answer, and of the others as many as may.

        Raises:
            Refusal: some may not go, and there is no answer for them or the plan refuses then.
        """
        share, rules, most = self._plan.share, self._plan.rules, self._means.most_escalations
        unsure = sorted(
            (c.looks[-1].likelihood, c.fingerprint, n) for n, c in pending.items() if c.tier
        )
        forced = len(pending) - len(unsure)
        wanted = len(pending) if rules.on_exhausted == "refuse" else forced
        if most is not None and wanted > most:
            raise _spent(wanted, most)
        by_share = share.room(len(unsure), rules.most_share)
        by_budget = len(unsure) if most is None else most - forced
        why = "budget" if by_budget < by_share else "cap_reached"
        room = min(by_share, by_budget)
        edge = unsure[room][:2] if room < len(unsure) else (2.0, "")
        # The same question asked twice has one fate, whatever its ids are.
        stay = {name for *question, name in unsure if tuple(question) >= edge}
        if stay and why == "cap_reached" and rules.on_cap == "refuse":
            raise _capped(rules.most_share)
        for name in stay:
            pending[name].kept = why
        going = {name: case for name, case in pending.items() if name not in stay}
        share.note(len(going), len(self._cases) - len(going))
        self._spending.rise(Counter(case.left for case in going.values()))
        return going

    def _decision(self) -> Decision:
        answers, routes, natives, cuts = {}, {}, {}, {}
        for name, case in self._cases.items():
            if case.answer is None or case.reading is None:
                raise AssertionError(f"a question without an answer: {case}")  # unreachable
            tier = self._tiers[case.tier - 1]
            reason = case.kept or case.left or "confident"
            answers[name] = case.answer
            routes[name] = Route(case.tier, tier.name, reason, case.fingerprint, tuple(case.looks))
            if tier.native is not None:
                natives[name] = of_native(tier.native, case.question, case.reading.log_weights)
            if case.reading.cut is not None:
                cuts[name] = case.reading.cut
        if len(self._tiers) == 1:
            routes = {}
        steps = self._spending.so_far()
        return Decision(self._plan.model, answers, steps, cuts, routes, natives)


def _case(question: Question) -> _Case:
    return _Case(question, cell(kind_of(question), label_count(question)), fingerprint(question))


def _part(inquiry: Inquiry, cases: _Cases) -> Inquiry:
    return replace(inquiry, questions={name: case.question for name, case in cases.items()})


def _unfit(error: Unreadable, asked: _Cases) -> dict[str, str]:
    """Question id → why, of those asked; all of them where the engine named none."""
    named = {name: why.value for name, why in error.of_each.items() if name in asked}
    return named or dict.fromkeys(asked, error.reason.value)


def _capped(most_share: float) -> Refusal:
    message = (
        f"The smaller model is not sure enough, and {most_share:.0%} of the last questions went "
        "to the larger one already, which is the most that may (max_escalation_share)."
    )
    return Refusal(Problem("overloaded", message, retry_after_s=_CAP_RETRY_S))


def _spent(wanted: int, most: int) -> Refusal:
    message = (
        f"{wanted} questions are for the larger model, and this API key has {most} escalations "
        "left for now."
    )
    return Refusal(Problem("budget_exhausted", message))
