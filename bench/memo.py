"""What a remembered answer costs: `python -m bench memo`; the goal is 20 µs of CPU a hit."""

import asyncio
import time
from collections.abc import Mapping, Sequence

from engines.contract import Choice, Inquiry, Reading, Tally
from gateway.memo import Memo

_GOAL_S = 20e-6
_ROUNDS = 7
_HITS = 2_000


class _Once:
    """A reader that may be asked once."""

    name = "once"

    def __init__(self) -> None:
        self.asked = 0

    async def read(
        self, inquiry: Inquiry, *, patience_s: float, tally: Tally | None = None
    ) -> Mapping[str, Reading]:
        """The same weights for every question."""
        self.asked += 1
        return {name: Reading((0.0, 1.0, 2.0), 10) for name in inquiry.questions}


def main(_: Sequence[str]) -> int:
    """Print the CPU of a hit; 1 when it is over the goal."""
    cost_s = asyncio.run(_cost_s())
    print(f"{cost_s * 1e6:.1f} µs of CPU a hit, quickest of {_ROUNDS} rounds of {_HITS}")
    return int(cost_s > _GOAL_S)


async def _cost_s() -> float:
    reader = _Once()
    memo = Memo(reader, "digest", 100_000)
    state = "Hi, we were billed twice for March. Please refund the duplicate today. " * 8
    inquiry = Inquiry(state, {"q": Choice({"a": None, "b": None, "c": None}, "Which?")})
    await memo.read(inquiry, patience_s=1.0)
    costs_s = []
    for _ in range(_ROUNDS):
        begun_s = time.thread_time()
        for _ in range(_HITS):
            await memo.read(inquiry, patience_s=1.0)
        costs_s.append((time.thread_time() - begun_s) / _HITS)
    if reader.asked != 1:
        raise RuntimeError("the memo asked again for what it should remember")
    return min(costs_s)
