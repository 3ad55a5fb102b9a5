"""How the memory of a device that weights leave free is shared out; what has to fit comes first."""

import logging
import sys
from dataclasses import dataclass, replace

import torch

from engines.clef.geometry import Head, Text
from engines.clef.graphs import MOST_TOKENS
from engines.clef.plan import (
    FLASH,
    FLASH_HEAD,
    FLASH_TOWER_WEIGHTS,
    Need,
    key_bytes,
    memory_bytes,
    needed,
    state_bytes,
    token_bytes,
)
from engines.clef.settings import ClefSettings, Precision

_log = logging.getLogger("tiergate.clef")

_OPENINGS_BYTES = 2 << 30
_GRAPH_BYTES = 1 << 30
_SHARE = 8
"""Batches and recordings get at most one part in so many each; states of one call as much twice,
once as they are kept and once beside each other."""


@dataclass(frozen=True, slots=True)
class Room:
    """What may be held at once besides weights and the prompt that is read."""

    batch_tokens: int
    """Of all rows that are computed together."""
    openings_bytes: int
    """Of states that are read for the questions of one call, and again of those whose questions
    are computed together."""
    prefix_bytes: int
    """Of states that are remembered."""
    graph_bytes: int
    """Of tensors that recordings read and write."""
    graph_tokens: int
    """Of all rows of a recording; what it computes meanwhile stays taken."""


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether a card holds it, and what is left for more than one prompt."""

    precision: Precision
    need: Need
    left_bytes: int
    """Negative = it does not fit."""
    room: Room
    """How that would be shared out, if it were all for states that are remembered."""
    cached_states: int
    """States of 4,000 tokens that are remembered then."""


def fits(settings: ClefSettings, card_bytes: int) -> list[Fit]:
    """Clef-flash on a card, for each precision that serves, most exact first."""
    found = []
    precisions: tuple[Precision, ...] = ("bf16", "fp8", "int8")
    for precision in precisions:
        asked = replace(settings, precision=precision, prefix_cache_bytes=sys.maxsize)
        need = needed(FLASH, FLASH_HEAD, FLASH_TOWER_WEIGHTS, asked)
        left = card_bytes - need.least_bytes
        room = shared_out(left, FLASH, asked)
        per_token = key_bytes(FLASH, precision) + memory_bytes(FLASH_HEAD, precision)
        entry = 4000 * per_token + state_bytes(FLASH, precision)
        found.append(Fit(precision, need, left, room, room.prefix_bytes // entry))
    return found


def unlimited(settings: ClefSettings) -> Room:
    """As the settings have it, for a device whose memory is that of the host."""
    prefix_bytes = settings.prefix_cache_bytes
    return Room(settings.batch_tokens, _OPENINGS_BYTES, prefix_bytes, _GRAPH_BYTES, MOST_TOKENS)


def shared_out(left_bytes: int, text: Text, settings: ClefSettings) -> Room:
    """What is left when the longest prompt can be read: half of it for work, at least half of it
    for states that are remembered, none of it more than the settings ask for."""
    share = max(0, left_bytes) // _SHARE
    per_token = token_bytes(text, settings.precision)
    chunk = min(settings.chunk_tokens, settings.max_tokens)
    batch = min(settings.batch_tokens, chunk + share // per_token)
    openings = min(_OPENINGS_BYTES, share)
    recorded = min(MOST_TOKENS, share // 2 // per_token) if settings.graphs else 0
    recordings = min(_GRAPH_BYTES, share // 2) if settings.graphs else 0
    taken = (max(0, batch - chunk) + recorded) * per_token + 2 * openings + recordings
    prefixes = min(settings.prefix_cache_bytes, max(0, left_bytes - taken))
    return Room(batch, openings, prefixes, recordings, recorded)


def room_on(device: torch.device, text: Text, head: Head, settings: ClefSettings) -> Room:
    """The room on a device that holds the weights already."""
    if device.type != "cuda":
        return unlimited(settings)
    free_bytes, _ = torch.cuda.mem_get_info(device)
    need: Need = needed(text, head, 0, settings)
    room = shared_out(free_bytes - need.work_bytes, text, settings)
    if room != unlimited(settings):
        _log.info(
            "%s has room for %d tokens at once, %.1f GB of remembered states and recordings of "
            "%d tokens; the settings allow more",
            device,
            room.batch_tokens,
            room.prefix_bytes / 1e9,
            room.graph_tokens,
        )
    return room
