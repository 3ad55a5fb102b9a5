"""Replaying: a policy does to the log what it did, and what nobody knows is said to be unknown."""

import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.engine_costs import EngineCosts
from gateway.ledger.decisions import Glance, Logged
from gateway.replaying import Chosen, Proposal, as_logged, chosen, replayed
from policies.calibration import Calibration, probabilities
from policies.cascade import NEVER, Calibrations, Floors
from policies.cells import CELLS
from policies.pricing import PriceList, Tariff
from tests.gateway.ledger.decided import decided

ENGINES = ("small", "large")
COSTS = EngineCosts(
    PriceList("USD", {"small": (Tariff(0, 1_000_000),), "large": (Tariff(0, 9_000_000),)})
)
"""A nano a token, and nine."""


def at(floor: float, **more: Any) -> Proposal:
    return Proposal(ENGINES, {"small": Floors(floor)}, **more)


def look(engine: str, p: float, label: int = 0, tokens: int = 10) -> Glance:
    """An engine that gives the label at this place of two the probability `p`, at least 0.5."""
    shares = (p, 1 - p) if label == 0 else (1 - p, p)
    return Glance(engine, tokens, p, shares)


def made(p: float, floor: float, large: int = 0, **changes: Any) -> Logged:
    """What a cascade with this floor logs when the small engine is so sure of the first label."""
    small, other = look("small", p), look("large", 0.9, large, tokens=30)
    if p >= floor:
        return decided(looks=(small,), **changes)
    up: dict[str, Any] = {"tier": 2, "engine": "large", "reason": "low_confidence"} | changes
    return decided(looks=(small, other), **up)


@given(st.lists(st.floats(0.5, 1.0), max_size=30), st.floats(0.0, 1.0))
def test_the_policy_that_was_in_force_is_replayed_as_it_was(ps: list[float], floor: float) -> None:
    rows = [made(p, floor) for p in ps]

    again = [chosen(one, at(floor)) for one in rows]

    assert again == [as_logged(one) for one in rows]
    assert replayed(rows, again, ENGINES, COSTS) == replayed(
        rows, [as_logged(one) for one in rows], ENGINES, COSTS
    )


@given(st.lists(st.floats(0.5, 1.0), min_size=1, max_size=30), st.floats(0, 1), st.floats(0, 1))
def test_a_higher_floor_escalates_no_fewer(ps: list[float], one: float, other: float) -> None:
    rows = [made(p, 0.8) for p in ps]
    low, high = sorted((one, other))

    few, many = (
        sum(by is not None and by.tier == 2 for by in (chosen(row, at(f)) for row in rows))
        for f in (low, high)
    )

    assert few <= many


def test_what_the_last_engine_would_have_said_is_unknown_where_it_was_not_asked() -> None:
    kept, drawn = (
        made(0.85, 0.8),
        made(0.85, 0.8, shadow=look("large", 0.7, 1), drawn=True, sampling=0.1),
    )

    assert chosen(kept, at(0.9)) == Chosen(2, None)
    assert chosen(drawn, at(0.9)) == Chosen(2, drawn.shadow)


def test_floors_do_not_decide_about_what_a_gate_sent_up() -> None:
    gated = decided(tier=2, engine="large", reason="too_long", looks=(look("large", 0.9),))
    doubted = decided(
        tier=2,
        engine="large",
        reason="not_competent",
        looks=(look("small", 0.99), look("large", 0.9)),
    )

    assert [one.tier for row in (gated, doubted) if (one := chosen(row, at(0.0)))] == [2, 2]


def test_where_the_small_engine_was_not_asked_nobody_knows_who_would_have_answered() -> None:
    row = decided(tier=2, engine="large", reason="small_unavailable", looks=(look("large", 0.9),))

    found = replayed([row], [chosen(row, at(0.5))], ENGINES, COSTS)

    assert (found.decisions, found.undecided, found.escalated.share) == (1, 1, None)


def test_engines_without_a_promise_keep_nothing() -> None:
    row = made(0.99, 0.8)

    assert chosen(row, Proposal(ENGINES, {})) == Chosen(2, None)
    assert chosen(row, at(NEVER)) == Chosen(2, None)


