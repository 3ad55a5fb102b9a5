"""Safetensors files: names and shapes from their headers, tensors one at a time to a device."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from engines.clef.checkpoint import HEAD, Checkpoint
from engines.clef.refusals import CheckpointError
from engines.clef.shapes import VISION, head_shapes, refuse_other, text_shapes

Progress = Callable[[int, int], None]
"""Called with bytes read so far and bytes expected."""

_DTYPES = ("BF16", "F16", "F32")


class Weights:
    """The tensors of a checkpoint, mapped; nothing is read before it is asked for."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        """Opens every file and checks that exactly the right tensors are there.

        Raises:
            CheckpointError: a tensor is missing, unknown or misshapen, or lies elsewhere than the
                index says.
        """
        self._stack = ExitStack()
        self._files = checkpoint.files
        self._directory = checkpoint.directory
        self._opened: dict[str, Any] = {}
        try:
            for name in sorted({HEAD, *checkpoint.files.values()}):
                self._opened[name] = self._stack.enter_context(_opened(self._directory / name))
            self._refuse(checkpoint)
        except BaseException:
            self.close()
            raise

    @property
    def vision_names(self) -> list[str]:
        """The tensors of the vision tower."""
        return sorted(name for name in self._files if name.startswith(VISION))

    def tensor(self, name: str) -> torch.Tensor:
        """A tensor of the backbone on the CPU, as it is stored; pages are read when touched."""
        found: torch.Tensor = self._opened[self._files[name]].get_tensor(name)
        return found

    def head(self) -> dict[str, torch.Tensor]:
        """Every tensor of the head on the CPU, as it is stored."""
        file = self._opened[HEAD]
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118

    def bytes_of(self, names: Iterable[str]) -> int:
        """What these tensors of the backbone take as they are stored."""
        return sum(self.tensor(name).nbytes for name in names)

    def close(self) -> None:
        """Unmap the files."""
        self._stack.close()

    def _refuse(self, checkpoint: Checkpoint) -> None:
        found: dict[str, tuple[int, ...]] = {}
        for name, file in checkpoint.files.items():
            found[name] = _shape(self._opened[file], name, self._directory / file)
        wanted = text_shapes(checkpoint.text)
        text = {name: shape for name, shape in found.items() if not name.startswith(VISION)}
        refuse_other(text, wanted, str(self._directory))
        if checkpoint.vision is not None and len(text) == len(found):
            raise CheckpointError(f"{self._directory}: there are no tensors '{VISION}…'")
        head = self._opened[HEAD]
        path = self._directory / HEAD
        own = {name: _shape(head, name, path) for name in head.keys()}  # noqa: SIM118
        refuse_other(own, head_shapes(checkpoint.head), str(path))


def names_in(path: Path) -> list[str]:
    """The tensors of a file.

    Raises:
        CheckpointError: it is no safetensors file.
    """
    with _opened(path) as file:
        return list(file.keys())


def fingerprint(checkpoint: Checkpoint) -> str:
    """What identifies the weights: headers, sizes and samples of every file, 32 hex digits.

    Hashing 19 GB at every start takes longer than loading them. A megabyte from the beginning, the
    middle and the end of each file tells revisions apart; `tiergate engine verify` hashes it all.
    """
    digest = hashlib.blake2b(digest_size=16)
    for name in sorted({HEAD, *checkpoint.files.values()}):
        path = checkpoint.directory / name
        size = path.stat().st_size
        digest.update(f"{name} {size}".encode())
        with path.open("rb") as file:
            for at in (0, size // 2, max(0, size - (1 << 20))):
                file.seek(at)
                digest.update(file.read(1 << 20))
    return digest.hexdigest()


def streamed(
    weights: Weights, names: Iterable[str], progress: Progress | None
) -> Iterator[tuple[str, torch.Tensor]]:
    """Each tensor with its name; tells how far it is. One tensor in memory at a time."""
    names = list(names)
    expected, done = weights.bytes_of(names), 0
    for name in names:
        tensor = weights.tensor(name)
        yield name, tensor
        done += tensor.nbytes
        if progress is not None:
            progress(done, expected)


def _opened(path: Path) -> Any:
    try:
        return safe_open(path, framework="pt", device="cpu")
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{path}: not a safetensors file, or cut off ({error})") from error


def _shape(file: Any, name: str, path: Path) -> tuple[int, ...]:
    try:
        entry = file.get_slice(name)
    except SafetensorError as error:
        raise CheckpointError(
            f"{path}: has no tensor '{name}', though the index says so"
        ) from error
    if entry.get_dtype() not in _DTYPES:
        raise CheckpointError(
            f"{path}: the tensor '{name}' is {entry.get_dtype()}; {', '.join(_DTYPES)} are read"
        )
    return tuple(entry.get_shape())
