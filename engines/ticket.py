"""One inquiry on its way through a lane, and what may be wrong with what comes back."""

import asyncio
import enum
import math
from collections import deque
from collections.abc import Generator, Mapping
from queue import Empty, SimpleQueue
from typing import Any

from engines.contract import (
    Broken,
    EngineError,
    Inquiry,
    Prepared,
    Reading,
    Tally,
    label_count,
)

Readings = Mapping[str, Reading]


class Signal(enum.Enum):
    """What stands in a queue beside tickets and pieces."""

    HELP = enum.auto()
    """Some ticket has pieces left that a free worker may read."""
    STOP = enum.auto()
    """Nothing follows; the thread may end."""


class Ticket:
    """An inquiry, its pieces, its readings so far, and the caller who waits for them."""

    __slots__ = (
        "_future",
        "ahead",
        "begun_tokens",
        "gone",
        "inquiry",
        "left",
        "loop",
        "pieces",
        "readings",
        "shared",
        "spent_s",
    )

    def __init__(self, inquiry: Inquiry, loop: asyncio.AbstractEventLoop) -> None:
        self.inquiry = inquiry
        self.loop = loop
        self._future: asyncio.Future[Readings] | None = loop.create_future()
        self.ahead = False
        """Prepared for a batch that it is not in yet; guarded by the lane's lock."""
        self.begun_tokens = 0
        """Of the pieces whose reading has begun; guarded by the lane's lock."""
        self.gone = False
        """Nobody waits any more: the caller left, or has been told the outcome."""
        self.pieces: deque[Prepared] = deque()
        """Prepared and not yet taken."""
        self.left = 0
        """Pieces not yet read; guarded by the lane's lock when there are several."""
        self.shared = False
        """Whether several threads may be reading it."""
        self.readings: dict[str, Reading] = {}
        self.spent_s = 0.0

    def __await__(self) -> Generator[Any, None, Readings]:
        """Every question's reading. Raises: EngineError: what it was resolved with."""
        if self._future is None:
            raise RuntimeError("the ticket was left")
        return self._future.__await__()

    def leave(self, tally: Tally | None) -> None:
        """Nobody waits any more; what was read so far is added to the tally.

        An exception knows the frames that it passed through, and these know the ticket: it must
        not know the exception, or all of them wait for the garbage collector.
        """
        self.gone = True
        self._future = None
        if tally is not None:
            tally.tokens += self.begun_tokens
            tally.spent_s += self.spent_s

    def finish(self, readings: Readings) -> None:
        """Give the caller one reading per question, in the inquiry's order."""
        asked = self.inquiry.questions
        if readings.keys() != asked.keys():
            self.resolve(Broken("the model did not answer every question"))
        elif len(asked) == 1 or not self.shared:
            self.resolve(readings)
        else:
            self.resolve({name: readings[name] for name in asked})

    def resolve(self, outcome: Readings | EngineError) -> None:
        """Hand the outcome to the caller's event loop; from any thread, at most once."""
        self.gone = True
        try:
            self.loop.call_soon_threadsafe(self._deliver, outcome)
        except RuntimeError:  # the caller's loop is closed: nobody is waiting
            return

    def _deliver(self, outcome: Readings | EngineError) -> None:
        if self._future is None or self._future.done():
            return
        if isinstance(outcome, EngineError):
            self._future.set_exception(outcome)
        else:
            self._future.set_result(outcome)


def fault_of(inquiry: Inquiry, readings: Readings) -> str | None:
    """What is wrong with the readings, or `None`."""
    questions = inquiry.questions
    for name, reading in readings.items():
        weights = reading.log_weights
        if name not in questions or len(weights) != label_count(questions[name]):
            return "the model answered something else than it was asked"
        if not math.isfinite(sum(weights)):
            return "the model gave weights that are not finite"
    return None


def as_engine_error(name: str, error: Exception) -> EngineError:
    """The engine's own words if it chose them; fixed ones with the cause otherwise."""
    if isinstance(error, EngineError):
        return error
    broken = Broken(f"the model behind {name} failed")
    broken.__cause__ = error
    return broken


def emptied(queue: SimpleQueue[Any]) -> list[Any]:
    """What stood in the queue, in order; what is put meanwhile stays for later."""
    items = []
    for _ in range(queue.qsize()):
        try:
            items.append(queue.get_nowait())
        except Empty:
            break
    return items
