"""What verifying finds out about a checkpoint, and that it can find something."""

from pathlib import Path

import pytest
import torch

from engines.clef.layers import ZeroCentredNorm
from engines.clef.reader import Reader
from engines.clef.verify import findings
from engines.hub import MANIFEST

from .golden import TINY


def test_the_tiny_checkpoint_passes_every_check() -> None:
    found = {one.check: one for one in findings(TINY)}

    assert {one.status for one in found.values()} == {"ok", "skipped", "measured"}
    assert found["files"].status == "skipped"
    assert found["transformers' decoder"].status == "ok"
    assert "other answer in" in found["int8 against fp32"].detail


def test_a_delta_that_is_not_allowed_fails(copied: Path) -> None:
    found = {one.check: one for one in findings(copied, max_delta=1e-6)}

    assert found["int8 against fp32"].status == "failed"


def test_a_decoder_that_computes_something_else_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def plain_gain(norm: ZeroCentredNorm, x: torch.Tensor) -> torch.Tensor:
        wide = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return wide * (0.9 + norm.weight)

    monkeypatch.setattr(ZeroCentredNorm, "forward", plain_gain)

    found = {one.check: one for one in findings(TINY)}

    assert found["transformers' decoder"].status == "failed"


def test_a_reader_that_depends_on_company_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Reader._asked

    def leaking(reader: Reader, batch: object) -> object:
        found = own(reader, batch)  # type: ignore[arg-type]
        return [
            tuple(tuple(x * (i + len(found)) for i, x in enumerate(q)) for q in one)
            for one in found
        ]

    monkeypatch.setattr(Reader, "_asked", leaking)

    found = {one.check: one for one in findings(TINY)}

    assert found["alone and in company"].status == "failed"


def test_a_pull_that_changed_is_found(copied: Path) -> None:
    (copied / MANIFEST).write_text("{}", "utf-8")

    found = next(findings(copied))

    assert (found.check, found.status) == ("files", "failed")
