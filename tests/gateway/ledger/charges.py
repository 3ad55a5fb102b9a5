"""Charges for tests: by hand, at random, and summed without SQL."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from gateway.ledger.reports import DAY_S, By, UsageRow, measures
from gateway.ledger.store import Charge, ChargedStep

DAY = 20_789
"""2026-12-02."""

NAMES = {"k_1": "support", "k_2": "triage"}
"""Keys in the store of the tests; `config/ops` is one of the configuration."""


def charge_of(**changes: Any) -> Charge:
    """A request of `k_1` at noon that one engine answered for 10 tokens and 420 nanos."""
    return Charge(**(_USUAL | changes))


_USUAL: dict[str, Any] = {
    "at_s": (DAY + 0.5) * DAY_S,
    "key_id": "k_1",
    "request_id": "r",
    "model_asked": "jev-latest",
    "model_served": "starter",
    "steps": (ChargedStep("starter", 10, 2_500, 420),),
    "nouls": 1,
    "choices": 2,
    "scores": 0,
    "status": 200,
    "nanos": 420,
    "price_version": "abcd1234",
}


def _random(**changes: Any) -> Charge:
    """A charge that costs what its steps do."""
    costs = [step.nanos for step in changes["steps"]]
    priced = [cost for cost in costs if cost is not None]
    return charge_of(nanos=sum(priced) if len(priced) == len(costs) else None, **changes)


_STEPS = st.builds(
    ChargedStep,
    engine=st.sampled_from(["starter", "large"]),
    tokens=st.integers(0, 10**6),
    busy_us=st.integers(0, 10**7),
    nanos=st.none() | st.integers(0, 10**9),
)

CHARGES = st.builds(
    _random,
    at_s=st.floats(DAY * DAY_S, (DAY + 5) * DAY_S, exclude_max=True),
    key_id=st.sampled_from(["k_1", "k_2", "config/ops"]),
    model_served=st.sampled_from(["starter", "cascade"]),
    steps=st.lists(_STEPS, max_size=3, unique_by=lambda step: step.engine).map(tuple),
    status=st.sampled_from([200, 422, 499, 500]),
    cached=st.booleans(),
    escalated=st.integers(0, 5),
    reasons=st.dictionaries(st.sampled_from(["too_long", "low_confidence"]), st.integers(1, 9)),
)


def summed(
    charges: Iterable[Charge], by: Sequence[By], since: int, until: int, key_id: str | None = None
) -> list[UsageRow]:
    """What a report must say, by plain addition."""
    rows: dict[tuple[str, ...], dict[str, int]] = {}
    for charge in charges:
        day = int(charge.at_s // DAY_S)
        if not since <= day < until or (key_id or charge.key_id) != charge.key_id:
            continue
        said = {
            "key": NAMES.get(charge.key_id, charge.key_id),
            "model": charge.model_served,
            "day": datetime.fromtimestamp(day * DAY_S, UTC).strftime("%Y-%m-%d"),
        }
        for more, facts in _facts(charge, by):
            place = tuple((said | more)[one] for one in by)
            row = rows.setdefault(place, dict.fromkeys(measures(by), 0))
            for name in row:
                row[name] += facts[name]
    return [UsageRow(place, **rows[place]) for place in sorted(rows)]


def _facts(charge: Charge, by: Sequence[By]) -> Iterable[tuple[dict[str, str], dict[str, int]]]:
    if "engine" in by:
        for step in charge.steps:
            facts = {"requests": 1, "tokens": step.tokens, "busy_us": step.busy_us}
            facts |= {"nanos": step.nanos or 0, "unpriced": int(step.nanos is None)}
            yield {"engine": step.engine}, facts
    elif "reason" in by:
        for reason, questions in (charge.reasons or {}).items():
            yield {"reason": reason}, {"escalated": questions}
    else:
        asked = ("nouls", "choices", "scores", "escalated")
        yield (
            {},
            {name: getattr(charge, name) for name in asked}
            | {"requests": 1, "cached": int(charge.cached), "failed": int(charge.status >= 400)}
            | {"tokens": charge.tokens, "busy_us": sum(step.busy_us for step in charge.steps)}
            | {"nanos": charge.nanos or 0, "unpriced": int(charge.nanos is None)},
        )
