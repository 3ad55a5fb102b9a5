"""What a card must hold: weights and tables, what one prompt takes, what one chunk takes meanwhile.

Sizes of tensors are exact. What a chunk takes while it is computed is an upper estimate for the
plain torch path; it has not been measured on a GPU.
"""

import math
from dataclasses import dataclass, replace

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
_MASK_BYTES = 3
"""Per pair of token and key: the mask, and its form in the attention kernel."""


@dataclass(frozen=True, slots=True)
class Need:
    """Bytes on one device, by what they are for."""

    decoder_bytes: int
    tables_bytes: int
    """Embeddings and output rows; 0 where they lie in host memory."""
    head_bytes: int
    tower_bytes: int
    keys_bytes: int
    """Keys, values and the head's memory of one prompt of `max_tokens`."""
    states_bytes: int
    """Memories of the linear layers of one prompt, whatever its length."""
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


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether a card holds it, and what is left for more than one prompt."""

    precision: Precision
    need: Need
    left_bytes: int
    """Negative = it does not fit."""
    cached_states: int
    """States of 4,000 tokens that the rest would keep for the next question."""


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
    return Need(
        decoder_bytes=int(decoder),
        tables_bytes=tables if settings.tables == "device" else 0,
        head_bytes=unit * sum(math.prod(shape) for shape in head_shapes(head).values()),
        tower_bytes=unit * tower_weights if settings.max_images else 0,
        keys_bytes=settings.max_tokens
        * (key_bytes(text, precision) + memory_bytes(head, precision)),
        states_bytes=state_bytes(text, precision),
        chunk_bytes=chunk * (_token_bytes(text, unit) + _MASK_BYTES * settings.max_tokens),
        runtime_bytes=_RUNTIME_BYTES,
    )


def fits(settings: ClefSettings, card_bytes: int) -> list[Fit]:
    """Clef-flash on a card, for each precision that serves, most exact first."""
    found = []
    for precision in ("bf16", "fp8", "int8"):
        asked = replace(settings, precision=precision)
        need = needed(FLASH, FLASH_HEAD, FLASH_TOWER_WEIGHTS, asked)
        left = card_bytes - need.least_bytes
        per_token = key_bytes(FLASH, precision) + memory_bytes(FLASH_HEAD, precision)
        entry = 4000 * per_token + state_bytes(FLASH, precision)
        found.append(Fit(precision, need, left, max(0, left // entry)))
    return found


def _unit(precision: Precision) -> int:
    """Bytes of a number that is computed with."""
    return 4 if precision == "fp32" else 2


def _token_bytes(text: Text, unit: int) -> int:
    """Per token of a chunk: the larger of what an MLP and what a linear layer hold at once."""
    residual = 4 * text.hidden * unit + 4 * text.hidden
    mlp = 3 * text.intermediate * unit
    values = text.value_heads * text.value_dim
    keys = text.value_heads * text.key_dim
    signals = 3 * text.channels * unit + 4 * (3 * keys + 4 * values)
    chunks = 4 * 64 * text.value_heads * 4
    return residual + max(mlp, signals + chunks)
