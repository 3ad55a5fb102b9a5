"""From a decision to its charge, and from a budget without room to its refusal."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

import orjson

from engines.appetite import Appetite
from engines.contract import Choice, EngineError, Inquiry, Json, Noul
from gateway.auth import Caller
from gateway.bound import token_bound
from gateway.decision import Step
from gateway.errors import Problem, Refusal, problem
from gateway.leash import CallerLeft
from gateway.ledger.budget import Admission
from gateway.ledger.calendar import Calendar
from gateway.ledger.store import Row
from gateway.plan import Plan
from gateway.usage import money
from policies.limits import Amounts, Exhausted
from policies.pricing import PriceList

_LEFT = 499
_HELD_RETRY_S = 1.0
"""After which a budget may have room again that requests in progress hold."""


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
    text_bytes: int = 0
    """How much of what was asked and of what was answered is kept; 0 = no text at all."""


def row_of(
    order: Order,
    steps: Sequence[Step],
    risen: Mapping[str, int] | None,
    terms: Terms,
    at_s: float,
) -> Row:
    """The ledger's row for an order that was admitted at `at_s` and has been answered.

    `risen`: why questions went up → how many.
    """
    said, tokens, busy_us, cached = [], 0, 0, 1
    nanos: int | None = 0
    for step in steps:
        engine, read, seconds = step.engine, step.tokens, step.seconds
        spent_us = round(seconds * 1e6)
        tariff = terms.prices.tariff(engine, at_s)
        cost = None if tariff is None else tariff.cost(read, spent_us)
        said.append((engine, read, spent_us, cost))
        tokens += read
        busy_us += spent_us
        if seconds > 0:
            cached = 0
        nanos = None if nanos is None or cost is None else nanos + cost
    caller, request_id, asked, plan, inquiry = order[:5]  # quicker than by its names
    nouls, choices, scores = _kinds(inquiry)
    return (
        at_s,
        caller.key_id,
        request_id,
        asked,
        plan.model,
        orjson.dumps(said).decode(),
        tokens,
        busy_us,
        nouls,
        choices,
        scores,
        sum(risen.values()) if risen else 0,
        orjson.dumps(dict(risen)).decode() if risen else None,
        cached,
        200,
        nanos,
        None if nanos is None else terms.price_version,
    )


def _kinds(inquiry: Inquiry) -> tuple[int, int, int]:
    """How many yes/no questions, choices and scores there are."""
    kinds = [type(question) for question in inquiry.questions.values()]
    nouls, choices = kinds.count(Noul), kinds.count(Choice)
    return nouls, choices, len(kinds) - nouls - choices


def _bounds_of(order: Order, engines: Sequence[str]) -> list[int]:
    """The most tokens that each of these engines reads for the order."""
    found: list[int] = []
    last: Appetite | None = None
    for engine in engines:
        appetite = order.plan.appetites[engine]
        found.append(found[-1] if appetite is last else token_bound(order.inquiry, appetite))
        last = appetite
    return found


def bound_of(order: Order, engines: Sequence[str], terms: Terms, now_s: float) -> Amounts:
    """What the order may take at most when these engines read it, one after the other.

    Raises:
        Refusal: 503 for a money budget and an engine without a price.
    """
    limits, bounds, nanos = order.caller.limits, _bounds_of(order, engines), 0
    if limits.counts_money:
        # Its questions may be read at the same time, each until the deadline.
        longest_us = round(terms.longest_s * 1e6) * len(order.inquiry.questions)
        for engine, tokens in zip(engines, bounds, strict=True):
            tariff = terms.prices.tariff(engine, now_s)
            if tariff is None:
                message = "This API key has a money budget, but the model has no price."
                raise Refusal(Problem("ledger_down", message))
            nanos += tariff.cost(tokens, longest_us)
    escalations = 0
    if len(engines) > 1 and limits.counts_escalations:
        escalations = len(order.inquiry.questions)
    return Amounts(sum(bounds), escalations, nanos)


def less_of(
    order: Order, found: Exhausted, asked: Admission, terms: Terms
) -> tuple[Admission, int] | None:
    """What may still be done where a budget has no room for everything; `None` = nothing.

    What to ask for instead, and how many questions may go up then.
    """
    plan = order.plan
    if asked.claim is None or len(plan.readers) == 1:
        return None
    before = asked.claim.amounts
    if found.unit == "escalations":
        most = max(0, found.limit - found.used - found.held)
        amounts = Amounts(before.tokens, most, before.nanos)
    elif plan.rules.on_exhausted == "stay_small":
        most, amounts = 0, bound_of(order, plan.readers[:1], terms, asked.now_s)
    else:
        return None
    if amounts == before:
        return None
    return asked._replace(claim=asked.claim._replace(amounts=amounts)), most


def status_of(error: BaseException) -> int:
    """What the caller was told; 499 when it left."""
    if isinstance(error, Refusal | EngineError):
        return problem(error).status
    left = isinstance(error, CallerLeft) or not isinstance(error, Exception)
    return _LEFT if left else 500


def used_up(found: Exhausted, asked: Admission) -> Refusal:
    """429 with the limit's name, what was used, and when there is more; money in US dollars."""
    windows = asked.claim.windows if asked.claim is not None else None
    end_s = asked.now_s if windows is None else windows.end_s(found.window)
    resets = datetime.fromtimestamp(end_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    unit, shown = ("usd", money) if found.unit == "nanos" else (found.unit, _itself)
    name = f"{unit}_per_{found.window}"
    allowed, used, held, wanted = map(shown, (found.limit, found.used, found.held, found.wanted))
    wait_s: float = math.ceil(max(1.0, end_s - asked.now_s))
    if found.wanted > found.limit:
        hope = "this request would need more than all of it"
    elif found.used + found.wanted <= found.limit:
        hope, wait_s = "ask again when they have ended", _HELD_RETRY_S
    else:
        hope = f"it is full again at {resets}"
    message = (
        f"The budget {name} has no room: {used} of {allowed} used, {held} held by requests in "
        f"progress, up to {wanted} needed; {hope}."
    )
    details: dict[str, Json] = {"limit": name, "allowed": allowed, "used": used, "held": held}
    details |= {"wanted": wanted, "resets_at": resets}
    return Refusal(Problem("budget_exhausted", message, details=details, retry_after_s=wait_s))


def _itself(amount: int) -> int | str:
    return amount
