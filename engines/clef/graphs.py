"""Work that is recorded once per shape and then replayed: one launch instead of two thousand.

At a few hundred tokens launching kernels takes longer than running them. Shapes are padded into
buckets, so that there are few; recordings that are used least go first.
"""

import logging
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import torch
from cachetools import LRUCache
from torch import Tensor

_log = logging.getLogger("tiergate.clef")

MOST_TOKENS = 4096
"""Of all rows together: with more, launching is lost in the noise."""
MOST_KEYS = 16_384
"""Of all rows together: keys are copied for every replay."""
_MOST_RECORDINGS = 64
_WARM_UPS = 2

Work = Callable[[Sequence[Tensor]], tuple[Tensor, ...]]
"""Tensors to tensors; nothing else may change or be changed, and nothing may look at a value."""
Recording = Callable[[Sequence[Tensor]], tuple[Tensor, ...]]
Record = Callable[[Work, Sequence[Tensor]], Recording]
"""Work and an example of its inputs → the same work for inputs of the same shapes."""


class Recorder:
    """Recordings by what is done and the shapes it is done to. For one thread at a time."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._kept: LRUCache[Hashable, Recording] = LRUCache(_MOST_RECORDINGS)
        self._impossible = False
        self.recorded = 0
        """Recordings made so far."""

    def run(self, name: str, work: Work, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """What the work makes of the inputs."""
        if self._impossible:
            return work(inputs)
        key = (name, tuple((tuple(one.shape), one.dtype) for one in inputs))
        recording = self._kept.get(key)
        if recording is None:
            try:
                recording = self._record(work, inputs)
            except torch.OutOfMemoryError:
                raise
            except RuntimeError as error:
                self._impossible = True
                _log.warning("kernels cannot be recorded here (%s); going on without", error)
                return work(inputs)
            self._kept[key] = recording
            self.recorded += 1
        return recording(inputs)


class CudaGraphs:
    """Records on a CUDA device; all recordings share one pool of memory."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._pool: Any = None

    def __call__(self, work: Work, inputs: Sequence[Tensor]) -> Recording:
        """Raises: RuntimeError: something in the work cannot be recorded."""
        fixed = [one.clone() for one in inputs]
        with torch.cuda.device(self._device):
            stream: Any = torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                for _ in range(_WARM_UPS):
                    work(fixed)
            torch.cuda.current_stream().wait_stream(stream)
            if self._pool is None:
                self._pool = torch.cuda.graph_pool_handle()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=self._pool):
                outputs = work(fixed)

        def replayed(inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
            for held, given in zip(fixed, inputs, strict=True):
                held.copy_(given)
            graph.replay()
            return tuple(one.clone() for one in outputs)  # the next replay overwrites them

        return replayed


def up(size: int, bucket: int) -> int:
    """The next multiple of the bucket."""
    return -(-size // bucket) * bucket


def up_to_power(count: int) -> int:
    """The next power of two."""
    return 1 << (count - 1).bit_length()
