"""The layers of the decoder: norms, rotary positions, full attention, linear attention, MLP.

Names of parameters are those of the checkpoint, so that tensors are assigned as they come.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from engines.clef.attention import attended
from engines.clef.delta import Signals
from engines.clef.eight import products
from engines.clef.geometry import Rotary, Text
from engines.clef.kernels import Kernels


@dataclass(frozen=True, slots=True)
class Turn:
    """Cosines and sines of positions: [rows or 1, tokens, dims], in the model's data type."""

    cos: Tensor
    sin: Tensor


@dataclass(frozen=True, slots=True)
class Stretch:
    """The tokens that are read now, beside their hidden states."""

    turn: Turn
    valid: Tensor | None
    """bool[rows, tokens]: which are no padding; `None` = all."""
    ends: Tensor | None
    """int64[rows]: how many are no padding; `None` = all."""
    mask: Tensor | None
    """bool[rows, 1, tokens, keys]: what attends to what; `None` = plainly causal, the new tokens
    being the last of all."""


def turn(rotary: Rotary, positions: Tensor, dtype: torch.dtype) -> Turn:
    """Of positions int64[3, rows, tokens]: time, row and column, equal for text.

    Frequencies are shared out in turns (interleaved M-RoPE): every third belongs to rows and
    every third to columns, as long as their sections last.
    """
    steps = torch.arange(0, rotary.dims, 2, dtype=torch.float32, device=positions.device)
    angles = positions.float()[..., None] / rotary.theta ** (steps / rotary.dims)
    mixed = angles[0].clone()
    for axis in (1, 2):
        own = slice(axis, 3 * rotary.sections[axis], 3)
        mixed[..., own] = angles[axis][..., own]
    both = torch.cat((mixed, mixed), -1)
    return Turn(both.cos().to(dtype), both.sin().to(dtype))


class ZeroCentredNorm(nn.Module):
    """RMSNorm whose gain is one more than its weight, in float32 inside."""

    def __init__(self, size: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(size))
        self._epsilon = epsilon
        self._gain: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        """The same shape and data type. The weight does not change after the first time."""
        if self._gain is None:
            self._gain = 1.0 + self.weight.float()
        wide = functional.rms_norm(x.float(), self._gain.shape, self._gain, self._epsilon)
        return wide.to(x.dtype)


class GatedNorm(nn.Module):
    """RMSNorm with a plain gain, times SiLU of a gate."""

    def __init__(self, size: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(size))
        self._epsilon = epsilon

    def forward(self, x: Tensor, gate: Tensor) -> Tensor:
        """The same shape and data type as `x`."""
        gained = self.weight * functional.rms_norm(x, self.weight.shape, None, self._epsilon)
        return (gained * functional.silu(gate.float())).to(x.dtype)


