"""Exports the cross-encoder as an int8 ONNX graph and reads with it, on one thread."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from engines.runtime import onnxruntime
from training.encoder import CrossEncoder

INPUTS = ("ids", "positions", "blocks", "markers")
OPSET = 17


def export(model: CrossEncoder, folder: Path) -> Path:
    """Writes `fp32.onnx` and `int8.onnx`; returns the path of the latter.

    Inputs are int64[rows, width] thrice and int64[rows, options]; the output `logits` is
    float32[rows, options] without the cosine's share.
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic

    folder.mkdir(parents=True, exist_ok=True)
    tokens = torch.zeros(2, 8, dtype=torch.int64)
    axes = {name: {0: "rows", 1: "width"} for name in INPUTS[:3]}
    axes |= {name: {0: "rows", 1: "options"} for name in (INPUTS[3], "logits")}
    torch.onnx.export(
        model.eval(),
        (tokens, tokens, tokens, torch.zeros(2, 3, dtype=torch.int64)),
        str(folder / "fp32.onnx"),
        input_names=list(INPUTS),
        output_names=["logits"],
        dynamic_axes=axes,
        opset_version=OPSET,
        dynamo=False,
    )
    quantize_dynamic(
        folder / "fp32.onnx", folder / "int8.onnx", weight_type=QuantType.QInt8, per_channel=True
    )
    return folder / "int8.onnx"


class Graph:
    """An exported graph, callable like the model."""

    def __init__(self, path: Path) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )

    def __call__(self, ids: Tensor, positions: Tensor, blocks: Tensor, markers: Tensor) -> Tensor:
        fed = (ids, positions, blocks, markers)
        inputs = {name: tensor.numpy() for name, tensor in zip(INPUTS, fed, strict=True)}
        (logits,) = self._session.run(["logits"], inputs)
        return torch.from_numpy(np.asarray(logits))
