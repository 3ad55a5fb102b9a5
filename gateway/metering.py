"""Every answer is paid for: hold an upper bound, have the work done, settle what it took.

Knows no HTTP. What the work is stands in an `Order`; who does it is an argument.
"""

import asyncio
import random
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from engines.contract import EngineError
from gateway.auth import unwritable
from gateway.bound import token_bound
from gateway.charging import Ended, Order, Terms, charge_of, used_up
from gateway.decision import Decision, Spending
from gateway.errors import Problem, Refusal, problem
from gateway.flights import Flights, conflict, digest
from gateway.leash import CallerLeft
from gateway.ledger.blocks import Block, Blocks
from gateway.ledger.budget import (
    Admission,
    Claim,
    Held,
    Idempotency,
    Settlement,
    admit,
    settle,
)
from gateway.ledger.store import Replay, StoreError
from gateway.ledger.writer import Writer
from gateway.rates import Rates
from gateway.replays import decision_of, numbers_of
from policies.limits import Amounts, Exhausted

Read: TypeAlias = Callable[[Spending, int | None], Awaitable[Decision]]
"""Decides, with how many questions may go up; `None` = not limited."""
Leashed: TypeAlias = Callable[[], AbstractContextManager[None]]

_LEFT = 499
_HASHED_HERE_BYTES = 262_144
"""Longer bodies are told apart by a digest that a thread makes."""
_PENDING_RETRY_S = 0.5


class Served(NamedTuple):
    """A decision, and whether it was made for an earlier request."""

    decision: Decision
    replayed: bool = False


@dataclass(slots=True)
class _Work:
    """One order on its way."""

    admission: Admission
    begun_s: float
    """On the clock that only goes forward."""
    bound_tokens: int = 0
    taken: bool = False
    """Whether the bound was taken from the rate of tokens."""
    asking: bool = False
    """Whether the store was asked to hold something, so that it may do."""
    block: Block | None = None
    """Where the bound was taken from."""
    spending: Spending = field(default_factory=Spending)
    most_escalations: int | None = None


