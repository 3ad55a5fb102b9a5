"""Lays one question out as a row of tokens in blocks; knows no tensor library and no text.

A row is a prefix (`[CLS] type: instructions [SEP] state [SEP]`) followed by one block per
option, each opened by a marker token. An option sees the prefix and itself only, and every
option starts at the same position, so an option's logit depends neither on the order nor on
the presence of the others.
"""

from collections.abc import Sequence
from dataclasses import dataclass

PREFIX = 0
PADDING = -1


@dataclass(frozen=True, slots=True)
class Row:
    """Token ids, positions and block numbers, all of one length; `markers` index the options."""

    ids: tuple[int, ...]
    positions: tuple[int, ...]
    blocks: tuple[int, ...]
    markers: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.ids)


def in_blocks(prefix: Sequence[int], options: Sequence[Sequence[int]], marker: int) -> Row:
    """The row of a prefix and its options, in option order; block k is option k - 1."""
    ids = list(prefix)
    positions = list(range(len(prefix)))
    blocks = [PREFIX] * len(prefix)
    markers: list[int] = []
    for number, option in enumerate(options, start=1):
        markers.append(len(ids))
        ids += [marker, *option]
        positions += range(len(prefix), len(prefix) + 1 + len(option))
        blocks += [number] * (1 + len(option))
    return Row(tuple(ids), tuple(positions), tuple(blocks), tuple(markers))


def sees(query_block: int, key_block: int) -> bool:
    """Whether a token of the first block may attend to a token of the second."""
    return key_block == PREFIX or (key_block == query_block and key_block != PADDING)
