"""Recorded work: shapes in buckets change no answer, and few recordings serve many shapes."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from engines.clef import exclusive, replay
from engines.clef.graphs import CudaGraphs, Recorder, Recording, Work, up, up_to_power
from engines.clef.model import Model
from engines.clef.plan import GIB
from engines.clef.prefixes import Prefixes
from engines.clef.prompt import Prompt
from engines.clef.reader import Reader
from engines.clef.settings import ClefSettings
from engines.clef.tokens import Tokens

from .golden import TINY, cases, furthest

CASES = [case for case in cases() if len(case.ids) < 700]


def frozen(work: Work, example: Sequence[Tensor]) -> Recording:
    """What a device records: the same work on tensors of its own, of these shapes alone."""
    fixed = [one.clone() for one in example]

    def replayed(inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
        for held, given in zip(fixed, inputs, strict=True):
            assert held.shape == given.shape
            held.copy_(given)
        return work(fixed)

    return replayed


def reader(model: Model, recorder: Recorder, **options: object) -> Reader:
    settings = ClefSettings(TINY, device="cpu", precision="fp32", **options)  # type: ignore[arg-type]
    return Reader(model, settings, Prefixes(settings.prefix_cache_bytes), recorder=recorder)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"prefix_from_tokens": 1, "cache_from_tokens": 1},
        {"cache_from_tokens": 1_000_000, "prefix_from_tokens": 1_000_000},
        {"bucket_tokens": 16},
        {"deterministic": True},
    ],
    ids=str,
)
def test_buckets_change_nothing(model: Model, tokens: Tokens, options: dict[str, object]) -> None:
    recorder = Recorder(frozen, GIB)
    asked = [case.prompt(tokens) for case in CASES]
    recording = reader(model, recorder, batch_tokens=1000, **options)

    found = [*recording.logits(asked[::2]), *recording.logits(asked[1::2])]

    for ours, case in zip(found, [*CASES[::2], *CASES[1::2]], strict=True):
        assert furthest(ours, case.fp32) < 1e-4, case.name
    assert recorder.recorded > 0


def test_lengths_of_one_bucket_share_a_recording(model: Model, tokens: Tokens) -> None:
    recorder = Recorder(frozen, GIB)
    recording = reader(model, recorder, prefix_from_tokens=1_000_000, cache_from_tokens=1_000_000)
    single = next(case for case in CASES if case.name == "single_question_of_basic")
    asked = [_longer(single.prompt(tokens), more) for more in range(20)]

    for one in asked:
        recording.logits([one])

    assert recorder.recorded == 2  # one of the decoder, one of the head


def _longer(prompt: Prompt, more: int) -> Prompt:
    opening = prompt.opening
    ids = (*opening.ids, *opening.ids[-1:] * more)
    return Prompt(
        type(opening)(ids, (), (), bytes([more])), prompt.schema, prompt.questions, prompt.cut
    )


def test_where_recording_is_impossible_it_goes_on_without(
    model: Model, tokens: Tokens, caplog: pytest.LogCaptureFixture
) -> None:
    def impossible(_: Work, __: Sequence[Tensor]) -> Recording:
        raise RuntimeError("operation not permitted when stream is capturing")

    asked = [case.prompt(tokens) for case in CASES[:3]]
    with caplog.at_level(logging.WARNING, "tiergate.clef"):
        found = reader(model, Recorder(impossible, GIB)).logits(asked)

    for ours, case in zip(found, CASES, strict=False):
        assert furthest(ours, case.fp32) < 1e-4
    (told,) = caplog.records
    assert told.message.startswith("kernels cannot be recorded")


def test_memory_that_runs_out_in_a_recording_stops_no_recording_for_good() -> None:
    short = [True]

    def record(work: Work, example: Sequence[Tensor]) -> Recording:
        if not short:
            return frozen(work, example)
        try:
            raise torch.OutOfMemoryError("CUDA out of memory")
        finally:
            raise RuntimeError("CUDA error: operation failed due to a previous error in capture")

    recorder = Recorder(record, GIB)
    with pytest.raises(RuntimeError):
        recorder.run("work", tuple, [torch.ones(1)])
    short.clear()

    recorder.run("work", tuple, [torch.ones(1)])

    assert recorder.recorded == 1


def test_recordings_are_bounded_by_the_bytes_they_hold() -> None:
    recorder = Recorder(frozen, 3 * 2 * 400)
    for size in range(97, 101):
        recorder.run("same", tuple, [torch.ones(size)])
    recorder.run("same", tuple, [torch.ones(100)])
    assert recorder.recorded == 4
    assert recorder.bytes <= 3 * 2 * 400

    recorder.run("same", tuple, [torch.ones(97)])  # which was the first to go

    assert recorder.recorded == 5


def test_what_is_larger_than_all_recordings_together_is_not_recorded() -> None:
    recorder = Recorder(frozen, 100)

    (found,) = recorder.run("same", tuple, [torch.ones(100)])

    assert torch.equal(found, torch.ones(100))
    assert (recorder.recorded, recorder.bytes) == (0, 0)


def test_recordings_can_be_let_go_of() -> None:
    recorder = Recorder(frozen, GIB)
    recorder.run("same", tuple, [torch.ones(3)])

    recorder.clear()

    assert recorder.bytes == 0


class _Cuda:
    """CUDA as a list of what was asked of it."""

    def __init__(self, *, capture_fails: bool = False) -> None:
        self.calls: list[str] = []
        self.streams = ["current"]
        self._capture_fails = capture_fails

    def Stream(self, device: torch.device) -> Any:
        own = SimpleNamespace(wait_stream=lambda _: self.calls.append("own waits"))
        self.calls.append(f"stream on {device}")
        return own

    def current_stream(self) -> Any:
        return SimpleNamespace(wait_stream=lambda _: self.calls.append("current waits"))

    def graph_pool_handle(self) -> str:
        return "pool"

    def CUDAGraph(self) -> Any:
        return SimpleNamespace(replay=lambda: self.calls.append("replay"))

    @contextmanager
    def device(self, _: torch.device) -> Iterator[None]:
        yield

    @contextmanager
    def stream(self, _: Any) -> Iterator[None]:
        self.streams.append("own")
        try:
            yield
        finally:
            self.streams.pop()

    @contextmanager
    def graph(self, _: Any, *, pool: str, stream: Any, capture_error_mode: str) -> Iterator[None]:
        self.calls.append(f"capture on {self.streams[-1]} from {pool}, {capture_error_mode}")
        assert stream is not None
        assert exclusive.EXCLUSIVE._is_owned()  # type: ignore[attr-defined]
        yield
        if self._capture_fails:
            raise RuntimeError("CUDA error: operation failed due to a previous error in capture")


def test_recordings_are_made_on_one_stream_of_their_own_after_a_warm_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cuda = _Cuda()
    monkeypatch.setattr(torch, "cuda", cuda)
    record = CudaGraphs(torch.device("cuda:1"))
    on: list[str] = []

    def work(given: Sequence[Tensor]) -> tuple[Tensor, ...]:
        on.append(cuda.streams[-1])
        return (given[0] + 1,)

    for size in (1, 2):
        record(work, [torch.zeros(size)])

    capture = "capture on own from pool, thread_local"
    assert on == ["own"] * 6
    assert cuda.calls == [
        "stream on cuda:1",
        *("own waits", capture, "current waits"),
        *("own waits", capture, "current waits"),
    ]


def test_the_stream_is_left_even_where_a_capture_is_broken_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cuda = _Cuda(capture_fails=True)
    monkeypatch.setattr(torch, "cuda", cuda)

    with pytest.raises(RuntimeError, match="previous error"):
        CudaGraphs(torch.device("cuda"))(tuple, [torch.zeros(1)])

    assert cuda.streams == ["current"]


def test_too_little_memory_for_a_recording_is_told_like_any_other() -> None:
    def full(_: Work, __: Sequence[Tensor]) -> Recording:
        raise torch.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(torch.OutOfMemoryError):
        Recorder(full, GIB).run("work", tuple, [torch.ones(1)])


def test_what_is_large_is_not_recorded(model: Model, tokens: Tokens) -> None:
    recorder = Recorder(frozen, GIB, max_tokens=100)
    case = CASES[0]

    found = reader(model, recorder).logits([case.prompt(tokens)])[0]

    assert furthest(found, case.fp32) < 1e-4
    assert recorder.recorded == 0


def test_a_past_that_no_recording_may_hold_is_not_even_copied(
    model: Model, tokens: Tokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("copied")

    recorder = Recorder(frozen, 20_000)
    monkeypatch.setattr(replay, "_widened", never)
    case = next(case for case in CASES if case.name == "basic")

    found = reader(model, recorder, prefix_from_tokens=1, cache_from_tokens=1).logits(
        [case.prompt(tokens)]
    )[0]

    assert furthest(found, case.fp32) < 1e-4


def test_sizes_go_up_to_their_bucket() -> None:
    assert [up(size, 64) for size in (1, 64, 65)] == [64, 64, 128]
    assert [up_to_power(count) for count in (1, 2, 3, 5, 8)] == [1, 2, 4, 8, 8]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
def test_a_cuda_graph_replays_what_it_recorded() -> None:
    device = torch.device("cuda")
    recorder = Recorder(CudaGraphs(device), GIB)
    weight = torch.randn(8, 8, device=device)

    def work(given: Sequence[Tensor]) -> tuple[Tensor, ...]:
        return (given[0] @ weight,)

    for seed in range(3):
        x = torch.full((4, 8), float(seed), device=device)
        assert torch.allclose(recorder.run("product", work, [x])[0], x @ weight)
    assert recorder.recorded == 1
