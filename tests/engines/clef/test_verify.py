"""What verifying finds out about a checkpoint, and that it can find something."""

import weakref
from pathlib import Path
from typing import Any

import pytest
import torch

from engines.clef import verify
from engines.clef.backbone import Backbone
from engines.clef.layers import ZeroCentredNorm
from engines.clef.model import Model, opened
from engines.clef.reader import Reader
from engines.clef.verify import Finding, findings
from engines.hub import MANIFEST

from .golden import TINY


def test_the_tiny_checkpoint_passes_every_check() -> None:
    found = {one.check: one for one in findings(TINY)}

    assert {one.status for one in found.values()} == {"ok", "skipped", "measured"}
    assert found["files"].status == "skipped"
    assert found["transformers' decoder"].status == "ok"
    assert "other answer in" in found["int8 against fp32"].detail
    assert "other answer in" in found["fp8 against fp32"].detail


def test_on_a_gpu_recordings_are_verified_too() -> None:
    assert verify._recorded("cuda:1") == {"recorded and replayed": {"graphs": True}}
    assert verify._recorded("cpu") == {}


def test_every_load_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "_INDIFFERENT", {})
    told: list[tuple[int, int]] = []

    list(findings(TINY, progress=lambda done, total: told.append((done, total))))

    assert sum(done == total for done, total in told) == 3


def test_each_model_is_let_go_of_before_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "_INDIFFERENT", {})
    models: list[weakref.ref[Backbone]] = []
    alive: list[int] = []

    def opening(*args: Any) -> Model:
        alive.append(sum(one() is not None for one in models))
        model = opened(*args)
        models.append(weakref.ref(model.backbone))
        return model

    monkeypatch.setattr(verify, "opened", opening)

    list(findings(TINY))

    assert alive == [0, 0, 0]


def about(check: str) -> Finding:
    """What is found about one thing; nothing after it is looked at."""
    return next(one for one in findings(TINY, max_delta=1e-6) if one.check == check)


def test_a_delta_that_is_not_allowed_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "_INDIFFERENT", {})

    assert about("int8 against fp32").status == "failed"


def test_a_decoder_that_computes_something_else_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def plain_gain(norm: ZeroCentredNorm, x: torch.Tensor) -> torch.Tensor:
        wide = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return wide * (0.9 + norm.weight)

    monkeypatch.setattr(ZeroCentredNorm, "forward", plain_gain)

    assert about("transformers' decoder").status == "failed"


def test_a_reader_that_depends_on_company_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Reader._asked

    def leaking(reader: Reader, batch: object) -> object:
        found = own(reader, batch)  # type: ignore[arg-type]
        return [
            tuple(tuple(x * (i + len(found)) for i, x in enumerate(q)) for q in one)
            for one in found
        ]

    monkeypatch.setattr(Reader, "_asked", leaking)

    assert about("alone and in company").status == "failed"


def test_a_pull_that_changed_is_found(copied: Path) -> None:
    (copied / MANIFEST).write_text("{}", "utf-8")

    found = next(findings(copied))

    assert (found.check, found.status) == ("files", "failed")
