"""What a card must hold: weights and tables, what one prompt takes, what one chunk takes meanwhile.

Sizes of tensors are exact. What a chunk takes while it is computed is an upper estimate for the
plain torch path, held against the sizes that torch itself computes (tests/engines/clef/test_plan);
it has not been measured on a GPU.
"""

import math
from dataclasses import dataclass

from engines.clef.geometry import Head, Rotary, Text
from engines.clef.quantised import LARGE, bytes_per_weight
from engines.clef.settings import ClefSettings, Precision
from engines.clef.shapes import EMBEDDINGS, LM_HEAD, head_shapes, text_shapes

GIB = 1 << 30

_FLASH_LAYERS = 32
FLASH = Text(
    vocabulary=248_320,
    hidden=4096,
    intermediate=12_288,
    linear=tuple(i % 4 != 3 for i in range(_FLASH_LAYERS)),
    heads=16,
    kv_heads=4,
    head_dim=256,
    key_heads=16,
    value_heads=32,
    key_dim=128,
    value_dim=128,
    kernel=4,
    epsilon=1e-6,
    positions=262_144,
    rotary=Rotary(1e7, 64, (11, 11, 10)),
)
"""Clef-flash's decoder, for plans without its files."""
FLASH_HEAD = Head(4096, 1024, 2, 4, 16, 4096)
FLASH_TOWER_WEIGHTS = 456_010_480

_RUNTIME_BYTES = 600 << 20
"""About what the CUDA context, cuBLAS and the kernels take of a card."""
_SCALE_BYTES = 4


@dataclass(frozen=True, slots=True)
class Need:
    """Bytes on one device, by what they are for."""

    decoder_bytes: int
    tables_bytes: int
    """Embeddings and output rows; 0 where they lie in host memory."""
    head_bytes: int
    tower_bytes: int
    keys_bytes: int
    """Keys, values and the head's memory of one prompt of `max_tokens`, twice: a chunk's are new
    beside those before it."""
    states_bytes: int
    """Memories of the linear layers of one prompt, whatever its length; twice for the same reason.
    """
    chunk_bytes: int
    """To compute one chunk."""
    runtime_bytes: int

    @property
    def weights_bytes(self) -> int:
        """Held all the time."""
        return self.decoder_bytes + self.tables_bytes + self.head_bytes + self.tower_bytes

    @property
    def work_bytes(self) -> int:
        """To read one prompt of `max_tokens` chunk by chunk."""
        return self.keys_bytes + self.states_bytes + self.chunk_bytes + self.runtime_bytes

    @property
    def least_bytes(self) -> int:
        """Without these, a prompt of `max_tokens` cannot be read."""
        return self.weights_bytes + self.work_bytes


def key_bytes(text: Text, precision: Precision) -> int:
    """Per token: keys and values of the full layers."""
    full = len(text.linear) - sum(text.linear)
    return 2 * full * text.kv_heads * text.head_dim * _unit(precision)


def memory_bytes(head: Head, precision: Precision) -> int:
    """Per token: what the head keeps of it."""
    return head.width * _unit(precision)


def state_bytes(text: Text, precision: Precision) -> int:
    """Per prompt: memories in float32, and the last inputs of the convolutions."""
    memory = 4 * text.value_heads * text.key_dim * text.value_dim
    last = text.channels * (text.kernel - 1) * _unit(precision)
    return sum(text.linear) * (memory + last)


def token_bytes(text: Text, precision: Precision) -> int:
    """Per token that is computed: the larger of what an MLP and what a linear layer hold at once,
    the latter by the plain rule, which takes more than fused kernels."""
    unit = _unit(precision)
    residual = 2 * text.hidden * unit
    mlp = 4 * text.intermediate * unit + 4 * text.hidden
    values = text.value_heads * text.value_dim
    keys = text.value_heads * text.key_dim
    signals = 4 * text.channels * unit + 4 * 6 * (keys + values)
    return residual + max(mlp, signals + 4 * 4 * 64 * text.value_heads)


def needed(text: Text, head: Head, tower_weights: int, settings: ClefSettings) -> Need:
    """What one device holds with these settings; `tower_weights` of the vision tower, or 0."""
    precision, unit = settings.precision, _unit(settings.precision)
    decoder = 0.0
    tables = 0
    for name, shape in text_shapes(text).items():
        count = math.prod(shape)
        if name in (EMBEDDINGS, LM_HEAD):
            tables += 2 * count
        elif name.split(".")[-2] in LARGE:
            scales = 0 if precision in ("bf16", "fp32") else _SCALE_BYTES * shape[0]
            decoder += count * bytes_per_weight(precision) + scales
        else:
            decoder += count * unit
    chunk = min(settings.chunk_tokens, settings.max_tokens)
    per_token = key_bytes(text, precision) + memory_bytes(head, precision)
    return Need(
        decoder_bytes=int(decoder),
        tables_bytes=tables if settings.tables == "device" else 0,
        head_bytes=unit * sum(math.prod(shape) for shape in head_shapes(head).values()),
        tower_bytes=unit * tower_weights if settings.max_images else 0,
        keys_bytes=2 * settings.max_tokens * per_token,
        states_bytes=2 * state_bytes(text, precision),
        chunk_bytes=chunk * token_bytes(text, precision) + _unpacked_bytes(text, precision),
        runtime_bytes=_RUNTIME_BYTES,
    )


def _unit(precision: Precision) -> int:
    """Bytes of a number that is computed with."""
    return 4 if precision == "fp32" else 2


def _unpacked_bytes(text: Text, precision: Precision) -> int:
    """Of the largest 8-bit weight while it is multiplied: it is unpacked first, FP8 by way of
    float32; but not on cards that multiply in FP8."""
    each = {"bf16": 0, "fp32": 0, "int8": 2, "fp8": 4 + 4 + 2}[precision]
    return each * max(text.intermediate, text.channels) * text.hidden
