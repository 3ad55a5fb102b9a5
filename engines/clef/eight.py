"""Products in FP8: weights with a scale per output, inputs with one per token, multiplied as such.

By torch alone: what wraps a weight in a type of its own costs more time per product than a short
prompt's product takes, and rounds an input anew for each of the products it goes into.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

_FORMAT = torch.float8_e4m3fn
_LARGEST = torch.finfo(_FORMAT).max
_LEAST = 1e-12
"""Rows of nothing but zeros, such as padding, have a scale too."""


@dataclass(frozen=True, slots=True)
class Rounded:
    """A matrix in FP8, row by row."""

    numbers: Tensor
    """float8[rows, columns]"""
    scales: Tensor
    """float32[rows, 1]: what each row is to be multiplied by."""


def rounded(x: Tensor) -> Rounded:
    """A matrix of rows with the largest number of each as large as the format allows."""
    largest = torch.linalg.vector_norm(x, float("inf"), dim=-1, keepdim=True)
    scales = largest.float().clamp(min=_LEAST) / _LARGEST
    return Rounded((x / scales).to(_FORMAT), scales)


class EightBitLinear(nn.Module):
    """A product without bias whose weight and inputs are FP8."""

    def __init__(self, weight: Tensor) -> None:
        """Rounds the weight, [outputs, inputs]."""
        super().__init__()
        small = rounded(weight)
        self.weight = nn.Parameter(small.numbers, requires_grad=False)
        self.scales = nn.Buffer(small.scales.t().contiguous(), persistent=False)
        self._dtype = weight.dtype

    def forward(self, x: Tensor) -> Tensor:
        """[…, inputs] to […, outputs]"""
        return self.of(rounded(x.flatten(0, -2))).reshape(*x.shape[:-1], -1)

    def of(self, x: Rounded) -> Tensor:
        """The same for a matrix that is rounded already."""
        if x.numbers.is_cuda:
            return torch._scaled_mm(
                x.numbers,
                self.weight.t(),
                scale_a=x.scales,
                scale_b=self.scales,
                out_dtype=self._dtype,
                use_fast_accum=True,
            )
        found = x.numbers.float() @ self.weight.float().t()
        return (found * x.scales * self.scales).to(self._dtype)


def products(x: Tensor, *linears: nn.Module) -> list[Tensor]:
    """What each of them makes of one input, which is rounded once if they round it."""
    eight = [one for one in linears if isinstance(one, EightBitLinear)]
    if len(eight) < len(linears):
        return [one(x) for one in linears]
    once = rounded(x.flatten(0, -2))
    return [one.of(once).reshape(*x.shape[:-1], -1) for one in eight]
