"""Failing well: too little memory, a device that is gone, numbers that are none."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import torch

from engines.clef import failures
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


def test_other_mistakes_are_not_taken_for_the_devices() -> None:
    assert failures.kind_of(RuntimeError("shapes do not match")) == "other"
    assert failures.kind_of(ValueError("CUDA error")) == "other"


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
