"""One bounded queue and its worker threads in front of an engine.

Two shapes. `rows(n)`: n workers that prepare and read one piece at a time, for ONNX on a CPU,
where batches cost more than they save. `batches(t)`: one thread prepares, one reads batches of
up to t tokens made of whatever has queued up meanwhile, for a GPU. Callers who left are skipped,
an engine's exception ends only the tickets it concerns, closing drains.

Queues are `SimpleQueue`s, whose get and put are single C calls: handing an inquiry to a thread
through a condition variable costs twice as much.
"""

import asyncio
import math
import threading
import time
from collections import deque
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any

from engines.contract import Broken, Busy, Engine, Inquiry, Prepared, Tally
from engines.ticket import Readings, Signal, Ticket, as_engine_error, emptied, fault_of

_MIN_RETRY_S, _MAX_RETRY_S = 0.1, 10.0
_SIZES = 12


@dataclass(frozen=True, slots=True)
class Shape:
    """How a lane spends its threads."""

    workers: int
    """Threads that prepare and read; 1 when there are batches."""
    max_batch_tokens: int = 0
    """Most tokens read in one batch; 0 = one piece at a time, and no thread only to prepare."""


def rows(workers: int) -> Shape:
    """For a CPU: each worker takes one piece at a time from start to end."""
    return Shape(workers)


def batches(max_batch_tokens: int) -> Shape:
    """For a GPU: one reader, fed by one preparer."""
    return Shape(1, max_batch_tokens)


_Pieces = list[tuple[Ticket, Prepared]]


