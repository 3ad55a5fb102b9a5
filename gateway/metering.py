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
from gateway.advance import Advances, Work
from gateway.auth import unwritable
from gateway.charging import Ended, Order, Terms, less_of, row_of, status_of, used_up
from gateway.decision import Decision, Spending
from gateway.errors import Kind, Problem, Refusal
from gateway.flights import Flights, conflict, digest
from gateway.kept_text import text_of
from gateway.ledger.budget import Admission, Held, Idempotency, Settlement, Settling
from gateway.ledger.rows import refused
from gateway.ledger.store import Replay, StoreError
from gateway.ledger.writer import Writer
from gateway.rates import Rates
from gateway.replays import decision_of, numbers_of
from gateway.tab import Tab
from policies.limits import Exhausted
from policies.pricing import PriceList

Read: TypeAlias = Callable[[Spending, int | None], Awaitable[Decision]]
"""Decides, with how many questions may go up; `None` = not limited."""
Leashed: TypeAlias = Callable[[], AbstractContextManager[None]]

_HASHED_HERE_BYTES = 262_144
"""Longer bodies are told apart by a digest that a thread makes."""
_PENDING_RETRY_S = 0.5
_ANSWERED = 200


class Served(NamedTuple):
    """A decision, and whether it was made for an earlier request."""

    decision: Decision
    replayed: bool = False


