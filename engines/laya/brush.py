"""What encoder and head are both drawn with: norms, products, attention, padding."""

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from engines.laya.artifact import Form
from engines.laya.linear import Linear
from engines.laya.sketch import MICROSOFT, Sketch
from engines.laya.tensors import Tensors

MASKED = -1e4
"""Finite: a row of infinities would be NaN after softmax."""

_EPSILON = 1e-5


class Brush:
    """Draws one network's parts on one sketch."""

    def __init__(self, sketch: Sketch, tensors: Tensors, linear: Linear, form: Form) -> None:
        self.sketch = sketch
        self.tensors = tensors
        self.linear = linear
        self.form = form

    def norm(self, x: str, name: str, *, biased: bool = False, epsilon: float = _EPSILON) -> str:
        """Layer normalisation over the last axis."""
        inputs = [x, self.sketch.tensor(f"{name}.weight", self.read(name))]
        if biased:
            inputs.append(self.sketch.tensor(f"{name}.bias", self.read(name, ".bias")))
        return self.sketch.op("LayerNormalization", *inputs, axis=-1, epsilon=epsilon)

    def product(self, x: str, name: str, *, biased: bool = False) -> str:
        """The linear layer called `name`."""
        bias = self.read(name, ".bias") if biased else None
        return self.linear.draw(self.sketch, x, name, self.read(name), bias)

    def attend(self, query: str, key: str, values: str, heads: int, bias: str) -> str:
        """Attention over float32[rows, length, hidden]; an empty `bias` adds nothing."""
        inputs = (query, key, values) + (("", "", bias) if bias else ())
        return self.sketch.op("MultiHeadAttention", *inputs, domain=MICROSOFT, num_heads=heads)

    def padding(self, queries: str) -> str:
        """float32[rows, 1, queries, length] that hides padding; empty for a single row."""
        if self.form == "row":
            return ""
        op, constant = self.sketch.op, self.sketch.constant
        seen = op("Unsqueeze", op("Cast", "attention_mask", to=TensorProto.FLOAT), constant((1, 2)))
        hidden = op("Mul", op("Sub", constant(1.0), seen), constant(MASKED))
        rows = op("Shape", "attention_mask", start=0, end=1)
        length = op("Shape", "attention_mask", start=1, end=2)
        count = op("Shape", queries, start=1, end=2)
        return op("Expand", hidden, op("Concat", rows, constant((1,)), count, length, axis=0))

    def part(self, x: str, begin: int, end: int, axis: int) -> str:
        """`x[begin:end]` along an axis."""
        bounds = (self.sketch.constant((at,)) for at in (begin, end, axis))
        return self.sketch.op("Slice", x, *bounds)

    def read(self, name: str, suffix: str = ".weight") -> NDArray[np.float32]:
        """A tensor of the checkpoint."""
        return self.tensors.read(f"{name}{suffix}")
