"""What a backbone remembers of tokens it has read: enough to go on as if they stood before."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional


@dataclass(frozen=True, slots=True)
class Past:
    """Of one row or several; every list has one entry per layer of its kind."""

    lengths: tuple[int, ...]
    """Per row, how many of the keys count; they are padded on the right."""
    keys: tuple[Tensor, ...]
    """Per full layer: [rows, kv_heads, tokens, head_dim]."""
    values: tuple[Tensor, ...]
    convolved: tuple[Tensor, ...]
    """Per linear layer: the last inputs of its convolution, [rows, taps - 1, channels]."""
    memories: tuple[Tensor, ...]
    """Per linear layer: float32[rows, value_heads, key_dim, value_dim]."""

    @property
    def bytes(self) -> int:
        """On its device."""
        every = (*self.keys, *self.values, *self.convolved, *self.memories)
        return sum(tensor.nbytes for tensor in every)

    @property
    def width(self) -> int:
        """Keys per row, padding included."""
        return self.keys[0].shape[2] if self.keys else 0

    def row(self, at: int) -> "Past":
        """One row by itself, without padding, in memory of its own."""
        length = self.lengths[at]
        one = slice(at, at + 1)
        return Past(
            (length,),
            tuple(keys[one, :, :length].clone() for keys in self.keys),
            tuple(values[one, :, :length].clone() for values in self.values),
            tuple(last[one].clone() for last in self.convolved),
            tuple(memory[one].clone() for memory in self.memories),
        )


def stacked(pasts: Sequence[Past], width: int) -> Past:
    """Single rows under each other, keys padded to `width`; one row repeated costs no memory."""
    first = pasts[0]
    count = len(pasts)
    if all(past is first for past in pasts) and first.width == width:
        return Past(
            first.lengths * count,
            tuple(keys.expand(count, -1, -1, -1) for keys in first.keys),
            tuple(values.expand(count, -1, -1, -1) for values in first.values),
            tuple(last.expand(count, -1, -1) for last in first.convolved),
            tuple(memory.expand(count, -1, -1, -1) for memory in first.memories),
        )
    return Past(
        tuple(length for past in pasts for length in past.lengths),
        _stacked_padded([past.keys for past in pasts], width),
        _stacked_padded([past.values for past in pasts], width),
        tuple(torch.cat(layer) for layer in zip(*(past.convolved for past in pasts), strict=True)),
        tuple(torch.cat(layer) for layer in zip(*(past.memories for past in pasts), strict=True)),
    )


def _stacked_padded(rows: Sequence[Sequence[Tensor]], width: int) -> tuple[Tensor, ...]:
    return tuple(
        torch.cat([functional.pad(one, (0, 0, 0, width - one.shape[2])) for one in layer])
        for layer in zip(*rows, strict=True)
    )
