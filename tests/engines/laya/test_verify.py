"""`engine verify`: what it finds on good weights, and that it can find something on bad ones."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from engines.laya import verify
from engines.laya.network import RowNetwork
from engines.laya.rows import Row


def test_good_weights_pass_every_check(copied: Path) -> None:
    found = {finding.check: finding for finding in verify.findings(copied)}

    statuses = {check: finding.status for check, finding in found.items()}
    both = all(importlib.util.find_spec(name) for name in ("laya", "torch"))
    assert statuses == {
        "load": "ok",
        "rows": "ok",
        "alone and in company": "ok",
        "padded batch": "ok",
        "int8 against fp32": "measured",
        "reference package": "ok" if both else "skipped",
    }
    assert not (copied / "tiergate-batch-fp32").exists()


def test_int8_that_moves_too_far_fails(copied: Path) -> None:
    found = {finding.check: finding for finding in verify.findings(copied, max_delta=1e-6)}

    assert found["int8 against fp32"].status == "failed"


def test_answers_that_depend_on_what_was_read_before_fail(
    copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = RowNetwork.logits
    calls = 0

    def drifting(self: RowNetwork, rows: list[Row]) -> list[object]:
        nonlocal calls
        calls += 1
        return [
            logits + np.float32(1e-3 * calls) * np.arange(len(logits), dtype=np.float32)
            for logits in own(self, rows)
        ]

    monkeypatch.setattr(RowNetwork, "logits", drifting)

    found = {finding.check: finding for finding in verify.findings(copied)}

    assert found["alone and in company"].status == "failed"
    assert found["padded batch"].status == "failed"
