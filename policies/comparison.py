"""What the same traffic would have cost elsewhere, and whether owning pays. Pure arithmetic.

The tokens are this gateway's: a hosted model has its own tokenizer and reads a state its own
number of times, so that its bill for the same traffic differs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from policies.pricing import PriceList, break_even_tokens

_DAY_S = 86_400
_HOUR_US = 3600 * 10**6


@dataclass(frozen=True, slots=True)
class Traffic:
    """What was done in a period."""

    tokens_by_day: Mapping[int, int]
    """Day, counted from 1970-01-01 UTC → tokens read."""
    busy_us: int
    """Engine time in microseconds, of all engines together."""
    hours: float
    """Length of the period."""


@dataclass(frozen=True, slots=True)
class Owned:
    """What the machines cost in the period, working or idle."""

    machines: int
    hours: float
    """Machine hours."""
    nanos: int
    idle_share: float | None
    """Least part of the machine hours, 0 to 1, in which no engine worked; `None` = no machine."""


@dataclass(frozen=True, slots=True)
class Hosted:
    """What a hosted model would have cost for the same tokens."""

    model: str
    nanos: int | None
    """`None` = it has no price for some day of the traffic."""
    break_even_tokens_per_day: float | None
    """From here on owning is cheaper; `None` = never, or nothing is owned, or it has no price."""


def owned(hour_nanos: Sequence[int], traffic: Traffic) -> Owned:
    """The bill for machines that cost so many nanos an hour each."""
    hours = traffic.hours * len(hour_nanos)
    idle = None
    if hours > 0:
        idle = max(0.0, 1.0 - traffic.busy_us / _HOUR_US / hours)
    return Owned(len(hour_nanos), hours, round(sum(hour_nanos) * traffic.hours), idle)


def hosted(
    prices: PriceList, hour_nanos: Sequence[int], traffic: Traffic, now_s: float
) -> tuple[Hosted, ...]:
    """Every hosted model of the price list, in its order; break-even at the prices of `now_s`."""
    return tuple(_hosted(name, prices, sum(hour_nanos), traffic, now_s) for name in prices.tariffs)


def _hosted(
    name: str, prices: PriceList, hour_nanos: int, traffic: Traffic, now_s: float
) -> Hosted:
    nanos: int | None = 0
    for day, tokens in traffic.tokens_by_day.items():
        tariff = prices.tariff(name, day * _DAY_S)
        if tariff is None:
            nanos = None if tokens else nanos
        elif nanos is not None:
            nanos += tariff.cost(tokens)
    current = prices.tariff(name, now_s)
    even = None
    if current is not None and hour_nanos > 0:
        even = break_even_tokens(current, hour_nanos, hours=24)
    return Hosted(name, nanos, even)


def cheapest(offers: Sequence[Hosted]) -> Hosted | None:
    """The hosted model with the lowest bill; `None` = none has a price for all of the traffic."""
    priced = [offer for offer in offers if offer.nanos is not None]
    return min(priced, key=lambda offer: offer.nanos or 0, default=None)
