"""What a cascade does when the better engine fails, costs too much or was asked too often."""

import pytest

from engines.contract import (
    Broken,
    Busy,
    EngineError,
    Inquiry,
    Noul,
    Question,
    Reading,
    Reason,
    Tally,
)
from gateway.decide import decide
from gateway.decision import Spending
from gateway.errors import Refusal
from gateway.plan import Means, Plan, Rules, Share, Tier
from policies.cascade import Floors
from policies.pricing import PriceList, Tariff
from tests.gateway.test_cascade import ASK, Says, decided, plan, reasons, small


@pytest.mark.parametrize("error", [Busy("full", retry_after_s=1.0), Broken("x")])
async def test_a_small_engine_that_fails_is_left_out(error: EngineError) -> None:
    decision = await decided(plan(small(error=error), Says("large")))

    assert decision.reasons == {"small_unavailable": 3}


@pytest.mark.parametrize("error", [Busy("full", retry_after_s=1.0), Broken("x")])
async def test_a_large_engine_that_fails_is_an_error_unless_the_small_answer_may_do(
    error: EngineError,
) -> None:
    with pytest.raises(type(error)):
        await decided(plan(small(), Says("large", error=error)))

    kept = await decided(
        plan(small(), Says("large", error=error), rules=Rules(on_unavailable="small"))
    )

    assert reasons(kept)["unsure"] == (1, "large_unavailable")
    assert reasons(kept)["sure"] == (1, "confident")
    assert kept.reasons == {}


async def test_without_a_small_answer_the_error_stands() -> None:
    chosen = plan(
        small(unfit={"odd?": Reason.TOO_LONG}),
        Says("large", error=Broken("x")),
        rules=Rules(on_unavailable="small"),
    )

    with pytest.raises(Broken):
        await decided(chosen)


async def test_a_large_engine_that_is_too_slow_counts_as_unavailable() -> None:
    chosen = plan(small(), Says("large", hang=True), rules=Rules(on_unavailable="small"))

    decision = await decided(chosen, patience_s=0.3)

    assert reasons(decision)["unsure"] == (1, "large_unavailable")


async def test_a_small_engine_that_hangs_leaves_the_better_one_half_of_the_time() -> None:
    hung = small(hang=True)

    decision = await decided(plan(hung, Says("large")), patience_s=0.4)

    assert decision.reasons == {"small_unavailable": 3}
    assert [step.engine for step in decision.steps][-1] == "large"


async def test_a_wrong_answer_has_a_price() -> None:
    prices = PriceList("USD", {"large": (Tariff(0, 10**9),)})  # 10 tokens for 0.00001

    def priced(cost_of_error: float) -> Plan:
        tiers = (Tier(small(), floors=Floors(0.8)), Tier(Says("large")))
        return Plan("m", tiers, rules=Rules(cost_of_error=cost_of_error), prices=prices)

    cheap = await decided(priced(0.00001))
    dear = await decided(priced(0.01))
    own = await decided(priced(0.01), cost_of_error=0.0)

    assert cheap.reasons == {}
    assert dear.reasons == {"cost_of_error": 3}
    assert own.reasons == {}


async def test_no_more_than_the_share_goes_up() -> None:
    chosen = plan(small(), Says("large"), rules=Rules(most_share=0.2, window=10))

    first = [await decided(chosen) for _ in range(3)]

    assert [reasons(one)["unsure"] for one in first] == [
        (2, "low_confidence"),
        (2, "low_confidence"),
        (1, "cap_reached"),
    ]
    assert chosen.share.value == pytest.approx(0.2)


async def test_the_least_sure_go_up_first() -> None:
    ask: dict[str, Question] = {f"q{i}": Noul(f"{i}?") for i in range(4)}
    first = Says("small", {f"{i}?": 0.51 + 0.05 * i for i in range(4)})

    decision = await decided(
        plan(first, Says("large"), rules=Rules(most_share=0.2, window=10)), ask
    )

    assert [route.tier for route in decision.routes.values()] == [2, 2, 1, 1]


async def test_the_cap_may_refuse() -> None:
    chosen = plan(small(), Says("large"), rules=Rules(most_share=0.0, on_cap="refuse"))

    with pytest.raises(Refusal) as refused:
        await decided(chosen)

    assert refused.value.problem.status == 529


async def test_the_cap_never_keeps_what_the_small_engine_cannot_read() -> None:
    chosen = plan(
        small(unfit={"odd?": Reason.TOO_LONG}), Says("large"), rules=Rules(most_share=0.0)
    )

    decision = await decided(chosen)

    assert reasons(decision)["odd"] == (2, "too_long")
    assert reasons(decision)["unsure"] == (1, "cap_reached")


async def test_a_callers_own_escalations_are_counted() -> None:
    stay = Rules(on_exhausted="stay_small")

    kept = await decided(plan(small(), Says("large"), rules=stay), most_escalations=0)
    gone = await decided(plan(small(), Says("large"), rules=stay), most_escalations=1)

    assert reasons(kept)["unsure"] == (1, "budget")
    assert reasons(gone)["unsure"] == (2, "low_confidence")
    for rules, first in ((Rules(), small()), (stay, small(unfit={"odd?": Reason.TOO_LONG}))):
        with pytest.raises(Refusal) as refused:
            await decided(plan(first, Says("large"), rules=rules), most_escalations=0)
        assert refused.value.problem.status == 429


async def test_what_went_up_counts_from_the_moment_a_better_engine_begins_to_read() -> None:
    class Reads(Says):
        async def read(
            self, inquiry: Inquiry, *, patience_s: float, tally: Tally | None = None
        ) -> dict[str, Reading]:
            assert tally is not None
            tally.tokens += 10
            raise Broken("after it had begun")

    begun, refused = Spending(), Spending()

    for last, spending in ((Reads("large"), begun), (Says("large", error=Broken("x")), refused)):
        with pytest.raises(Broken):
            await decide(Inquiry("s", ASK), plan(small(), last), Means(5.0), spending)

    assert begun.risen == {"low_confidence": 1}
    assert refused.risen == {}


async def test_the_same_question_under_two_ids_has_one_fate() -> None:
    ask: dict[str, Question] = {"a": Noul("unsure?"), "b": Noul("unsure?")}

    decision = await decided(
        plan(small(), Says("large"), rules=Rules(on_exhausted="stay_small")),
        ask,
        most_escalations=1,
    )

    assert {route.tier for route in decision.routes.values()} == {1}


async def test_what_was_read_before_an_error_is_known() -> None:
    spending = Spending()

    with pytest.raises(Broken):
        await decide(
            Inquiry("s", ASK), plan(small(), Says("large", error=Broken("x"))), Means(5.0), spending
        )

    assert [(step.engine, step.tokens) for step in spending.so_far()] == [("small", 30)]


def test_the_share_forgets_what_is_out_of_the_window() -> None:
    share = Share(4)

    share.note(2, 1)
    assert share.value == 0.5
    share.note(0, 2)

    assert share.value == 0.25
    assert share.room(5, 0.5) == 1
