"""Recorded work: shapes in buckets change no answer, and few recordings serve many shapes."""

import logging
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from engines.clef import replay
from engines.clef.graphs import CudaGraphs, Recorder, Recording, Work, up, up_to_power
from engines.clef.model import Model
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
    return Reader(model, settings, Prefixes(settings.prefix_cache_bytes), recorder)


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
    recorder = Recorder(frozen)
    asked = [case.prompt(tokens) for case in CASES]
    recording = reader(model, recorder, **options)

    found = [*recording.logits(asked[::2]), *recording.logits(asked[1::2])]

    for ours, case in zip(found, [*CASES[::2], *CASES[1::2]], strict=True):
        assert furthest(ours, case.fp32) < 1e-4, case.name
    assert recorder.recorded > 0


def test_lengths_of_one_bucket_share_a_recording(model: Model, tokens: Tokens) -> None:
    recorder = Recorder(frozen)
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
        found = reader(model, Recorder(impossible)).logits(asked)

    for ours, case in zip(found, CASES, strict=False):
        assert furthest(ours, case.fp32) < 1e-4
    (told,) = caplog.records
    assert told.message.startswith("kernels cannot be recorded")


def test_too_little_memory_for_a_recording_is_told_like_any_other() -> None:
    def full(_: Work, __: Sequence[Tensor]) -> Recording:
        raise torch.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(torch.OutOfMemoryError):
        Recorder(full).run("work", tuple, [torch.ones(1)])


def test_what_is_large_is_not_recorded(
    model: Model, tokens: Tokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "MOST_TOKENS", 100)
    recorder = Recorder(frozen)
    case = CASES[0]

    found = reader(model, recorder).logits([case.prompt(tokens)])[0]

    assert furthest(found, case.fp32) < 1e-4
    assert recorder.recorded == 0


def test_sizes_go_up_to_their_bucket() -> None:
    assert [up(size, 64) for size in (1, 64, 65)] == [64, 64, 128]
    assert [up_to_power(count) for count in (1, 2, 3, 5, 8)] == [1, 2, 4, 8, 8]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
def test_a_cuda_graph_replays_what_it_recorded() -> None:
    device = torch.device("cuda")
    recorder = Recorder(CudaGraphs(device))
    weight = torch.randn(8, 8, device=device)

    def work(given: Sequence[Tensor]) -> tuple[Tensor, ...]:
        return (given[0] @ weight,)

    for seed in range(3):
        x = torch.full((4, 8), float(seed), device=device)
        assert torch.allclose(recorder.run("product", work, [x])[0], x @ weight)
    assert recorder.recorded == 1
