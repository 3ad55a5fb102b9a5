"""Where the tokens of a prompt stand: one after the other, except for those of images."""

from collections.abc import Sequence

import torch
from torch import Tensor

from engines.clef.prompt import Opening, Picture


def positions_of(opening: Opening) -> Tensor:
    """int64[3, tokens]: time, row and column of each token of an opening.

    An image's tokens share one time and count rows and columns from it; after an image of r × c
    tokens positions go on max(r, c) further.
    """
    parts, begun, place = [], 0, 0
    for at, picture in zip(opening.pictures_at, opening.pictures, strict=True):
        parts.append(after(place, at - begun))
        place += at - begun
        grid = _grid(picture)
        parts.append(grid + place)
        begun = at + grid.shape[1]
        place += int(grid.max()) + 1
    parts.append(after(place, len(opening.ids) - begun))
    return torch.cat(parts, 1)


def after(place: int, count: int) -> Tensor:
    """int64[3, count]: of plain tokens from `place` on."""
    return torch.arange(place, place + count).expand(3, -1)


def following(positions: Tensor) -> int:
    """The place of the token after these."""
    return int(positions.max()) + 1 if positions.numel() else 0


def padded(rows: Sequence[Tensor], tokens: int) -> Tensor:
    """int64[3, rows, tokens]; what is missing stands at 0."""
    found = torch.zeros(3, len(rows), tokens, dtype=torch.int64)
    for at, row in enumerate(rows):
        found[:, at, : row.shape[1]] = row
    return found


def _grid(picture: Picture) -> Tensor:
    rows, columns = picture.rows // picture.merge, picture.columns // picture.merge
    row = torch.arange(rows).repeat_interleave(columns)
    column = torch.arange(columns).repeat(rows)
    return torch.stack((torch.zeros_like(row), row, column))
