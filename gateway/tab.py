"""Answers on the tab: given, and not written into the ledger yet.

What an answer costs is worked out for many at a time, when they are about to be written: that takes
less than half of what it would for each alone. Until then all of what was held for it stays held.
So do texts stay in memory, where nobody counts them once their caller is gone; what is not small is
therefore worked out at once.
"""

import asyncio
import logging
from collections.abc import Sequence
from functools import partial
from typing import TypeAlias

from gateway.advance import Work
from gateway.charging import Order, row_of
from gateway.decision import Decision
from gateway.ledger.blocks import Block, Blocks
from gateway.ledger.budget import Settlement, Settling
from gateway.ledger.calendar import Calendar
from gateway.ledger.rows import Day, Rows
from gateway.ledger.store import Row
from gateway.ledger.writer import Writer
from gateway.rates import Rates
from gateway.room import SMALL_BYTES
from policies.limits import Amounts

_LOG = logging.getLogger("tiergate")

_MOST = 64
"""Answers worked out at a time: a fraction of a millisecond of the event loop."""


_Entry: TypeAlias = tuple[Order, Work, Decision]


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

    def ended(self, work: Work) -> None:
        taken, _, nanos = work.taken
        self.requests += 1
        self.paced += work.paced
        self.taken += taken
        self.taken_nanos += nanos


def _tell(waiting: Sequence[asyncio.Future[None]], group: asyncio.Future[None]) -> None:
    """Everybody who waits, what has become of the group."""
    error = None if group.cancelled() else group.exception()
    for one in waiting:
        if not one.done() and error is None:
            one.set_result(None)
        elif not one.done() and error is not None:
            one.set_exception(error)


class Tab:
    """Confined to the event loop."""

    def __init__(self, writer: Writer, rates: Rates, blocks: Blocks, calendar: Calendar) -> None:
        self.calendar = calendar
        self._writer = writer
        self._rates = rates
        self._blocks = blocks
        self._entries: list[_Entry] = []
        self.coming = 0
        """Requests that are being answered, or wait here."""
        self._waiting: list[asyncio.Future[None]] = []
        """Who waits for the entries to be written."""
        writer.gather = self.settle

    def add(self, order: Order, work: Work, decision: Decision, sent_bytes: int = 0) -> None:
        """Written with the next group, at the latest after the writer's interval."""
        self._writer.remind()
        self._entries.append((order, work, decision))
        if len(self._entries) >= _MOST or sent_bytes > SMALL_BYTES:
            self.settle()

    async def added(
        self, order: Order, work: Work, decision: Decision, sent_bytes: int = 0
    ) -> None:
        """Written as soon as nobody else is coming, or after a moment; returns after the commit.

        Raises:
            StoreError: it cannot be written now; the charge is, later, as of a refused request.
        """
        if len(self._waiting) + 1 < self.coming:
            self._writer.linger()
        else:
            self._writer.hurry()
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(written)
        self._entries.append((order, work, decision))
        if len(self._entries) >= _MOST or sent_bytes > SMALL_BYTES:
            self.settle()
        try:
            await written
        finally:
            del written  # an exception in it knows this frame

    def settle(self) -> None:
        """Hand everything to the writer, and give back what was not used."""
        entries, self._entries = self._entries, []
        waiting, self._waiting = self._waiting, []
        if not entries:
            return
        group: asyncio.Future[None] | None = None
        if waiting:
            group = waiting[0].get_loop().create_future()
            group.add_done_callback(partial(_tell, waiting))
        days: list[Day] = []
        used: dict[int, _Used] = {}
        while entries:
            entries = self._add_day(entries, days, used)
        self._writer.put(Rows(days), group)
        for one in used.values():
            self._back(one)

    def _add_day(
        self, entries: list[_Entry], days: list[Day], used: dict[int, _Used]
    ) -> list[_Entry]:
        """Work out those of the day of the first entry; those of other days."""
        first = entries[0]
        windows = self.calendar.windows(first[1].now_s)
        rows: list[Row] = []
        others: list[_Entry] = []
        for entry in entries:
            order, work, decision = entry
            if not windows.day_s <= work.now_s < windows.day_end_s and entry is not first:
                others.append(entry)
                continue
            block = work.block
            place = id(order.caller if block is None else block)
            if (own := used.get(place)) is None:
                own = used[place] = _Used(order, block)
            risen = work.spending.risen if decision.routes else None
            try:
                row = row_of(order, decision.steps, risen, work.terms, work.now_s)
            except Exception as error:  # noqa: BLE001 - it must not take the others along
                _LOG.error("an answer does not fit the ledger and is lost", exc_info=error)
                own.ended(work)
                continue
            rows.append(row)
            own.add(work, row)
        days.append((rows, windows.day_s))
        return others

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
            self._writer.put(Settling(lease), None)