class Mlp(nn.Module):
    """SwiGLU."""

    def __init__(self, text: Text) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(text.hidden, text.intermediate, bias=False)
        self.up_proj = nn.Linear(text.hidden, text.intermediate, bias=False)
        self.down_proj = nn.Linear(text.intermediate, text.hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        gate, up = products(x, self.gate_proj, self.up_proj)
        down: Tensor = self.down_proj(functional.silu(gate) * up)
        return down


class FullAttention(nn.Module):
    """Grouped-query attention with a gate on its output."""

    def __init__(self, text: Text) -> None:
        super().__init__()
        wide, narrow = text.heads * text.head_dim, text.kv_heads * text.head_dim
        self.q_proj = nn.Linear(text.hidden, 2 * wide, bias=False)
        self.k_proj = nn.Linear(text.hidden, narrow, bias=False)
        self.v_proj = nn.Linear(text.hidden, narrow, bias=False)
        self.o_proj = nn.Linear(wide, text.hidden, bias=False)
        self.q_norm = ZeroCentredNorm(text.head_dim, text.epsilon)
        self.k_norm = ZeroCentredNorm(text.head_dim, text.epsilon)
        self._head_dim = text.head_dim

    def forward(
        self, x: Tensor, stretch: Stretch, keys: Tensor | None, values: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Outputs like `x`, and all keys and values, those from before first."""
        shape = (*x.shape[:2], -1, self._head_dim)
        both, key, value = products(x, self.q_proj, self.k_proj, self.v_proj)
        query, gate = both.view(*x.shape[:2], -1, 2 * self._head_dim).chunk(2, -1)
        query = _turned(self.q_norm(query).transpose(1, 2), stretch.turn)
        key = _turned(self.k_norm(key.view(shape)).transpose(1, 2), stretch.turn)
        value = value.view(shape).transpose(1, 2)
        if keys is not None and values is not None:
            key, value = torch.cat((keys, key), 2), torch.cat((values, value), 2)
        seen = attended(query, key, value, stretch.mask)
        seen = seen.transpose(1, 2).reshape(*x.shape[:2], -1)
        return self.o_proj(seen * torch.sigmoid(gate.reshape(seen.shape))), key, value


class LinearAttention(nn.Module):
    """Gated DeltaNet: a short causal convolution, then a memory of fixed size."""

    def __init__(self, text: Text) -> None:
        super().__init__()
        values = text.value_heads * text.value_dim
        self.in_proj_qkv = nn.Linear(text.hidden, text.channels, bias=False)
        self.in_proj_z = nn.Linear(text.hidden, values, bias=False)
        self.in_proj_a = nn.Linear(text.hidden, text.value_heads, bias=False)
        self.in_proj_b = nn.Linear(text.hidden, text.value_heads, bias=False)
        self.conv1d = nn.Conv1d(
            text.channels, text.channels, text.kernel, groups=text.channels, bias=False
        )
        self.A_log = nn.Parameter(torch.empty(text.value_heads))
        self.dt_bias = nn.Parameter(torch.empty(text.value_heads))
        self.norm = GatedNorm(text.value_dim, text.epsilon)
        self.out_proj = nn.Linear(values, text.hidden, bias=False)
        self._text = text
        self._paces: tuple[Tensor, Tensor] | None = None

    def forward(
        self, x: Tensor, stretch: Stretch, kernels: Kernels, convolved: Tensor, memory: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Outputs like `x`, the convolution's inputs, the memory after the last token."""
        text = self._text
        mixed, gate = products(x, self.in_proj_qkv, self.in_proj_z)
        mixed = torch.cat((convolved, mixed), 1)
        smooth = kernels.convolve(mixed, self.conv1d.weight)
        sizes = [text.key_heads * text.key_dim] * 2 + [text.value_heads * text.value_dim]
        query, key, value = torch.split(smooth, sizes, -1)
        repeat = text.value_heads // text.key_heads
        query, key = (
            part.reshape(*x.shape[:2], text.key_heads, text.key_dim).repeat_interleave(repeat, 2)
            for part in (query, key)
        )
        value = value.reshape(*x.shape[:2], text.value_heads, text.value_dim)
        decay, rate = self._pace(x, stretch.valid)
        output, memory = kernels.rule(Signals(query, key, value, decay, rate), memory)
        normed = self.norm(output, gate.reshape(output.shape))
        out = self.out_proj(normed.reshape(*x.shape[:2], -1))
        return out, mixed, memory

    def _pace(self, x: Tensor, valid: Tensor | None) -> tuple[Tensor, Tensor]:
        """Decay and rate of each token; padding leaves the memory as it is.

        Like a norm's gain, what is made of weights alone is made once.
        """
        rate = torch.sigmoid(self.in_proj_b(x))
        if self._paces is None:
            self._paces = self.dt_bias.float(), -self.A_log.float().exp()
        bias, speed = self._paces
        decay = speed * functional.softplus(self.in_proj_a(x).float() + bias)
        if valid is not None:
            decay, rate = decay * valid[..., None], rate * valid[..., None]
        return decay, rate


def last_of(mixed: Tensor, ends: Tensor | None, count: int) -> Tensor:
    """The `count` inputs before each row's end; `mixed` has `count` from before in front."""
    if ends is None:
        return mixed[:, -count:].clone()
    places = ends[:, None] + torch.arange(count, device=mixed.device)
    return mixed.gather(1, places[..., None].expand(-1, -1, mixed.shape[2]))


def _turned(x: Tensor, turn: Turn) -> Tensor:
    """The first dimensions of each head turned, halves against each other."""
    cos, sin = turn.cos[:, None], turn.sin[:, None]
    size = cos.shape[-1]
    moved, rest = x[..., :size], x[..., size:]
    first, second = moved.chunk(2, -1)
    moved = moved * cos + torch.cat((-second, first), -1) * sin
    return torch.cat((moved, rest), -1)
