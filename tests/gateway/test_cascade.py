"""Which engine answers which question, and why; with readers that say what they are told."""

import asyncio
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.contract import (
    Asset,
    Choice,
    EngineError,
    Inquiry,
    Noul,
    Question,
    Reading,
    Reason,
    Tally,
    Unreadable,
)
from gateway.decide import decide
from gateway.decision import Decision
from gateway.plan import Means, Plan, Rules, Tier
from policies.calibration import Calibration
from policies.cascade import Calibrations, Floors
from policies.cells import fingerprint
from policies.gates import Gate

AT_80, PLAIN = Floors(0.8), Rules()
ASK: Mapping[str, Question] = {
    "sure": Noul("sure?"),
    "unsure": Noul("unsure?"),
    "odd": Choice({"a": None, "b": None, "c": None}, "odd?"),
}


def weights(p: float, labels: int = 2) -> list[float]:
    """Log-weights that give the first label the probability `p`, and the others equal shares."""
    return [math.log(p), *[math.log((1 - p) / (labels - 1))] * (labels - 1)]


@dataclass
class Says:
    """A reader that gives the first label the probability that `sure` says, by instructions."""

    name: str
    sure: Mapping[str, float] = field(default_factory=dict)
    otherwise: float = 0.99
    unfit: Mapping[str, Reason] = field(default_factory=dict)
    error: EngineError | None = None
    doubt: str | None = None
    hang: bool = False
    asked: list[set[str]] = field(default_factory=list)

    async def read(
        self, inquiry: Inquiry, *, patience_s: float, tally: Tally | None = None
    ) -> dict[str, Reading]:
        self.asked.append(set(inquiry.questions))
        if self.hang:
            await asyncio.Event().wait()
        if self.error is not None:
            raise self.error
        refused = {
            name: self.unfit[str(one.instructions)]
            for name, one in inquiry.questions.items()
            if str(one.instructions) in self.unfit
        }
        if refused:
            first, reason = next(iter(refused.items()))
            error = Unreadable("no", reason=reason, question=first)
            error.of_each = refused
            raise error
        return {name: self._reading(one) for name, one in inquiry.questions.items()}

    def _reading(self, question: Question) -> Reading:
        p = self.sure.get(str(question.instructions), self.otherwise)
        labels = 3 if isinstance(question, Choice) else 2
        return Reading(weights(p, labels), 10, self.doubt)


def small(**changes: Any) -> Says:
    return Says("small", {"unsure?": 0.6}, **changes)


def plan(
    first: Says, last: Says, floors: Floors = AT_80, rules: Rules = PLAIN, **more: Any
) -> Plan:
    tiers = (Tier(first, floors=floors, **more), Tier(last))
    return Plan("m", tiers, rules=rules)


async def decided(chosen: Plan, ask: Mapping[str, Question] = ASK, **means: Any) -> Decision:
    inquiry = Inquiry("a state", ask)
    return await decide(inquiry, chosen, Means(**{"patience_s": 5.0} | means))


def reasons(decision: Decision) -> dict[str, tuple[int, str]]:
    return {name: (route.tier, route.reason) for name, route in decision.routes.items()}


async def test_only_what_is_unsettled_goes_up() -> None:
    large = Says("large")

    decision = await decided(plan(small(), large))

    assert large.asked == [{"unsure"}]
    assert reasons(decision) == {
        "sure": (1, "confident"),
        "unsure": (2, "low_confidence"),
        "odd": (1, "confident"),
    }
    assert [(step.engine, step.tokens) for step in decision.steps] == [("small", 30), ("large", 10)]
    assert decision.reasons == {"low_confidence": 1}
    assert [look.engine for look in decision.routes["unsure"].looks] == ["small", "large"]
    assert decision.routes["unsure"].looks[0].likelihood == pytest.approx(0.6, abs=1e-5)


async def test_answers_keep_the_askers_order() -> None:
    decision = await decided(plan(small(), Says("large")))

    assert list(decision.answers) == list(ASK)
    assert list(decision.routes) == list(ASK)


async def test_a_floor_may_be_about_one_question() -> None:
    floors = Floors(0.8, by_question={fingerprint(ASK["unsure"]): 0.5})

    decision = await decided(plan(small(), Says("large"), floors))

    assert decision.reasons == {}


async def test_without_a_promise_every_answer_goes_up() -> None:
    decision = await decided(plan(small(), Says("large"), Floors()))

    assert decision.reasons == {"no_promise": 3}


