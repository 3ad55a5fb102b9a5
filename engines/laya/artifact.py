"""What an import leaves beside a checkpoint: a graph, its weights, a manifest that says of what.

A directory `tiergate-FORM-PRECISION/` appears whole or not at all.
"""

import hashlib
import json
import os
import platform
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from engines.laya import layers
from engines.laya.checkpoint import WEIGHTS, Checkpoint, Encoder
from engines.laya.tensors import CheckpointError, Tensors

Precision = Literal["fp32", "int8"]
Form = Literal["row", "batch"]
Progress = Callable[[int, int], None]
"""Called with bytes written so far and bytes expected."""

DRAWING = 1
"""Counts up whenever the drawn graph changes; older artifacts are drawn again."""

_GRAPH, _WEIGHTS, _MANIFEST = "graph.onnx", "weights.bin", "manifest.json"
_CHUNK_BYTES = 1 << 22


@dataclass(frozen=True, slots=True)
class Manifest:
    """Where an artifact comes from."""

    tool: str
    drawing: int
    form: Form
    precision: Precision
    bits: int
    """Per weight of the large products: 32, 8 or 7."""
    source_sha256: str
    source_bytes: int
    source_modified_ns: int


@dataclass(frozen=True, slots=True)
class Artifact:
    """A graph that can be run."""

    graph: Path
    manifest: Manifest


def artifact(checkpoint: Checkpoint, precision: Precision, form: Form = "row") -> Artifact | None:
    """The imported graph of this checkpoint, or `None` if there is none that can be used.

    Drawn by an older tool, from other weights, or with 8-bit weights for a processor without
    VNNI: none of these can.
    """
    directory = _directory(checkpoint, precision, form)
    try:
        manifest = Manifest(**json.loads((directory / _MANIFEST).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None
    current = manifest.drawing == DRAWING and manifest.bits in _bits(precision)
    if not current or not (directory / _GRAPH).is_file():
        return None
    weights = checkpoint.directory / WEIGHTS
    if not _is_source(manifest, weights):
        return None
    return Artifact(directory / _GRAPH, manifest)


def imported(
    checkpoint: Checkpoint,
    precision: Precision,
    form: Form = "row",
    *,
    sha256: str | None = None,
    progress: Progress | None = None,
) -> Artifact:
    """Draw the checkpoint's graph and keep it beside the weights; replaces an older one.

    Holds one tensor at a time in memory. `sha256` is what the weights must hash to, if given.

    Raises:
        CheckpointError: the weights are not as they must be, or the place cannot be written.
        ImportError: the package onnx is not installed.
    """
    encoder = checkpoint.encoder
    if encoder is None:
        raise CheckpointError(
            f"{checkpoint.directory}: holds exported graphs and no {WEIGHTS}; nothing to import"
        )
    weights = checkpoint.directory / WEIGHTS
    digest = sha256_of(weights)
    if sha256 is not None and sha256.lower() != digest:
        raise CheckpointError(f"{weights}: its SHA-256 is {digest}, not {sha256.lower()}")
    tensors = Tensors(weights)
    try:
        layers.refuse_other(tensors.shapes, layers.expected(checkpoint, encoder), str(weights))
        state = weights.stat()
        manifest = Manifest(
            tool=f"tiergate {_own_version()}",
            drawing=DRAWING,
            form=form,
            precision=precision,
            bits=max(_bits(precision)),
            source_sha256=digest,
            source_bytes=state.st_size,
            source_modified_ns=state.st_mtime_ns,
        )
        return _written(_Source(checkpoint, encoder, tensors), manifest, progress)
    finally:
        tensors.close()


def sha256_of(path: Path) -> str:
    """64 hex digits."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                digest.update(chunk)
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror})") from error
    return digest.hexdigest()


def has_vnni() -> bool:
    """Whether this processor multiplies and adds 8-bit integers without 16-bit sums between."""
    if platform.machine().lower() in ("aarch64", "arm64"):
        return True
    try:
        flags = Path("/proc/cpuinfo").read_text("ascii", "replace")
    except OSError:
        return False
    return "avx512_vnni" in flags or "avx_vnni" in flags


@dataclass(frozen=True, slots=True)
class _Source:
    checkpoint: Checkpoint
    encoder: Encoder
    tensors: Tensors


def _written(source: _Source, manifest: Manifest, progress: Progress | None) -> Artifact:
    checkpoint = source.checkpoint
    final = _directory(checkpoint, manifest.precision, manifest.form)
    try:
        workshop = Path(tempfile.mkdtemp(prefix=".import-", dir=checkpoint.directory))
    except OSError as error:
        raise CheckpointError(
            f"{checkpoint.directory}: the imported graph is kept beside the weights, but this "
            f"directory cannot be written ({error.strerror}); make it writable or run "
            "`tiergate engine import` as its owner"
        ) from error
    try:
        workshop.chmod(0o755)  # whoever may read the weights may read the import
        _draw(source, manifest, workshop, progress)
        (workshop / _MANIFEST).write_text(json.dumps(asdict(manifest), indent=2) + "\n")
        _sync(workshop)
        if final.exists():
            os.replace(final, workshop / "older")
        os.replace(workshop, final)
        shutil.rmtree(final / "older", ignore_errors=True)
    except BaseException:
        shutil.rmtree(workshop, ignore_errors=True)
        raise
    return Artifact(final / _GRAPH, manifest)


def _draw(source: _Source, manifest: Manifest, workshop: Path, progress: Progress | None) -> None:
    # onnx is needed to draw a graph, not to run one
    from engines.laya import graph
    from engines.laya.brush import Brush
    from engines.laya.linear import Linear, Plain, RowScaled
    from engines.laya.sketch import Sketch

    expected = graph.size_bytes(source.tensors, bytes_per_weight=4 if manifest.bits == 32 else 1)
    done = 0

    def count(written: int) -> None:
        nonlocal done
        done += written
        if progress is not None:
            progress(min(done, expected), expected)

    linear: Linear = Plain() if manifest.precision == "fp32" else RowScaled(manifest.bits)
    with (workshop / _WEIGHTS).open("wb") as file:
        sketch = Sketch(file, _WEIGHTS, count)
        brush = Brush(sketch, source.tensors, linear, manifest.form)
        graph.draw(brush, source.encoder, source.checkpoint.head_layers)
    sketch.save(workshop / _GRAPH, graph.INPUTS[manifest.form], graph.OUTPUTS[manifest.form])
    count(expected)


def _directory(checkpoint: Checkpoint, precision: Precision, form: Form) -> Path:
    return checkpoint.directory / f"tiergate-{form}-{precision}"


def _bits(precision: Precision) -> tuple[int, ...]:
    """Weight widths that this processor runs without overflow."""
    if precision == "fp32":
        return (32,)
    return (7, 8) if has_vnni() else (7,)


def _is_source(manifest: Manifest, weights: Path) -> bool:
    """Whether the weights are those of the manifest; hashes them only if the file was touched."""
    try:
        state = weights.stat()
    except OSError:
        return False
    if state.st_size != manifest.source_bytes:
        return False
    untouched = state.st_mtime_ns == manifest.source_modified_ns
    return untouched or sha256_of(weights) == manifest.source_sha256


def _own_version() -> str:
    try:
        return version("tiergate")
    except PackageNotFoundError:
        return "unknown"


def _sync(directory: Path) -> None:
    for path in directory.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