def test_shares_have_intervals_and_unknowns_are_counted() -> None:
    rows = [made(0.9, 0.8) for _ in range(60)] + [made(0.7, 0.8, large=n % 2) for n in range(40)]

    found = replayed(rows, [chosen(one, at(0.6)) for one in rows], ENGINES, COSTS)

    assert (found.kept, found.escalated.share) == (100, 0.0)
    assert (found.agreement.share, found.agreement.known, found.unknown) == (0.5, 40, 60)
    assert found.agreement.interval.low < 0.5 < found.agreement.interval.high


def test_answers_whose_truth_was_told_are_right_wrong_or_unknown() -> None:
    rows = [made(0.9, 0.8, truth=0), made(0.9, 0.8, truth=1), made(0.7, 0.8, large=1, truth=1)]

    low = replayed(rows, [chosen(one, at(0.6)) for one in rows], ENGINES, COSTS)
    high = replayed(rows, [chosen(one, at(0.95)) for one in rows], ENGINES, COSTS)

    assert (low.right.share, low.right.known, low.unknown_right) == (1 / 3, 3, 0)
    assert (high.right.share, high.right.known, high.unknown_right) == (1.0, 1, 2)


def test_tokens_that_nobody_read_are_estimated_and_said_to_be() -> None:
    rows = [made(0.7, 0.8), made(0.9, 0.8)]  # the large engine reads three times as much

    found = replayed(rows, [chosen(one, at(0.95)) for one in rows], ENGINES, COSTS)

    assert found.spent.tokens == {"small": 20, "large": 30}
    assert found.spent.estimated == {"large": 30}
    assert found.spent.nanos == 20 + 9 * 60
    assert found.spent.each is not None
    assert found.spent.each.low == found.spent.each.high == 280


def test_an_engine_without_a_price_makes_the_whole_unpriced() -> None:
    rows = [made(0.9, 0.8)]

    found = replayed(rows, [as_logged(rows[0])], ENGINES, EngineCosts(PriceList("USD", {})))

    assert (found.spent.nanos, found.spent.each) == (None, None)


def test_drawn_answers_stand_for_those_that_were_not_drawn() -> None:
    """Half of the log was drawn at 0.5, half at 0.05; disagreement differs: weights matter."""
    rng, rows = random.Random(3), []
    for number in range(8000):
        often = number % 2 == 0
        sampling, disagree = (0.5, 0.02) if often else (0.05, 0.22)
        wrong, drawn = rng.random() < disagree, rng.random() < sampling
        shadow = look("large", 0.9, int(wrong), 30) if drawn else None
        rows.append(made(0.9, 0.8, sampling=sampling, drawn=drawn, shadow=shadow))

    found = replayed(rows, [as_logged(one) for one in rows], ENGINES, COSTS).agreement

    assert found.share == pytest.approx(0.88, abs=0.03)
    assert found.interval.low < 0.88 < found.interval.high
    assert found.interval.high - found.interval.low > 2 * 1.96 * math.sqrt(
        0.88 * 0.12 / found.known
    )


@given(
    st.lists(st.floats(-5, 0), min_size=2, max_size=6),
    st.sampled_from([0.5, 1.0, 2.0]),
    st.sampled_from([0.5, 1.0, 3.0]),
)
def test_logged_probabilities_are_brought_to_another_temperature(
    weights: list[float], made_at: float, wanted: float
) -> None:
    shares = tuple(probabilities(weights, made_at))
    look_ = Glance("small", 1, max(shares), shares)
    row = decided(kind="choice", labels=len(shares), looks=(look_,))
    knots = ((0.0, 0.0), (1.0, 0.5))
    where = {"small": Calibrations(dict.fromkeys(CELLS, Calibration(made_at)))}
    there = {"small": Calibrations(dict.fromkeys(CELLS, Calibration(wanted, knots)))}

    found = at(0.5, before=where, after=there).likelihood(row, row.looks[0])

    assert found == pytest.approx(max(probabilities(weights, wanted)) / 2, rel=2e-3)
