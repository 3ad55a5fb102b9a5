"""Charges: what the ledger keeps of an answer that was read, and of one that was not."""

from datetime import date
from decimal import Decimal
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.contract import Choice, Inquiry, Noul, Question, Score
from engines.lane import Lane, rows
from engines.scripted import ScriptedEngine
from gateway.auth import ANONYMOUS
from gateway.charging import Order, Terms, row_of
from gateway.config_prices import PricesSection, TariffSection, engine_prices
from gateway.decide import decide
from gateway.decision import Step
from gateway.ledger.calendar import Calendar
from gateway.ledger.store import Charge, ChargedStep, Row
from gateway.memo import Memo
from gateway.plan import Means, Plan, Tier

PRICES = engine_prices(
    PricesSection(
        engines={
            "e": (
                TariffSection(effective=date(2026, 1, 1), usd_per_million_tokens=Decimal("0.05")),
            )
        }
    )
)
NOW_S = 1_796_000_000.0


async def charged(reader: Memo) -> Row:
    inquiry = Inquiry("three little words", {"q": Noul("Is it?")})
    plan = Plan("m", (Tier(reader),))
    decision = await decide(inquiry, plan, Means(5.0))
    order = Order(ANONYMOUS, "r", None, plan, inquiry, b"")
    terms = Terms(Calendar(), PRICES, PRICES.version)
    row = row_of(order, decision.steps, None, terms, NOW_S)
    assert row[6] == decision.tokens
    return row


@pytest.mark.parametrize(("cached", "tokens"), [("zero", 0), ("full", 3)])
async def test_a_cached_answer_costs_what_the_configuration_says_and_is_counted_as_such(
    cached: Literal["zero", "full"], tokens: int
) -> None:
    lane = Lane("e", ScriptedEngine(), rows(1), max_waiting=8)
    memo = Memo(lane, "digest", 100_000, hits_cost=cached == "full")

    first, again = await charged(memo), await charged(memo)
    lane.close(drain_s=5.0)

    assert (first[6], first[15], first[13]) == (3, 150, False)
    assert (again[6], again[15], again[13]) == (tokens, tokens * 50, True)


class Silent:
    """A reader that is never asked."""

    name = "e"

    async def read(self, *_: Any, **__: Any) -> Any:
        raise AssertionError


STEPS = st.builds(
    Step,
    st.sampled_from(["e", "e", "unpriced"]),
    st.integers(0, 10**9),
    st.one_of(st.just(0.0), st.floats(0, 1000)),
)


@given(
    steps=st.lists(STEPS, min_size=1, max_size=3),
    risen=st.dictionaries(st.sampled_from(["low_confidence", "long"]), st.integers(1, 9)),
)
def test_a_row_is_what_the_ledger_makes_of_such_a_charge(
    steps: list[Step], risen: dict[str, int]
) -> None:
    questions: dict[str, Question] = {
        "n": Noul("?"),
        "c": Choice({"a": None}),
        "s": Score(["x", "y"]),
        "m": Noul(),
    }
    plan = Plan("m", (Tier(Silent()),))
    order = Order(ANONYMOUS, "r", "alias", plan, Inquiry("s", questions), b"")
    terms = Terms(Calendar(), PRICES, PRICES.version)

    row = row_of(order, steps, risen, terms, NOW_S)

    tariffs = [PRICES.tariff(one.engine, NOW_S) for one in steps]
    pairs = zip(tariffs, steps, strict=True)
    costs = [None if tariff is None else tariff.cost(one.tokens) for tariff, one in pairs]
    nanos = None if None in costs else sum(cost or 0 for cost in costs)
    charge = Charge(
        at_s=NOW_S,
        key_id="anonymous",
        request_id="r",
        model_asked="alias",
        model_served="m",
        steps=tuple(
            ChargedStep(one.engine, one.tokens, round(one.seconds * 1e6), cost)
            for one, cost in zip(steps, costs, strict=True)
        ),
        nouls=2,
        choices=1,
        scores=1,
        status=200,
        escalated=sum(risen.values()),
        reasons=risen or None,
        cached=not any(one.seconds > 0 for one in steps),
        nanos=nanos,
        price_version=None if nanos is None else PRICES.version,
    )
    assert row == charge.row
