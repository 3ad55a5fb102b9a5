"""One bounded queue and its worker threads in front of an engine.

Two shapes. `rows(n)`: n workers that prepare and read one piece at a time, for ONNX on a CPU,
where batches cost more than they save. `batches(t)`: one thread prepares, one reads batches of
up to t tokens made of whatever has queued up meanwhile, for a GPU. Callers who left are skipped,
an engine's exception ends only the tickets it concerns, closing drains.
"""

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engines.contract import (
    Broken,
    Busy,
    Engine,
    EngineError,
    Inquiry,
    Prepared,
    Reading,
    label_count,
)

Readings = dict[str, Reading]

_MIN_RETRY_S = 0.1
_MAX_RETRY_S = 10.0


@dataclass(frozen=True, slots=True)
class Shape:
    """How a lane spends its threads."""

    workers: int
    """Threads that read."""
    preparers: int = 0
    """Threads that only prepare; 0 = the workers prepare too."""
    max_batch_tokens: int = 0
    """Most tokens read in one batch; 0 = one piece at a time."""


def rows(workers: int) -> Shape:
    """For a CPU: each worker takes one piece at a time from start to end."""
    return Shape(workers)


def batches(max_batch_tokens: int) -> Shape:
    """For a GPU: one reader, fed by one preparer."""
    return Shape(workers=1, preparers=1, max_batch_tokens=max_batch_tokens)


class _Ticket:
    """One inquiry on its way through a lane. Guarded by the lane's lock once it is queued."""

    __slots__ = ("future", "gone", "inquiry", "left", "loop", "readings", "spent_s")

    def __init__(self, inquiry: Inquiry, loop: asyncio.AbstractEventLoop) -> None:
        self.inquiry = inquiry
        self.loop = loop
        self.future: asyncio.Future[Readings] = loop.create_future()
        self.gone = False
        self.readings: Readings = {}
        self.left = 0
        self.spent_s = 0.0

    def resolve(self, outcome: Readings | EngineError) -> None:
        """Hand the outcome to the caller's event loop; from any thread, at most once."""
        self.gone = True
        try:
            self.loop.call_soon_threadsafe(self._deliver, outcome)
        except RuntimeError:  # the caller's loop is closed: nobody is waiting
            return

    def _deliver(self, outcome: Readings | EngineError) -> None:
        if self.future.done():
            return
        if isinstance(outcome, EngineError):
            self.future.set_exception(outcome)
        else:
            self.future.set_result(outcome)


