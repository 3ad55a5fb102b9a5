"""Failing well: too little memory, a device that is gone, numbers that are none."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import torch

from engines.clef import failures
from engines.clef.engine import ClefEngine
from engines.clef.exclusive import EXCLUSIVE
from engines.clef.graphs import Recorder
from engines.clef.prompt import Prompt
from engines.clef.reader import Logits, Reader
from engines.contract import Broken, Busy, Inquiry, Noul, Reading

from .golden import tiny_engine

ASKED = Inquiry(
    "My Stripe integration keeps failing.",
    {"a": Noul("Is it urgent?"), "b": Noul("Is it about money?"), "c": Noul("Is it late?")},
)
ONE = Inquiry(ASKED.state, {"q": Noul("Is it urgent?")})


def weights(readings: Mapping[str, Reading]) -> list[float]:
    return [weight for reading in readings.values() for weight in reading.log_weights]


def short_of_memory(most: int) -> Any:
    """`Reader.logits` on a device that has room for `most` prompts."""
    own = Reader.logits

    def logits(reader: Reader, prompts: Sequence[Prompt]) -> list[Logits]:
        if len(prompts) > most:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return own(reader, prompts)

    return logits


def test_out_of_memory_splits_the_batch_once(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = tiny_engine()
    pieces = engine.prepare(ASKED)
    plain = engine.read(pieces)
    monkeypatch.setattr(Reader, "logits", short_of_memory(2))

    found = engine.read(pieces)

    for ours, theirs in zip(found, plain, strict=True):
        assert weights(ours) == pytest.approx(weights(theirs), abs=1e-4)
    assert engine.health.counts["out of memory"] == 1


def test_out_of_memory_again_is_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = tiny_engine()
    pieces = engine.prepare(ASKED)
    monkeypatch.setattr(Reader, "logits", short_of_memory(0))

    with pytest.raises(Busy):
        engine.read(pieces)

    assert engine.health.state == "ready"


def test_a_lost_device_breaks_every_further_question(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = tiny_engine()
    pieces = engine.prepare(ASKED)

    def gone(_: Reader, __: Sequence[Prompt]) -> list[Logits]:
        raise RuntimeError("CUDA error: unspecified launch failure")

    monkeypatch.setattr(Reader, "logits", gone)

    with pytest.raises(Broken, match="device"):
        engine.read(pieces)
    with pytest.raises(Broken, match="device"):
        engine.prepare(ASKED)
    assert engine.health.state == "lost"


SAID: list[tuple[str, str]] = [
    ("CUDA error: an illegal memory access was encountered", "lost"),
    ("CUDA error: device-side assert triggered", "lost"),
    ("CUDA error: unspecified launch failure", "lost"),
    ("CUDA error: the launch timed out and was terminated", "lost"),
    ("CUDA error: uncorrectable ECC error encountered", "lost"),
    ("CUDA error: no CUDA-capable device is detected", "lost"),
    ("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasGemmEx`", "lost"),
    ("Triton Error [CUDA]: an illegal memory access was encountered", "lost"),
    ("CUDA error: out of memory", "memory"),
    ("Triton Error [CUDA]: out of memory", "memory"),
    ("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", "memory"),
    ("CUDA error: operation not permitted when stream is capturing", "other"),
    ("CUDA error: operation failed due to a previous error during capture", "other"),
    ("CUDA error: invalid configuration argument", "other"),
    ("CUDA error: CUBLAS_STATUS_NOT_SUPPORTED when calling `cublasLtMatmul`", "other"),
    ("shapes do not match", "other"),
]


@pytest.mark.parametrize(("said", "kind"), SAID, ids=[said for said, _ in SAID])
@pytest.mark.parametrize("family", [RuntimeError, torch.AcceleratorError])
def test_only_what_ends_the_process_on_a_device_counts_as_its_loss(
    family: type[RuntimeError], said: str, kind: str
) -> None:
    assert failures.kind_of(family(said)) == kind


def test_other_mistakes_are_not_taken_for_the_devices() -> None:
    assert failures.kind_of(ValueError("CUDA error: device-side assert triggered")) == "other"


@pytest.mark.parametrize(
    ("first", "kind"),
    [
        (torch.OutOfMemoryError("CUDA out of memory"), "memory"),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), "lost"),
        (ValueError("no shape"), "other"),
    ],
    ids=str,
)
def test_what_happened_first_counts_too(first: Exception, kind: str) -> None:
    def complain() -> None:
        try:
            raise first
        finally:
            raise RuntimeError("CUDA error: operation failed due to a previous error in capture")

    with pytest.raises(RuntimeError) as raised:
        complain()

    assert failures.kind_of(raised.value) == kind


def test_a_device_that_answers_no_more_is_lost_whatever_it_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = tiny_engine()
    pieces = engine.prepare(ONE)

    def gone(_: Reader, __: Sequence[Prompt]) -> list[Logits]:
        raise RuntimeError("CUDA error: something new")

    monkeypatch.setattr(Reader, "logits", gone)
    with pytest.raises(RuntimeError, match="something new"):
        engine.read(pieces)
    assert not _lost(engine)

    monkeypatch.setattr("engines.clef.engine.answers", lambda _: False)
    with pytest.raises(Broken, match="device"):
        engine.read(pieces)

    assert _lost(engine)


def _lost(engine: ClefEngine) -> bool:
    return engine.health.state == "lost"


def test_whether_a_device_answers_is_found_out_by_asking(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(*_: Any, **__: Any) -> None:
        raise RuntimeError("CUDA error: unspecified launch failure")

    assert failures.answers(torch.device("cpu"))
    monkeypatch.setattr(torch, "ones", asked)
    assert not failures.answers(torch.device("cuda"))


def test_out_of_memory_lets_go_of_states_and_recordings(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = tiny_engine()
    pieces = engine.prepare(ASKED)
    cleared: list[bool] = []
    monkeypatch.setattr(Recorder, "clear", lambda _: cleared.append(True))
    with engine._keeper.using() as loaded:
        loaded.reader._replay._recorder = Recorder(lambda work, _: work, 1 << 30)
    monkeypatch.setattr(Reader, "logits", short_of_memory(2))

    engine.read(pieces)

    assert cleared == [True]


def test_memory_that_cannot_be_given_back_stops_nobody(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuses() -> None:
        raise RuntimeError("captures_underway.empty() INTERNAL ASSERT FAILED")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "empty_cache", refuses)

    failures.relieve()

    assert "cannot be given back" in caplog.text


def test_a_device_that_cannot_compute_is_found_out_before_anybody_asks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def cannot(_: Reader, __: Sequence[Prompt]) -> list[Logits]:
        raise RuntimeError("CUDA error: no kernel image is available for execution on the device")

    monkeypatch.setattr(Reader, "logits", cannot)

    with pytest.raises(RuntimeError, match="no kernel image"):
        tiny_engine()


def test_a_lost_device_can_be_let_go_of(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> None:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    engine = tiny_engine()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "empty_cache", gone)

    engine.close()


def test_weights_that_are_not_finite_are_counted_and_not_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = tiny_engine(prefix_from_tokens=1, cache_from_tokens=1)
    pieces = engine.prepare(ONE)
    own = Reader.logits

    def poisoned(reader: Reader, prompts: Sequence[Prompt]) -> list[Logits]:
        return [((float("nan"), 0.0),) for _ in own(reader, prompts)]

    monkeypatch.setattr(Reader, "logits", poisoned)
    engine.read(pieces)

    assert engine.health.counts["not finite"] == 1
    with engine._keeper.using() as loaded:
        assert loaded.prefixes.bytes == 0


def test_what_is_recorded_and_what_is_not_is_read_before_anybody_asks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own, read = Reader.logits, []

    def logits(reader: Reader, prompts: Sequence[Prompt]) -> list[Logits]:
        read.append(reader._settings.graphs)
        return own(reader, prompts)

    monkeypatch.setattr(Reader, "logits", logits)

    tiny_engine()

    assert read == [False, True]


def test_memory_is_given_back_while_nobody_records(monkeypatch: pytest.MonkeyPatch) -> None:
    alone: list[bool] = []

    def given_back() -> None:
        alone.append(EXCLUSIVE._is_owned())  # type: ignore[attr-defined]

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "empty_cache", given_back)

    failures.relieve()

    assert alone == [True]