async def test_a_calibration_decides_how_sure_an_answer_is() -> None:
    knots = ((0.5, 0.5), (1.0, 0.7))
    over_confident = Calibrations({"noul": Calibration(knots=knots)})

    decision = await decided(plan(small(), Says("large"), calibrations=over_confident))

    assert reasons(decision)["sure"] == (2, "low_confidence")
    assert reasons(decision)["odd"] == (1, "confident")


async def test_what_an_engine_cannot_read_goes_up_with_the_engines_reason() -> None:
    first = small(unfit={"sure?": Reason.TOO_LONG, "odd?": Reason.OPTIONS_CUT})

    decision = await decided(plan(first, Says("large"), Floors(0.5)))

    assert first.asked == [set(ASK), {"unsure"}]
    assert reasons(decision) == {
        "sure": (2, "too_long"),
        "unsure": (1, "confident"),
        "odd": (2, "options_cut"),
    }


async def test_a_gated_question_is_never_shown_to_the_engine() -> None:
    first = small()

    decision = await decided(plan(first, Says("large"), gate=Gate(max_options=2)))

    assert first.asked == [{"sure", "unsure"}]
    assert reasons(decision)["odd"] == (2, "too_many_options")


async def test_images_go_to_the_engine_that_sees() -> None:
    first, last = small(), Says("large")
    inquiry = Inquiry("<image:1>", ASK, {"<image:1>": Asset("image/png", b"")})

    decision = await decide(inquiry, plan(first, last), Means(5.0))

    assert first.asked == []
    assert decision.reasons == {"images": 3}


async def test_what_the_engine_itself_doubts_is_not_kept() -> None:
    decision = await decided(plan(small(doubt="truncated"), Says("large")))

    assert decision.reasons == {"truncated": 3}


async def test_the_last_engine_is_told_as_it_is() -> None:
    with pytest.raises(Unreadable) as refused:
        await decided(plan(small(), Says("large", unfit={"unsure?": Reason.TOO_LONG})))

    assert refused.value.question == "unsure"


@pytest.mark.parametrize("mode", ["off", "shadow"])
async def test_in_other_modes_the_last_engine_answers_everything(mode: Any) -> None:
    first, last = small(), Says("large")
    chosen = Plan("m", (Tier(first, floors=Floors(0.8)), Tier(last)), mode=mode)

    decision = await decided(chosen)

    assert first.asked == []
    assert reasons(decision) == dict.fromkeys(ASK, (2, mode))
    assert decision.reasons == {}


async def test_a_joint_engine_gets_the_whole_inquiry_and_changes_no_settled_answer() -> None:
    first, last = small(), Says("large", otherwise=0.01)
    chosen = Plan("m", (Tier(first, floors=Floors(0.8)), Tier(last, joint=True)))

    decision = await decided(chosen)

    assert last.asked == [set(ASK)]
    assert reasons(decision)["sure"] == (1, "confident")
    assert decision.steps[-1].tokens == 30
    assert decision.answers["sure"].likelihood == pytest.approx(0.99, abs=1e-5)


async def test_a_question_may_climb_more_than_one_tier() -> None:
    middle = Says("middle", {"unsure?": 0.7, "odd?": 0.7})
    tiers = (
        Tier(small(doubt="not_competent"), floors=Floors(0.8)),
        Tier(middle, floors=Floors(0.8)),
        Tier(Says("large")),
    )

    decision = await decided(Plan("m", tiers))

    assert reasons(decision) == {
        "sure": (2, "not_competent"),
        "unsure": (3, "not_competent"),
        "odd": (3, "not_competent"),
    }
    assert [step.engine for step in decision.steps] == ["small", "middle", "large"]


async def test_a_demoted_cell_is_not_kept_from_the_next_inquiry_on() -> None:
    chosen = plan(small(), Says("large"))
    chosen.demote("small", "noul")

    decision = await decided(chosen)

    assert reasons(decision)["sure"] == (2, "demoted")
    assert reasons(decision)["odd"] == (1, "confident")


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.floats(0.5, 0.999), min_size=1),
    st.floats(0.5, 1.0),
    st.randoms(use_true_random=False),
)
def test_neighbours_and_order_change_no_route(
    sure: dict[str, float], floor: float, shuffled: Any
) -> None:
    def routes(names: list[str]) -> dict[str, tuple[int, str]]:
        ask: dict[str, Question] = {name: Noul(name) for name in names}
        first = Says("small", sure, unfit={"c": Reason.LANGUAGE})
        return reasons(asyncio.run(decided(plan(first, Says("large"), Floors(floor)), ask)))

    names = list(sure)
    together = routes(names)
    shuffled.shuffle(names)

    assert routes(names) == together
    for name in names:
        assert routes([name]) == {name: together[name]}
