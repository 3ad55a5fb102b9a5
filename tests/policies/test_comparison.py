"""Owning against hosted models: bills by day, idle time as a lower bound, the break-even."""

import pytest

from policies.comparison import Traffic, cheapest, hosted, owned
from policies.pricing import NANOS, PriceList, Tariff

DAY_S = 86_400
PRICES = PriceList(
    "USD",
    {
        "moving": (Tariff(0, 40_000_000), Tariff(12 * DAY_S, 80_000_000)),
        "late": (Tariff(11 * DAY_S, 10_000_000),),
        "free": (Tariff(0),),
    },
)
NOW_S = 13.5 * DAY_S


def traffic(tokens: dict[int, int], busy_us: int = 0, hours: float = 72.0) -> Traffic:
    return Traffic(tokens, busy_us, hours)


def test_each_day_is_billed_at_its_own_price() -> None:
    moving, late, free = hosted(PRICES, [], traffic({11: 10**6, 12: 2 * 10**6}), NOW_S)

    assert moving.nanos == 40_000_000 + 2 * 80_000_000
    assert late.nanos == 30_000_000
    assert free.nanos == 0


@pytest.mark.parametrize(("tokens", "nanos"), [(1, None), (0, 10_000_000)])
def test_a_day_with_traffic_and_no_price_leaves_the_bill_unpriced(
    tokens: int, nanos: int | None
) -> None:
    offers = hosted(PRICES, [], traffic({10: tokens, 11: 10**6}), NOW_S)

    assert offers[1].nanos == nanos


def test_machines_cost_the_whole_period_and_are_idle_for_what_engines_leave() -> None:
    mine = owned([NANOS // 2, NANOS], traffic({11: 1}, busy_us=36 * 3600 * 10**6))

    assert (mine.machines, mine.hours, mine.nanos) == (2, 144.0, 72 * 1_500_000_000)
    assert mine.idle_share == pytest.approx(0.75)


def test_more_engine_time_than_hours_leaves_no_idle_share_below_zero() -> None:
    assert owned([NANOS], traffic({1: 1}, busy_us=10**15)).idle_share == 0.0
    assert owned([], traffic({1: 1})).idle_share is None


def test_the_break_even_is_at_todays_price_and_never_for_a_free_model() -> None:
    moving, _, free = hosted(PRICES, [NANOS], traffic({11: 1}), NOW_S)

    assert moving.break_even_tokens_per_day == pytest.approx(24 / 0.08 * 1e6)
    assert free.break_even_tokens_per_day is None
    assert hosted(PRICES, [], traffic({11: 1}), NOW_S)[0].break_even_tokens_per_day is None


def test_the_cheapest_is_one_with_a_price() -> None:
    offers = hosted(PRICES, [], traffic({10: 10**6}), NOW_S)

    best = cheapest([offers[0], offers[1]])
    assert best is not None
    assert best.model == "moving"
    assert cheapest([offers[1]]) is None
