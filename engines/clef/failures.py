"""What went wrong on a device: too little memory for once, or the device is gone for good."""

import gc
import logging
from collections.abc import Iterator
from typing import Literal

import torch

from engines.clef.exclusive import EXCLUSIVE

_log = logging.getLogger("tiergate.clef")

_MEMORY = ("out of memory", "cublas_status_alloc_failed", "cudnn_status_alloc_failed")
_GONE = (
    "illegal memory access",
    "device-side assert",
    "unspecified launch failure",
    "launch timed out",
    "misaligned address",
    "illegal instruction",
    "invalid program counter",
    "hardware stack error",
    "operation not supported on global/shared address space",
    "uncorrectable",
    "context is destroyed",
    "driver shutting down",
    "initialization error",
    "busy or unavailable",
    "no cuda-capable device",
    "invalid device ordinal",
    "gpu is lost",
    "cublas_status_execution_failed",
    "cublas_status_internal_error",
    "cudnn_status_execution_failed",
)
"""What CUDA calls the failures after which every further call in this process fails too. Others
concern one call: a shape that no kernel takes, or something that cannot be recorded."""

Kind = Literal["memory", "lost", "other"]


def kind_of(error: BaseException) -> Kind:
    """After `lost` every further call on the device fails, whatever it is.

    What an error was raised on top of counts too: a recording that runs out of memory ends with
    complaints about the recording.
    """
    kinds = {_own_kind(each) for each in _with_causes(error)}
    return "lost" if "lost" in kinds else "memory" if "memory" in kinds else "other"


def answers(device: torch.device) -> bool:
    """Whether a device still computes."""
    if device.type != "cuda":
        return True
    try:
        torch.ones(1, device=device).add_(1).item()
        torch.cuda.synchronize(device)
    except RuntimeError as error:
        return kind_of(error) == "memory"
    return True


def relieve() -> None:
    """Give memory that nothing holds any more back to the device, if that is still there."""
    gc.collect()
    with EXCLUSIVE:
        try:
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
        except RuntimeError as error:
            _log.warning("memory cannot be given back to the device (%s)", error)


def _own_kind(error: BaseException) -> Kind:
    if isinstance(error, torch.OutOfMemoryError):
        return "memory"
    if not isinstance(error, RuntimeError):
        return "other"
    said = str(error).lower()
    if any(word in said for word in _MEMORY):
        return "memory"
    return "lost" if _of_a_device(error, said) and any(word in said for word in _GONE) else "other"


def _of_a_device(error: RuntimeError, said: str) -> bool:
    return isinstance(error, torch.AcceleratorError) or "cuda" in said or "cudnn" in said


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    at: BaseException | None = error
    while at is not None:
        yield at
        at = at.__cause__ or at.__context__
