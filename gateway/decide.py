"""The use case: an inquiry and a plan, to a decision. Knows no HTTP and no SQL."""

from engines.contract import Cut, Inquiry
from gateway.cascade import Ascent
from gateway.decision import Decision, Spending
from gateway.plan import Means, Plan
from policies.answers import Answer, answer


async def decide(
    inquiry: Inquiry, plan: Plan, means: Means, spending: Spending | None = None
) -> Decision:
    """Every question's answer; `spending` grows in any case.

    Raises:
        EngineError: no engine of the plan answers; see `engines.lane.Lane.read`.
        Refusal: see `Ascent.decision`.
    """
    spent = Spending() if spending is None else spending
    if not plan.simple:
        return await Ascent(inquiry, plan, means, spent).decision()
    reader = plan.tiers[0].reader
    tally = spent.begin(reader.name)
    readings = await reader.read(inquiry, patience_s=means.patience_s, tally=tally)
    tokens = 0
    answers: dict[str, Answer] = {}
    cuts: dict[str, Cut] = {}
    for name, question in inquiry.questions.items():
        reading = readings[name]
        tokens += reading.tokens
        answers[name] = answer(question, reading)
        if reading.cut is not None:
            cuts[name] = reading.cut
    spent.end(tokens)
    return Decision(plan.model, answers, tuple(spent.steps), cuts)
