"""How a Laya engine is told to work."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from engines.laya.artifact import Precision
from engines.laya.network import Device


@dataclass(frozen=True, slots=True)
class LayaSettings:
    """The options of `[engines.<name>]` with `kind = "laya"`."""

    path: Path
    """Checkpoint directory."""
    multilingual_path: Path | None = None
    """Second checkpoint, for what is not English."""
    precision: Precision = "fp32"
    device: Device = "cpu"
    device_fallback: bool = False
    """Without the device, go on with the CPU instead of failing."""
    on_overflow: Literal["refuse", "truncate"] = "refuse"
    harden: bool = True
    """Neutralise every special token inside texts, not the mask alone."""
    tournament: int = 0
    """Options per group when there are more than fit into a row; 0 = refuse those questions."""
    language: Literal["detect", "any"] = "detect"
    """Whether a checkpoint trained on English alone is kept from other languages."""
    max_tokens: int | None = None
    """Longest row instead of the checkpoint's own."""
    head_max_tokens: int | None = None
    """Tokens for instructions and options together instead of the checkpoint's own."""
