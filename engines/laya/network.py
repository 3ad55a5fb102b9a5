"""Rows to logits on ONNX Runtime: one row at a time on a CPU, length buckets on a GPU."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from engines.laya.rows import Row
from engines.laya.temperature import KIND_INDEX
from engines.laya.tensors import CheckpointError
from engines.runtime import onnxruntime as ort

Device = Literal["cpu", "cuda"]
Logits = NDArray[np.float32]
"""One number per option, in slot order."""

_BUCKET = 64
_LEAST_MARKERS = 2
"""Exported graphs take the best two of a row, so they are never shown fewer."""


class DeviceError(ValueError):
    """The device that was asked for is not there."""


class Network(Protocol):
    """A loaded graph. Thread-safe."""

    def logits(self, rows: Sequence[Row]) -> list[Logits]:
        """For each row, its options' logits."""
        ...


class RowNetwork:
    """Our own graph of one unpadded row."""

    def __init__(self, graph: Path) -> None:
        self._session = session(graph, "cpu")

    def logits(self, rows: Sequence[Row]) -> list[Logits]:
        return [self._one(row) for row in rows]

    def _one(self, row: Row) -> Logits:
        inputs = {
            "input_ids": np.array([row.ids], np.int64),
            "marker_pos": np.array(row.markers, np.int64),
            "qtype": np.array([KIND_INDEX[row.kind]], np.int64),
        }
        return _first(self._session.run(["logits"], inputs)[0])


class BatchNetwork:
    """A graph of padded rows: our own on a GPU, or a fused community export."""

    def __init__(
        self, graph: Path, device: Device, pad: int, max_batch_tokens: int = 16_384
    ) -> None:
        self._session = session(graph, device)
        self._device = device
        self._pad = pad
        self._max_batch_tokens = max_batch_tokens

    def logits(self, rows: Sequence[Row]) -> list[Logits]:
        """On a CPU one row a time; on a GPU rows of about the same length together."""
        if self._device == "cpu":
            return [self.together([row])[0] for row in rows]
        found: dict[int, Logits] = {}
        for places in buckets([len(row.ids) for row in rows], self._max_batch_tokens):
            answers = self.together([rows[at] for at in places], _BUCKET)
            found.update(zip(places, answers, strict=True))
        return [found[at] for at in range(len(rows))]

    def together(self, rows: Sequence[Row], multiple: int = 1) -> list[Logits]:
        """The same as `logits`, in one run, padded to a multiple of so many tokens."""
        inputs = padded(rows, self._pad, multiple)
        binding = self._session.io_binding()
        for name, array in inputs.items():
            value = ort.OrtValue.ortvalue_from_numpy(array, self._device, 0)
            binding.bind_ortvalue_input(name, value)
        binding.bind_output("logits", self._device, 0)
        self._session.run_with_iobinding(binding)
        logits = _rows_of(binding.copy_outputs_to_cpu()[0])
        return [line[: len(row.markers)] for line, row in zip(logits, rows, strict=True)]


class SplitNetwork:
    """A community export in two files: the encoder, then the head."""

    def __init__(self, encoder: Path, head: Path, device: Device, pad: int) -> None:
        self._encoder = session(encoder, device)
        self._head = session(head, device)
        self._pad = pad
        shape = next((i.shape for i in self._head.get_inputs() if i.name == "qtype"), [None])
        self._kinds_stand_upright = len(shape) == 2

    def logits(self, rows: Sequence[Row]) -> list[Logits]:
        return [self._one(row) for row in rows]

    def _one(self, row: Row) -> Logits:
        inputs = padded([row], self._pad)
        wanted = {i.name for i in self._encoder.get_inputs()}
        seen = {name: array for name, array in inputs.items() if name in wanted}
        inputs["hidden_states"] = self._encoder.run(None, seen)[0]
        if self._kinds_stand_upright:
            inputs["qtype"] = inputs["qtype"][:, None]
        wanted = {i.name for i in self._head.get_inputs()}
        logits = self._head.run(["logits"], {n: a for n, a in inputs.items() if n in wanted})[0]
        return _first(logits)[: len(row.markers)]


def session(graph: Path, device: Device) -> ort.InferenceSession:
    """A session of one thread per run, without spinning; run it from as many threads as wanted.

    Raises:
        CheckpointError: ONNX Runtime cannot load the file.
        DeviceError: no such device, or the graph did not get there.
    """
    wanted = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}[device]
    if wanted not in ort.get_available_providers():
        raise DeviceError(
            "device is 'cuda', but ONNX Runtime has no CUDA here; install the extra cuda on a "
            'machine with a GPU, or set device = "cpu"'
        )
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    options.log_severity_level = 3
    providers = [wanted] if device == "cpu" else [wanted, "CPUExecutionProvider"]
    try:
        loaded = ort.InferenceSession(str(graph), options, providers=providers)
    except Exception as error:  # the library has no base class for its errors
        raise CheckpointError(f"{graph}: ONNX Runtime cannot load it ({error})") from error
    if loaded.get_providers()[0] != wanted:
        raise DeviceError("the GPU is there, but CUDA could not be started; see the log above")
    return loaded


def buckets(lengths: Sequence[int], max_tokens: int) -> list[list[int]]:
    """Places of rows that are run together: of the same rounded length, up to `max_tokens`."""
    grouped: dict[int, list[int]] = defaultdict(list)
    for at, length in enumerate(lengths):
        grouped[_rounded(length, _BUCKET)].append(at)
    found = []
    for width, places in sorted(grouped.items()):
        count = max(1, max_tokens // width)
        found += [places[i : i + count] for i in range(0, len(places), count)]
    return found


def padded(rows: Sequence[Row], pad: int, multiple: int = 1) -> dict[str, NDArray[np.generic]]:
    """The inputs of a batch, under the names of Laya's own ONNX agent.

    Ids and mask int64[rows, length], marker positions int64 and mask bool[rows, options], kinds
    int64[rows]; the length is rounded up to `multiple`.
    """
    length = _rounded(max(len(row.ids) for row in rows), multiple)
    options = max(_LEAST_MARKERS, *(len(row.markers) for row in rows))
    ids = np.full((len(rows), length), pad, np.int64)
    seen = np.zeros((len(rows), length), np.int64)
    markers = np.zeros((len(rows), options), np.int64)
    real = np.zeros((len(rows), options), np.bool_)
    for i, row in enumerate(rows):
        ids[i, : len(row.ids)] = row.ids
        seen[i, : len(row.ids)] = 1
        markers[i, : len(row.markers)] = row.markers
        real[i, : len(row.markers)] = True
    return {
        "input_ids": ids,
        "attention_mask": seen,
        "marker_pos": markers,
        "marker_mask": real,
        "qtype": np.array([KIND_INDEX[row.kind] for row in rows], np.int64),
    }


def _rounded(length: int, multiple: int) -> int:
    return -(-length // multiple) * multiple


def _first(array: object) -> Logits:
    line: Logits = _rows_of(array)[0]
    return line


def _rows_of(array: object) -> NDArray[np.float32]:
    return np.asarray(array, np.float32)
