"""A safetensors file, mapped and never loaded: names, shapes, and one tensor at a time."""

import json
import math
import mmap
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_WIDTHS = {"F16": 2, "BF16": 2, "F32": 4}
_MOST_HEADER_BYTES = 100_000_000


class CheckpointError(ValueError):
    """Files that are not a checkpoint this engine reads; names the file, tensor or key."""


@dataclass(frozen=True, slots=True)
class _Entry:
    dtype: str
    shape: tuple[int, ...]
    begin: int
    """Offset in the file, in bytes."""


class Tensors:
    """The tensors of one file. Reading copies a single tensor; the file itself stays mapped."""

    def __init__(self, path: Path) -> None:
        """Reads the header only.

        Raises:
            CheckpointError: not a safetensors file, or a data type other than F16, BF16, F32.
        """
        self.path = path
        try:
            with path.open("rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise CheckpointError(f"{path}: cannot be read ({error})") from error
        self._entries = _header(path, self._map)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Tensor name → shape, in the order of the file's header."""
        return {name: entry.shape for name, entry in self._entries.items()}

    def read(self, name: str) -> NDArray[np.float32]:
        """The tensor as float32, in its own shape."""
        entry = self._entries[name]
        if entry.dtype == "BF16":
            wide = self._raw(entry, np.dtype("<u2")).astype(np.uint32) << 16
            return wide.view(np.float32).reshape(entry.shape)
        stored = np.dtype("<f2") if entry.dtype == "F16" else np.dtype("<f4")
        return self._raw(entry, stored).astype(np.float32)

    def half(self, name: str) -> NDArray[np.float16] | None:
        """The tensor as it is stored if that is float16, `None` otherwise."""
        entry = self._entries[name]
        if entry.dtype != "F16":
            return None
        return self._raw(entry, np.dtype("<f2")).astype(np.float16)

    def close(self) -> None:
        """Unmap the file."""
        self._map.close()

    def _raw(self, entry: _Entry, dtype: np.dtype[np.generic]) -> NDArray[np.generic]:
        count = math.prod(entry.shape)
        return np.frombuffer(self._map, dtype, count, entry.begin).reshape(entry.shape)


def _header(path: Path, content: mmap.mmap) -> dict[str, _Entry]:
    length = int.from_bytes(content[:8], "little")
    start = 8 + length
    if not 2 <= length <= _MOST_HEADER_BYTES or start > len(content):
        raise CheckpointError(f"{path}: not a safetensors file, or cut off")
    try:
        tree = json.loads(content[8:start])
        tree.pop("__metadata__", None)
        entries = {
            name: _Entry(
                fields["dtype"],
                tuple(int(size) for size in fields["shape"]),
                start + int(fields["data_offsets"][0]),
            )
            for name, fields in tree.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise CheckpointError(f"{path}: the safetensors header cannot be read") from error
    for name, entry in entries.items():
        if entry.dtype not in _WIDTHS:
            raise CheckpointError(
                f"{path}: tensor '{name}' is {entry.dtype}; F16, BF16 and F32 are read"
            )
        if entry.begin + math.prod(entry.shape) * _WIDTHS[entry.dtype] > len(content):
            raise CheckpointError(f"{path}: tensor '{name}' lies beyond the end of the file")
    return entries
