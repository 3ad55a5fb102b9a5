"""The network as an ONNX graph, drawn from the checkpoint's tensors without torch.

Two forms. `row`: one unpadded row, every option's logit; no padding to hide. `batch`: padded
rows, inputs and outputs as Laya's own ONNX agent names them.
"""

import math

import numpy as np
from onnx import TensorProto, ValueInfoProto

from engines.laya.artifact import Form
from engines.laya.brush import MASKED, Brush
from engines.laya.checkpoint import Encoder
from engines.laya.head import draw_head
from engines.laya.sketch import MICROSOFT, value
from engines.laya.tensors import Tensors

_INT, _BOOL, _FLOAT = TensorProto.INT64, TensorProto.BOOL, TensorProto.FLOAT
_TABLE = "encoder.embeddings.tok_embeddings.weight"

INPUTS: dict[Form, list[ValueInfoProto]] = {
    "row": [
        value("input_ids", _INT, 1, "length"),
        value("marker_pos", _INT, "options"),
        value("qtype", _INT, 1),
    ],
    "batch": [
        value("input_ids", _INT, "rows", "length"),
        value("attention_mask", _INT, "rows", "length"),
        value("marker_pos", _INT, "rows", "options"),
        value("marker_mask", _BOOL, "rows", "options"),
        value("qtype", _INT, "rows"),
    ],
}
OUTPUTS: dict[Form, list[ValueInfoProto]] = {
    "row": [value("logits", _FLOAT, 1, "options")],
    "batch": [
        value("logits", _FLOAT, "rows", "options"),
        value("act_logits", _FLOAT, "rows", "acts"),
    ],
}


def draw(brush: Brush, encoder: Encoder, head_layers: int) -> None:
    """Everything from token ids to the outputs of the brush's form."""
    draw_head(brush, draw_encoder(brush, encoder), encoder.hidden, head_layers)


def draw_encoder(brush: Brush, encoder: Encoder) -> str:
    """From `input_ids` to the hidden states, float32[rows, length, hidden]."""
    op, sketch, epsilon = brush.sketch.op, brush.sketch, encoder.epsilon
    x = brush.norm(_embedded(brush), "encoder.embeddings.norm", epsilon=epsilon)
    padding = brush.padding("input_ids")
    window = _window(brush, encoder.half_window, padding)
    for i in range(encoder.layers):
        layer = f"encoder.layers.{i}"
        y = brush.norm(x, f"{layer}.attn_norm", epsilon=epsilon) if i else x
        bias = window if encoder.sliding[i] else padding
        x = op("Add", x, _attention(brush, y, encoder, i, bias))
        y = brush.norm(x, f"{layer}.mlp_norm", epsilon=epsilon)
        wide = brush.product(y, f"{layer}.mlp.Wi")
        active, gate = sketch.ops("Split", 2, wide, axis=-1, num_outputs=2)
        gated = op("Mul", op("Gelu", active), gate)
        x = op("Add", x, brush.product(gated, f"{layer}.mlp.Wo"))
    return brush.norm(x, "encoder.final_norm", epsilon=epsilon)


def size_bytes(tensors: Tensors, *, bytes_per_weight: int) -> int:
    """About how much a graph's weights take, for progress bars."""
    total = sum(math.prod(shape) for shape in tensors.shapes.values())
    table = math.prod(tensors.shapes[_TABLE])
    return (total - table) * bytes_per_weight + table * 2


def _embedded(brush: Brush) -> str:
    half = brush.tensors.half(_TABLE)
    table = half if half is not None else brush.tensors.read(_TABLE)
    found = brush.sketch.op("Gather", brush.sketch.tensor("tokens", table), "input_ids")
    return found if half is None else brush.sketch.op("Cast", found, to=_FLOAT)


def _window(brush: Brush, half_window: int, padding: str) -> str:
    """Makes scores outside the window, or of padding, impossible."""
    op, constant = brush.sketch.op, brush.sketch.constant
    length = op("Squeeze", op("Shape", "input_ids", start=1, end=2))
    places = op("Range", constant(0), length, constant(1))
    upright = op("Unsqueeze", places, constant((1,)))
    apart = op("Abs", op("Sub", upright, op("Unsqueeze", places, constant((0,)))))
    far = op("Greater", apart, constant(half_window))
    outside = op("Where", far, constant(MASKED), constant(0.0))
    window = op("Unsqueeze", outside, constant((0, 1)))
    return op("Min", window, padding) if padding else window


def _attention(brush: Brush, y: str, encoder: Encoder, layer: int, bias: str) -> str:
    name = f"encoder.layers.{layer}.attn"
    mixed = brush.product(y, f"{name}.Wqkv")
    query, key, values = brush.sketch.ops("Split", 3, mixed, axis=-1, num_outputs=3)
    theta = encoder.thetas[layer]
    query, key = (_turned(brush, x, encoder, theta) for x in (query, key))
    return brush.product(brush.attend(query, key, values, encoder.heads, bias), f"{name}.Wo")


def _turned(brush: Brush, x: str, encoder: Encoder, theta: float) -> str:
    """Rotary positions on float32[rows, length, hidden]."""
    size = encoder.hidden // encoder.heads
    steps = np.arange(0, size, 2, dtype=np.float32) / np.float32(size)
    frequencies = (np.float32(1.0) / np.float32(theta) ** steps).astype(np.float32)
    angles = np.outer(np.arange(encoder.positions, dtype=np.float32), frequencies)
    return brush.sketch.op(
        "RotaryEmbedding",
        x,
        brush.sketch.constant((0,)),
        brush.sketch.tensor(f"cosines_{theta}", np.cos(angles)),
        brush.sketch.tensor(f"sines_{theta}", np.sin(angles)),
        domain=MICROSOFT,
        num_heads=encoder.heads,
    )
