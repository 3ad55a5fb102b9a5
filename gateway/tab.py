"""Answers on the tab: given, and not written into the ledger yet.

What an answer costs is worked out for many at a time, when they are about to be written: that takes
less than half of what it would for each alone. Until then all of what was held for it stays held.
"""

import asyncio
from typing import NamedTuple

from gateway.advance import Work
from gateway.charging import Order, Terms, row_of
from gateway.decision import Decision
from gateway.ledger.blocks import Block, Blocks
from gateway.ledger.budget import Settlement, settle
from gateway.ledger.rows import Rows
from gateway.ledger.store import Row
from gateway.ledger.writer import Writer
from gateway.rates import Rates
from policies.limits import Amounts

_MOST = 64
"""Answers worked out at a time: a fraction of a millisecond of the event loop."""


class _Entry(NamedTuple):
    order: Order
    work: Work
    decision: Decision


class _Used:
    """Of what was taken for several requests of one caller."""

    __slots__ = ("block", "nanos", "order", "paced", "requests", "taken", "taken_nanos", "tokens")

    def __init__(self, order: Order, block: Block | None) -> None:
        self.order = order
        self.block = block
        self.requests = self.paced = self.taken = self.taken_nanos = self.tokens = self.nanos = 0

    def add(self, work: Work, row: Row) -> None:
        taken, _, nanos = work.taken
        self.requests += 1
        self.paced += work.paced
        self.taken += taken
        self.taken_nanos += nanos
        self.tokens += row[6]
        self.nanos += row[15] or 0


class Tab:
    """Confined to the event loop."""

    def __init__(self, writer: Writer, rates: Rates, blocks: Blocks, terms: Terms) -> None:
        self.terms = terms
        self._writer = writer
        self._rates = rates
        self._blocks = blocks
        self._entries: list[_Entry] = []
        self._commit: asyncio.Future[None] | None = None
        writer.gather = self.settle

    def add(self, order: Order, work: Work, decision: Decision) -> None:
        """Written with the next group, at the latest after the writer's interval."""
        self._entries.append(_Entry(order, work, decision))
        if len(self._entries) >= _MOST:
            self.settle()
        self._writer.remind()

    def added(self, order: Order, work: Work, decision: Decision) -> asyncio.Future[None]:
        """Written as soon as possible; done after the commit, or with a `StoreError`."""
        commit = self._commit
        if commit is None:
            commit = self._commit = asyncio.get_running_loop().create_future()
        self._entries.append(_Entry(order, work, decision))
        if len(self._entries) >= _MOST:
            self.settle()
        self._writer.hurry()
        return commit

    def settle(self) -> None:
        """Hand everything to the writer, and give back what was not used."""
        while self._entries:
            self._settle_day()
        self._commit = None

    def _settle_day(self) -> None:
        """As `settle`, up to the first entry of another day."""
        entries, terms = self._entries, self.terms
        rows: list[Row] = []
        windows = terms.calendar.windows(entries[0].work.now_s)
        used: dict[int, _Used] = {}
        for order, work, decision in entries:
            if not windows.day_s <= work.now_s < windows.day_end_s:
                break
            risen = work.spending.risen if decision.routes else None
            row = row_of(order, decision.steps, risen, terms, work.now_s)
            rows.append(row)
            block = work.block
            place = id(order.caller if block is None else block)
            if place not in used:
                used[place] = _Used(order, block)
            used[place].add(work, row)
        self._entries = entries[len(rows) :]
        self._writer.put(Rows(rows, windows.day_s), self._commit)
        for one in used.values():
            self._back(one)

    def _back(self, used: _Used) -> None:
        if used.paced:
            self._rates.give_back(used.order.caller, used.paced - used.tokens)
        block = used.block
        if block is None:
            return
        taken = Amounts(used.taken, 0, used.taken_nanos)
        left = self._blocks.back(block, taken, used.tokens, used.nanos, used.requests)
        if left is not None:
            lease = Settlement(None, lease_id=block.asked.lease_id, left=left)
            self._writer.put(lambda store: settle(store, lease), None)
