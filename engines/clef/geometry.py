"""What a Clef checkpoint's configuration says: the shape of backbone, vision tower and head."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engines.clef.refusals import CheckpointError

CONFIG = "config.json"
HEAD_CONFIG = "joint_head_config.json"
ARCHITECTURE = "Qwen3_5ForConditionalGeneration"

_HEAD_KEYS = ("hidden_size", "width", "routing_layers", "layers", "heads", "feedforward")
_LINEAR, _FULL = "linear_attention", "full_attention"
_LARGE_HIDDEN = 5120


@dataclass(frozen=True, slots=True)
class Rotary:
    """How positions turn queries and keys."""

    theta: float
    dims: int
    """Of a head's dimensions, the first so many are turned."""
    sections: tuple[int, int, int]
    """Frequencies that follow time, row and column of an image; interleaved."""


@dataclass(frozen=True, slots=True)
class Text:
    """The decoder."""

    vocabulary: int
    hidden: int
    intermediate: int
    linear: tuple[bool, ...]
    """Per layer: a gated delta rule, or full attention."""
    heads: int
    kv_heads: int
    head_dim: int
    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    kernel: int
    """Taps of the causal convolution before the delta rule."""
    epsilon: float
    positions: int
    rotary: Rotary

    @property
    def channels(self) -> int:
        """Of the convolution: queries, keys and values of a linear layer."""
        return 2 * self.key_heads * self.key_dim + self.value_heads * self.value_dim


@dataclass(frozen=True, slots=True)
class Head:
    """The decision head."""

    hidden: int
    width: int
    routing_layers: int
    layers: int
    heads: int
    feedforward: int


@dataclass(frozen=True, slots=True)
class Vision:
    """The tower that turns patches of images into tokens."""

    config: Mapping[str, Any]
    """As written, for the library that runs it."""
    patch: int
    temporal: int
    merge: int
    image_token: int


def text_of(path: Path) -> Text:
    """The decoder's shape from `config.json`.

    Raises:
        CheckpointError: it is missing, or is not one that this engine reads.
    """
    tree = json_object(path)
    named = tree.get("architectures")
    if named != [ARCHITECTURE]:
        raise CheckpointError(f"{path}: 'architectures' is {named}, not ['{ARCHITECTURE}']")
    text = tree.get("text_config")
    if not isinstance(text, dict):
        raise CheckpointError(f"{path}: the key 'text_config' is missing")
    _refuse_variants(tree, text, path)
    layers = whole(text, "num_hidden_layers", path)
    types = text.get("layer_types")
    if not isinstance(types, list) or len(types) != layers or not set(types) <= {_LINEAR, _FULL}:
        raise CheckpointError(f"{path}: 'layer_types' does not name {layers} known layers")
    head_dim = whole(text, "head_dim", path)
    return Text(
        vocabulary=whole(text, "vocab_size", path),
        hidden=whole(text, "hidden_size", path),
        intermediate=whole(text, "intermediate_size", path),
        linear=tuple(kind == _LINEAR for kind in types),
        heads=whole(text, "num_attention_heads", path),
        kv_heads=whole(text, "num_key_value_heads", path),
        head_dim=head_dim,
        key_heads=whole(text, "linear_num_key_heads", path),
        value_heads=whole(text, "linear_num_value_heads", path),
        key_dim=whole(text, "linear_key_head_dim", path),
        value_dim=whole(text, "linear_value_head_dim", path),
        kernel=whole(text, "linear_conv_kernel_dim", path),
        epsilon=float(text.get("rms_norm_eps", 1e-6)),
        positions=whole(text, "max_position_embeddings", path),
        rotary=_rotary(text, head_dim, path),
    )


def head_of(path: Path, text: Text) -> Head:
    """The head's shape from `joint_head_config.json`.

    Raises:
        CheckpointError: a key is missing, unknown, or does not fit the decoder.
    """
    tree = json_object(path)
    unknown = sorted(tree.keys() - set(_HEAD_KEYS))
    if unknown:
        raise CheckpointError(f"{path}: unknown key '{unknown[0]}'; a newer kind of head?")
    hidden, width, routing, layers, heads, wide = (whole(tree, key, path) for key in _HEAD_KEYS)
    if hidden != text.hidden:
        raise CheckpointError(f"{path}: 'hidden_size' is {hidden}, the decoder's is {text.hidden}")
    if width % heads:
        raise CheckpointError(f"{path}: 'width' is no multiple of 'heads'")
    return Head(hidden, width, routing, layers, heads, wide)


