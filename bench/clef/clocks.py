"""How long things take on a device, how many operations they are, and what it could do at best."""

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from engines.clef.eight import EightBitLinear, rounded
from engines.clef.quantised import multiplies

_VIEWS = ("view", "reshape", "transpose", "permute", "expand", "slice", "select", "t.", "detach")
_PEAK_SIDE = 8192


def wait(device: torch.device) -> None:
    """Until the device has nothing to do."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def clock(device: torch.device) -> Callable[[], float]:
    """Seconds: by the wall for a GPU, of CPU time for a CPU, which others may be using too."""
    return time.perf_counter if device.type == "cuda" else time.process_time


def took_ms(work: Callable[[], object], device: torch.device) -> float:
    """Milliseconds of one call, until the device is done with it; see `clock`."""
    wait(device)
    now_s = clock(device)
    begun_s = now_s()
    work()
    wait(device)
    return (now_s() - begun_s) * 1e3


def median_ms(work: Callable[[], object], device: torch.device, rounds: int) -> float:
    """The median of several calls, after one that does not count."""
    work()
    return statistics.median(took_ms(work, device) for _ in range(rounds))


def peak_flops(device: torch.device, dtype: torch.dtype, side: int | None = None) -> float:
    """Operations per second of a large square product, the best of several."""
    size = side or (_PEAK_SIDE if device.type == "cuda" else 512)
    a, b = (torch.randn(size, size, device=device, dtype=dtype) for _ in "ab")
    best_ms = min(took_ms(lambda: a @ b, device) for _ in range(10))
    return float(2.0 * size**3 / (best_ms / 1e3))


def peak_fp8_flops(device: torch.device) -> float | None:
    """The same in FP8 with a scale per row, or `None` where the device cannot."""
    if not multiplies(device):
        return None
    size = _PEAK_SIDE
    a, b = (torch.randn(size, size, device=device, dtype=torch.bfloat16) for _ in "ab")
    product, given = EightBitLinear(b), rounded(a)
    best_ms = min(took_ms(lambda: product.of(given), device) for _ in range(10))
    return float(2.0 * size**3 / (best_ms / 1e3))


def peak_bytes(work: Callable[[], object], device: torch.device) -> int:
    """The most that one call takes of a GPU beside what is there before it."""
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    took_ms(work, device)
    return torch.cuda.max_memory_allocated(device) - before


class _Counting(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = str(func).removeprefix("aten.")
        self.count += not name.startswith(_VIEWS)
        return func(*args, **(kwargs or {}))


def operations(work: Callable[[], object]) -> int:
    """Operations that are no mere view, each of which is at least one kernel on a GPU."""
    with _Counting() as counting:
        work()
    count: int = counting.count
    return count