class Metering:
    """The accounts of a running gateway. Confined to the event loop."""

    def __init__(self, writer: Writer, rates: Rates, terms: Terms) -> None:
        self._writer = writer
        self._rates = rates
        self._terms = terms
        self._flights = Flights()
        self._blocks = Blocks(writer, terms.longest_s)
        # Not the system's: asking it gives the interpreter's lock away in every request.
        self._random = random.Random(secrets.randbits(128))

    async def serve(self, order: Order, leashed: Leashed, read: Read) -> Served:
        """The decision that `read` makes under a leash, charged before it is returned.

        Raises:
            Refusal: 429 a limit, 409 an Idempotency-Key used otherwise, 503 no ledger; and
                whatever the leash raises.
            EngineError: as `read` raises it; what was read is charged.
        """
        key_id, header, same = order.caller.key_id, order.idempotency_key, order.body
        if len(same) > _HASHED_HERE_BYTES:
            same = await asyncio.to_thread(digest, same)
        while True:
            flight = self._flights.found(key_id, same, header, retried=order.retried)
            if flight is None:
                break
            with leashed():
                decision = await flight.outcome()
            if decision is not None:
                return Served(decision, replayed=True)
        flight = self._flights.begin(key_id, same, header)
        outcome: Decision | Refusal | EngineError | None = None
        try:
            served = await self._lead(order._replace(body=same), leashed, read)
            outcome = served.decision
        except (Refusal, EngineError) as error:
            outcome = None if _is_own_lateness(error) else error
            raise
        finally:
            self._flights.end(flight, outcome)
        return served

    def retire_idle(self) -> None:
        """Give up room in budgets that nobody needs at the moment."""
        self._blocks.retire_idle(time.time())

    async def _lead(self, order: Order, leashed: Leashed, read: Read) -> Served:
        work = self._begun(order)
        try:
            with leashed():
                earlier = await self._admit(order, work)
                if earlier is not None:
                    self._rates.give_back(order.caller, work.bound_tokens)
                    return Served(earlier, replayed=True)
                decision = await read(work.spending, work.most_escalations)
        except BaseException as error:
            self._give_up(order, work, error)
            raise
        await self._settle(order, work, decision)
        return Served(decision)

    def _begun(self, order: Order) -> _Work:
        """What will be asked of the store."""
        now_s = time.time()
        limits, bound_tokens = order.caller.limits, 0
        claim = once = None
        budgeted = order.caller.budgeted
        if budgeted or limits.tpm is not None:
            bound_tokens = token_bound(order.inquiry) * len(order.plan.readers)
        if budgeted:
            amounts = self._bound(order, order.plan.readers, now_s)
            claim = Claim(limits, amounts, self._terms.calendar.windows(now_s))
        if order.idempotency_key is not None:
            once = Idempotency(digest(order.idempotency_key), digest(order.body))
        lease_id, key_id = self._random.getrandbits(62), order.caller.key_id
        asked = Admission(lease_id, key_id, now_s, self._terms.lease_s, claim, once)
        return _Work(asked, time.monotonic(), bound_tokens)

    def _bound(self, order: Order, engines: Sequence[str], now_s: float) -> Amounts:
        """What the order may take at most when these engines read it, one after the other."""
        limits, tokens, nanos = order.caller.limits, token_bound(order.inquiry), 0
        if limits.budget("nanos", "day") is not None or limits.budget("nanos", "month") is not None:
            for engine in engines:
                tariff = self._terms.prices.tariff(engine, now_s)
                if tariff is None:
                    raise _unpriced()
                nanos += tariff.cost(tokens, round(self._terms.longest_s * 1e6))
        counted = limits.escalations_per_day, limits.escalations_per_month
        escalates = len(engines) > 1 and any(limit is not None for limit in counted)
        escalations = len(order.inquiry.questions) if escalates else 0
        return Amounts(tokens * len(engines), escalations, nanos)

    async def _admit(self, order: Order, work: _Work) -> Decision | None:
        """Hold what the order may take; the decision of an earlier request that it repeats."""
        if self._writer.failing:
            raise Refusal(unwritable())
        self._rates.take_tokens(order.caller, work.bound_tokens, work.begun_s)
        work.taken = True
        asked = work.admission
        if asked.idempotency is None:
            if asked.claim is None:
                return None
            work.block = self._blocks.take(asked)
            if work.block is not None:
                return None
        found = await self._ask(work, asked)
        if isinstance(found, Exhausted) and self._blocks.retire(asked.key_id) is not None:
            found = await self._ask(work, asked)
        while isinstance(found, Exhausted) and (less := self._less(order, work, found)):
            asked = work.admission = less
            found = await self._ask(work, asked)
        if isinstance(found, Held):
            work.block = None if asked.claim is None else self._blocks.add(asked, found)
            return None
        work.asking = False
        if isinstance(found, Exhausted):
            raise used_up(found, asked)
        return _earlier(found, order, asked)

    def _less(self, order: Order, work: _Work, found: Exhausted) -> Admission | None:
        """What may still be done where a budget has no room for everything; `None` = nothing."""
        asked, plan = work.admission, order.plan
        if asked.claim is None or len(plan.readers) == 1:
            return None
        before = asked.claim.amounts
        if found.unit == "escalations":
            most = max(0, found.limit - found.used - found.held)
            amounts = Amounts(before.tokens, most, before.nanos)
        elif plan.rules.on_exhausted == "stay_small":
            most, amounts = 0, self._bound(order, plan.readers[:1], asked.now_s)
        else:
            return None
        if amounts == before:
            return None
        work.most_escalations = most
        return asked._replace(claim=asked.claim._replace(amounts=amounts))

    async def _ask(self, work: _Work, asked: Admission) -> Held | Exhausted | Replay:
        work.asking = True  # from now on, also if nobody waits to be told
        try:
            return await self._writer.submit(lambda store: admit(store, asked))
        except StoreError as error:
            raise Refusal(unwritable()) from error

    async def _settle(self, order: Order, work: _Work, decision: Decision) -> None:
        """Charge the decision; returns after the commit when the ledger is durable.

        Raises:
            Refusal: 503 when that fails; the charge is written as soon as it can be.
        """
        answer = None if work.admission.idempotency is None else numbers_of(decision)
        done = self._settlement(order, work, Ended(decision.steps, 200, decision.reasons), answer)
        if not self._terms.durable:
            self._writer.post(lambda store: settle(store, done))
            return
        try:
            await self._writer.submit(lambda store: settle(store, done))
        except StoreError as error:
            charge = None if done.charge is None else done.charge._replace(status=503)
            late = done._replace(charge=charge, answer=None)
            self._writer.post(lambda store: settle(store, late))
            raise Refusal(unwritable()) from error

    def _give_up(self, order: Order, work: _Work, error: BaseException) -> None:
        """Charge what ran before the error, and give back the rest. Nobody waits for it."""
        done = self._settlement(order, work, Ended(work.spending.so_far(), _status(error)))
        if done.charge is not None or done.lease_id is not None or work.asking:
            self._writer.post(lambda store: settle(store, done))

    def _settlement(
        self, order: Order, work: _Work, ended: Ended, answer: bytes | None = None
    ) -> Settlement:
        """What the store is told at the end of the work; rates and blocks are told at once."""
        asked = work.admission
        charge = None
        if ended.steps:
            charge = charge_of(order, ended, self._terms, asked.now_s)
        tokens, nanos = (0, 0) if charge is None else (charge.tokens, charge.nanos or 0)
        if work.taken:
            self._rates.give_back(order.caller, work.bound_tokens - tokens)
        ends = work.asking
        if work.block is not None and asked.claim is not None:
            ends = self._blocks.back(work.block, asked.claim.amounts, tokens, nanos)
        lease_id = asked.lease_id if work.block is None else work.block.asked.lease_id
        day_s = self._terms.calendar.windows(asked.now_s).day_s
        return Settlement(asked, charge, day_s, answer, lease_id if ends else None)


def _earlier(found: Replay, order: Order, asked: Admission) -> Decision:
    """The decision of the earlier request.

    Raises:
        Refusal: 409 for another body, 529 while another process works on it.
    """
    if asked.idempotency is None or found.body != asked.idempotency.body:
        raise conflict()
    if found.answer is None:
        busy = "A request with this Idempotency-Key is being answered."
        raise Refusal(Problem("overloaded", busy, retry_after_s=_PENDING_RETRY_S))
    return decision_of(found.answer, order.inquiry)


def _unpriced() -> Refusal:
    message = "This API key has a money budget, but the model has no price."
    return Refusal(Problem("ledger_down", message))


def _is_own_lateness(error: Refusal | EngineError) -> bool:
    return isinstance(error, Refusal) and error.problem.kind == "late"


def _status(error: BaseException) -> int:
    """What the caller was told; 499 when it left."""
    if isinstance(error, Refusal | EngineError):
        return problem(error).status
    left = isinstance(error, CallerLeft) or not isinstance(error, Exception)
    return _LEFT if left else 500
