"""What linear attention is computed with: fused kernels where they are installed, else torch.

Fused kernels are other projects' and change with their versions, so each has to agree with plain
torch on this very device before it is used.
"""

import importlib
import importlib.util
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.nn import functional

from engines.clef.delta import Rule, Signals, delta_rule

_log = logging.getLogger("tiergate.clef")

Convolve = Callable[[Tensor, Tensor], Tensor]
"""Inputs [rows, taps - 1 + tokens, channels] and weights [channels, 1, taps] → SiLU of the causal
depthwise convolution, [rows, tokens, channels]. Channels stay next to each other, as products give
and take them: turning them round costs more than convolving."""
K = TypeVar("K", Rule, Convolve)

_FARTHEST = 0.05
"""Most that a fused kernel may be from plain torch, relative to the size of what it gives: a few
times the rounding of bf16."""


@dataclass(frozen=True, slots=True)
class Kernels:
    """The two parts of linear attention that are no matrix product."""

    rule: Rule
    convolve: Convolve


def kernels_for(device: torch.device, dtype: torch.dtype) -> Kernels:
    """The fastest there are here; says so loudly when those are not the fused ones.

    In float32, which is there to compare with, the plain ones.
    """
    if device.type != "cuda" or dtype == torch.float32:
        return Kernels(delta_rule, convolved)
    missing = [
        name
        for name, module in (("flash-linear-attention", "fla"), ("causal-conv1d", "causal_conv1d"))
        if importlib.util.find_spec(module) is None
    ]
    if missing:
        _log.warning(
            "%s not installed: linear attention runs in plain torch, several times slower; "
            "pip install %s",
            " and ".join(missing),
            " ".join(missing),
        )
    return Kernels(trusted_rule(fused_rule, device), trusted_convolve(fused_convolve, device))


def convolved(inputs: Tensor, weight: Tensor) -> Tensor:
    """In plain torch, for any device."""
    found = functional.conv1d(inputs.transpose(1, 2), weight, groups=weight.shape[0])
    return functional.silu(found.transpose(1, 2))


def fused_rule() -> Rule | None:
    """By flash-linear-attention, or `None` where that is not installed."""
    if importlib.util.find_spec("fla") is None:
        return None
    kernel: Any = importlib.import_module("fla.ops.gated_delta_rule").chunk_gated_delta_rule

    def ruled(signals: Signals, memory: Tensor) -> tuple[Tensor, Tensor]:
        output, after = kernel(
            signals.query,
            signals.key,
            signals.value,
            g=signals.decay,
            beta=signals.rate,
            initial_state=memory,
            output_final_state=True,
            use_qk_l2norm_in_kernel=True,
        )
        return output, after

    return ruled


def fused_convolve() -> Convolve | None:
    """By causal-conv1d, or `None` where that is not installed."""
    if importlib.util.find_spec("causal_conv1d") is None:
        return None
    kernel: Any = importlib.import_module("causal_conv1d").causal_conv1d_fn

    def smooth(inputs: Tensor, weight: Tensor) -> Tensor:
        turned = inputs.transpose(1, 2)  # by strides alone: the kernel has a form for that
        found: Tensor = kernel(turned, weight[:, 0], activation="silu")
        return found.transpose(1, 2)[:, weight.shape[-1] - 1 :]  # others look before the inputs

    return smooth


def trusted_rule(made: Callable[[], Rule | None], device: torch.device) -> Rule:
    """The rule that is made, if it computes what the plain one does; else that one."""
    signals, memory = _example(device)

    def apart(rule: Rule) -> float:
        output, after = rule(signals, memory)
        expected, left = delta_rule(signals, memory)
        return max(_apart(output, expected), _apart(after, left))

    return _trusted("flash-linear-attention", made, delta_rule, apart)


def trusted_convolve(made: Callable[[], Convolve | None], device: torch.device) -> Convolve:
    """The convolution that is made, if it computes what the plain one does; else that one."""
    draw = torch.Generator().manual_seed(6)
    inputs = torch.randn(2, 103, 64, generator=draw).to(device, torch.bfloat16)
    weight = torch.randn(64, 1, 4, generator=draw).to(device, torch.bfloat16)

    def apart(convolve: Convolve) -> float:
        return _apart(convolve(inputs, weight), convolved(inputs, weight))

    return _trusted("causal-conv1d", made, convolved, apart)


def _trusted(name: str, made: Callable[[], K | None], plain: K, apart: Callable[[K], float]) -> K:
    try:
        found = made()
        far = 0.0 if found is None else apart(found)
    except Exception as error:  # noqa: BLE001 - another project's kernel may raise anything
        _log.warning("%s does not work here (%r); plain torch instead, slower", name, error)
        return plain
    if found is None:
        return plain
    if not far <= _FARTHEST:
        _log.warning("%s is %.2g away from plain torch, which is used instead", name, far)
        return plain
    return found


def _apart(found: Tensor, expected: Tensor) -> float:
    """How far two results are from each other, relative to the size of what is expected."""
    wide = expected.float()
    return float((found.float() - wide).norm() / wide.norm())


def _example(device: torch.device) -> tuple[Signals, Tensor]:
    """Two rows of some chunks and a rest, the second with padding, after something else."""
    draw = torch.Generator().manual_seed(5)
    rows, tokens, heads, size = 2, 150, 4, 128

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=draw)

    each = [normal(rows, tokens, heads, size).to(device, torch.bfloat16) for _ in "qkv"]
    valid = torch.ones(rows, tokens, 1)
    valid[1, 100:] = 0
    decay = (-normal(rows, tokens, heads).abs() * 0.1 * valid).to(device)
    rate = (torch.sigmoid(normal(rows, tokens, heads)) * valid).to(device, torch.bfloat16)
    memory = normal(1, heads, size, size).to(device).expand(rows, -1, -1, -1)
    return Signals(each[0], each[1], each[2], decay, rate), memory
