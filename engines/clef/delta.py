"""The gated delta rule: a memory of fixed size that each token decays, corrects and reads.

Per value head, with keys and queries of unit length: S ← e^g S; S ← S + k ⊗ β(v - kᵀS); o = qᵀS.
Computed in chunks of 64 tokens by the WY form (Yang et al., "Gated Delta Networks: Improving
Mamba2 with Delta Rule", 2024, section 3): within a chunk one triangular system gives all
corrections at once. On a GPU a fused kernel does the same, where it is installed (`kernels`).
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

CHUNK = 64
_EPSILON = 1e-6


@dataclass(frozen=True, slots=True)
class Signals:
    """What a linear layer makes of its tokens."""

    query: Tensor
    """[rows, tokens, heads, key_dim]; heads are those of the values."""
    key: Tensor
    value: Tensor
    """[rows, tokens, heads, value_dim]"""
    decay: Tensor
    """float32[rows, tokens, heads], the logarithm, at most 0."""
    rate: Tensor
    """[rows, tokens, heads], from 0 (the token writes nothing) to 1."""


Rule = Callable[[Signals, Tensor], tuple[Tensor, Tensor]]
"""Signals and float32 memory [rows, heads, key_dim, value_dim] → outputs [rows, tokens, heads,
value_dim] and the memory after the last token."""


def delta_rule(signals: Signals, memory: Tensor) -> tuple[Tensor, Tensor]:
    """The rule in plain torch, in float32, for any device."""
    tokens = signals.query.shape[1]
    query, key = _unit(signals.query), _unit(signals.key)
    query = query * query.shape[-1] ** -0.5
    value, rate = signals.value.float(), signals.rate.float()[..., None]
    parts = [_chunked(x, tokens) for x in (query, key, value * rate, key * rate)]
    query, key, value, scaled = parts
    total = _chunked(signals.decay[..., None], tokens)[..., 0].cumsum(-1)
    gap = total[..., :, None] - total[..., None, :]
    above = torch.ones(CHUNK, CHUNK, dtype=torch.bool, device=gap.device).triu(1)
    gap = gap.masked_fill(above, float("-inf")).exp()
    system = (scaled @ key.mT) * gap
    within = (query @ key.mT) * gap
    faded = scaled * total.exp()[..., None]
    solved = torch.linalg.solve_triangular(
        system, torch.cat((value, faded), -1), upper=False, unitriangular=True
    )
    written, seen = torch.split(solved, [value.shape[-1], key.shape[-1]], -1)
    query = query * total.exp()[..., None]
    key = key * (total[..., -1:] - total).exp()[..., None]
    kept = total[..., -1].exp()[..., None, None]
    outputs = []
    for at in range(query.shape[2]):
        fresh = written[:, :, at] - seen[:, :, at] @ memory
        outputs.append(query[:, :, at] @ memory + within[:, :, at] @ fresh)
        memory = memory * kept[:, :, at] + key[:, :, at].mT @ fresh
    output = torch.cat(outputs, 2)[:, :, :tokens].transpose(1, 2)
    return output.to(signals.value.dtype), memory


def token_by_token(signals: Signals, memory: Tensor) -> tuple[Tensor, Tensor]:
    """The rule as it is defined, one token after the other; what the others are tested against."""
    query, key = _unit(signals.query), _unit(signals.key)
    query = query * query.shape[-1] ** -0.5
    outputs = []
    for at in range(query.shape[1]):
        memory = memory * signals.decay[:, at].exp()[..., None, None]
        known = torch.einsum("bhk,bhkv->bhv", key[:, at], memory)
        fresh = (signals.value[:, at].float() - known) * signals.rate[:, at].float()[..., None]
        memory = memory + key[:, at, :, :, None] * fresh[:, :, None, :]
        outputs.append(torch.einsum("bhk,bhkv->bhv", query[:, at], memory))
    return torch.stack(outputs, 1).to(signals.value.dtype), memory


def _unit(x: Tensor) -> Tensor:
    """float32, of length 1 along the last axis."""
    x = x.float()
    return x * torch.rsqrt((x * x).sum(-1, keepdim=True) + _EPSILON)


def _chunked(x: Tensor, tokens: int) -> Tensor:
    """[rows, tokens, heads, …] to [rows, heads, chunks, 64, …]; what is missing writes nothing."""
    x = functional.pad(x, (0, 0, 0, 0, 0, -tokens % CHUNK)).transpose(1, 2)
    return x.reshape(*x.shape[:2], -1, CHUNK, x.shape[-1])
