"""Half the memory for the decoder's large products: 8-bit weights, rounded as they are loaded.

By torchao where weights are unpacked for each product, by torch where a GPU multiplies in FP8.

What is small or touchy stays as it is: norms, convolutions, decay and rate of the delta rule, the
head and the vision tower.
"""

import importlib
from typing import Any

import torch
from torch import nn

from engines.clef.eight import EightBitLinear
from engines.clef.settings import Precision

LARGE = frozenset(
    {
        *("q_proj", "k_proj", "v_proj", "o_proj"),
        *("in_proj_qkv", "in_proj_z", "out_proj"),
        *("gate_proj", "up_proj", "down_proj"),
    }
)
"""The products that are shrunk, by the last part of their module's name."""

_FP8_FROM = (8, 9)
"""The first compute capability that multiplies in FP8."""


def shrink(module: nn.Module, name: str, precision: Precision) -> None:
    """Replace the weight just loaded, `….q_proj.weight`, by its 8-bit form, if it has one."""
    owner, _, last = name.rpartition(".")
    if precision in ("bf16", "fp32") or last != "weight" or owner.rpartition(".")[2] not in LARGE:
        return
    product = module.get_submodule(owner)
    weight = next(product.parameters())
    if precision == "fp8" and multiplies(weight.device):
        parent, _, own = owner.rpartition(".")
        setattr(module.get_submodule(parent), own, EightBitLinear(weight.data))
        return
    quantisation: Any = importlib.import_module("torchao.quantization")
    recipe = {
        "int8": quantisation.Int8WeightOnlyConfig,
        "fp8": quantisation.Float8WeightOnlyConfig,
    }
    quantisation.quantize_(product, recipe[precision]())


def multiplies(device: torch.device) -> bool:
    """Whether the device multiplies in FP8; elsewhere weights are unpacked for each product."""
    return device.type == "cuda" and torch.cuda.get_device_capability(device) >= _FP8_FROM


def bytes_per_weight(precision: Precision) -> float:
    """Of a weight that is shrunk, its scales not counted."""
    return {"fp32": 4.0, "bf16": 2.0, "int8": 1.0, "fp8": 1.0}[precision]
