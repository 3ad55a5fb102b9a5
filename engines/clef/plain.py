"""The decoder of `transformers` on the same weights: what our own is compared with, and raced."""

import importlib
import json
from typing import Any

import torch
from torch import Tensor

from engines.clef.backbone import stretch_of
from engines.clef.checkpoint import Checkpoint
from engines.clef.geometry import CONFIG
from engines.clef.layers import turn
from engines.clef.model import Model
from engines.clef.positions import after
from engines.clef.prompt import Prompt
from engines.clef.shapes import TEXT
from engines.clef.weights import Weights

_MODULE = "transformers.models.qwen3_5.modeling_qwen3_5"
_CONFIGURATION = "transformers.models.qwen3_5.configuration_qwen3_5"


def plain_decoder(checkpoint: Checkpoint, device: torch.device, dtype: torch.dtype) -> Any:
    """The library's text model with the checkpoint's weights, embeddings included."""
    tree = json.loads((checkpoint.directory / CONFIG).read_bytes())["text_config"]
    config = importlib.import_module(_CONFIGURATION).Qwen3_5TextConfig(**tree)
    config._attn_implementation = "sdpa"
    with torch.device("meta"):
        module: Any = importlib.import_module(_MODULE).Qwen3_5TextModel(config)
    weights = Weights(checkpoint)
    names = [name for name in checkpoint.files if name.startswith(TEXT)]
    tensors = {name.removeprefix(TEXT): weights.tensor(name).to(device, dtype) for name in names}
    rotary = importlib.import_module(_MODULE).Qwen3_5TextRotaryEmbedding(config).to(device)
    module.load_state_dict(tensors, strict=True, assign=True)
    module.rotary_emb = rotary  # its frequencies are no weights, and would stay on meta
    weights.close()
    return module.eval().requires_grad_(False)


@torch.inference_mode()
def plain_hidden(checkpoint: Checkpoint, model: Model, one: Prompt) -> float:
    """How far our hidden states are from the library's, relative to the size of these."""
    ids = torch.tensor([one.ids], device=model.device)
    theirs = plain_decoder(checkpoint, model.device, model.dtype)(ids, use_cache=False)
    expected: Tensor = theirs.last_hidden_state
    positions = after(0, one.tokens)[:, None].to(model.device)
    place = turn(model.backbone.text.rotary, positions, model.dtype)
    stretch = stretch_of(place, [one.tokens], None)
    hidden, _ = model.backbone(model.embeddings.of(ids), stretch, None, model.kernels)
    gap = (hidden.float() - expected.float()).norm() / expected.float().norm()
    return float(gap)
