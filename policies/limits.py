"""How fast and how much: a rate (GCRA) and budgets. Pure; the clock is an argument.

The rate is the generic cell rate algorithm (ATM Forum TM 4.1, 1999, section 4.4.2) with a cost
per cell: one number per key, the theoretical arrival time, says everything.
"""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

Unit: TypeAlias = Literal["tokens", "escalations", "nanos"]
Window: TypeAlias = Literal["day", "month"]

UNITS: tuple[Unit, ...] = ("tokens", "escalations", "nanos")
WINDOWS: tuple[Window, ...] = ("day", "month")


@dataclass(frozen=True, slots=True)
class Limits:
    """What a key may use. `None` = not limited; 0 = nothing."""

    rpm: int | None = None
    """Requests per minute."""
    tpm: int | None = None
    """Tokens per minute."""
    tokens_per_day: int | None = None
    tokens_per_month: int | None = None
    escalations_per_day: int | None = None
    escalations_per_month: int | None = None
    nanos_per_day: int | None = None
    """Money, in 1e-9 of the currency."""
    nanos_per_month: int | None = None

    def budget(self, unit: Unit, window: Window) -> int | None:
        """The budget of one unit for one window."""
        value: int | None = getattr(self, f"{unit}_per_{window}")
        return value

    @property
    def counts_money(self) -> bool:
        """Whether there is a budget of money."""
        return self.nanos_per_day is not None or self.nanos_per_month is not None

    @property
    def counts_escalations(self) -> bool:
        """Whether there is a budget of questions that go up."""
        return self.escalations_per_day is not None or self.escalations_per_month is not None

    @property
    def has_budgets(self) -> bool:
        """Whether anything but the rate is limited."""
        return any(self.budget(unit, window) is not None for unit in UNITS for window in WINDOWS)


UNLIMITED = Limits()


class Amounts(NamedTuple):
    """Something in each unit that a budget can be set for; never negative."""

    tokens: int = 0
    escalations: int = 0
    nanos: int = 0

    def times(self, n: int) -> "Amounts":
        """Each unit `n` times."""
        return Amounts(self.tokens * n, self.escalations * n, self.nanos * n)


NOTHING = Amounts()


@dataclass(frozen=True, slots=True)
class Exhausted:
    """The first budget that does not have room."""

    unit: Unit
    window: Window
    limit: int
    used: int
    """Settled in this window, without what is in progress."""
    held: int
    """Upper bounds of what is in progress."""
    wanted: int


def exhausted(
    limits: Limits, day: Amounts, month: Amounts, held: Amounts, wanted: Amounts
) -> Exhausted | None:
    """The budget that `wanted` does not fit into; `None` = it fits into all.

    It fits when used + held + wanted ≤ limit; what needs nothing of a unit always fits its budgets.
    """
    for window, spent in zip(WINDOWS, (day, month), strict=True):
        for unit in UNITS:
            limit = limits.budget(unit, window)
            if limit is None:
                continue
            used, holding, want = getattr(spent, unit), getattr(held, unit), getattr(wanted, unit)
            if want > 0 and used + holding + want > limit:
                return Exhausted(unit, window, limit, used, holding, want)
    return None


def spare(limits: Limits, day: Amounts, month: Amounts, held: Amounts, wanted: Amounts) -> int:
    """How many times `wanted` may be held on top of itself, so that the next need not ask.

    At most 1/64 of what is left, at most 4096 times, and nothing (0) where that is less than 16
    times: close to its end a budget is asked about each request.
    """
    times = _MOST_SPARE * _SPARE_SHARE
    for window, spent in zip(WINDOWS, (day, month), strict=True):
        for unit in UNITS:
            limit, want = limits.budget(unit, window), getattr(wanted, unit)
            if limit is not None and want > 0:
                left = limit - getattr(spent, unit) - getattr(held, unit) - want
                times = min(times, left // want)
    times //= _SPARE_SHARE
    return times if times >= _LEAST_SPARE else 0


_SPARE_SHARE, _LEAST_SPARE, _MOST_SPARE = 64, 16, 4096


class Pace(NamedTuple):
    """What a rate says to one cell."""

    arrival_s: float
    """The key's theoretical arrival time from now on; unchanged when the cell has to wait."""
    wait_s: float
    """Seconds until the cell would pass; 0 = it passes, infinite = it never does."""
    remaining: int
    """Cells of cost 1 that would still pass now."""
    full_s: float
    """Seconds until nothing is used up any more."""


def paced(arrival_s: float, now_s: float, per_minute: int, cost: int = 1) -> Pace:
    """Whether a cell of `cost` passes at `now_s`, by GCRA with a burst of one minute's worth.

    `arrival_s` is what the last `Pace` said, 0 at first. A cell that costs more than a minute's
    worth passes when nothing is used up; the time it takes to recover is as long as it cost.
    """
    if per_minute == 0:
        return Pace(arrival_s, math.inf, 0, math.inf)
    each_s = _BURST_S / per_minute
    begin_s = arrival_s if arrival_s > now_s else now_s
    needed_s = (cost if cost < per_minute else per_minute) * each_s
    wait_s = begin_s + needed_s - now_s - _BURST_S
    if wait_s > _NOISE_S:
        after_s = begin_s
    else:
        arrival_s = after_s = begin_s + cost * each_s
        wait_s = 0.0
    left = int((_BURST_S - (after_s - now_s)) / each_s + _NOISE_S)
    return Pace(arrival_s, wait_s, left if left > 0 else 0, after_s - now_s)


def arrival_after(arrival_s: float, now_s: float, per_minute: int, cost: int = 1) -> float | None:
    """The arrival time after a cell that passes; `None` = it has to wait, and `paced` says how.

    The same decision as `paced`, without the rest of what it says.
    """
    if arrival_s <= now_s and 0 < cost <= per_minute:  # nothing is used up
        return now_s + cost * (_BURST_S / per_minute)
    if per_minute == 0:
        return None
    begin_s = arrival_s if arrival_s > now_s else now_s
    each_s = _BURST_S / per_minute
    needed_s = (cost if cost < per_minute else per_minute) * each_s
    if begin_s + needed_s - now_s - _BURST_S > _NOISE_S:
        return None
    return begin_s + cost * each_s


def refunded(arrival_s: float, per_minute: int, cost: int) -> float:
    """The arrival time after `cost` cells turned out not to be needed."""
    return arrival_s - cost * _BURST_S / per_minute if per_minute else arrival_s


_BURST_S = 60.0
_NOISE_S = 1e-6
"""Sums of sixtieths of minutes are not exact."""
