"""Graphs as the community exports them, drawn from a tiny checkpoint."""

from pathlib import Path

from onnx import TensorProto

from engines.laya.brush import Brush
from engines.laya.checkpoint import load
from engines.laya.graph import INPUTS, OUTPUTS, draw, draw_encoder
from engines.laya.head import draw_head
from engines.laya.linear import Plain
from engines.laya.sketch import Sketch, value
from engines.laya.tensors import Tensors


def _no_progress(_: int) -> None:
    return


def export_fused(folder: Path, name: str = "model.onnx") -> None:
    """One graph instead of the weights."""
    checkpoint = load(folder)
    assert checkpoint.encoder is not None
    with (folder / "fused.bin").open("wb") as file:
        sketch = Sketch(file, "fused.bin", _no_progress)
        brush = Brush(sketch, Tensors(folder / "model.safetensors"), Plain(), "batch")
        draw(brush, checkpoint.encoder, checkpoint.head_layers)
    sketch.save(folder / name, INPUTS["batch"], OUTPUTS["batch"])
    (folder / "model.safetensors").unlink()


def export_split(folder: Path, *, upright: bool) -> None:
    """Encoder and head in two graphs; `upright` kinds are int64[rows, 1]."""
    checkpoint = load(folder)
    encoder = checkpoint.encoder
    assert encoder is not None
    tensors = Tensors(folder / "model.safetensors")
    inputs = {one.name: one for one in INPUTS["batch"]}
    states = ("rows", "length", encoder.hidden)
    with (folder / "encoder.bin").open("wb") as file:
        sketch = Sketch(file, "encoder.bin", _no_progress)
        sketch.name_output(
            draw_encoder(Brush(sketch, tensors, Plain(), "batch"), encoder), "last_hidden_state"
        )
    sketch.save(
        folder / "encoder.onnx",
        [inputs["input_ids"], inputs["attention_mask"]],
        [value("last_hidden_state", TensorProto.FLOAT, *states)],
    )
    with (folder / "head.bin").open("wb") as file:
        sketch = Sketch(file, "head.bin", _no_progress)
        brush = Brush(sketch, tensors, Plain(), "batch")
        kinds = sketch.op("Squeeze", "qtype", sketch.constant((1,))) if upright else "qtype"
        draw_head(brush, "hidden_states", encoder.hidden, checkpoint.head_layers, kinds)
    shape = ("rows", 1) if upright else ("rows",)
    sketch.save(
        folder / "head.onnx",
        [
            value("hidden_states", TensorProto.FLOAT, *states),
            inputs["attention_mask"],
            inputs["marker_pos"],
            inputs["marker_mask"],
            value("qtype", TensorProto.INT64, *shape),
        ],
        OUTPUTS["batch"],
    )
    (folder / "model.safetensors").unlink()
