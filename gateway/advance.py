"""What a piece of work takes in advance, from the rate of tokens and from what is held already.

Nearly every request comes this way, so what can be known beforehand is: a rough bound is good
enough where there is plenty of room, and what was not needed comes back.
"""

import time
from collections.abc import Callable

from gateway.auth import Caller
from gateway.charging import Order, Terms, bound_of
from gateway.decision import Decision, Spending
from gateway.errors import Problem, Refusal
from gateway.ledger.blocks import Block, Blocks
from gateway.ledger.budget import Admission, Claim
from gateway.ledger.writer import Writer
from gateway.plan import Plan
from gateway.rates import Rates
from policies.limits import NOTHING, Amounts
from policies.pricing import Ceiling

_PLENTY = 256
"""How many times a rough bound has to fit into a minute's tokens to be good enough."""


def _nothing() -> None:
    """Nothing has ended."""


class Work:
    """One order on its way."""

    __slots__ = (
        "asked",
        "block",
        "claim",
        "decision",
        "most_escalations",
        "now_s",
        "paced",
        "spending",
        "spent",
        "taken",
        "terms",
    )

    def __init__(self, now_s: float, terms: Terms) -> None:
        self.now_s = now_s
        self.terms = terms
        """As they are when it begins: whatever it is held for it is charged by."""
        self.spending = Spending()
        self.paced = 0
        """Tokens taken from the rate."""
        self.claim: Claim | None = None
        """What the store is asked for."""
        self.asked: Admission | None = None
        """What the store was asked to hold, so that it may do."""
        self.block: Block | None = None
        """Where `taken` was taken from."""
        self.taken = NOTHING
        self.most_escalations: int | None = None
        self.spent: Problem | None = None  # for more questions going up than the budget has left
        self.decision: Decision | None = None  # there is none yet


class Advances:
    """Confined to the event loop."""

    def __init__(self, writer: Writer, rates: Rates, terms: Terms) -> None:
        self.blocks = Blocks(writer, terms.longest_s)
        self._rates = rates
        self._terms = terms
        self._ceilings: dict[tuple[str, ...], Ceiling] = {}
        self.returned: Callable[[], None] = _nothing
        """Called before anything is refused: gives back what was taken for work that has ended."""

    def reprice(self, terms: Terms) -> None:
        """Prices have changed."""
        self._terms = terms
        self._ceilings = {}

    def take(self, order: Order, sent_bytes: int, work: Work) -> bool:
        """Take what the order needs; whether the store need not be asked.

        Raises:
            Refusal: 429 the rate of tokens, 503 a money budget and an engine without a price.
        """
        caller, _, _, plan, inquiry, _, once, _ = order  # quicker than its names
        alone, rough, most = once is not None, plan.rough, 0
        if rough is not None and not inquiry.assets:
            most = len(inquiry.questions) * (rough.each + rough.byte * sent_bytes)
        exact, tpm = None, caller.limits.tpm
        # Where a rough bound is refused there may still be room for an exact one.
        if tpm is not None and not (0 < most * _PLENTY <= tpm and self._paced(caller, work, most)):
            self.returned()  # near the limit every token counts
            exact = _bound(order, work)
            self._rates.take_tokens(caller, exact.tokens, time.monotonic())
            work.paced = exact.tokens
        if not caller.budgeted:
            return not alone
        if most and not alone and self._taken(caller, plan, work, (most, len(inquiry.questions))):
            return True
        self.returned()
        if exact is None:
            exact = _bound(order, work)
        windows = work.terms.calendar.windows(work.now_s)
        work.claim = claim = Claim(caller.limits, exact, windows)
        if alone or exact.escalations:
            return False
        work.taken = exact
        work.block = self.blocks.take(caller.key_id, claim.limits, exact, work.now_s)
        return work.block is not None

    def _paced(self, caller: Caller, work: Work, tokens: int) -> bool:
        """Take so many from the rate of tokens, if there is room for them."""
        try:
            self._rates.take_tokens(caller, tokens, time.monotonic())
        except Refusal:
            return False
        work.paced = tokens
        return True

    def back(self, order: Order, work: Work, tokens: int, nanos: int) -> tuple[int | None, Amounts]:
        """The work used this much: the lease that changes with it, and what that holds then."""
        if work.paced:
            self._rates.give_back(order.caller, work.paced - tokens)
        block = work.block
        if block is not None:
            left = self.blocks.back(block, work.taken, tokens, nanos)
            return (None, NOTHING) if left is None else (block.asked.lease_id, left)
        return (None, NOTHING) if work.asked is None else (work.asked.lease_id, NOTHING)

    def _taken(self, caller: Caller, plan: Plan, work: Work, most: tuple[int, int]) -> bool:
        """Take a rough bound of tokens for so many questions, if there is room for it.

        And nothing to be counted beside tokens and money.
        """
        limits, readers, now_s, nanos = caller.limits, plan.readers, work.now_s, 0
        if len(readers) > 1 and limits.counts_escalations:
            return False
        if limits.nanos_per_day is not None or limits.nanos_per_month is not None:
            ceiling = self._ceilings.get(readers)
            if ceiling is None or not ceiling.from_s <= now_s < ceiling.until_s:
                ceiling = self._ceiling(readers, now_s)
                if ceiling is None:
                    return False
            nanos = ceiling.cost(*most)
        work.taken = taken = Amounts(most[0], 0, nanos)
        work.block = self.blocks.take(caller.key_id, limits, taken, now_s)
        return work.block is not None

    def _ceiling(self, readers: tuple[str, ...], now_s: float) -> Ceiling | None:
        longest_us = round(self._terms.longest_s * 1e6)
        found = self._terms.prices.ceiling(readers, now_s, longest_us)
        if found is not None:
            self._ceilings[readers] = found
        return found


def _bound(order: Order, work: Work) -> Amounts:
    return bound_of(order, order.plan.readers, work.terms, work.now_s)
