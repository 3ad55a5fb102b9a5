"""Work that is recorded once per shape and then replayed: one launch instead of two thousand.

At a few hundred tokens launching kernels takes longer than running them. Shapes are padded into
buckets, so that there are few; recordings that are used least go first.
"""

import logging
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from cachetools import LRUCache
from torch import Tensor

from engines.clef.exclusive import EXCLUSIVE
from engines.clef.failures import kind_of

_log = logging.getLogger("tiergate.clef")

MOST_TOKENS = 2048
"""Of all rows together: with more, computing takes longer than launching, which it hides."""
MOST_TOKENS_AFTER = 1024
"""The same for rows after what they have read: what is padded there is masked, which takes a slower
kernel than the plain diagonal."""
MOST_KEYS = 16_384
"""Of all rows together: keys are copied for every replay."""
_WARM_UPS = 2

Work = Callable[[Sequence[Tensor]], tuple[Tensor, ...]]
"""Tensors to tensors; nothing else may change or be changed, and nothing may look at a value."""
Recording = Callable[[Sequence[Tensor]], tuple[Tensor, ...]]
Record = Callable[[Work, Sequence[Tensor]], Recording]
"""Work and an example of its inputs → the same work for inputs of the same shapes."""


@dataclass(frozen=True, slots=True)
class _Kept:
    recording: Recording
    bytes: int
    """Of the tensors that it reads and writes, which are its own."""


class Recorder:
    """Recordings by what is done and the shapes it is done to. For one thread at a time."""

    def __init__(self, record: Record, max_bytes: int, max_tokens: int = MOST_TOKENS) -> None:
        """`max_bytes`: of the tensors that all recordings together hold; `max_tokens`: of all rows
        of one of them."""
        self.max_tokens = max_tokens
        self._record = record
        self._kept: LRUCache[Hashable, _Kept] = LRUCache(max_bytes, getsizeof=lambda one: one.bytes)
        self._impossible = False
        self.recorded = 0
        """Recordings made so far."""

    @property
    def bytes(self) -> int:
        """Held by all recordings now."""
        return int(self._kept.currsize)

    @property
    def max_bytes(self) -> int:
        """The most that they may hold together."""
        return int(self._kept.maxsize)

    def run(self, name: str, work: Work, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """What the work makes of the inputs.

        Raises:
            RuntimeError: out of memory, or whatever the work raises.
        """
        key = (name, tuple((tuple(one.shape), one.dtype) for one in inputs))
        kept = self._kept.get(key)
        if kept is not None:
            return kept.recording(inputs)
        held = sum(one.nbytes for one in inputs)
        if self._impossible or held > self._kept.maxsize:
            return work(inputs)
        return self._recorded(key, work, inputs)

    def clear(self) -> None:
        """Let go of every recording, for what else needs the memory."""
        self._kept.clear()

    def _recorded(self, key: Hashable, work: Work, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
        try:
            recording = self._record(work, inputs)
        except RuntimeError as error:
            if kind_of(error) != "other":
                raise
            self._impossible = True
            cause = error.__context__ or error
            _log.warning("kernels cannot be recorded here (%s); going on without", cause)
            return work(inputs)
        self.recorded += 1
        found = recording(inputs)
        size = sum(one.nbytes for one in (*inputs, *found))
        if size <= self._kept.maxsize:
            self._kept[key] = _Kept(recording, size)
        return found


class CudaGraphs:
    """Records on a CUDA device; all recordings share one pool of memory and one stream."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._pool: Any = None
        self._stream: Any = None

    def __call__(self, work: Work, inputs: Sequence[Tensor]) -> Recording:
        """Raises: RuntimeError: something in the work cannot be recorded, or memory is short."""
        fixed = [one.clone() for one in inputs]
        with EXCLUSIVE, torch.cuda.device(self._device):
            graph, outputs = self._captured(work, fixed)

        def replayed(inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
            for held, given in zip(fixed, inputs, strict=True):
                held.copy_(given)
            graph.replay()
            return tuple(one.clone() for one in outputs)  # the next replay overwrites them

        return replayed

    def _captured(self, work: Work, fixed: Sequence[Tensor]) -> tuple[Any, tuple[Tensor, ...]]:
        """The graph, and the tensors that it writes its outputs to."""
        if self._stream is None:
            # one of its own, on this device: every stream costs a workspace of each library
            self._stream = torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]
            self._pool = torch.cuda.graph_pool_handle()
        current = torch.cuda.current_stream()
        self._stream.wait_stream(current)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.stream(self._stream):  # left for good even where a capture is broken off
            for _ in range(_WARM_UPS):
                work(fixed)
            with torch.cuda.graph(
                graph,
                pool=self._pool,
                stream=self._stream,
                capture_error_mode="thread_local",  # engines on other devices go on meanwhile
            ):
                outputs = work(fixed)
        current.wait_stream(self._stream)
        return graph, outputs


def up(size: int, bucket: int) -> int:
    """The next multiple of the bucket."""
    return -(-size // bucket) * bucket


def up_to_power(count: int) -> int:
    """The next power of two."""
    return 1 << (count - 1).bit_length()