class Lane:
    """The only way to an engine. `read` from any event loop; everything else happens in threads."""

    def __init__(self, name: str, engine: Engine[Any], shape: Shape, *, max_waiting: int) -> None:
        """Starts the threads. At most `max_waiting` inquiries wait to be begun."""
        self.name = name
        self.engine = engine
        self._shape = shape
        self._max_waiting = max_waiting
        self._waiting: deque[_Ticket] = deque()
        self._ready: deque[tuple[_Ticket, Prepared]] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._pace_s = 0.0
        self._preparing = 0
        roles = [(shape.preparers == 0, True)] * shape.workers + [(True, False)] * shape.preparers
        self._threads = [
            threading.Thread(target=self._work, args=role, name=f"lane-{name}-{i}", daemon=True)
            for i, role in enumerate(roles)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def waiting(self) -> int:
        """Inquiries accepted and not yet begun."""
        return len(self._waiting)

    @property
    def ready(self) -> int:
        """Pieces prepared and not yet taken by a reader."""
        return len(self._ready)

    @property
    def closing(self) -> bool:
        """Whether new inquiries are refused because the lane is closing."""
        return self._closing

    async def read(self, inquiry: Inquiry, *, patience_s: float = math.inf) -> Readings:
        """Question id → reading, for every question of the inquiry, in its order.

        Cancelling gives the place in the queue back and skips what was not yet read.

        Raises:
            Busy: the lane is full, or the wait would be longer than `patience_s`.
            Unreadable, Broken: as the engine said; `Broken` too for non-finite weights.
        """
        ticket = _Ticket(inquiry, asyncio.get_running_loop())
        with self._changed:
            self._admit(ticket, patience_s)
            if self._shape.preparers:
                self._changed.notify_all()  # readers and preparers wait on the same condition
            else:
                self._changed.notify()
        try:
            return await ticket.future
        finally:
            ticket.gone = True

    def close(self, *, drain_s: float) -> None:
        """Answer what was accepted for at most `drain_s`, refuse the rest, close the engine."""
        until_s = time.monotonic() + drain_s
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(max(0.0, until_s - time.monotonic()))
        with self._changed:
            left = [*self._waiting, *(ticket for ticket, _ in self._ready)]
            self._waiting.clear()
            self._ready.clear()
            self._changed.notify_all()
        for ticket in left:
            ticket.resolve(Busy("the server is stopping", retry_after_s=1.0))
        for thread in self._threads:
            thread.join(1.0)
        if not any(thread.is_alive() for thread in self._threads):
            self.engine.close()

    def _admit(self, ticket: _Ticket, patience_s: float) -> None:
        if self._closing:
            raise Busy("the server is stopping", retry_after_s=1.0)
        waiting = len(self._waiting)
        wait_s = (waiting + 1) * self._pace_s / self._shape.workers if waiting else 0.0
        if waiting >= self._max_waiting:
            waiting -= self._forget_the_gone()
        if waiting >= self._max_waiting or wait_s > patience_s:
            raise Busy(
                f"{waiting} requests are waiting for the model already",
                retry_after_s=min(max(wait_s, _MIN_RETRY_S), _MAX_RETRY_S),
            )
        self._waiting.append(ticket)

    def _forget_the_gone(self) -> int:
        """Drop tickets nobody waits for; how many there were."""
        before = len(self._waiting)
        self._waiting = deque(ticket for ticket in self._waiting if not ticket.gone)
        return before - len(self._waiting)

    def _work(self, prepares: bool, reads: bool) -> None:
        """Life of a thread: pieces that are ready go before inquiries that wait."""
        while True:
            batch: list[tuple[_Ticket, Prepared]] = []
            ticket: _Ticket | None = None
            with self._changed:
                while True:
                    if reads and self._ready:
                        batch = self._take_batch()
                        break
                    if prepares and self._waiting:
                        ticket = self._waiting.popleft()
                        self._preparing += 1
                        break
                    if self._closing and not self._preparing and not self._waiting:
                        self._changed.notify_all()
                        return
                    self._changed.wait()
            if ticket is not None:
                batch = self._prepare(ticket, keep_one=reads)
            if batch:
                self._read(batch)

    def _take_batch(self) -> list[tuple[_Ticket, Prepared]]:
        """Ready pieces, oldest first, up to the token budget and at least one; lock held."""
        batch = [self._ready.popleft()]
        room = self._shape.max_batch_tokens - batch[0][1].tokens
        while self._ready and (room := room - self._ready[0][1].tokens) >= 0:
            batch.append(self._ready.popleft())
        return batch

    def _prepare(self, ticket: _Ticket, *, keep_one: bool) -> list[tuple[_Ticket, Prepared]]:
        """Queue the ticket's pieces; a thread that reads keeps the first for itself."""
        outcome: EngineError | None = None
        pieces: Sequence[Prepared] = ()
        if not ticket.gone:
            try:
                pieces = self.engine.prepare(ticket.inquiry)
            except EngineError as error:
                outcome = error
            except Exception as error:  # noqa: BLE001 - one inquiry must not end the lane
                outcome = _broken(self.name, error)
        kept = [(ticket, pieces[0])] if pieces and keep_one else []
        with self._changed:
            self._preparing -= 1
            ticket.left = len(pieces)
            self._ready.extend((ticket, piece) for piece in pieces[len(kept) :])
            if len(pieces) > len(kept) or self._closing:
                self._changed.notify_all()
        if outcome is not None:
            ticket.resolve(outcome)
        return kept

    def _read(self, batch: list[tuple[_Ticket, Prepared]]) -> None:
        batch = [(ticket, piece) for ticket, piece in batch if not ticket.gone]
        if not batch:
            return
        begun_s = time.monotonic()
        try:
            answers = self.engine.read([piece for _, piece in batch])
        except Exception as error:  # noqa: BLE001 - one batch must not end the lane
            if len(batch) == 1:
                batch[0][0].resolve(_broken(self.name, error))
            for one in batch if len(batch) > 1 else ():
                self._read([one])  # find out whose piece it was
            return
        share_s = (time.monotonic() - begun_s) / len(batch)
        for (ticket, _), readings in zip(batch, answers, strict=True):
            self._collect(ticket, readings, share_s)

    def _collect(self, ticket: _Ticket, readings: Mapping[str, Reading], share_s: float) -> None:
        fault = _fault(ticket.inquiry, readings)
        with self._changed:
            ticket.readings.update(readings)
            ticket.spent_s += share_s
            ticket.left -= 1
            done = ticket.left == 0
            if done:  # a running mean of what an inquiry takes, for retry hints and shedding
                self._pace_s += 0.1 * (ticket.spent_s - self._pace_s)
        if fault is not None:
            ticket.resolve(Broken(fault))
        elif done:
            asked, got = ticket.inquiry.questions, ticket.readings
            if got.keys() == asked.keys():
                ticket.resolve(got if len(got) == 1 else {name: got[name] for name in asked})
            else:
                ticket.resolve(Broken("the model did not answer every question"))


def _fault(inquiry: Inquiry, readings: Mapping[str, Reading]) -> str | None:
    """What is wrong with the readings, or `None`."""
    for name, reading in readings.items():
        weights = reading.log_weights
        if name not in inquiry.questions or len(weights) != label_count(inquiry.questions[name]):
            return "the model answered something else than it was asked"
        if not math.isfinite(sum(weights)):
            return "the model gave weights that are not finite"
    return None


def _broken(name: str, error: Exception) -> EngineError:
    """The engine's own words if it chose them, fixed ones (and the cause) otherwise."""
    if isinstance(error, EngineError):
        return error
    broken = Broken(f"the model behind {name} failed")
    broken.__cause__ = error
    return broken
