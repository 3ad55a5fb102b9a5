"""What can be asked of a ledger about usage: the values, and the protocol of whoever answers.

Sums cover charges that are still there and roll-ups of those that are not, as one. Days are UTC.
The three kinds of facts are not mixed: requests, engines' steps, escalations.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, get_args

By: TypeAlias = Literal["key", "model", "engine", "day", "reason"]
"""What a report can be broken down by."""

ALL_BY: tuple[By, ...] = get_args(By)

DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class UsageQuery:
    """What a report covers."""

    since_day: int
    """First day, counted from 1970-01-01 UTC."""
    until_day: int
    """Day after the last one."""
    by: tuple[By, ...] = ()
    """Breakdown, in the order of its columns; `engine` and `reason` exclude each other."""
    key_id: str | None = None
    """Only this key; `None` = all."""


@dataclass(frozen=True, slots=True)
class UsageRow:
    """Sums for one combination of the breakdown."""

    dimensions: tuple[str, ...]
    """Values in the order of `UsageQuery.by`; days as `YYYY-MM-DD`, keys by name."""
    requests: int = 0
    """By `engine`: requests that this engine read for. By `reason`: not counted."""
    cached: int = 0
    failed: int = 0
    """Answered with a status of 400 or more, 499 for callers who left."""
    tokens: int = 0
    busy_us: int = 0
    """Engine time in microseconds."""
    nouls: int = 0
    choices: int = 0
    scores: int = 0
    escalated: int = 0
    """Questions that went up."""
    nanos: int = 0
    """Cost of the requests that have a price, 1e-9 of the currency."""
    unpriced: int = 0
    """Requests that have none."""


_COMMON = ("tokens", "busy_us", "nanos", "unpriced")
_MEASURES = {
    "requests": (
        *("requests", "cached", "failed", "tokens", "busy_us"),
        *("nouls", "choices", "scores", "escalated", "nanos", "unpriced"),
    ),
    "engine": ("requests", *_COMMON),
    "reason": ("escalated",),
}


def measures(by: Sequence[By]) -> tuple[str, ...]:
    """Names of the fields of `UsageRow` that a report with this breakdown fills, in their order.

    Raises:
        ValueError: the breakdown asks for engines and reasons at once.
    """
    if "engine" in by and "reason" in by:
        raise ValueError("a report is by engine or by reason, not by both")
    kind = "engine" if "engine" in by else "reason" if "reason" in by else "requests"
    return _MEASURES[kind]


class Reports(Protocol):
    """Whoever can sum a ledger. Methods block; one thread at a time."""

    def usage(self, query: UsageQuery) -> list[UsageRow]:
        """One row per combination that occurs, sorted by the breakdown.

        Without a breakdown one row, or none if there is nothing.

        Raises:
            ValueError: the breakdown asks for engines and reasons at once.
        """
        ...
