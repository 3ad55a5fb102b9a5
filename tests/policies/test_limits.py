"""Rates and budgets, by tables and by laws."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.limits import (
    Amounts,
    Exhausted,
    Limits,
    arrival_after,
    exhausted,
    paced,
    refunded,
    spare,
)

counts = st.integers(0, 10_000)


def test_a_minutes_worth_passes_at_once_and_then_one_per_interval() -> None:
    arrival_s = 0.0
    passed = []
    for now_s in (100.0, 100.0, 100.0, 100.0, 119.9, 120.0, 120.0):
        pace = paced(arrival_s, now_s, per_minute=3)
        arrival_s = pace.arrival_s
        passed.append(pace.wait_s == 0)

    assert passed == [True, True, True, False, False, True, False]


@settings(deadline=None)
@given(
    per_minute=st.integers(1, 1000),
    gaps_s=st.lists(st.floats(0, 10), min_size=1, max_size=80),
    costs=st.lists(st.integers(1, 50), min_size=80, max_size=80),
)
def test_no_minute_has_more_than_twice_its_worth(
    per_minute: int, gaps_s: list[float], costs: list[int]
) -> None:
    now_s, arrival_s, passed = 1000.0, 0.0, []
    for gap_s, cost in zip(gaps_s, costs, strict=False):
        now_s += gap_s
        cost = min(cost, per_minute)  # noqa: PLW2901 - what costs more passes alone
        pace = paced(arrival_s, now_s, per_minute, cost)
        if pace.wait_s == 0:
            arrival_s = pace.arrival_s
            passed.append((now_s, cost))

    for begin_s, _ in passed:
        within = sum(cost for at_s, cost in passed if begin_s <= at_s < begin_s + 60)
        assert within <= 2 * per_minute + 1


def test_who_waits_as_told_passes() -> None:
    arrival_s = paced(0.0, 50.0, 10, cost=10).arrival_s

    told = paced(arrival_s, 50.0, 10, cost=4)

    assert told.wait_s == pytest.approx(24.0)
    assert paced(arrival_s, 50.0 + told.wait_s, 10, cost=4).wait_s == 0


def test_more_than_a_minutes_worth_passes_alone_and_takes_as_long_to_recover() -> None:
    first = paced(0.0, 50.0, 10, cost=25)

    assert first.wait_s == 0
    assert first.remaining == 0
    assert first.full_s == pytest.approx(150.0)
    assert paced(first.arrival_s, 50.0, 10).wait_s == pytest.approx(96.0)


def test_zero_a_minute_never_passes() -> None:
    assert paced(0.0, 50.0, 0).wait_s == math.inf
    assert refunded(7.0, 0, 3) == 7.0


def test_what_is_refunded_can_be_used_again() -> None:
    full = paced(0.0, 50.0, 10, cost=10).arrival_s

    assert paced(refunded(full, 10, 4), 50.0, 10, cost=4).wait_s == 0
    assert paced(refunded(full, 10, 4), 50.0, 10, cost=5).wait_s > 0


@pytest.mark.parametrize(
    ("limits", "wanted", "found"),
    [
        (Limits(), Amounts(10**9, 10**9, 10**9), None),
        (Limits(tokens_per_day=100), Amounts(tokens=60), None),
        (
            Limits(tokens_per_day=100),
            Amounts(tokens=61),
            Exhausted("tokens", "day", 100, 30, 10, 61),
        ),
        (
            Limits(tokens_per_day=100, tokens_per_month=99),
            Amounts(tokens=30),
            Exhausted("tokens", "month", 99, 70, 10, 30),
        ),
        (Limits(tokens_per_day=0), Amounts(tokens=1), Exhausted("tokens", "day", 0, 30, 10, 1)),
        (Limits(escalations_per_day=0), Amounts(tokens=5), None),
        (
            Limits(escalations_per_day=0),
            Amounts(escalations=1),
            Exhausted("escalations", "day", 0, 0, 0, 1),
        ),
        (Limits(nanos_per_month=5), Amounts(nanos=6), Exhausted("nanos", "month", 5, 0, 0, 6)),
    ],
)
def test_the_first_budget_without_room_is_named(
    limits: Limits, wanted: Amounts, found: Exhausted | None
) -> None:
    day, month, held = Amounts(tokens=30), Amounts(tokens=70), Amounts(tokens=10)
    if limits.tokens_per_day is not None and limits.tokens_per_month is None:
        month = day

    assert exhausted(limits, day, month, held, wanted) == found


@settings(deadline=None)
@given(limit=st.integers(0, 10**7), used=counts, held=counts, wanted=st.integers(1, 10_000))
def test_what_is_spare_leaves_nearly_all_of_the_rest_to_others(
    limit: int, used: int, held: int, wanted: int
) -> None:
    limits, spent, holding = Limits(tokens_per_day=limit), Amounts(used), Amounts(held)
    if exhausted(limits, spent, spent, holding, Amounts(wanted)) is not None:
        return

    more = spare(limits, spent, spent, holding, Amounts(wanted))

    assert more == 0 or more >= 16
    assert more * wanted <= (limit - used - held) / 64


@settings(deadline=None)
@given(st.lists(st.tuples(counts, st.floats(0, 1), st.integers(0, 3)), max_size=60), counts)
def test_no_order_of_holding_and_settling_overspends(
    calls: list[tuple[int, float, int]], limit: int
) -> None:
    limits, used, flying = Limits(tokens_per_day=limit), 0, list[tuple[int, int]]()
    for bound, share, lands in calls:
        held = Amounts(sum(one for one, _ in flying))
        spent = Amounts(used)
        if exhausted(limits, spent, spent, held, Amounts(bound)) is None:
            flying.append((bound, round(bound * share)))
        for _ in range(min(lands, len(flying))):
            used += flying.pop(0)[1]
        assert used <= limit

    assert used + sum(actual for _, actual in flying) <= limit


def test_amounts_multiply_each_unit() -> None:
    assert Amounts(4, 5, 6).times(2) == Amounts(8, 10, 12)


def test_only_budgets_are_budgets() -> None:
    assert not Limits(rpm=1, tpm=1).has_budgets
    assert Limits(escalations_per_month=0).has_budgets


@given(
    arrival_s=st.floats(0, 2_000),
    now_s=st.floats(900, 1_100),
    per_minute=st.integers(0, 1000),
    cost=st.integers(1, 3000),
)
def test_the_short_answer_is_the_long_one(
    arrival_s: float, now_s: float, per_minute: int, cost: int
) -> None:
    pace = paced(arrival_s, now_s, per_minute, cost)

    after_s = arrival_after(arrival_s, now_s, per_minute, cost)

    assert after_s == (None if pace.wait_s else pace.arrival_s)
