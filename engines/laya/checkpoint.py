"""A Laya checkpoint directory, read and checked: everything but the weights themselves."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from engines.laya.temperature import Temperatures, calibration, temperatures
from engines.laya.tensors import CheckpointError

CONFIG = "rl_agent_config.json"
WEIGHTS = "model.safetensors"
ENCODER = "encoder/config.json"
TOKENIZER = "tokenizer/tokenizer.json"
SPECIALS = "tokenizer/tokenizer_config.json"
CALIBRATION = "calibration.json"

FUSED = ("model.onnx", "laya.onnx", "onnx/model.onnx")
SPLIT = (("encoder.onnx", "head.onnx"), ("encoder_q8.onnx", "head_q8.onnx"))

_MULTILINGUAL = ("mmbert", "multilingual", "xlm")
_FULL, _SLIDING = "full_attention", "sliding_attention"


@dataclass(frozen=True, slots=True)
class Specials:
    """The special tokens that rows are made of."""

    cls: int
    sep: int
    mask: int
    pad: int
    mask_text: str
    texts: tuple[str, ...]
    """The text of every special token of the tokenizer, longest first."""


@dataclass(frozen=True, slots=True)
class Encoder:
    """The shape of the ModernBERT in front of the head."""

    vocabulary: int
    hidden: int
    heads: int
    intermediate: int
    half_window: int
    """In a sliding layer, tokens at most this far apart see each other."""
    thetas: tuple[float, ...]
    """RoPE base of each layer."""
    sliding: tuple[bool, ...]
    """Which layers see a window only."""
    positions: int
    epsilon: float

    @property
    def layers(self) -> int:
        """How many."""
        return len(self.sliding)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A directory that can be served."""

    directory: Path
    max_len: int
    """Longest row, in tokens."""
    head_max_len: int
    """Tokens for instructions and options together, roughly."""
    head_layers: int
    acts: int
    """Outputs of the act head, which is never asked."""
    temperatures: Temperatures
    specials: Specials
    tokenizer: Tokenizer
    encoder: Encoder | None
    """`None` for a community export, whose graph needs no description."""
    exports: tuple[Path, ...]
    """The files of a community export: one fused graph, or encoder and head; else empty."""
    english_only: bool
    """Whether its encoder was trained on English alone."""
    text_digest: str
    """Of everything that decides an answer except the weights, 32 hex digits."""


def load(directory: Path) -> Checkpoint:
    """The checkpoint in `directory`, its texts read and checked; the weights are not touched.

    Raises:
        CheckpointError: a file is missing or says something this engine cannot serve.
    """
    if not directory.is_dir():
        raise CheckpointError(
            f"{directory}: no such directory; it must hold {CONFIG}, {WEIGHTS}, {ENCODER}, "
            f"{TOKENIZER} and {SPECIALS}"
        )
    exports = _exports(directory)
    where, config = _config(directory)
    _refuse(config, where)
    fitted = directory / CALIBRATION
    tokenizer_path, specials_path = _tokenizer_files(directory)
    tokenizer = _tokenizer(tokenizer_path)
    sources = [where, tokenizer_path, specials_path, *([fitted] if fitted.is_file() else [])]
    encoder = None
    if not exports:
        encoder = _encoder(directory / ENCODER)
        sources.append(directory / ENCODER)
    named = str(config["encoder"]).lower()
    return Checkpoint(
        directory=directory,
        max_len=_whole(config, "max_len", 512, where),
        head_max_len=_whole(config, "head_max_len", 192, where),
        head_layers=_whole(config, "head_layers", 2, where),
        acts=len(config.get("act_costs") or {}) + 1,
        temperatures=(
            calibration(fitted) if fitted.is_file() else temperatures(config, str(where))
        ),
        specials=_specials(specials_path, tokenizer),
        tokenizer=tokenizer,
        encoder=encoder,
        exports=exports,
        english_only=not any(word in named for word in _MULTILINGUAL),
        text_digest=_digest(sources),
    )


def _exports(directory: Path) -> tuple[Path, ...]:
    if (directory / WEIGHTS).is_file():
        return ()
    for name in FUSED:
        if (directory / name).is_file():
            return (directory / name,)
    for encoder, head in SPLIT:
        if (directory / encoder).is_file() and (directory / head).is_file():
            return (directory / encoder, directory / head)
    raise CheckpointError(
        f"{directory}: there is no {WEIGHTS}, and no {FUSED[0]} or {' with '.join(SPLIT[0])} either"
    )


def _config(directory: Path) -> tuple[Path, dict[str, Any]]:
    """The runtime configuration and its file; community exports nest it under `laya`."""
    path = directory / CONFIG
    if not path.is_file() and (directory / "config.json").is_file():
        path = directory / "config.json"
    tree = _object(path)
    nested = tree.get("laya")
    return path, nested if isinstance(nested, dict) else tree


