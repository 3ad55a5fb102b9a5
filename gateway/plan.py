"""How a model is answered: its engines, the cheapest first, and what makes it go from one up."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, TypeAlias

from engines.appetite import USUAL, Appetite
from engines.contract import Inquiry, NativeConfidence, Reading, Tally
from engines.value import value
from gateway.bound import rough_bound
from policies.cascade import NEVER, Calibrations, Floors, within_share
from policies.gates import Gate
from policies.pricing import NANOS, PriceList

Mode: TypeAlias = Literal["off", "shadow", "enforce"]
"""`off`, `shadow`: the last engine answers everything."""
OnLimit: TypeAlias = Literal["stay_small", "refuse"]

AS_IT_IS = Calibrations()
_OPEN = Gate()


class Reader(Protocol):
    """Something that reads whole inquiries: an engine behind its lane."""

    @property
    def name(self) -> str:
        """The engine's name in the configuration."""
        ...

    async def read(
        self, inquiry: Inquiry, *, patience_s: float, tally: Tally | None = None
    ) -> Mapping[str, Reading]:
        """Question id → reading for every question; see `engines.lane.Lane.read`."""
        ...


@dataclass(frozen=True, slots=True)
class Tier:
    """One engine of a plan."""

    reader: Reader
    gate: Gate = _OPEN
    calibrations: Calibrations = AS_IT_IS
    native: NativeConfidence | None = None
    joint: bool = False
    """Whether it reads all questions of an inquiry together."""
    digest: str = ""
    """Of the engine: weights, tokenizer and encoding."""
    floors: Floors = field(default_factory=Floors)
    """Which of its answers are kept; the last engine's always are."""
    no_floor: str = "no_promise"
    """Why answers below the floor `NEVER` go up."""
    demoted: frozenset[str] = frozenset()
    """Cells and fingerprints whose answers are not kept since an alarm."""
    appetite: Appetite = USUAL
    """The most tokens that it makes of an inquiry."""

    @property
    def name(self) -> str:
        """The engine's name in the configuration."""
        return self.reader.name

    def floor(self, cell: str, fingerprint: str) -> tuple[float, str]:
        """The question's floor, and why an answer below it goes up."""
        if self.demoted and (cell in self.demoted or fingerprint in self.demoted):
            return NEVER, "demoted"
        floor = self.floors.of(cell, fingerprint)
        return floor, "low_confidence" if floor < NEVER else self.no_floor


@dataclass(frozen=True, slots=True)
class Promised:
    """What a policy says about one engine, and whether that holds for the engine that is loaded."""

    floors: Floors
    suspended: str | None = None
    """Why it does not hold; `None` = it does."""
    claim: str = ""
    """What is promised, in one sentence."""

    @property
    def state(self) -> str:
        """`holds`, or `suspended: ` and why."""
        return "holds" if self.suspended is None else f"suspended: {self.suspended}"


@dataclass(frozen=True, slots=True)
class Rules:
    """What a plan does where the better engine costs too much or does not answer."""

    most_share: float = 1.0
    """Of the last questions, the most that may be answered by a better engine than the first."""
    window: int = 1000
    """How many questions back that is counted."""
    on_cap: OnLimit = "stay_small"
    on_exhausted: OnLimit = "refuse"
    on_unavailable: Literal["refuse", "small"] = "refuse"
    cost_of_error: float | None = None
    """What a wrong answer costs, in the prices' currency; `None` = floors decide."""
    cost_by_key: Mapping[str, float] = field(default_factory=dict)
    """Name of a key → what a wrong answer costs its owner."""


@value
class Means:
    """What one request may use on its way up."""

    patience_s: float
    """Until its deadline."""
    most_escalations: int | None = None
    """Questions that may go up; `None` = not limited."""
    cost_of_error: float | None = None
    """What a wrong answer costs whoever asks; `None` = as the plan says."""


_PLAIN = Rules()


class Share:
    """How many of the last questions went up. Confined to the event loop."""

    def __init__(self, window: int) -> None:
        """As if `window` questions had been kept already."""
        self._last: deque[bool] = deque([False] * window, maxlen=window)
        self._escalated = 0

    @property
    def value(self) -> float:
        """Share in [0, 1] of the window."""
        return self._escalated / len(self._last)

    def note(self, escalated: int, kept: int) -> None:
        """So many more questions went up and stayed."""
        for up in (True,) * escalated + (False,) * kept:
            self._escalated += up - self._last[0]
            self._last.append(up)

    def room(self, wanted: int, most_share: float) -> int:
        """How many of `wanted` questions may go up now."""
        return within_share(self._escalated, len(self._last), wanted, most_share)


class Plan:
    """Everything that answering for one model takes. Confined to the event loop."""

    def __init__(
        self,
        model: str,
        tiers: tuple[Tier, ...],
        *,
        mode: Mode = "enforce",
        rules: Rules = _PLAIN,
        prices: PriceList | None = None,
    ) -> None:
        """`prices` of the engines, where a wrong answer has one."""
        self.model = model
        self.tiers = tiers
        plain = tiers[0].calibrations is AS_IT_IS and tiers[0].native is None
        self.simple = plain and len(tiers) == 1
        """Whether there is nothing to choose: one engine, its probabilities as they are."""
        self.mode: Mode = mode
        self.rules = rules
        self.share = Share(rules.window)
        self.prices = prices
        self.appetites = {tier.name: tier.appetite for tier in tiers}
        self.engines = tuple(self.appetites)
        """Names of the engines, the cheapest first."""
        self.readers = self.engines if mode == "enforce" else self.engines[-1:]
        """Names of those that may read a request."""
        self.rough = rough_bound([self.appetites[name] for name in self.readers])
        self.mean_step_us: dict[str, float] = {}
        """Engine → a running mean of its time per question, in microseconds."""

    def demote(self, engine: str, what: str) -> None:
        """Keep no more answers of the engine to questions of a cell, or with a fingerprint."""
        self.tiers = tuple(
            replace(tier, demoted=tier.demoted | {what}) if tier.name == engine else tier
            for tier in self.tiers
        )

    def demote_exactly(self, demoted: Mapping[str, frozenset[str]]) -> None:
        """Keep no answers to these cells and fingerprints, by engine, but all others again."""
        self.tiers = tuple(
            replace(tier, demoted=demoted.get(tier.name, frozenset())) for tier in self.tiers
        )

    def step_cost(self, engine: str, tokens: int, at_s: float) -> float:
        """What asking the engine one question of so many tokens costs, in the prices' currency."""
        tariff = None if self.prices is None else self.prices.tariff(engine, at_s)
        if tariff is None:
            return 0.0
        return tariff.cost(tokens, round(self.mean_step_us.get(engine, 0.0))) / NANOS

    def timed(self, engine: str, seconds: float, questions: int) -> None:
        """The engine took so long for so many questions."""
        each_us = seconds * 1e6 / max(1, questions)
        mean = self.mean_step_us.get(engine, each_us)
        self.mean_step_us[engine] = mean + 0.1 * (each_us - mean)
