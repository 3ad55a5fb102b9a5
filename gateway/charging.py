"""From a decision to its charge, and from a budget without room to its refusal."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from engines.contract import Choice, Inquiry, Noul
from gateway.auth import Caller
from gateway.decision import Step
from gateway.errors import Problem, Refusal
from gateway.ledger.budget import Admission
from gateway.ledger.calendar import Calendar
from gateway.ledger.store import Charge, ChargedStep
from gateway.plan import Plan
from policies.limits import Exhausted
from policies.pricing import PriceList, total


class Order(NamedTuple):
    """A request that is about to be answered."""

    caller: Caller
    request_id: str
    asked: str | None
    """The model's name as sent."""
    plan: Plan
    inquiry: Inquiry
    body: bytes
    """Decoded, before anything is taken apart."""
    idempotency_key: bytes | None = None
    retried: bool = False
    """Whether the caller says that it sent the same before."""


class Ended(NamedTuple):
    """How the work on an order ended."""

    steps: Sequence[Step]
    """What every engine did, also where there is no answer."""
    status: int
    """As answered; 499 when the caller left."""
    reasons: Mapping[str, int] | None = None
    """Why questions went up → how many."""


@dataclass(frozen=True, slots=True)
class Terms:
    """How a gateway keeps its ledger."""

    calendar: Calendar
    prices: PriceList
    price_version: str
    durable: bool = True
    """Whether an answer waits for the commit of its charge."""
    lease_s: float = 60.0
    longest_s: float = 8.0
    """How long work may take, for bounds of engines that are priced by time."""


def charge_of(order: Order, ended: Ended, terms: Terms, at_s: float) -> Charge:
    """The row of the ledger for an order that was admitted at `at_s` and has ended so."""
    charged = tuple([_charged(step, terms.prices, at_s) for step in ended.steps])
    nanos = total([step.nanos for step in charged])
    nouls = choices = scores = 0
    for question in order.inquiry.questions.values():
        if isinstance(question, Noul):
            nouls += 1
        elif isinstance(question, Choice):
            choices += 1
        else:
            scores += 1
    return Charge(
        at_s=at_s,
        key_id=order.caller.key_id,
        request_id=order.request_id,
        model_asked=order.asked,
        model_served=order.plan.model,
        steps=charged,
        nouls=nouls,
        choices=choices,
        scores=scores,
        status=ended.status,
        escalated=sum(ended.reasons.values()) if ended.reasons else 0,
        reasons=ended.reasons or None,
        cached=ended.status == 200 and not any(step.seconds for step in ended.steps),
        nanos=nanos,
        price_version=None if nanos is None else terms.price_version,
    )


def _charged(step: Step, prices: PriceList, at_s: float) -> ChargedStep:
    busy_us = round(step.seconds * 1e6)
    tariff = prices.tariff(step.engine, at_s)
    nanos = None if tariff is None else tariff.cost(step.tokens, busy_us)
    return ChargedStep(step.engine, step.tokens, busy_us, nanos)


def used_up(found: Exhausted, asked: Admission) -> Refusal:
    """429 with the limit's name, what was used, and when there is more."""
    windows = asked.claim.windows if asked.claim is not None else None
    end_s = asked.now_s if windows is None else windows.end_s(found.window)
    resets = datetime.fromtimestamp(end_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    name = f"{found.unit}_per_{found.window}"
    message = (
        f"The budget {name} has no room: {found.used} of {found.limit} used, {found.held} held by "
        f"requests in progress, up to {found.wanted} needed; it is full again at {resets}."
    )
    return Refusal(
        Problem(
            "budget_exhausted",
            message,
            details={
                "limit": name,
                "allowed": found.limit,
                "used": found.used,
                "held": found.held,
                "wanted": found.wanted,
                "resets_at": resets,
            },
            retry_after_s=math.ceil(max(1.0, end_s - asked.now_s)),
        )
    )