def _refuse(config: Mapping[str, Any], where: Path) -> None:
    for key in ("encoder", "head_layers"):
        if key not in config:
            raise CheckpointError(f"{where}: the key '{key}' is missing")
    layout = config.get("option_layout", "sequential")
    if layout != "sequential":
        raise CheckpointError(
            f"{where}: 'option_layout' is '{layout}'; only 'sequential' is served"
        )
    if not isinstance(config.get("act_costs") or {}, dict):
        raise CheckpointError(f"{where}: 'act_costs' must be an object")


def _tokenizer_files(directory: Path) -> tuple[Path, Path]:
    paths = (directory / TOKENIZER, directory / SPECIALS)
    root = (directory / paths[0].name, directory / paths[1].name)
    return root if not paths[0].is_file() and root[0].is_file() else paths


def _tokenizer(path: Path) -> Tokenizer:
    if not path.is_file():
        raise CheckpointError(f"{path}: this file is missing")
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing more exact
        raise CheckpointError(f"{path}: not a tokenizer ({error})") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _specials(path: Path, tokenizer: Tokenizer) -> Specials:
    tree = _object(path)
    texts, ids = {}, {}
    for role in ("cls", "sep", "mask", "pad"):
        key = f"{role}_token"
        said = tree.get(key)
        text = said.get("content") if isinstance(said, dict) else said
        if not isinstance(text, str) or not text:
            raise CheckpointError(f"{path}: the key '{key}' is missing")
        number = tokenizer.token_to_id(text)
        if number is None:
            raise CheckpointError(f"{path}: '{key}' is '{text}', which the tokenizer lacks")
        texts[role], ids[role] = text, number
    added = tokenizer.get_added_tokens_decoder().values()
    every = {token.content for token in added if token.special} | set(texts.values())
    return Specials(
        **ids,
        mask_text=texts["mask"],
        texts=tuple(sorted(every, key=lambda text: (-len(text), text))),
    )


def _encoder(path: Path) -> Encoder:
    tree = _object(path)
    if tree.get("model_type", "modernbert") != "modernbert":
        raise CheckpointError(
            f"{path}: 'model_type' is '{tree['model_type']}'; modernbert is served"
        )
    layers = _whole(tree, "num_hidden_layers", None, path)
    every = _whole(tree, "global_attn_every_n_layers", 3, path)
    types = tree.get("layer_types") or [_SLIDING if i % every else _FULL for i in range(layers)]
    if len(types) != layers or not set(types) <= {_FULL, _SLIDING}:
        raise CheckpointError(f"{path}: 'layer_types' does not name {layers} known layers")
    bases = {_FULL: _theta(tree, _FULL), _SLIDING: _theta(tree, _SLIDING)}
    encoder = Encoder(
        vocabulary=_whole(tree, "vocab_size", None, path),
        hidden=_whole(tree, "hidden_size", None, path),
        heads=_whole(tree, "num_attention_heads", None, path),
        intermediate=_whole(tree, "intermediate_size", None, path),
        half_window=_whole(tree, "local_attention", 128, path) // 2,
        thetas=tuple(bases[kind] for kind in types),
        sliding=tuple(kind == _SLIDING for kind in types),
        positions=_whole(tree, "max_position_embeddings", 8192, path),
        epsilon=float(tree.get("norm_eps", 1e-5)),
    )
    if encoder.hidden % encoder.heads or encoder.hidden % 64:
        raise CheckpointError(f"{path}: 'hidden_size' is no multiple of 64 and of the heads")
    if tree.get("hidden_activation", "gelu") != "gelu":
        raise CheckpointError(f"{path}: 'hidden_activation' is not 'gelu'")
    for key in ("attention_bias", "mlp_bias", "norm_bias"):
        if tree.get(key):
            raise CheckpointError(f"{path}: '{key}' is true; encoders without are served")
    return encoder


def _theta(tree: Mapping[str, Any], kind: str) -> float:
    parameters = (tree.get("rope_parameters") or {}).get(kind) or {}
    older, default = {
        _FULL: ("global_rope_theta", 160_000.0),
        _SLIDING: ("local_rope_theta", 10_000.0),
    }[kind]
    return float(parameters.get("rope_theta") or tree.get(older) or default)


def _whole(tree: Mapping[str, Any], key: str, default: int | None, where: Path) -> int:
    value = tree.get(key, default)
    if value is None:
        raise CheckpointError(f"{where}: the key '{key}' is missing")
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise CheckpointError(f"{where}: '{key}' must be a positive integer")
    return value


def _object(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise CheckpointError(f"{path}: this file is missing")
    try:
        tree = json.loads(path.read_bytes())
    except ValueError as error:
        raise CheckpointError(f"{path}: not JSON ({error})") from error
    if not isinstance(tree, dict):
        raise CheckpointError(f"{path}: must be a JSON object")
    return tree


def _digest(paths: list[Path]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for path in paths:
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()