def vision_of(path: Path) -> Vision:
    """The vision tower's shape from `config.json`.

    Raises:
        CheckpointError: there is none.
    """
    tree = json_object(path)
    vision = tree.get("vision_config")
    if not isinstance(vision, dict):
        raise CheckpointError(
            f"{path}: the key 'vision_config' is missing; set max_images = 0 to go without"
        )
    return Vision(
        config=vision,
        patch=whole(vision, "patch_size", path),
        temporal=whole(vision, "temporal_patch_size", path),
        merge=whole(vision, "spatial_merge_size", path),
        image_token=whole(tree, "image_token_id", path),
    )


def whole(tree: Mapping[str, Any], key: str, where: Path) -> int:
    """A positive integer.

    Raises:
        CheckpointError: it is missing or is something else.
    """
    value = tree.get(key)
    if value is None:
        raise CheckpointError(f"{where}: the key '{key}' is missing")
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise CheckpointError(f"{where}: '{key}' must be a positive integer")
    return value


def json_object(path: Path) -> dict[str, Any]:
    """The object in a JSON file.

    Raises:
        CheckpointError: no file, no JSON, or no object.
    """
    if not path.is_file():
        raise CheckpointError(f"{path}: this file is missing")
    try:
        tree = json.loads(path.read_bytes())
    except ValueError as error:
        raise CheckpointError(f"{path}: not JSON ({error})") from error
    if not isinstance(tree, dict):
        raise CheckpointError(f"{path}: must be a JSON object")
    return tree


def _refuse_variants(tree: Mapping[str, Any], text: Mapping[str, Any], path: Path) -> None:
    """Nothing if the decoder is computed as Clef-flash's is."""
    if text.get("hidden_size") == _LARGE_HIDDEN or "output_gate_type" in text:
        raise CheckpointError(
            f"{path}: this is Clef (27B), whose output gate is of another kind than Clef-flash's "
            "and has not been verified here; only Clef-flash is served"
        )
    if tree.get("tie_word_embeddings") or text.get("tie_word_embeddings"):
        raise CheckpointError(f"{path}: 'tie_word_embeddings' is true; Clef-flash has both tables")
    if text.get("attn_output_gate") is not True:
        raise CheckpointError(f"{path}: 'attn_output_gate' is not true")
    if text.get("attention_bias"):
        raise CheckpointError(f"{path}: 'attention_bias' is true; decoders without are served")
    if text.get("hidden_act", "silu") != "silu":
        raise CheckpointError(f"{path}: 'hidden_act' is not 'silu'")


def _rotary(text: Mapping[str, Any], head_dim: int, path: Path) -> Rotary:
    """From `rope_parameters`; nothing is assumed, other defaults answer differently."""
    tree = text.get("rope_parameters")
    if not isinstance(tree, dict):
        raise CheckpointError(f"{path}: the key 'rope_parameters' is missing")
    if tree.get("rope_type", "default") != "default":
        raise CheckpointError(f"{path}: 'rope_type' is '{tree['rope_type']}', not 'default'")
    for key in ("rope_theta", "partial_rotary_factor", "mrope_section"):
        if key not in tree:
            raise CheckpointError(f"{path}: 'rope_parameters' lacks '{key}'")
    if not tree.get("mrope_interleaved"):
        raise CheckpointError(f"{path}: 'mrope_interleaved' is not true")
    dims = int(head_dim * float(tree["partial_rotary_factor"]))
    sections = tuple(int(size) for size in tree["mrope_section"])
    if len(sections) != 3 or 2 * sum(sections) != dims:
        raise CheckpointError(f"{path}: 'mrope_section' does not share out {dims // 2} frequencies")
    return Rotary(float(tree["rope_theta"]), dims, (sections[0], sections[1], sections[2]))
