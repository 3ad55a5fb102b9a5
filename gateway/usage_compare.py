"""What the traffic of a period would have cost on hosted models, in numbers and one sentence."""

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any, TypeAlias

from gateway.config_prices import CURRENCY, PricesSection, hosted_prices, nanos
from gateway.usage import Fetch, Report, money, number_of
from policies.comparison import Hosted, Owned, Traffic, cheapest, hosted, owned

Comparison: TypeAlias = dict[str, Any]
"""JSON; see docs/accounting.md."""

NOTE = (
    "Tokens are those that engines here read: twice for a question that went up and, by default, "
    "none for an answer from the memo. A hosted model has a tokenizer of its own and may read a "
    "state once per question, so its own bill can differ, in either direction."
)

_DAY_S = 86_400


def compare(
    fetch: Fetch, parameters: Mapping[str, str], prices: PricesSection, now_s: float
) -> Comparison:
    """The comparison for `since` and `until` of `parameters`.

    The period begins with the first day that has traffic and ends now at the latest.

    Raises:
        ValueError, StoreError: as `fetch` raises them.
    """
    report = fetch({**parameters, "by": "day"})
    traffic = traffic_of(report, now_s)
    hours = [nanos(machine.usd_per_hour) for machine in prices.machines.values()]
    mine = owned(hours, traffic)
    offers = hosted(hosted_prices(prices), hours, traffic, now_s)
    tokens = sum(traffic.tokens_by_day.values())
    per_day = tokens / (traffic.hours / 24) if traffic.hours else 0.0
    return {
        "since": report["since"],
        "until": report["until"],
        "currency": CURRENCY,
        "hours": round(traffic.hours, 3),
        "tokens": tokens,
        "tokens_per_day": round(per_day),
        "engine_hours": round(traffic.busy_us / 3_600_000_000, 6),
        "owned": {
            "machines": mine.machines,
            "machine_hours": round(mine.hours, 3),
            "cost": money(mine.nanos) if mine.machines else None,
            "idle_share_at_least": mine.idle_share,
        },
        "hosted": [
            {
                "model": offer.model,
                "cost": None if offer.nanos is None else money(offer.nanos),
                "break_even_tokens_per_day": offer.break_even_tokens_per_day,
            }
            for offer in offers
        ],
        "verdict": verdict(tokens, per_day, mine, offers),
        "note": NOTE,
    }


def traffic_of(report: Report, now_s: float) -> Traffic:
    """What a report by day says about tokens, engine time and the length of the period."""
    tokens = {number_of(date.fromisoformat(row["day"])): row["tokens"] for row in report["rows"]}
    if not tokens:
        return Traffic({}, 0, 0.0)
    end = number_of(date.fromisoformat(report["until"])) + 1
    hours = max(0.0, min(end * _DAY_S, now_s) - min(tokens) * _DAY_S) / 3600
    return Traffic(tokens, round(report["total"]["seconds"] * 1e6), hours)


def verdict(tokens: int, per_day: float, mine: Owned, offers: Sequence[Hosted]) -> str:
    """One plain sentence: what would have been cheaper, by how much, and from where on it turns."""
    if not tokens:
        return "There was no traffic in this period, so there is nothing to compare."
    best = cheapest(offers)
    if best is None or best.nanos is None:
        return "No hosted model has a price for the whole period, so there is nothing to compare."
    if not mine.machines:
        return (
            f"Hosted {best.model}, the cheapest, would have cost {dollars(best.nanos)}; what "
            "owning costs is not known, because there is no [prices.machines]."
        )
    if mine.nanos <= best.nanos:
        return (
            f"Owning was cheaper: the machines cost {dollars(mine.nanos)}, hosted {best.model}, "
            f"the cheapest, would have cost {dollars(best.nanos - mine.nanos)} more."
        )
    said = (
        f"Hosted {best.model} would have cost {dollars(mine.nanos - best.nanos)} less: "
        f"{dollars(best.nanos)} instead of the {dollars(mine.nanos)} that the machines cost"
    )
    if best.break_even_tokens_per_day is None:
        return f"{said}."
    return (
        f"{said}; owning pays from {best.break_even_tokens_per_day:,.0f} tokens a day on, "
        f"there were {per_day:,.0f}."
    )


def dollars(amount: int) -> str:
    """Nanos as dollars and cents; smaller amounts with the digits that count."""
    usd = amount / 1e9
    return f"${usd:,.2f}" if usd >= 0.1 or not amount else f"${Decimal(f'{usd:.2g}'):f}"
