"""One request on its way: what its log line, its metrics and its Server-Timing header tell of it.

Never content: ids, names of the configuration, numbers. Made for every request, so it is cheap:
what nobody has set yet is read from the class.
"""

from math import floor
from time import perf_counter
from typing import TypeAlias

from gateway.decision import Decision, Spending
from gateway.errors import Kind

STAGES = ("receive", "decode", "ledger", "queue", "engine", "total")
"""Where the time of an answered request goes, in this order:

receive: from the head to the whole body, with the key, the rate and the upload;
decode: decompressing, parsing, validating; ledger: holding a budget, joining an earlier request,
committing the charge, wording the answer; queue: waiting for the engine, and the way to its thread
and back; engine: reading, where threads that share a request count together; total: all of it.
"""
Laps: TypeAlias = tuple[float, float, float, float, float, float]
"""Seconds of each of `STAGES`."""

_SHORT_MS = tuple(b"%d.%02d" % divmod(hundredths, 100) for hundredths in range(2000))


class Passage:
    """Filled in by whoever comes to know more. Clock: perf_counter."""

    key_id = ""
    spending: Spending | None = None
    """What was read, also when there is no answer; `None` = nothing was asked for."""
    received_s = decoded_s = inquired_s = decided_s = 0.0
    kind: Kind | None = None
    """Of the refusal, if it was refused."""
    decision: Decision | None = None
    laps: Laps | None = None

    def __init__(self, request_id: bytes) -> None:
        self.begun_s = perf_counter()
        self.request_id = request_id

    def answered(self, decision: Decision) -> Laps:
        """The stages, now that the answer is worded."""
        now_s, begun_s = perf_counter(), self.begun_s
        received_s, decoded_s = self.received_s, self.decoded_s
        reading_s = self.decided_s - self.inquired_s  # 0 when the decision was somebody else's
        spent_s = 0.0
        if self.spending is not None:
            for step in self.spending.steps:
                spent_s += step.seconds
        queue_s = reading_s - spent_s
        self.decision = decision
        self.laps = laps = (
            received_s - begun_s,
            decoded_s - received_s,
            now_s - decoded_s - reading_s,
            queue_s if queue_s > 0.0 else 0.0,
            spent_s,
            now_s - begun_s,
        )
        return laps

    @property
    def server_timing(self) -> bytes:
        """The value of a Server-Timing header (W3C): milliseconds, rounded down to 0.01.

        The stages that a caller can do something about; the log and the metrics have all of them.
        """
        if self.laps is None:
            return b"total;dur=" + _ms(perf_counter() - self.begun_s)
        _, _, _, queue_s, engine_s, total_s = self.laps
        queue, engine, total = _ms(queue_s), _ms(engine_s), _ms(total_s)
        return b"".join((b"queue;dur=", queue, b", engine;dur=", engine, b", total;dur=", total))


def _ms(seconds: float) -> bytes:
    """As a decimal; short times from a table, because to write a float takes long."""
    hundredths = floor(seconds * 100_000.0)
    return _SHORT_MS[hundredths] if hundredths < 2000 else b"%d.%02d" % divmod(hundredths, 100)
