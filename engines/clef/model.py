"""A loaded checkpoint: backbone, head and tables on their device, ready to compute."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from engines.clef import quantised
from engines.clef.backbone import Backbone
from engines.clef.checkpoint import Checkpoint
from engines.clef.crossing import sent
from engines.clef.head import DecisionHead
from engines.clef.kernels import Kernels, kernels_for
from engines.clef.plan import GIB, needed
from engines.clef.refusals import DeviceError
from engines.clef.settings import ClefSettings
from engines.clef.shapes import EMBEDDINGS, LM_HEAD, TEXT, VISION
from engines.clef.vision import Tower
from engines.clef.weights import Progress, Weights, streamed


@dataclass(frozen=True, slots=True)
class Table:
    """Rows by token id; may lie in memory that the device does not see."""

    rows: Tensor
    device: torch.device
    dtype: torch.dtype

    def of(self, ids: Tensor) -> Tensor:
        """[…, hidden] on the device, for int64 ids on any device."""
        found = self.rows[sent(ids, self.rows.device)]
        return sent(found, self.device).to(self.dtype)


@dataclass(frozen=True, slots=True)
class Model:
    """Everything that reading takes."""

    backbone: Backbone
    head: DecisionHead
    embeddings: Table
    words: Table
    """Rows of the output layer. It is never multiplied: the head reads them as a dictionary."""
    tower: Tower | None
    kernels: Kernels
    device: torch.device
    dtype: torch.dtype


def opened(
    checkpoint: Checkpoint, settings: ClefSettings, progress: Progress | None = None
) -> Model:
    """The checkpoint on its device; one tensor at a time passes through host memory.

    Raises:
        CheckpointError: its tensors are not those of a Clef checkpoint.
        DeviceError: the device is missing, or too small: with the needed and the free memory.
    """
    device = _device(settings.device)
    if device.type == "cuda":
        # cuDNN's attention compiles a plan for every length, which takes longer than reading it
        torch.backends.cuda.enable_cudnn_sdp(enabled=False)
        torch.backends.cudnn.allow_tf32 = False  # what is read in fp32 is read to compare with
    dtype = torch.float32 if settings.precision == "fp32" else torch.bfloat16
    _refuse_without_kernels(device, dtype)
    weights = Weights(checkpoint)
    refuse_if_too_small(checkpoint, settings, device, weights.bytes_of(weights.vision_names) // 2)
    try:
        with _told_about_memory(settings):
            return _loaded(checkpoint, settings, weights, (device, dtype), progress)
    except BaseException:
        weights.close()
        raise


def refuse_if_too_small(
    checkpoint: Checkpoint, settings: ClefSettings, device: torch.device, tower_weights: int
) -> None:
    """Nothing if weights and the least of work fit on the device.

    Raises:
        DeviceError: they do not.
    """
    if device.type != "cuda":
        return
    free_bytes, _ = torch.cuda.mem_get_info(device)
    need = needed(checkpoint.text, checkpoint.head, tower_weights, settings)
    if need.least_bytes > free_bytes:
        raise DeviceError(
            f"{device} has {free_bytes / GIB:.1f} GiB free, but {need.least_bytes / GIB:.1f} GiB "
            f"are needed: {need.weights_bytes / GIB:.1f} for weights and "
            f"{need.work_bytes / GIB:.1f} to compute; try another "
            f"precision than {settings.precision}, "
            'tables = "host" or max_images = 0'
        )


def _device(name: str) -> torch.device:
    device = torch.device(name)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise DeviceError('there is no CUDA device; use devices = ["cpu"] or mend the driver')
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise DeviceError(f"there is no {name}: {torch.cuda.device_count()} CUDA devices are here")
    return device


def _refuse_without_kernels(device: torch.device, dtype: torch.dtype) -> None:
    """Nothing if a CPU's kernels can be had: oneDNN writes their code as it runs.

    Raises:
        DeviceError: this process may not run what it wrote.
    """
    if device.type != "cpu":
        return
    states, kernel = torch.ones(1, 64, 2, dtype=dtype), torch.ones(64, 1, 2, dtype=dtype)
    try:
        torch.nn.functional.conv1d(states, kernel, groups=64)
    except RuntimeError as error:
        raise DeviceError(
            f"kernels for the CPU cannot be made here ({error}); a service with this engine must "
            "not have MemoryDenyWriteExecute"
        ) from error


def _loaded(
    checkpoint: Checkpoint,
    settings: ClefSettings,
    weights: Weights,
    place: tuple[torch.device, torch.dtype],
    progress: Progress | None,
) -> Model:
    device, dtype = place
    with torch.device("meta"):
        backbone, head = Backbone(checkpoint.text), DecisionHead(checkpoint.head)
    names = [name for name in checkpoint.files if name.startswith(TEXT) and name != EMBEDDINGS]
    for name, tensor in streamed(weights, names, progress):
        _put(backbone, name.removeprefix(TEXT), tensor.to(device, dtype))
        quantised.shrink(backbone, name.removeprefix(TEXT), settings.precision)
    for name, tensor in weights.head().items():
        _put(head, name, tensor.to(device, dtype))
    tower = None
    if checkpoint.vision is not None:
        own = {name.removeprefix(VISION): weights.tensor(name) for name in weights.vision_names}
        tower = Tower(checkpoint.vision, own, device, dtype)
    home = device if settings.tables == "device" else torch.device("cpu")
    tables = [Table(weights.tensor(name).to(home), device, dtype) for name in (EMBEDDINGS, LM_HEAD)]
    return Model(
        backbone.eval().requires_grad_(False),
        head.eval().requires_grad_(False),
        tables[0],
        tables[1],
        tower,
        kernels_for(device, dtype),
        device,
        dtype,
    )


def _put(module: nn.Module, name: str, tensor: Tensor) -> None:
    """Assign a parameter by its dotted name."""
    owner, _, last = name.rpartition(".")
    setattr(module.get_submodule(owner), last, nn.Parameter(tensor, requires_grad=False))


@contextmanager
def _told_about_memory(settings: ClefSettings) -> Iterator[None]:
    try:
        yield
    except torch.OutOfMemoryError as error:
        gc.collect()
        raise DeviceError(
            f"the weights do not fit on {settings.device} in {settings.precision}; see "
            "`tiergate engine plan`"
        ) from error
