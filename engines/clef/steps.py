"""Rows of tokens through the backbone, in chunks that bound the memory it takes."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engines.clef.evidence import Intake
from engines.clef.model import Model
from engines.clef.past import Past
from engines.clef.positions import padded
from engines.clef.prompt import Opening
from engines.clef.replay import Replay
from engines.clef.settings import ClefSettings
from engines.clef.tokens import Ids

Chunk = tuple[Tensor, Tensor, list[int]]
"""Embedded tokens, their positions, and how many of each row are no padding."""


@dataclass(frozen=True, slots=True)
class Row:
    """Tokens that are read after each other."""

    ids: Ids
    positions: Tensor
    """int64[3, tokens]"""
    opening: Opening | None = None
    """If the row begins with one, whose pictures are to be seen."""


class Steps:
    """The backbone of one model, chunk by chunk."""

    def __init__(self, model: Model, settings: ClefSettings, replay: Replay) -> None:
        self._model = model
        self._chunk_tokens = settings.chunk_tokens
        self._replay = replay

    def read(self, rows: Sequence[Row], intake: Intake) -> Past:
        """The rows from their beginning; what it takes to go on after them.

        Several rows are read in one chunk together; a row of several chunks is read alone.
        """
        last, before = self._all_but_the_last(rows, None, intake)
        hidden, past = self._replay.hidden_and_past(*last, before)
        intake.take(hidden)
        return past

    def ask(self, rows: Sequence[Row], past: Past | None, intake: Intake) -> None:
        """The rows after what they have read, and nothing after them."""
        last, past = self._all_but_the_last(rows, past, intake)
        intake.take(self._replay.hidden(*last, past))

    def _all_but_the_last(
        self, rows: Sequence[Row], past: Past | None, intake: Intake
    ) -> tuple[Chunk, Past | None]:
        """Reads every chunk but the last, which is given back with the past before it."""
        lengths = [len(row.ids) for row in rows]
        tokens = max(lengths)
        step = tokens if len(rows) > 1 else self._chunk_tokens
        seen = [self._seen(row) for row in rows]
        begin = 0
        while True:
            end = min(begin + step, tokens)
            chunk = slice(begin, end)
            embedded = self._embedded(rows, chunk, seen)
            positions = padded([row.positions[:, chunk] for row in rows], end - begin)
            own = [min(length, end) - begin for length in lengths]
            if end == tokens:
                return (embedded, positions, own), past
            hidden, past = self._replay.hidden_and_past(
                embedded, positions, own, past, record=False
            )
            intake.take(hidden)
            begin = end

    def _seen(self, row: Row) -> list[tuple[int, Tensor]]:
        """Where each picture of a row begins, and the hidden states of its tokens."""
        opening, tower = row.opening, self._model.tower
        if opening is None or not opening.pictures:
            return []
        if tower is None:
            raise ValueError("there is no vision tower")
        return list(zip(opening.pictures_at, tower.tokens(opening.pictures), strict=True))

    def _embedded(
        self, rows: Sequence[Row], chunk: slice, seen: Sequence[list[tuple[int, Tensor]]]
    ) -> Tensor:
        """[rows, tokens of the chunk, hidden]; padding is token 0."""
        ids = torch.zeros(len(rows), chunk.stop - chunk.start, dtype=torch.int64)
        for at, row in enumerate(rows):
            own = torch.tensor(row.ids[chunk], dtype=torch.int64)
            ids[at, : len(own)] = own
        embedded = self._model.embeddings.of(ids)
        for at, pictures in enumerate(seen):
            for begin, states in pictures:
                low, high = max(begin, chunk.start), min(begin + len(states), chunk.stop)
                if low < high:
                    target = slice(low - chunk.start, high - chunk.start)
                    embedded[at, target] = states[low - begin : high - begin].to(embedded.dtype)
        return embedded
