"""The five questions of the first page, answered with the numbers of reports. Knows no HTML."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Any

from gateway.config_prices import CURRENCY, PricesSection
from gateway.ledger.calendar import Windows
from gateway.ledger.decisions import Alarm, Trial
from gateway.ledger.store import Key, Store
from gateway.usage import Report, day_of, number_of, report, today_utc, usage_query
from gateway.usage_compare import Comparison, compare
from policies.limits import UNITS, WINDOWS
from policies.pricing import NANOS

PERIODS = {"7d": "7 days", "30d": "30 days", "90d": "90 days"}
"""What a page may cover, as reports take it → in words."""

NEAR = 0.8
"""Share of a budget from which on a key is said to be near its limit."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What an overview is to cover."""

    since: str
    """One of `PERIODS`."""
    now_s: float
    key_id: str | None
    """Only this key; `None` = all."""


@dataclass(frozen=True, slots=True)
class Nearness:
    """How much of a budget is used up."""

    key: str
    limit: str
    """As keys name it, e.g. `tokens_per_day`."""
    used: float
    """Settled in this window, in tokens, escalations or US dollars."""
    allowed: float
    share: float
    """Used of allowed; 1 where nothing is allowed."""
    ends_s: int
    """When the budget is full again."""


@dataclass(frozen=True, slots=True)
class Overview:
    """The reports of a period, all of one moment."""

    days: Report
    """By day, with a row for every day of the period."""
    keys: Report
    engines: Report
    why: Report
    """By reason, the most frequent first."""
    comparison: Comparison
    near: tuple[Nearness, ...]
    """Every budget, the fullest first."""
    alarms: tuple[Alarm, ...]
    """Those that hold, oldest first."""
    trials: tuple[Trial, ...]
    """Tests of promises, the most evidence against one first."""

    @property
    def questions(self) -> int:
        """Questions that were asked."""
        total = self.days["total"]
        asked: int = total["nouls"] + total["choices"] + total["scores"]
        return asked

    @property
    def cheapest(self) -> Mapping[str, Any] | None:
        """The hosted model that would have cost least; `None` = there is nothing to compare."""
        offers = [one for one in self.comparison["hosted"] if one["cost"] is not None]
        if not self.comparison["tokens"] or not offers:
            return None
        found: Mapping[str, Any] = min(offers, key=lambda one: Decimal(one["cost"]))
        return found

    @property
    def escalated_share(self) -> float:
        """Part of the questions that went up, in [0, 1]."""
        return self.days["total"]["escalated"] / self.questions if self.questions else 0.0


def overview(
    store: Store, asked: Asked, prices: PricesSection, windows: Windows, *, budgets: bool
) -> Overview:
    """The reports of a period, and every key's budgets if they are wanted; blocks.

    Raises:
        StoreError: the ledger cannot be read.
    """
    today = today_utc(asked.now_s)

    def fetch(parameters: Mapping[str, str]) -> Report:
        query = usage_query({"since": asked.since, **parameters}, today)
        return report(store, replace(query, key_id=asked.key_id), CURRENCY)

    with store.snapshot():
        days = fetch({"by": "day"})
        why = fetch({"by": "reason"})
        return Overview(
            days=_without_gaps(days),
            keys=_sorted(fetch({"by": "key"}), "tokens"),
            engines=_sorted(fetch({"by": "engine"}), "tokens"),
            why=_sorted(why, "escalated"),
            comparison=compare(lambda _: days, {}, prices, asked.now_s),
            near=nearness(store, store.every_key(), windows, asked.now_s) if budgets else (),
            alarms=tuple(store.alarms()),
            trials=tuple(sorted(store.every_trial(), key=lambda one: -one.evidence.against)),
        )


def nearness(store: Store, keys: list[Key], windows: Windows, now_s: float) -> tuple[Nearness, ...]:
    """How much of each budget of these keys is used, the fullest first; of keys in force."""
    found = []
    for key in keys:
        ended = key.expires_s is not None and key.expires_s <= now_s
        if key.revoked_s is not None or ended or not key.limits.has_budgets:
            continue
        for window, spent in zip(WINDOWS, store.spent(key.key_id, windows), strict=True):
            for unit in UNITS:
                budget = key.limits.budget(unit, window)
                if budget is None:
                    continue
                used = getattr(spent, unit)
                scale = NANOS if unit == "nanos" else 1
                found.append(
                    Nearness(
                        key.name,
                        f"{'usd' if unit == 'nanos' else unit}_per_{window}",
                        used / scale,
                        budget / scale,
                        used / budget if budget else 1.0,
                        windows.end_s(window),
                    )
                )
    return tuple(sorted(found, key=lambda one: (-one.share, one.key, one.limit)))


def _sorted(found: Report, by: str) -> Report:
    return {**found, "rows": sorted(found["rows"], key=lambda row: -row[by])}


def _without_gaps(days: Report) -> Report:
    """The report by day with a row of zeros for each day on which nothing happened."""
    there = {row["day"]: row for row in days["rows"]}
    zeros = dict.fromkeys(days["total"], 0) | {"cost": "0"}
    first = number_of(date.fromisoformat(days["since"]))
    last = number_of(date.fromisoformat(days["until"]))
    every = [day_of(number).isoformat() for number in range(first, last + 1)]
    rows = [there.get(day, {"day": day, **zeros}) for day in every]
    return {**days, "rows": rows}
