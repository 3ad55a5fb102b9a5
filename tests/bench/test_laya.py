"""The bench of the Laya engine: its arithmetic, and that it runs."""

import json
from pathlib import Path

import pytest

from bench import laya
from bench.laya_checkpoint import SHAPES, random_checkpoint
from bench.laya_contenders import inquiry, open_engine
from bench.laya_measure import Costs, flops
from engines.laya.checkpoint import Encoder, load

pytest.importorskip("onnx")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("random")
    random_checkpoint(folder, "mini")
    return folder


def test_a_random_checkpoint_has_the_shapes_asked_for_and_is_made_once(folder: Path) -> None:
    encoder = load(folder / "mini").encoder
    written_ns = (folder / "mini/model.safetensors").stat().st_mtime_ns

    random_checkpoint(folder, "mini")

    assert encoder is not None
    assert (encoder.hidden, encoder.layers) == (256, 4)
    assert encoder.half_window == 64
    assert (folder / "mini/model.safetensors").stat().st_mtime_ns == written_ns


@pytest.mark.parametrize("length", [64, 200])
def test_an_inquiry_has_a_row_of_the_length_asked_for(folder: Path, length: int) -> None:
    engine = open_engine(folder / "mini", "fp32")

    tokens = [piece.tokens for piece in engine.prepare(inquiry(engine, length))]

    assert length - 4 <= tokens[0] <= length


def test_the_operations_of_a_token_are_twice_the_weights_it_meets() -> None:
    shape = {name: int(size) for name, size in SHAPES["english"].items() if name != "like"}
    encoder = Encoder(
        vocabulary=shape["vocab_size"],
        hidden=shape["hidden_size"],
        heads=shape["num_attention_heads"],
        intermediate=shape["intermediate_size"],
        half_window=64,
        thetas=(1.0,) * 28,
        sliding=tuple(i % 3 > 0 for i in range(28)),
        positions=8192,
        epsilon=1e-5,
    )

    per_token = flops(encoder, 2, 64, 3) / 64

    assert 0.70e9 < per_token < 0.75e9


def test_ratios_are_taken_round_by_round() -> None:
    costs = Costs()
    for ours, theirs in ((1.0, 2.0), (10.0, 30.0), (1.0, 4.0)):
        costs.add(64, "a", ours)
        costs.add(64, "b", theirs)
        costs.gflops.setdefault(64, []).append(100.0)

    assert costs.ratio(64, "a", "b") == (3.0, 2.5, 3.5)
    assert costs.of_gemm(64, "a", 5e7)[0] == pytest.approx(0.5)


def test_a_short_run_writes_a_page_and_every_sample(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "laya.json"
    options = ["--size", "mini", "--lengths", "64,96", "--rounds", "1", "--questions", "3"]

    laya.main(
        [*options, "--samples", "1", "--no-memory", "--folder", str(folder), "--out", str(out)]
    )

    run = json.loads(out.read_text("utf-8"))
    verdicts = {goal["goal"]: goal["verdict"] for goal in run["goals"]}
    assert run["costs"]["ms"]["64"]["tiergate int8"]
    assert verdicts["int8: drift of a log-weight by company"] == "met"
    assert "| goal | wanted |" in out.with_suffix(".md").read_text("utf-8")
