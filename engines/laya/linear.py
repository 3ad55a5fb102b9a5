"""How a matrix product is drawn: in fp32, or in int8 with one scale per row.

Row-scaled int8: weights symmetric per output channel; activations per row (token) as uint8 around
128, scaled by the row's own maximum. A row's result depends on nothing but the row, to the bit,
whatever else is in the batch. Without VNNI, x86 adds pairs of products in 16 bits; 7-bit weights
cannot overflow there.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engines.laya.sketch import MICROSOFT, Sketch

_LEAST_SIDE = 64
"""Smaller products stay in fp32: they cost nothing."""
_LEAST_SCALE = 1e-10
_HALF_RANGE = 127.0
_ONE = np.array(1.0, np.float32)
_MIDDLE = np.array(128, np.uint8)


class Linear(Protocol):
    """A way to draw `x · Wᵀ + b`."""

    def draw(
        self,
        sketch: Sketch,
        x: str,
        name: str,
        weight: NDArray[np.float32],
        bias: NDArray[np.float32] | None = None,
    ) -> str:
        """The product's name; `weight` is float32[out, in], `bias` float32[out]."""
        ...


class Plain:
    """fp32 throughout."""

    def draw(
        self,
        sketch: Sketch,
        x: str,
        name: str,
        weight: NDArray[np.float32],
        bias: NDArray[np.float32] | None = None,
    ) -> str:
        product = sketch.op("MatMul", x, sketch.tensor(f"{name}.T", weight.T))
        return _plus(sketch, product, name, bias)


class RowScaled:
    """int8 weights, uint8 activations with one scale per row."""

    def __init__(self, bits: int) -> None:
        """`bits` per weight, sign included: 7 anywhere, 8 where the processor has VNNI."""
        self._most = float(2 ** (bits - 1) - 1)
        self._quantised: dict[str, tuple[str, str]] = {}

    def draw(
        self,
        sketch: Sketch,
        x: str,
        name: str,
        weight: NDArray[np.float32],
        bias: NDArray[np.float32] | None = None,
    ) -> str:
        if min(weight.shape) < _LEAST_SIDE:
            return Plain().draw(sketch, x, name, weight, bias)
        rows, scale = self._activation(sketch, x)
        whole, channels = self._weight(weight)
        product = sketch.op(
            "MatMulIntegerToFloat",
            rows,
            sketch.tensor(f"{name}.int8", whole.T),
            sketch.tensor("one", _ONE),
            sketch.tensor(f"{name}.scales", channels),
            sketch.tensor("middle", _MIDDLE),
            domain=MICROSOFT,
        )
        return _plus(sketch, sketch.op("Mul", product, scale), name, bias)

    def _weight(self, weight: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
        """int8[out, in] and float32[out]: their product is the weight, as near as it gets."""
        scales = np.maximum(np.abs(weight).max(axis=1), np.float32(_LEAST_SCALE)) / self._most
        whole = np.rint(weight / scales[:, None]).astype(np.int8)
        return whole, scales.astype(np.float32)

    def _activation(self, sketch: Sketch, x: str) -> tuple[str, str]:
        """uint8[…, in] and float32[…, 1]; drawn once for all products that read `x`."""
        if x not in self._quantised:
            largest = sketch.op(
                "ReduceMax", sketch.op("Abs", x), sketch.constant((-1,)), keepdims=1
            )
            floored = sketch.op("Max", largest, sketch.constant(_LEAST_SCALE * _HALF_RANGE))
            scale = sketch.op("Mul", floored, sketch.constant(1.0 / _HALF_RANGE))
            rows = sketch.op(
                "QuantizeLinear",
                sketch.op("Div", x, scale),
                sketch.tensor("one", _ONE),
                sketch.tensor("middle", _MIDDLE),
            )
            self._quantised[x] = (rows, scale)
        return self._quantised[x]


def _plus(sketch: Sketch, x: str, name: str, bias: NDArray[np.float32] | None) -> str:
    return x if bias is None else sketch.op("Add", x, sketch.tensor(f"{name}.bias", bias))
