"""Clef models of random weights, on their device at once: as slow as the real one, and as large."""

import math
from dataclasses import dataclass

import torch
from torch import nn

from engines.clef.backbone import Backbone
from engines.clef.geometry import Head, Rotary, Text
from engines.clef.head import DecisionHead
from engines.clef.kernels import kernels_for
from engines.clef.model import Model, Table
from engines.clef.plan import FLASH, FLASH_HEAD
from engines.clef.quantised import shrink
from engines.clef.settings import Precision


@dataclass(frozen=True, slots=True)
class Size:
    """The shape of a model."""

    text: Text
    head: Head


def _size(hidden: int, layers: int, vocabulary: int) -> Size:
    """A smaller one with every part of the architecture."""
    text = Text(
        vocabulary=vocabulary,
        hidden=hidden,
        intermediate=3 * hidden,
        linear=tuple(i % 4 != 3 for i in range(layers)),
        heads=8,
        kv_heads=2,
        head_dim=hidden // 8,
        key_heads=4,
        value_heads=8,
        key_dim=hidden // 16,
        value_dim=hidden // 8,
        kernel=4,
        epsilon=1e-6,
        positions=262_144,
        rotary=Rotary(1e7, hidden // 32, _sections(hidden // 64)),
    )
    return Size(text, Head(hidden, hidden // 4, 2, 4, 4, hidden))


def _sections(frequencies: int) -> tuple[int, int, int]:
    third = frequencies // 3
    return frequencies - 2 * third, third, third


SIZES = {
    "tiny": _size(64, 8, 1024),
    "mid": _size(512, 8, 8192),
    "full": Size(FLASH, FLASH_HEAD),
}
"""`full` is Clef-flash's own shape."""


@torch.no_grad()
def random_model(size: Size, device: torch.device, precision: Precision) -> Model:
    """A model that passes on about what it gets; the same one every time."""
    dtype = torch.float32 if precision == "fp32" else torch.bfloat16
    torch.manual_seed(3)
    with torch.device("meta"):
        backbone, head = Backbone(size.text), DecisionHead(size.head)
    for module in (backbone, head):
        for name, parameter in list(module.named_parameters()):
            owner, _, last = name.rpartition(".")
            made = nn.Parameter(_values(name, parameter, device, dtype), requires_grad=False)
            setattr(module.get_submodule(owner), last, made)
            shrink(module, name, precision)
    shape = (size.text.vocabulary, size.text.hidden)
    tables = [
        Table(torch.randn(shape, device=device, dtype=dtype) * 0.02, device, dtype) for _ in "ew"
    ]
    return Model(
        backbone.eval(),
        head.eval(),
        tables[0],
        tables[1],
        None,
        kernels_for(device, dtype),
        device,
        dtype,
    )


def _values(
    name: str, like: torch.Tensor, device: torch.device, dtype: torch.dtype
) -> torch.Tensor:
    values = torch.randn(like.shape, device=device, dtype=dtype)
    if "A_log" in name:
        return values.abs()
    if values.dim() < 2:
        return values * 0.02
    return values / math.sqrt(values[0].numel())


def flops(size: Size, tokens: int) -> float:
    """Operations of one prompt: products of weights, full attention, the delta rule, the head."""
    text = size.text
    with torch.device("meta"):
        decoder = sum(p.numel() for p in Backbone(text).parameters())
    full = len(text.linear) - sum(text.linear)
    attention = full * 2.0 * tokens * tokens * text.heads * text.head_dim
    rule = sum(text.linear) * 6.0 * tokens * text.value_heads * text.key_dim * text.value_dim
    per_token = size.head.width * (
        size.head.hidden + 2 * size.head.width * (size.head.layers + size.head.routing_layers)
    )
    return 2.0 * tokens * (decoder + per_token) + attention + rule
