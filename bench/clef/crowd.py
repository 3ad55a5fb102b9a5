"""Many callers at once, through a lane: questions per second."""

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.clef.clocks import clock
from bench.clef.models import Size
from bench.clef.prompts import prompt
from engines.clef.prompt import Prompt
from engines.clef.reader import Reader
from engines.contract import Engine, Facts, Inquiry, Noul, Reading
from engines.lane import Lane, batches

_LENGTH, _QUESTION = 334, 84
_BATCH_TOKENS = 16_384


@dataclass(frozen=True, slots=True)
class _Piece:
    name: str
    prompt: Prompt

    @property
    def tokens(self) -> int:
        return self.prompt.tokens


class _Ready(Engine[_Piece]):
    """Asks what was prepared beforehand; an inquiry's state is the number of its prompt."""

    def __init__(self, reader: Reader, prompts: Sequence[Prompt]) -> None:
        self._reader = reader
        self._prompts = prompts

    @property
    def facts(self) -> Facts:
        return Facts("random", "random")

    def prepare(self, inquiry: Inquiry) -> Sequence[_Piece]:
        asked = self._prompts[int(str(inquiry.state))]
        return [_Piece(name, asked) for name in inquiry.questions]

    def read(self, batch: Sequence[_Piece]) -> Sequence[Mapping[str, Reading]]:
        found = self._reader.logits([piece.prompt for piece in batch])
        # three options stand for a noul's two labels: nobody looks at the answers
        return [
            {piece.name: Reading(own[0][:2], piece.tokens)}
            for piece, own in zip(batch, found, strict=True)
        ]

    def close(self) -> None:
        """Nothing to let go of."""


def throughput(reader: Reader, size: Size, callers: int, questions: int) -> float:
    """Questions per second of so many callers, each about a state of its own."""
    count = max(questions, callers)
    prompts = [
        prompt(_LENGTH - _QUESTION, _QUESTION, size.text.vocabulary, 100 * i) for i in range(count)
    ]
    engine = _Ready(reader, prompts)
    lane = Lane("bench", engine, batches(_BATCH_TOKENS), max_waiting=count)
    try:
        asyncio.run(_asked(lane, callers, callers))  # records what is recorded
        now_s = clock(reader.device)
        begun_s = now_s()
        asyncio.run(_asked(lane, callers, count))
        return count / (now_s() - begun_s)
    finally:
        lane.close(drain_s=10.0)


async def _asked(lane: Lane, callers: int, count: int) -> None:
    async def one(first: int) -> None:
        for at in range(first, count, callers):
            await lane.read(Inquiry(str(at), {"q": Noul("?")}), patience_s=math.inf)

    await asyncio.gather(*(one(first) for first in range(callers)))
