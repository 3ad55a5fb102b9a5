"""Small tensors on their way to the device, without anybody waiting for them."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


def placed(numbers: Sequence[Any], device: torch.device) -> Tensor:
    """int64 or whatever the numbers are, in the shape that they are nested in; see `sent`."""
    return sent(torch.tensor(numbers), device)


def sent(tensor: Tensor, device: torch.device) -> Tensor:
    """The tensor on the device, in the order of its work.

    An ordinary copy to a GPU first waits until that has nothing to do; one that does not block is
    safe in this direction, as CUDA takes ordinary host memory away before it returns.
    """
    return tensor.to(device, non_blocking=True)
