"""Has another engine read what was answered already: one inquiry at a time, when there is room."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from engines.contract import EngineError, Inquiry, Question, Reading, Tally, Unreadable
from gateway.ledger.decisions import Glance
from gateway.plan import Tier
from policies.answers import answer, distribution

_LOG = logging.getLogger("tiergate")

_PATIENCE_S = 30.0
_DAY_S = 86_400
_MOST_WAITING_TOKENS = 2_000_000
"""What the inquiries that wait may hold together: some ten megabytes of text."""
_BYTES_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Wanted:
    """One answer that another engine is asked about."""

    decision_id: int
    fingerprint: str
    cell: str
    label: int
    """Place of the label that was answered."""
    tokens: int
    """What the engine that answered read for it."""
    kept_by: str | None = None
    """The engine that was trusted with it; `None` = none was, so that nothing is tested."""
    digest: str = ""
    """Of that engine."""
    what: str = ""
    """What its promise is about: a cell, or a fingerprint."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """What another engine is to read."""

    tier: Tier
    inquiry: Inquiry
    wanted: Mapping[str, Wanted]
    """Question id → what its answer is compared with."""
    request_id: str
    model: str
    budgeted: bool = True
    """Whether it counts against the budget of the day."""

    @property
    def tokens(self) -> int:
        """What it holds while it waits, in tokens of text."""
        images = sum(len(one.content) for one in self.inquiry.assets.values())
        return sum(one.tokens for one in self.wanted.values()) + images // _BYTES_PER_TOKEN


@dataclass(frozen=True, slots=True)
class Given:
    """What it read."""

    opinion: Opinion
    glances: Mapping[str, Glance]
    """Question id → what it makes of it; of every question that was wanted."""
    tokens: int
    spent_s: float


Took: TypeAlias = Callable[[Given], Awaitable[None]]


@dataclass(slots=True)
class Figures:
    """Counts since the start."""

    read: int = 0
    """Answers that another engine read."""
    dropped: int = 0
    """Answers for which there was no room in the queue or the budget of the day."""
    failed: int = 0
    """Answers that the other engine could not read or was too busy for."""
    agreed: Counter[str] = field(default_factory=Counter)
    """Engine whose answers were kept → how many of them the last engine gives too."""
    disagreed: Counter[str] = field(default_factory=Counter)
    """And how many it does not."""


class SecondOpinions:
    """A bounded queue and whoever works it off. Confined to the event loop."""

    def __init__(
        self,
        *,
        waiting: int,
        tokens_per_day: int,
        spent_today: int = 0,
        figures: Figures | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`spent_today`: tokens that were read before, e.g. before a restart."""
        self.figures = Figures() if figures is None else figures
        self._queue: asyncio.Queue[Opinion] = asyncio.Queue(waiting)
        self._waiting_tokens = 0
        self._most = tokens_per_day
        self._clock = clock
        self._day = self._today()
        self._spent = spent_today
        self._ratio = 1.0
        """Tokens that second opinions read for one of the first."""

    def affordable(self, tokens: int) -> bool:
        """Whether the budget of the day has room for what was answered with so many tokens."""
        return self._spent_today() + self._ratio * (self._waiting_tokens + tokens) <= self._most

    def offer(self, opinion: Opinion) -> None:
        """Have it read soon, or drop it if too much is waiting."""
        if not opinion.wanted:
            return
        full = self._waiting_tokens + opinion.tokens > _MOST_WAITING_TOKENS
        if full or self._queue.full():
            self.figures.dropped += len(opinion.wanted)
            return
        self._waiting_tokens += opinion.tokens
        self._queue.put_nowait(opinion)

    async def work(self, took: Took) -> None:
        """Read what is offered and hand over what comes of it, until cancelled."""
        while True:
            opinion = await self._queue.get()
            try:
                await self._read(opinion, took)
            finally:
                self._waiting_tokens -= opinion.tokens
                self._queue.task_done()

    async def idle(self) -> None:
        """Wait until nothing is waiting or being read."""
        await self._queue.join()

    async def _read(self, opinion: Opinion, took: Took) -> None:
        if opinion.budgeted and self._spent_today() >= self._most:
            self.figures.dropped += len(opinion.wanted)
            return
        tally = Tally()
        wanted, readings = await self._readings(opinion, tally)
        self.figures.failed += len(opinion.wanted) - len(wanted)
        tokens = sum(one.tokens for one in readings.values()) if readings else tally.tokens
        if opinion.budgeted:
            self._spent_today()
            self._spent += tokens
            self._learn(sum(one.tokens for one in wanted.values()), tokens)
        if not wanted:
            return
        questions, tier = opinion.inquiry.questions, opinion.tier
        glances = {
            name: glance(tier, questions[name], one, readings[name]) for name, one in wanted.items()
        }
        self._count(wanted, glances)
        given = Given(replace(opinion, wanted=wanted), glances, tokens, tally.spent_s)
        await took(given)

    async def _readings(
        self, opinion: Opinion, tally: Tally
    ) -> tuple[dict[str, Wanted], Mapping[str, Reading]]:
        """What could be read of what was wanted, and what came of it."""
        tier, whole, wanted = opinion.tier, opinion.inquiry, dict(opinion.wanted)
        while wanted:
            asked = whole if tier.joint else replace(whole, questions=_part(whole, wanted))
            try:
                readings = await tier.reader.read(asked, patience_s=_PATIENCE_S, tally=tally)
            except Unreadable as error:
                unread = wanted.keys() & error.of_each.keys()
                for name in unread or set(wanted):
                    del wanted[name]
                if tier.joint:
                    wanted.clear()
            except EngineError as error:
                _LOG.debug("no second opinion: %s", error)
                return {}, {}
            else:
                return wanted, readings
        return {}, {}

    def _count(self, wanted: Mapping[str, Wanted], glances: Mapping[str, Glance]) -> None:
        self.figures.read += len(wanted)
        for name, one in wanted.items():
            if one.kept_by is not None:
                same = glances[name].label == one.label
                counts = self.figures.agreed if same else self.figures.disagreed
                counts[one.kept_by] += 1

    def _learn(self, before: int, tokens: int) -> None:
        if before and tokens:
            self._ratio += 0.1 * (tokens / before - self._ratio)

    def _spent_today(self) -> int:
        if (today := self._today()) != self._day:
            self._day, self._spent = today, 0
        return self._spent

    def _today(self) -> int:
        return int(self._clock() // _DAY_S)


def glance(tier: Tier, question: Question, wanted: Wanted, reading: Reading) -> Glance:
    """What the tier makes of a question, with probabilities as it would report them."""
    calibration = tier.calibrations.of(wanted.cell, wanted.fingerprint)
    found = answer(question, reading, calibration.temperature)
    likelihood = calibration.likelihood(found.likelihood)
    return Glance(tier.name, reading.tokens, likelihood, distribution(found))


def _part(inquiry: Inquiry, wanted: Mapping[str, Wanted]) -> dict[str, Question]:
    return {name: inquiry.questions[name] for name in wanted}
