"""What went wrong on a device: too little memory for once, or the device is gone for good."""

import gc
from typing import Literal

import torch

_GONE = ("cuda error", "cuda driver", "device-side assert", "cublas_status", "cudnn_status", "ecc")


def kind_of(error: BaseException) -> Literal["memory", "lost", "other"]:
    """After `lost` every further call on the device fails, whatever it is."""
    if isinstance(error, torch.OutOfMemoryError):
        return "memory"
    if isinstance(error, torch.AcceleratorError):
        return "lost"
    if isinstance(error, RuntimeError):
        said = str(error).lower()
        if "out of memory" in said:
            return "memory"
        if any(word in said for word in _GONE):
            return "lost"
    return "other"


def relieve() -> None:
    """Give memory that nothing holds any more back to the device, if that is still there."""
    gc.collect()
    try:
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
    except RuntimeError as error:
        if kind_of(error) != "lost":
            raise
