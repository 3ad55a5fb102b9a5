"""How a Clef engine is told to work."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Precision = Literal["bf16", "fp32", "int8", "fp8"]
Reading = Literal["isolated", "joint"]


@dataclass(frozen=True, slots=True)
class ClefSettings:
    """The options of `[engines.<name>]` with `kind = "clef"`."""

    path: Path
    """Checkpoint directory."""
    device: str = "cuda"
    """`cpu`, `cuda` or `cuda:N`."""
    precision: Precision = "bf16"
    reading: Reading = "isolated"
    max_tokens: int = 16_384
    """Longest prompt: state, question and what stands around them."""
    max_state_tokens: int | None = None
    on_overflow: Literal["refuse", "truncate"] = "refuse"
    harden: bool = True
    """Control tokens written out in texts are ordinary text."""
    max_images: int = 4
    """Per inquiry; 0 = the vision tower is not loaded."""
    chunk_tokens: int = 2048
    """Longest stretch of a prompt that is computed at once."""
    prefix_from_tokens: int = 128
    """Shorter states are read again with each question."""
    cache_from_tokens: int = 1024
    """Shorter states are not remembered, nor read apart from a question that is alone."""
    prefix_cache_bytes: int = 2 << 30
    """For states that were read before; 0 = they are kept only while an inquiry is read."""
    batch_tokens: int = 16_384
    """Most tokens computed at once, of all rows together."""
    deterministic: bool = False
    """Each row is computed alone, so that not even its last bit depends on its batch."""
    graphs: bool = True
    """On a GPU: record the kernels of each shape once, and replay them."""
    bucket_tokens: int = 64
    """With graphs: rows are padded to a multiple of this."""
    tables: Literal["device", "host"] = "device"
    """Where the embeddings and the rows of the output layer are kept."""
    threads: int = 0
    """On the CPU: threads of a product; 0 = torch's own choice."""
    keep_alive_s: float = 0.0
    """Unload the weights after so long without a question; 0 = never."""
