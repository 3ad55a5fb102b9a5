"""What a running gateway counts: a request pays for an addition, a scrape for the rest.

Changed on the event loop only; read from any thread. No label comes from a request: names are
those of the configuration, reasons those of the engines, and what would be one too many is `other`.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from typing import TypeVar

from engines.contract import EngineError, Unreadable
from gateway.decision import Step
from gateway.errors import Kind as ProblemKind
from gateway.errors import Refusal
from gateway.passage import STAGES, Laps, Passage
from policies.answers import Answer

BOUNDS_S = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)
"""Upper ends of the latency buckets."""

_MOST_SERIES = 500
_MOST_LAPS = 256

K = TypeVar("K")


class Histogram:
    """How many observations fell between the bounds, and their sum."""

    __slots__ = ("counts", "sum_s")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_S) + 1)
        """One per bound, and those above the last; not cumulative."""
        self.sum_s = 0.0


class Counts(dict[K, int]):
    """Key → count, for at most so many keys; `other` counts for the rest.

    On a busy path, `counts[key] += 1` and `new` on a `KeyError` cost less than `add`.
    """

    __slots__ = ("_most", "_other")

    def __init__(self, other: K, most: int = _MOST_SERIES) -> None:
        super().__init__()
        self._other = other
        self._most = most

    def new(self, key: K, n: int = 1) -> None:
        """Count a key that is not there yet `n` times."""
        known = key if len(self) < self._most else self._other
        self[known] = self.get(known, 0) + n

    def add(self, key: K, n: int = 1) -> None:
        """Count the key `n` times."""
        try:
            self[key] += n
        except KeyError:
            self.new(key, n)


class Reading:
    """What an engine has read."""

    __slots__ = ("seconds", "tokens")

    def __init__(self) -> None:
        self.tokens = 0
        self.seconds = 0.0


class Metrics:
    """Everything that is counted as it happens; what can be looked up is not here."""

    def __init__(self) -> None:
        self.begun = 0
        """Requests that came in; those not among `requests` are in progress."""
        self.requests: Counts[tuple[str, int]] = Counts(("other", 0))
        """Route and status → requests that have ended; 499 = the caller left."""
        self.questions: Counts[tuple[str, type[Answer] | None, str | None]] = Counts(
            ("other", None, "other")
        )
        """Engine, kind of answer, reason → questions answered.

        In a cascade the reason why this engine answered; otherwise why it does not vouch for the
        answer, if it does not.
        """
        self.escalations: Counts[tuple[str, str]] = Counts(("other", "other"))
        """Model, reason → questions that went up to a better engine that answered them."""
        self.read: defaultdict[str, Reading] = defaultdict(Reading)
        """Engine → what it read, also for requests that were not answered."""
        self.refusals: Counts[ProblemKind] = Counts("internal")
        self.unreadable: Counts[str] = Counts("other")
        """Reason → requests that an engine refused to read."""
        self.truncated: Counts[str] = Counts("other")
        """Engine → questions that were cut, where the operator allows it."""
        self.reloads: Counts[str] = Counts("other")
        """`done` or `failed` → how often the configuration was read again."""
        self.replayed = 0
        """Answers that were made for an earlier request."""
        self._stages = tuple(Histogram() for _ in STAGES)
        self._laps: list[Laps] = []

    def answered(self, passage: Passage, *, replayed: bool) -> None:
        """Count a decision on its way to the caller."""
        decision, laps = passage.decision, passage.laps
        if decision is None or laps is None:
            return
        self._laps.append(laps)
        if len(self._laps) >= _MOST_LAPS:
            self.stages()
        if replayed:
            self.replayed += 1
            return
        self._read(decision.steps)
        engine, routes, questions = decision.steps[-1].engine, decision.routes, self.questions
        for name, answer in decision.answers.items():
            key = (engine, type(answer), answer.doubt)
            if routes:
                route = routes[name]
                key = (route.engine, type(answer), route.reason)
            try:
                questions[key] += 1
            except KeyError:
                questions.new(key)
        if routes:
            for reason, n in decision.reasons.items():
                self.escalations.add((decision.model, reason), n)
        for name in decision.cuts:
            self.truncated.add(routes[name].engine if routes else engine)

    def _read(self, steps: Iterable[Step]) -> None:
        for step in steps:
            read = self.read[step.engine]
            read.tokens += step.tokens
            read.seconds += step.seconds

    def stages(self) -> tuple[Histogram, ...]:
        """Of each of `STAGES`, the time of the requests that were answered so far.

        On the event loop. Times are put into their buckets many at once, which takes a third of
        what it would for each request.
        """
        columns = zip(*self._laps, strict=True)
        for histogram, seconds in zip(self._stages, columns, strict=False):
            histogram.sum_s += sum(seconds)
            ordered = sorted(seconds)
            below = 0
            for bucket, bound in enumerate(BOUNDS_S):
                upto = bisect_left(ordered, bound, below)
                histogram.counts[bucket] += upto - below
                below = upto
            histogram.counts[-1] += len(ordered) - below
        self._laps.clear()
        return self._stages

    def refused(self, error: Refusal | EngineError, kind: ProblemKind) -> None:
        """Count a refusal."""
        self.refusals.add(kind)
        if isinstance(error, Unreadable):
            self.unreadable.add(error.reason.value)

    def ended(self, passage: Passage, route: str, status: int) -> None:
        """Count a request whose answer has left, or whose caller has."""
        key = (route, status)
        try:
            self.requests[key] += 1
        except KeyError:
            self.requests.new(key)
        if passage.decision is None and passage.spending is not None:
            self._read(passage.spending.so_far())