class Lane:
    """The only way to an engine. `read` from an event loop; everything else happens in threads."""

    def __init__(self, name: str, engine: Engine[Any], shape: Shape, *, max_waiting: int) -> None:
        """Starts the threads. At most `max_waiting` inquiries wait to be begun."""
        self.name = name
        self.engine = engine
        self.closing = False
        """Whether new inquiries are refused because the lane is closing."""
        self._workers, self._max_batch_tokens = shape.workers, shape.max_batch_tokens
        self.max_waiting = max_waiting
        self._asked: SimpleQueue[Ticket | Signal] = SimpleQueue()
        self._prepared: SimpleQueue[tuple[Ticket, Prepared] | Signal] = SimpleQueue()
        self._shared: deque[Ticket] = deque()
        self._idle, self._pace_s = 0, 0.0
        self._ahead = 0
        """Tickets prepared for batches, none of whose pieces was taken yet."""
        self._since_s: dict[int, float] = {}
        """Thread → when the read that it is in began."""
        self.batch_sizes = [0] * (_SIZES if shape.max_batch_tokens else 0)
        """Batches read so far of 1, 2, up to 4, up to 8 … pieces; empty without batches."""
        self._lock = threading.Lock()
        work = [self._prepare_all, self._read_batches]
        if not shape.max_batch_tokens:
            work = [self._take_rows] * shape.workers
        self._threads = [
            threading.Thread(target=target, name=f"lane-{name}-{i}", daemon=True)
            for i, target in enumerate(work)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def waiting(self) -> int:
        """Inquiries accepted and not yet begun."""
        return self._asked.qsize() + self._ahead

    @property
    def ready(self) -> int:
        """Pieces prepared for a batch and not yet taken."""
        return self._prepared.qsize()

    async def read(
        self, inquiry: Inquiry, *, patience_s: float = math.inf, tally: Tally | None = None
    ) -> Readings:
        """Question id → reading, in the inquiry's order; `tally` grows by what was begun.

        Raises:
            Busy: the lane is full, or the wait would be longer than `patience_s`.
            Unreadable, Broken: as the engine said; `Broken` too for non-finite weights.
        """
        waiting = self.waiting
        if waiting or self.closing:
            self._refuse_if_busy(waiting, patience_s)
        ticket = Ticket(inquiry, asyncio.get_running_loop())
        self._asked.put(ticket)
        try:
            if self.closing:  # since the look above: it may stand behind the threads' last signal
                raise Busy("the server is stopping", retry_after_s=1.0)
            return await ticket
        finally:
            with self._lock:
                ticket.leave(tally)

    def close(self, *, drain_s: float) -> None:
        """Answer what was accepted for at most `drain_s`, refuse the rest, close the engine."""
        until_s = time.monotonic() + drain_s
        self.closing = True
        self._stop_all()
        for thread in self._threads:
            thread.join(max(0.0, until_s - time.monotonic()))
        left = [item for item in emptied(self._asked) if isinstance(item, Ticket)]
        left += [item[0] for item in emptied(self._prepared) if isinstance(item, tuple)]
        for ticket in left:
            ticket.resolve(Busy("the server is stopping", retry_after_s=1.0))
        self._stop_all()
        for thread in self._threads:
            thread.join(1.0)
        if not any(thread.is_alive() for thread in self._threads):
            self.engine.close()

    def _stop_all(self) -> None:
        for _ in self._threads:
            self._asked.put(Signal.STOP)

    def _refuse_if_busy(self, waiting: int, patience_s: float) -> None:
        if self.closing:
            raise Busy("the server is stopping", retry_after_s=1.0)
        if waiting >= self.max_waiting:
            waiting = self._forget_the_gone()
        if waiting and (hung_s := self._hung_s()) > patience_s:
            raise Busy(f"the model has not answered for {hung_s:.0f} s", retry_after_s=_MAX_RETRY_S)
        wait_s = (waiting + 1) * self._pace_s / self._workers if waiting else 0.0
        if waiting >= self.max_waiting or wait_s > patience_s:
            raise Busy(
                f"{waiting} requests are waiting for the model already",
                retry_after_s=min(max(wait_s, _MIN_RETRY_S), _MAX_RETRY_S),
            )

    def _hung_s(self) -> float:
        """How long every worker has been in one and the same read; 0 where one is free."""
        since_s = list(self._since_s.values())
        return time.monotonic() - max(since_s) if len(since_s) >= self._workers else 0.0

    def _forget_the_gone(self) -> int:
        """Take tickets nobody waits for out of the queue; how many stay."""
        for item in emptied(self._asked):
            if not (isinstance(item, Ticket) and item.gone):
                self._asked.put(item)
        return self.waiting

    def _take_rows(self) -> None:
        """Life of a row worker: its own tickets first, then a share of somebody else's."""
        while (item := self._next_row()) is not Signal.STOP:
            if isinstance(item, Ticket) and not item.gone and self._prepare(item):
                if item.left > 1:
                    self._share(item)
                self._read_rows_of(item)

    def _next_row(self) -> Ticket | Signal:
        """The next ticket or signal; helps with shared tickets while there is none."""
        while True:
            try:
                return self._asked.get_nowait()
            except Empty:
                with self._lock:
                    self._idle += 1  # before looking: who shares after this look sends a signal
                    shared = self._shared[0] if self._shared else None
                try:
                    if shared is None:
                        return self._asked.get()
                finally:
                    with self._lock:
                        self._idle -= 1
                self._read_rows_of(shared)

    def _share(self, ticket: Ticket) -> None:
        """Let idle workers read pieces of the ticket too."""
        with self._lock:
            self._shared.append(ticket)
            helpers = min(self._idle, ticket.left - 1)
        for _ in range(helpers):
            self._asked.put(Signal.HELP)

    def _read_rows_of(self, ticket: Ticket) -> None:
        """Read the ticket's pieces until none is left to take."""
        while not ticket.gone:
            try:
                piece = ticket.pieces.popleft()
            except IndexError:
                break
            self._read([(ticket, piece)])
        if ticket.shared:
            with self._lock:
                if ticket in self._shared:
                    self._shared.remove(ticket)

    def _prepare_all(self) -> None:
        """Life of a preparer: inquiries in, pieces out."""
        while (item := self._asked.get()) is not Signal.STOP:
            if isinstance(item, Ticket) and not item.gone and self._prepare(item):
                with self._lock:
                    item.ahead = True
                    self._ahead += 1
                for piece in item.pieces:
                    self._prepared.put((item, piece))
        self._prepared.put(Signal.STOP)

    def _read_batches(self) -> None:
        """Life of a batch reader: whatever is ready, up to the token budget, at least one."""
        item = self._prepared.get()
        while not isinstance(item, Signal):
            batch: _Pieces = [item]
            room = self._max_batch_tokens - item[1].tokens
            carried: tuple[Ticket, Prepared] | Signal | None = None
            while room > 0 and carried is None:
                try:
                    item = self._prepared.get_nowait()
                except Empty:
                    break
                if isinstance(item, Signal) or item[1].tokens > room:
                    carried = item
                else:
                    batch.append(item)
                    room -= item[1].tokens
            self.batch_sizes[min((len(batch) - 1).bit_length(), _SIZES - 1)] += 1
            self._read(batch)
            item = self._prepared.get() if carried is None else carried

    def _prepare(self, ticket: Ticket) -> bool:
        """Whether the ticket now has pieces; if not, its caller has been told why."""
        try:
            pieces = self.engine.prepare(ticket.inquiry)
        except Exception as error:  # noqa: BLE001 - one inquiry must not end the lane
            ticket.resolve(as_engine_error(self.name, error))
            return False
        if not pieces:
            ticket.resolve(Broken("the model did not answer every question"))
            return False
        ticket.left = len(pieces)
        ticket.shared = ticket.left > 1
        ticket.pieces.extend(pieces)
        return True

    def _read(self, batch: _Pieces) -> None:
        with self._lock:
            begun = []
            for ticket, piece in batch:
                self._ahead -= ticket.ahead
                ticket.ahead = False
                if not ticket.gone:
                    ticket.begun_tokens += piece.tokens
                    begun.append((ticket, piece))
        if not begun:
            return
        begun_s = self._since_s[threading.get_ident()] = time.monotonic()
        try:
            answers = self.engine.read([piece for _, piece in begun])
            pairs = zip([ticket for ticket, _ in begun], answers, strict=True)
            read = [(ticket, one, fault_of(ticket.inquiry, one)) for ticket, one in pairs]
        except Exception as error:  # noqa: BLE001 - one batch must not end the lane
            if len(begun) == 1:
                return begun[0][0].resolve(as_engine_error(self.name, error))
            for one in begun:
                self._read([one])  # find out whose piece it was
            return
        finally:
            self._since_s.pop(threading.get_ident(), None)
        share_s = (time.monotonic() - begun_s) / len(begun)
        for ticket, readings, fault in read:
            if fault is None:
                self._collect(ticket, readings, share_s)
            else:
                ticket.resolve(Broken(fault))

    def _collect(self, ticket: Ticket, readings: Readings, share_s: float) -> None:
        if not ticket.shared:
            ticket.spent_s = share_s
            self._pace_s += 0.1 * (share_s - self._pace_s)
            ticket.finish(readings)
        else:
            with self._lock:
                ticket.readings.update(readings)
                ticket.spent_s += share_s
                ticket.left -= 1
                done = ticket.left == 0
            if done:  # a running mean of what an inquiry takes, for retry hints and shedding
                self._pace_s += 0.1 * (ticket.spent_s - self._pace_s)
                ticket.finish(ticket.readings)
