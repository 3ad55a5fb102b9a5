"""Turns examples into rows and rows into logits; the one place where text meets the model."""

from collections.abc import Callable, Sequence

import torch
from tokenizers import Tokenizer
from torch import Tensor

from training.encoder import padded
from training.layout import Row, in_blocks
from training.sets import Example

MARKER = "[unused0]"
TOKENS_A_BATCH = 2048

Reads = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
"""Ids, positions, blocks, int64[rows, width], markers, int64[rows, options], to float32 logits."""


class Writer:
    """Writes examples as rows of at most `prefix_tokens` before the options."""

    def __init__(self, tokenizer: Tokenizer, prefix_tokens: int, option_tokens: int) -> None:
        self._tokenizer = tokenizer
        self._prefix_tokens = prefix_tokens
        self._option_tokens = option_tokens
        self._opens, self._parts, self._marker = (
            int(tokenizer.token_to_id(token) or 0) for token in ("[CLS]", "[SEP]", MARKER)
        )

    def row(self, example: Example) -> Row:
        """The row of an example; a state too long for the prefix loses its end."""
        asked = self._ids(f"{example.kind}: {example.instructions}")[: self._prefix_tokens // 2]
        room = self._prefix_tokens - len(asked) - 3
        state = self._ids(example.state)[:room]
        prefix = [self._opens, *asked, self._parts, *state, self._parts]
        options = [self._ids(option)[: self._option_tokens] for option in example.options]
        return in_blocks(prefix, options, self._marker)

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids


def batches(rows: Sequence[Row], tokens_a_batch: int) -> list[list[int]]:
    """Indices of rows in batches of like length, at most `tokens_a_batch` padded tokens each."""
    order = sorted(range(len(rows)), key=lambda index: len(rows[index]))
    found: list[list[int]] = [[]]
    for index in order:
        if found[-1] and len(rows[index]) * (len(found[-1]) + 1) > tokens_a_batch:
            found.append([])
        found[-1].append(index)
    return found


@torch.no_grad()
def logits(
    reads: Reads, writer: Writer, examples: Sequence[Example], tokens_a_batch: int = TOKENS_A_BATCH
) -> list[Tensor]:
    """The MLP's logits, without the cosine's share, float32[options] per example in order."""
    rows = [writer.row(example) for example in examples]
    found: dict[int, Tensor] = {}
    for batch in batches(rows, tokens_a_batch):
        ids, positions, blocks, markers, _ = padded([rows[index] for index in batch])
        lines = reads(ids, positions, blocks, markers)
        for index, line in zip(batch, lines, strict=True):
            found[index] = line[: len(rows[index].markers)]
    return [found[index] for index in range(len(rows))]
