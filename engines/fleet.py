"""Several lanes behind one name, each with an engine of its own: the least busy one reads."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from engines.contract import Engine, Health, Inquiry, Tally
from engines.lane import Lane
from engines.ticket import Readings


class Fleet:
    """Looks like a lane. Belongs to one event loop."""

    def __init__(self, name: str, lanes: Sequence[Lane]) -> None:
        """Lanes whose engines differ in nothing but where they compute; at least one."""
        self.name = name
        self._lanes = tuple(lanes)
        self._asked = [0] * len(self._lanes)
        """Inquiries that each lane has and has not answered."""

    @property
    def engine(self) -> Engine[Any]:
        """One of the engines; all say the same of themselves."""
        return self._lanes[0].engine

    @property
    def waiting(self) -> int:
        """Inquiries accepted and not yet begun."""
        return sum(lane.waiting for lane in self._lanes)

    @property
    def max_waiting(self) -> int:
        """Most inquiries that may wait."""
        return sum(lane.max_waiting for lane in self._lanes)

    @property
    def ready(self) -> int:
        """Pieces prepared for a batch and not yet taken."""
        return sum(lane.ready for lane in self._lanes)

    @property
    def batch_sizes(self) -> list[int]:
        """See `Lane.batch_sizes`."""
        each = [lane.batch_sizes for lane in self._lanes]
        return [sum(sizes) for sizes in zip(*each, strict=True)]

    @property
    def health(self) -> Health:
        """Of all together: ready while one is; lost when all are."""
        each = [lane.engine.health for lane in self._lanes]
        counts: Counter[str] = Counter()
        for one in each:
            counts.update(one.counts)
        states = {one.state for one in each}
        for state in ("ready", "loading", "resting"):
            if state in states:
                return Health(state, dict(counts))
        return Health("lost", dict(counts))

    async def read(
        self, inquiry: Inquiry, *, patience_s: float = math.inf, tally: Tally | None = None
    ) -> Readings:
        """As `Lane.read`, by the lane that has the least to do and whose device is there."""
        at = min(range(len(self._lanes)), key=self._burden)
        self._asked[at] += 1
        try:
            return await self._lanes[at].read(inquiry, patience_s=patience_s, tally=tally)
        finally:
            self._asked[at] -= 1

    def close(self, *, drain_s: float) -> None:
        """Close every lane; each may take as long."""
        for lane in self._lanes:
            lane.close(drain_s=drain_s)

    def _burden(self, at: int) -> tuple[bool, int]:
        return self._lanes[at].engine.health.state == "lost", self._asked[at]


def health_of(lane: Lane | Fleet) -> Health:
    """How whatever reads is now."""
    return lane.health if isinstance(lane, Fleet) else lane.engine.health
