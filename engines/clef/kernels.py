"""What linear attention is computed with: fused kernels where they are installed, else torch."""

import importlib
import importlib.util
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from engines.clef.delta import Rule, Signals, delta_rule

_log = logging.getLogger("tiergate.clef")

Convolve = Callable[[Tensor, Tensor], Tensor]
"""Inputs [rows, channels, taps - 1 + tokens] and weights [channels, 1, taps] → SiLU of the causal
depthwise convolution, [rows, channels, tokens]."""


@dataclass(frozen=True, slots=True)
class Kernels:
    """The two parts of linear attention that are no matrix product."""

    rule: Rule
    convolve: Convolve


def kernels_for(device: torch.device) -> Kernels:
    """The fastest there are here; says so loudly when those are not the fused ones."""
    if device.type != "cuda":
        return Kernels(delta_rule, convolved)
    rule, convolve = _fused_rule(), _fused_convolve()
    missing = [
        name
        for name, found in (("flash-linear-attention", rule), ("causal-conv1d", convolve))
        if found is None
    ]
    if missing:
        _log.warning(
            "%s not installed: linear attention runs in plain torch, several times slower; "
            "pip install %s",
            " and ".join(missing),
            " ".join(missing),
        )
    return Kernels(rule or delta_rule, convolve or convolved)


def convolved(inputs: Tensor, weight: Tensor) -> Tensor:
    """In plain torch, for any device."""
    return functional.silu(functional.conv1d(inputs, weight, groups=weight.shape[0]))


def _fused_rule() -> Rule | None:
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


def _fused_convolve() -> Convolve | None:
    """By causal-conv1d, or `None` where that is not installed."""
    if importlib.util.find_spec("causal_conv1d") is None:
        return None
    kernel: Any = importlib.import_module("causal_conv1d").causal_conv1d_fn

    def smooth(inputs: Tensor, weight: Tensor) -> Tensor:
        found: Tensor = kernel(inputs.contiguous(), weight[:, 0].contiguous(), activation="silu")
        return found[:, :, weight.shape[-1] - 1 :]  # without those that look before the inputs

    return smooth
