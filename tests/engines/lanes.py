"""What the tests of the lane have in common: an engine of single questions, and patience."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from engines.contract import Engine, Facts, Inquiry, Noul, Reading
from engines.lane import Lane, Shape, rows


def ask(*names: str, state: str = "a state") -> Inquiry:
    return Inquiry(state, {name: Noul("Is it?") for name in names or ("q",)})


@asynccontextmanager
async def lane_of(
    engine: Engine[Any], shape: Shape | None = None, max_waiting: int = 8
) -> AsyncIterator[Lane]:
    lane = Lane("test", engine, shape or rows(1), max_waiting=max_waiting)
    try:
        yield lane
    finally:
        await asyncio.to_thread(lane.close, drain_s=5.0)


@dataclass(frozen=True)
class Piece:
    """One question of an inquiry."""

    state: str
    name: str
    tokens: int = 10


class PerQuestion(Engine[Piece]):
    """One piece per question; remembers its batches; does what `react` says to a batch."""

    def __init__(self, react: Callable[[Sequence[Piece]], object] = lambda _: None) -> None:
        self.batches: list[list[str]] = []
        self.closed = False
        self._react = react

    @property
    def facts(self) -> Facts:
        return Facts("per-question", "per-question")

    def prepare(self, inquiry: Inquiry) -> Sequence[Piece]:
        return [Piece(str(inquiry.state), name) for name in inquiry.questions]

    def read(self, batch: Sequence[Piece]) -> Sequence[Mapping[str, Reading]]:
        self.batches.append([piece.name for piece in batch])
        self._react(batch)
        return [{piece.name: Reading((0.0, 1.0), piece.tokens)} for piece in batch]

    def close(self) -> None:
        self.closed = True


async def until(condition: Callable[[], bool]) -> None:
    """Return once `condition` holds; the test's own timeout is the limit."""
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.001)
