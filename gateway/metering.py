"""Every answer is paid for: hold an upper bound, have the work done, settle what it took.

Knows no HTTP. What the work is stands in an `Order`; who does it is an argument.
"""

import asyncio
import random
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from engines.contract import EngineError
from gateway.admitting import admitted
from gateway.auth import unwritable
from gateway.charging import Ended, Order, Terms, bound_of, charge_of, less_of, status_of, used_up
from gateway.decision import Decision, Spending
from gateway.errors import Kind, Problem, Refusal
from gateway.flights import Flights, conflict, digest
from gateway.kept_text import text_of
from gateway.ledger.blocks import Block, Blocks
from gateway.ledger.budget import Admission, Claim, Held, Idempotency, Settlement, settle
from gateway.ledger.store import Replay, StoreError
from gateway.ledger.writer import Writer
from gateway.rates import Rates
from gateway.replays import decision_of, numbers_of
from policies.limits import NOTHING, Exhausted
from policies.pricing import PriceList

Read: TypeAlias = Callable[[Spending, int | None], Awaitable[Decision]]
"""Decides, with how many questions may go up; `None` = not limited."""
Leashed: TypeAlias = Callable[[], AbstractContextManager[None]]

_HASHED_HERE_BYTES = 262_144
"""Longer bodies are told apart by a digest that a thread makes."""
_PENDING_RETRY_S = 0.5


class Served(NamedTuple):
    """A decision, and whether it was made for an earlier request."""

    decision: Decision
    replayed: bool = False


