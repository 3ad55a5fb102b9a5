"""What another policy would have done with the decisions that were logged.

What an engine would have said where it was not asked is unknown, and counted as unknown.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from gateway.engine_costs import EngineCosts
from gateway.ledger.decisions import Glance, Logged
from policies.binomial import Interval, wilson
from policies.calibration import Calibration
from policies.cascade import Calibrations, Floors
from policies.cells import cell

_BY_FLOOR = frozenset(
    (
        *("confident", "low_confidence", "no_promise", "suspended", "demoted", "cap_reached"),
        *("budget", "large_unavailable", "cost_of_error", "shadow", "off"),
    )
)
"""Reasons that leave the floors to decide; with any other a question goes up whatever they are."""

_UNASKED = frozenset({"small_unavailable", "pinned"})
"""Reasons why a cheaper engine did not read a question that it could have read."""

_Z = 1.959964
"""Of the normal distribution, for intervals of probability 0.95."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A policy to try."""

    engines: tuple[str, ...]
    """Of the model, the cheapest first."""
    floors: Mapping[str, Floors]
    """Engine → its floors."""
    before: Mapping[str, Calibrations] = field(default_factory=dict)
    """Engine → what the logged probabilities were made with."""
    after: Mapping[str, Calibrations] | None = None
    """Engine → what they are to be made with; `None` = the same."""

    def likelihood(self, one: Logged, look: Glance) -> float:
        """Of the look's likeliest label, under the proposed calibration, in [0, 1]."""
        if self.after is None:
            return look.likelihood
        where = (cell(one.kind, one.labels), one.fingerprint)
        made = self.before.get(look.engine, Calibrations()).of(*where)
        wanted = self.after.get(look.engine, Calibrations()).of(*where)
        return wanted.likelihood(_top(look.probabilities, made, wanted))


@dataclass(frozen=True, slots=True)
class Chosen:
    """Who answers a question."""

    tier: int
    """From 1."""
    look: Glance | None
    """What it says; `None` = unknown."""


Choice: TypeAlias = Chosen | None
"""`None` = nobody knows who would have answered."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A share in [0, 1], and where it lies with probability 0.95."""

    share: float | None
    """`None` = nothing is known."""
    interval: Interval
    known: int
    """Decisions that it rests on."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What the decisions take."""

    tokens: Mapping[str, int]
    """Engine → tokens that are known."""
    estimated: Mapping[str, int]
    """Engine → tokens of readings that did not happen."""
    nanos: int | None
    """Of both; `None` = an engine has no price."""
    each: Interval | None
    """Where the mean cost of a decision lies with probability 0.95, in nano-dollars."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a policy does with decisions."""

    decisions: int
    undecided: int
    """Nobody knows who would have answered: a cheaper engine was not asked."""
    escalated: Estimate
    """Of those where it is known."""
    kept: int
    """Answered by another engine than the last."""
    agreement: Estimate
    """Of the kept answers, those that are the last engine's too."""
    unknown: int
    """Kept answers of which the last engine's is unknown."""
    right: Estimate
    """Of the known answers whose truth was told."""
    unknown_right: int
    """Decisions whose truth was told, but whose answer is unknown."""
    spent: Spent


def chosen(one: Logged, proposal: Proposal) -> Choice:
    """Who would have answered under the proposal."""
    known = _known(one)
    forced = one.reason not in _BY_FLOOR
    where = (cell(one.kind, one.labels), one.fingerprint)
    for tier, engine in enumerate(proposal.engines[:-1], 1):
        look = known.get(engine)
        if look is None:
            if one.reason in _UNASKED:
                return None
            continue  # a gate, or the engine itself, kept the question from it
        floor = proposal.floors.get(engine, Floors()).of(*where)
        if not forced and proposal.likelihood(one, look) >= floor:
            return Chosen(tier, look)
    return Chosen(len(proposal.engines), known.get(proposal.engines[-1]))


def as_logged(one: Logged) -> Choice:
    """Who did answer."""
    return Chosen(one.tier, _known(one).get(one.engine))


