"""Laya checkpoints of random weights in the real shapes: as slow as the real ones, and as large."""

import json
import math
import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engines.laya.checkpoint import WEIGHTS, load
from engines.laya.layers import expected

_GOLDENS = Path(__file__).parents[1] / "tests/engines/laya/goldens"
_SEED = 3

SHAPES: dict[str, dict[str, int | str]] = {
    "english": {
        "like": "tiny-english",
        "vocab_size": 50_368,
        "hidden_size": 1024,
        "num_hidden_layers": 28,
        "num_attention_heads": 16,
        "intermediate_size": 2624,
    },
    "multilingual": {
        "like": "tiny-multilingual",
        "vocab_size": 256_000,
        "hidden_size": 768,
        "num_hidden_layers": 22,
        "num_attention_heads": 12,
        "intermediate_size": 1152,
    },
    "quarter": {
        "like": "tiny-english",
        "vocab_size": 50_368,
        "hidden_size": 1024,
        "num_hidden_layers": 7,
        "num_attention_heads": 16,
        "intermediate_size": 2624,
    },
    "mini": {
        "like": "tiny-english",
        "vocab_size": 4096,
        "hidden_size": 256,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "intermediate_size": 656,
    },
}
"""Size → what differs from the tiny checkpoint whose tokenizer and settings it borrows."""


def random_checkpoint(folder: Path, size: str) -> Path:
    """A checkpoint directory of that size under `folder`; written once, then found again."""
    path = folder / size
    if (path / WEIGHTS).is_file():
        return path
    shape = dict(SHAPES[size])
    partial = folder / f"{size}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    shutil.copytree(_GOLDENS / str(shape.pop("like")), partial)
    config = partial / "encoder/config.json"
    tree = json.loads(config.read_text("utf-8")) | shape | {"local_attention": 128}
    tree.pop("layer_types", None)
    config.write_text(json.dumps(tree), "utf-8")
    checkpoint = load(partial)
    if checkpoint.encoder is None:
        raise ValueError("the tiny checkpoint has lost its weights")
    _write(partial / WEIGHTS, expected(checkpoint, checkpoint.encoder))
    partial.rename(path)
    return path


def _write(path: Path, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Half-precision weights, one tensor in memory at a time."""
    header, begin = {}, 0
    for name, shape in shapes.items():
        end = begin + 2 * math.prod(shape)
        header[name] = {"dtype": "F16", "shape": list(shape), "data_offsets": [begin, end]}
        begin = end
    head = json.dumps(header).encode()
    draw = np.random.default_rng(_SEED)
    with path.open("wb") as file:
        file.write(len(head).to_bytes(8, "little") + head)
        for name, shape in shapes.items():
            file.write(_tensor(draw, name, shape).astype("<f2").tobytes())


def _tensor(draw: np.random.Generator, name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Scaled so that every layer passes on about what it gets."""
    values = draw.standard_normal(shape, np.float32)
    if name == "temperature":
        return np.ones(shape, np.float32)
    if len(shape) == 1:
        return 0.02 * values + (1.0 if name.endswith(".weight") else 0.0)
    return values / np.float32(math.sqrt(shape[-1]))