class _Work:
    """One order on its way."""

    __slots__ = (
        "asked",
        "block",
        "claim",
        "decision",
        "most_escalations",
        "now_s",
        "spending",
        "spent",
        "taken",
        "tokens",
    )

    def __init__(self, tokens: int, claim: Claim | None, now_s: float) -> None:
        self.tokens = tokens
        """The bound."""
        self.claim = claim
        self.now_s = now_s
        self.taken = False
        """Whether the bound was taken from the rate of tokens."""
        self.asked: Admission | None = None
        """What the store was asked to hold, so that it may do."""
        self.block: Block | None = None
        """Where the bound was taken from."""
        self.spending = Spending()
        self.most_escalations: int | None = None
        self.spent: Refusal | None = None  # for more questions going up than the budget has left
        self.decision: Decision | None = None  # there is none yet


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
        if len(order.body) > _HASHED_HERE_BYTES:
            order = order._replace(body=await asyncio.to_thread(digest, order.body))
        if order.retried or order.idempotency_key is not None:
            joined = await self._joined(order, leashed)
            if joined is not None:
                return Served(joined, replayed=True)
        flight = self._flights.begin(order.caller.key_id, order.body, order.idempotency_key)
        outcome: Decision | Refusal | EngineError | None = None
        try:
            served = await self._lead(order, leashed, read)
            outcome = served.decision
        except (Refusal, EngineError) as error:
            outcome = None if _is(error, "late") else error
            raise
        finally:
            self._flights.end(flight, outcome)
        return served

    async def _joined(self, order: Order, leashed: Leashed) -> Decision | None:
        """The decision of a request in flight that is the same; `None` = there is none."""
        key_id, header = order.caller.key_id, order.idempotency_key
        while True:
            flight = self._flights.found(key_id, order.body, header, retried=order.retried)
            if flight is None:
                return None
            with leashed():
                decision = await flight.outcome()
            if decision is not None:
                return decision

    def reprice(self, prices: PriceList) -> None:
        """Charge what ends from now on by these prices."""
        self._terms = replace(self._terms, prices=prices, price_version=prices.version)

    def retire_idle(self) -> None:
        """Give up room in budgets that nobody needs at the moment."""
        self._blocks.retire_idle(time.time())

    async def _lead(self, order: Order, leashed: Leashed, read: Read) -> Served:
        work = self._begun(order)
        try:
            with leashed():
                if not self._has_room(order, work):
                    earlier = await self._admit(order, work)
                    if earlier is not None:
                        self._rates.give_back(order.caller, work.tokens)
                        return Served(earlier, replayed=True)
                decision = await read(work.spending, work.most_escalations)
        except BaseException as error:
            self._give_up(order, work, error)
            if work.spent is not None and _is(error, "budget_exhausted"):
                raise work.spent from error
            raise
        work.decision = decision
        if self._terms.durable:
            await self._settle(order, work, decision)
        else:
            done = self._settlement(order, work, _ended(decision, work.spending))
            self._writer.post(lambda store: settle(store, done))
        return Served(decision)

    def _begun(self, order: Order) -> _Work:
        """What the order may take at most."""
        now_s, limits = time.time(), order.caller.limits
        if order.caller.budgeted:
            amounts = bound_of(order, order.plan.readers, self._terms, now_s)
            claim = Claim(limits, amounts, self._terms.calendar.windows(now_s))
            return _Work(amounts.tokens, claim, now_s)
        if limits.tpm is None:
            return _Work(0, None, now_s)
        return _Work(bound_of(order, order.plan.readers, self._terms, now_s).tokens, None, now_s)

    def _has_room(self, order: Order, work: _Work) -> bool:
        """Take what the order needs from what is held already; whether that was possible.

        Raises:
            Refusal: 429 the rate of tokens, 503 no ledger.
        """
        if self._writer.failing:
            raise Refusal(unwritable())
        caller = order.caller
        if caller.limits.tpm is not None:
            self._rates.take_tokens(caller, work.tokens, time.monotonic())
            work.taken = True
        if order.idempotency_key is not None:
            return False
        if work.claim is None:
            return True
        work.block = self._blocks.take(caller.key_id, work.claim, work.now_s)
        return work.block is not None

    async def _admit(self, order: Order, work: _Work) -> Decision | None:
        """Have the store hold what the order may take, or the decision that it repeats."""
        once = None
        if order.idempotency_key is not None:
            once = Idempotency(digest(order.idempotency_key), digest(order.body))
        lease_id, key_id = self._random.getrandbits(62), order.caller.key_id
        asked = Admission(lease_id, key_id, work.now_s, self._terms.lease_s, work.claim, once)
        work.asked = asked  # from now on, also if nobody waits to be told
        found = await self._ask(asked)
        if isinstance(found, Exhausted) and self._blocks.retire(asked.key_id) is not None:
            found = await self._ask(asked)
        while isinstance(found, Exhausted) and (less := less_of(order, found, asked, self._terms)):
            if found.unit == "escalations":
                work.spent = used_up(found, asked)
            asked, work.most_escalations = less
            work.asked, work.claim = asked, asked.claim
            found = await self._ask(asked)
        if isinstance(found, Held):
            work.block = None if asked.claim is None else self._blocks.add(asked, found)
            return None
        work.asked = None
        if isinstance(found, Exhausted):
            raise used_up(found, asked)
        return _earlier(found, order, asked)

    async def _ask(self, asked: Admission) -> Held | Exhausted | Replay:
        try:
            return await admitted(self._writer, asked)
        except StoreError as error:
            raise Refusal(unwritable()) from error

    async def _settle(self, order: Order, work: _Work, decision: Decision) -> None:
        """Charge the decision; returns after the commit.

        Raises:
            Refusal: 503 when that fails; the charge is written as soon as it can be.
        """
        done = self._settlement(order, work, _ended(decision, work.spending))
        try:
            await self._writer.submit(lambda store: settle(store, done))
        except StoreError as error:
            charge = None if done.charge is None else done.charge._replace(status=503)
            late = done._replace(charge=charge, answer=None)
            self._writer.post(lambda store: settle(store, late))
            raise Refusal(unwritable()) from error

    def _give_up(self, order: Order, work: _Work, error: BaseException) -> None:
        """Charge what ran before the error, and give back the rest. Nobody waits for it."""
        ended = Ended(work.spending.so_far(), status_of(error), work.spending.risen)
        done = self._settlement(order, work, ended)
        if done.charge is not None or done.lease_id is not None or work.asked is not None:
            self._writer.post(lambda store: settle(store, done))

    def _settlement(self, order: Order, work: _Work, ended: Ended) -> Settlement:
        """What the store is told at the end of the work; rates and blocks are told at once."""
        charge, tokens, nanos = None, 0, 0
        if ended.steps:
            charge = charge_of(order, ended, self._terms, work.now_s)
            tokens, nanos = charge.tokens, charge.nanos or 0
        if work.taken:
            self._rates.give_back(order.caller, work.tokens - tokens)
        asked, block, claim = work.asked, work.block, work.claim
        lease_id, left = (None, None) if asked is None else (asked.lease_id, NOTHING)
        if block is not None and claim is not None:
            left = self._blocks.back(block, claim.amounts, tokens, nanos)
            lease_id = None if left is None else block.asked.lease_id
        windows = self._terms.calendar.windows(work.now_s) if claim is None else claim.windows
        text = None
        if self._terms.text_bytes and charge is not None:
            text = text_of(order.inquiry, work.decision, self._terms.text_bytes)
        answer = _replayable(work)
        return Settlement(asked, charge, windows.day_s, answer, lease_id, left or NOTHING, text)


def _ended(decision: Decision, spending: Spending) -> Ended:
    return Ended(decision.steps, 200, spending.risen if decision.routes else None)


def _replayable(work: _Work) -> bytes | None:
    """What is kept for an Idempotency-Key; `None` = there is none, or no answer."""
    asked, decision = work.asked, work.decision
    if asked is None or asked.idempotency is None or decision is None:
        return None
    return numbers_of(decision)


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


def _is(error: BaseException, kind: Kind) -> bool:
    return isinstance(error, Refusal) and error.problem.kind == kind
