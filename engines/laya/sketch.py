"""An ONNX graph while it is drawn: nodes in memory, large weights straight to a file beside it."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

OPSET = 20
MICROSOFT = "com.microsoft"

_ALIGNMENT = 4096
"""Offsets that any system can map."""
_INLINE_BYTES = 1024
_IR_VERSION = 10

Progress = Callable[[int], None]
"""Called with the number of weight bytes written since the last call."""


class Sketch:
    """One graph. Names are made up here; whoever draws passes them on as plain strings."""

    def __init__(self, weights: BinaryIO, weights_name: str, progress: Progress) -> None:
        """`weights` receives the large tensors; the graph refers to it as `weights_name`."""
        self._weights = weights
        self._weights_name = weights_name
        self._progress = progress
        self._nodes: list[onnx.NodeProto] = []
        self._tensors: dict[str, onnx.TensorProto] = {}

    def op(self, kind: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Draw a node with one output; its name."""
        return self.ops(kind, 1, *inputs, domain=domain, **attributes)[0]

    def ops(
        self, kind: str, outputs: int, *inputs: str, domain: str = "", **attributes: Any
    ) -> tuple[str, ...]:
        """Draw a node with so many outputs; their names."""
        name = f"{kind}_{len(self._nodes)}"
        made = tuple(f"{name}.{i}" for i in range(outputs))
        self._nodes.append(
            helper.make_node(kind, inputs, made, name=name, domain=domain, **attributes)
        )
        return made

    def name_output(self, made: str, output: str) -> None:
        """Let a value leave the graph as `output`."""
        self._nodes.append(helper.make_node("Identity", [made], [output], name=f"{output}_out"))

    def constant(self, value: float | int | Sequence[int] | Sequence[float]) -> str:
        """A small constant: int64 for integers, float32 otherwise; shared by equal values."""
        flat = value if isinstance(value, Sequence) else (value,)
        whole = all(isinstance(number, int) for number in flat)
        array = np.asarray(value, np.int64 if whole else np.float32)
        return self.tensor(f"constant_{value}", array)

    def tensor(self, name: str, array: NDArray[np.generic]) -> str:
        """A weight, kept under `name`; drawn once however often it is asked for."""
        if name not in self._tensors:
            large = array.nbytes > _INLINE_BYTES
            self._tensors[name] = (
                self._external(name, array) if large else numpy_helper.from_array(array, name)
            )
        return name

    def save(
        self,
        path: Path,
        inputs: Sequence[onnx.ValueInfoProto],
        outputs: Sequence[onnx.ValueInfoProto],
    ) -> None:
        """Check the graph and write it."""
        graph = helper.make_graph(
            self._nodes, "laya", inputs, outputs, list(self._tensors.values())
        )
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid(MICROSOFT, 1)],
            ir_version=_IR_VERSION,
            producer_name="tiergate",
        )
        path.write_bytes(model.SerializeToString())

    def _external(self, name: str, array: NDArray[np.generic]) -> onnx.TensorProto:
        begin = math.ceil(self._weights.tell() / _ALIGNMENT) * _ALIGNMENT
        self._weights.seek(begin)
        content = np.ascontiguousarray(array)
        self._weights.write(content.data)
        self._progress(content.nbytes)
        tensor = TensorProto(
            name=name,
            data_type=helper.np_dtype_to_tensor_dtype(array.dtype),
            dims=array.shape,
            data_location=TensorProto.EXTERNAL,
        )
        place = {"location": self._weights_name, "offset": begin, "length": content.nbytes}
        for key, value in place.items():
            tensor.external_data.add(key=key, value=str(value))
        return tensor


def value(name: str, kind: int, *shape: str | int) -> onnx.ValueInfoProto:
    """An input or output of a graph."""
    return helper.make_tensor_value_info(name, kind, shape)