def replayed(
    decisions: Sequence[Logged],
    choices: Sequence[Choice],
    engines: tuple[str, ...],
    costs: EngineCosts,
) -> Replayed:
    """The sums over decisions and who answers them, in the same order."""
    pairs = [(one, by) for one, by in zip(decisions, choices, strict=True) if by is not None]
    kept = [(one, by) for one, by in pairs if by.tier < len(engines)]
    compared = [_compared(one, by, engines[-1]) for one, by in kept]
    known = [pair for pair in compared if pair is not None]
    told = [(by.look, one.truth) for one, by in pairs if one.truth is not None]
    right = [(1.0, look.label == truth) for look, truth in told if look is not None]
    return Replayed(
        decisions=len(decisions),
        undecided=len(decisions) - len(pairs),
        escalated=_estimate([(1.0, by.tier > 1) for _, by in pairs]),
        kept=len(kept),
        agreement=_estimate(known),
        unknown=len(kept) - len(known),
        right=_estimate(right),
        unknown_right=len(told) - len(right),
        spent=_spent(pairs, engines, costs),
    )


def _known(one: Logged) -> dict[str, Glance]:
    """Engine → what it said, at the time or afterwards."""
    looks = one.looks if one.shadow is None else (*one.looks, one.shadow)
    return {look.engine: look for look in looks}


def _compared(one: Logged, by: Chosen, last: str) -> tuple[float, bool] | None:
    """How many decisions this one stands for, and whether both engines say the same.

    One that was drawn with probability π stands for 1/π of them (Horvitz & Thompson, Journal of
    the American Statistical Association 47, 1952). `None` = unknown.
    """
    other = _known(one).get(last)
    if by.look is None or other is None:
        return None
    drawn = one.shadow is not None and one.shadow.engine == last and one.sampling > 0
    return (1.0 / one.sampling if drawn else 1.0), by.look.label == other.label


def _estimate(weighed: Sequence[tuple[float, bool]]) -> Estimate:
    """The weighted share of hits, and Wilson's interval at the effective number of trials."""
    total = math.fsum(weight for weight, _ in weighed)
    if not weighed:
        return Estimate(None, Interval(0.0, 1.0), 0)
    share = math.fsum(weight for weight, hit in weighed if hit) / total
    effective = total**2 / math.fsum(weight**2 for weight, _ in weighed)
    return Estimate(share, wilson(share * effective, effective), len(weighed))


def _spent(
    pairs: Sequence[tuple[Logged, Chosen]], engines: tuple[str, ...], costs: EngineCosts
) -> Spent:
    """Every engine up to the one that answers reads, unless something kept the question from it."""
    tokens: dict[str, int] = {}
    estimated: dict[str, int] = {}
    ratio = _ratio([one for one, _ in pairs], engines)
    each: list[float] = []
    unpriced = False
    for one, by in pairs:
        known, nanos = _known(one), 0
        for engine in engines[: by.tier]:
            look = known.get(engine)
            if look is not None:
                read = look.tokens
                tokens[engine] = tokens.get(engine, 0) + read
            elif engine == engines[by.tier - 1]:
                read = round(ratio * max([other.tokens for other in known.values()], default=0))
                estimated[engine] = estimated.get(engine, 0) + read
            else:
                continue
            cost = costs.nanos(engine, read, one.at_s)
            unpriced = unpriced or cost is None
            nanos += cost or 0
        each.append(float(nanos))
    if unpriced:
        return Spent(tokens, estimated, None, None)
    return Spent(tokens, estimated, round(math.fsum(each)), _mean(each))


def _ratio(decisions: Sequence[Logged], engines: tuple[str, ...]) -> float:
    """Tokens that the last engine reads for one of a cheaper engine's; 1 where nobody knows."""
    below = above = 0
    for one in decisions:
        known = _known(one)
        last = known.pop(engines[-1], None)
        if last is not None and known:
            below += max(look.tokens for look in known.values())
            above += last.tokens
    return above / below if below else 1.0


def _mean(values: Sequence[float]) -> Interval | None:
    """Where the mean lies, by the central limit theorem; `None` = fewer than two values."""
    n = len(values)
    if n < 2:
        return None
    mean = math.fsum(values) / n
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1) / n)
    return Interval(max(0.0, mean - _Z * spread), mean + _Z * spread)


def _top(shares: Sequence[float], made: Calibration, wanted: Calibration) -> float:
    """The largest probability at another temperature.

    `p ∝ w^(1/T)`, so `p^(T/T')` is proportional to what T' gives. A logged 0 is less than half a
    millionth and taken as that.
    """
    power = made.temperature / wanted.temperature
    if power == 1.0:
        return max(shares)
    logs = [power * math.log(max(share, 5e-7)) for share in shares]
    top = max(logs)
    return 1.0 / math.fsum(math.exp(one - top) for one in logs)