class Metering:
    """The accounts of a running gateway. Confined to the event loop."""

    def __init__(self, writer: Writer, rates: Rates, terms: Terms) -> None:
        self._writer = writer
        self._rates = rates
        self._terms = terms
        self._flights = Flights()
        self._advances = Advances(writer, rates, terms)
        self._tab = Tab(writer, rates, self._advances.blocks, terms.calendar)
        self._advances.returned = self._tab.settle
        # Not the system's: asking it gives the interpreter's lock away in every request.
        self._random = random.Random(secrets.randbits(128))

    async def serve(self, order: Order, leashed: Leashed, read: Read) -> Served:
        """The decision that `read` makes under a leash, charged before it is returned.

        Raises:
            Refusal: 429 a limit, 409 an Idempotency-Key used otherwise, 503 no ledger; and
                whatever the leash raises.
            EngineError: as `read` raises it; what was read is charged.
        """
        caller, _, _, _, _, body, once, retried = order  # quicker than its names
        sent_bytes = len(body)
        if sent_bytes > _HASHED_HERE_BYTES:
            body = await asyncio.to_thread(digest, body)
            order = order._replace(body=body)
        if retried or once is not None:
            joined = await self._joined(order, leashed)
            if joined is not None:
                return Served(joined, replayed=True)
        flight = self._flights.begin(caller.key_id, body, once)
        outcome: Decision | Refusal | EngineError | None = None
        self._tab.coming += 1
        try:
            served = await self._lead(order, sent_bytes, leashed, read)
            outcome = served[0]
        except (Refusal, EngineError) as error:
            outcome = None if _is(error, "late") else error
            raise
        finally:
            self._tab.coming -= 1
            self._flights.end(flight, outcome)
            outcome = None  # an exception knows this frame, which must not know it
        return served

    async def _joined(self, order: Order, leashed: Leashed) -> Decision | None:
        """The decision of a request in flight that is the same; `None` = there is none.

        Raises:
            Refusal, EngineError: what that was refused with.
        """
        key_id, header = order.caller.key_id, order.idempotency_key
        while True:
            flight = self._flights.found(key_id, order.body, header, retried=order.retried)
            if flight is None:
                return None
            with leashed():
                outcome = await flight
            if isinstance(outcome, Exception):
                try:
                    raise outcome
                finally:
                    del flight, outcome  # as in `serve`
            if outcome is not None:
                return outcome

    def reprice(self, prices: PriceList) -> None:
        """Charge what begins from now on by these prices."""
        self._terms = replace(self._terms, prices=prices, price_version=prices.version)
        self._advances.reprice(self._terms)

    def retire_idle(self) -> None:
        """Give up room in budgets that nobody needs at the moment."""
        self._tab.settle()
        self._advances.blocks.retire_idle(time.time())

    def close(self) -> None:
        """Give up all the room there is, before the writer ends."""
        self._tab.settle()
        self._advances.blocks.close()

    async def _lead(self, order: Order, sent_bytes: int, leashed: Leashed, read: Read) -> Served:
        work = Work(time.time(), self._terms)
        try:
            with leashed():
                if self._writer.failing:
                    raise Refusal(unwritable())
                if not self._advances.take(order, sent_bytes, work):
                    earlier = await self._admit(order, work)
                    if earlier is not None:
                        self._rates.give_back(order.caller, work.paced)
                        return Served(earlier, replayed=True)
                decision = await read(work.spending, work.most_escalations)
        except BaseException as error:
            self._give_up(order, work, error)
            if work.spent is not None and _is(error, "budget_exhausted"):
                raise Refusal(work.spent) from error
            raise
        if work.asked is None and decision.steps and not self._terms.text_bytes:
            if self._terms.durable:
                await self._written(order, work, decision, sent_bytes)
            else:
                self._tab.add(order, work, decision, sent_bytes)
            return Served(decision)
        work.decision = decision
        risen = work.spending.risen if decision.routes else None
        done = self._settlement(order, work, Ended(decision.steps, _ANSWERED, risen))
        if self._terms.durable:
            await self._settle(done)
        else:
            self._writer.post(Settling(done))
        return Served(decision)

    async def _written(self, order: Order, work: Work, decision: Decision, sent_bytes: int) -> None:
        """Returns after the commit of what the decision costs. Raises: Refusal: see `_settle`."""
        try:
            await self._tab.added(order, work, decision, sent_bytes)
        except StoreError as error:
            raise Refusal(unwritable()) from error

    async def _admit(self, order: Order, work: Work) -> Decision | None:
        """Have the store hold what the order may take, or the decision that it repeats."""
        once = None
        if order.idempotency_key is not None:
            once = Idempotency(digest(order.idempotency_key), digest(order.body))
        lease_id, key_id = self._random.getrandbits(62), order.caller.key_id
        asked = Admission(lease_id, key_id, work.now_s, self._terms.lease_s, work.claim, once)
        work.asked = asked  # from now on, also if nobody waits to be told
        found = await self._ask(asked)
        if isinstance(found, Exhausted):
            self._tab.settle()  # what has been answered since holds no more than it took
            if self._advances.blocks.retire(asked.key_id) is not None:
                found = await self._ask(asked)
        while isinstance(found, Exhausted) and (less := less_of(order, found, asked, work.terms)):
            if found.unit == "escalations":
                work.spent = used_up(found, asked).problem
            asked, work.most_escalations = less
            work.asked, work.claim = asked, asked.claim
            found = await self._ask(asked)
        if isinstance(found, Held):
            if asked.claim is not None:
                work.block, work.taken = (
                    self._advances.blocks.add(asked, found),
                    asked.claim.amounts,
                )
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

    async def _settle(self, done: Settlement) -> None:
        """Returns after the commit.

        Raises:
            Refusal: 503 when that fails; the charge is written as soon as it can be.
        """
        try:
            await self._writer.submit(Settling(done))
        except StoreError as error:
            raise Refusal(unwritable()) from error

    def _give_up(self, order: Order, work: Work, error: BaseException) -> None:
        """Charge what ran before the error, and give back the rest. Nobody waits for it."""
        ended = Ended(work.spending.so_far(), status_of(error), work.spending.risen)
        done = self._settlement(order, work, ended)
        if done.row is not None or done.lease_id is not None or work.asked is not None:
            self._writer.post(Settling(done))

    def _settlement(self, order: Order, work: Work, ended: Ended) -> Settlement:
        """What the store is told at the end of the work; rates and blocks are told at once."""
        row, tokens, nanos = None, 0, 0
        if ended.steps:
            row = row_of(order, ended.steps, ended.reasons, work.terms, work.now_s)
            tokens, nanos = row[6], row[15] or 0
            if ended.status != _ANSWERED:
                row = refused(row, ended.status)
        lease_id, left = self._advances.back(order, work, tokens, nanos)
        day_s = self._terms.calendar.windows(work.now_s).day_s
        asked, text = work.asked, None
        if self._terms.text_bytes and row is not None:
            text = text_of(order.inquiry, work.decision, self._terms.text_bytes)
        answer = None if asked is None else _replayable(work)
        return Settlement(asked, row, day_s, answer, lease_id, left, text)


def _replayable(work: Work) -> bytes | None:
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
