"""The bench of Clef compares what computes the same, and runs to its end."""

import json
from pathlib import Path

import pytest
import torch

from bench.__main__ import main
from bench.clef.models import SIZES, flops, random_model
from bench.clef.naive import Naive
from bench.clef.prompts import prompt
from engines.clef.prefixes import Prefixes
from engines.clef.reader import Reader
from engines.clef.settings import ClefSettings

CPU = torch.device("cpu")


def test_the_naive_way_gives_the_same_answers() -> None:
    torch.set_num_threads(1)
    size = SIZES["tiny"]
    model = random_model(size, CPU, "fp32")
    settings = ClefSettings(Path("random"), device="cpu", precision="fp32")
    one = prompt(120, 84, size.text.vocabulary)

    ours = Reader(model, settings, Prefixes(0)).logits([one])[0][0]

    assert ours == pytest.approx(Naive(model).logits(one)[0], abs=1e-4)


def test_operations_are_those_of_the_published_arithmetic() -> None:
    assert flops(SIZES["full"], 334) == pytest.approx(4.69e12, rel=0.01)
    assert flops(SIZES["full"], 16_000) == pytest.approx(241e12, rel=0.02)


def test_the_bench_runs_on_a_cpu(tmp_path: Path) -> None:
    out = tmp_path / "clef.json"

    main(["clef", "--tiny", "--out", str(out)])

    lines = {line["what"] for line in json.loads(out.read_text("utf-8"))["lines"]}
    assert any("naive forward over ours" in what for what in lines)
    assert any("32 callers" in what for what in lines)
    assert out.with_suffix(".md").is_file()
