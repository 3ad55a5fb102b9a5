"""Padding, buckets, and the graphs that others have exported."""

import json
from pathlib import Path

import numpy as np
import pytest

from engines.contract import Inquiry, Noul
from engines.laya.desk import Desk, opened
from engines.laya.engine import LayaEngine
from engines.laya.network import BatchNetwork, SplitNetwork, buckets, padded
from engines.laya.rows import Losses, Row
from engines.laya.settings import LayaSettings
from engines.laya.tensors import CheckpointError

from .exports import export_fused, export_split
from .golden import cases


def row(length: int, options: int = 2) -> Row:
    none = Losses(0, 0, 0, 0, 0, merged=False, at_least=False)
    return Row("choice", (7,) * length, tuple(range(options)), None, options, none, length)


def test_buckets_hold_rows_of_about_the_same_length_up_to_the_token_limit() -> None:
    lengths = [10, 200, 64, 65, 63, 500, 1]

    found = buckets(lengths, 128)

    assert sorted(at for places in found for at in places) == list(range(len(lengths)))
    assert found == [[0, 2], [4, 6], [3], [1], [5]]


def test_padding_goes_right_and_markers_that_pad_are_masked() -> None:
    inputs = padded([row(3, 1), row(5, 3)], pad=9, multiple=4)

    assert inputs["input_ids"].tolist() == [[7, 7, 7, 9, 9, 9, 9, 9], [7] * 5 + [9] * 3]
    assert inputs["attention_mask"].tolist() == [[1] * 3 + [0] * 5, [1] * 5 + [0] * 3]
    assert inputs["marker_mask"].tolist() == [[True, False, False], [True] * 3]
    assert inputs["marker_pos"].shape == (2, 3)


def _is_like_the_reference(desk: Desk) -> None:
    compared = 0
    for case in cases("tiny-english"):
        for own, recorded in zip(
            case.encoded(desk.checkpoint, desk.tokens), case.rows, strict=True
        ):
            if len(own.ids) < 160:
                logits = desk.network.logits([own])[0]
                assert np.abs(logits - recorded["logits"]).max() <= 1e-4
                compared += 1
    assert compared > 20


@pytest.mark.parametrize("name", ["model.onnx", "laya.onnx", "onnx/model.onnx"])
def test_a_fused_community_export_is_served(copied: Path, name: str) -> None:
    (copied / name).parent.mkdir(exist_ok=True)
    export_fused(copied, name)
    if name.startswith("onnx/"):
        (copied / "fused.bin").rename(copied / "onnx/fused.bin")

    desk = opened(copied, LayaSettings(copied, harden=False))

    assert isinstance(desk.network, BatchNetwork)
    _is_like_the_reference(desk)


def test_an_export_is_not_named_after_a_precision_that_it_may_not_have(copied: Path) -> None:
    settings = LayaSettings(copied, precision="int8", language="any")
    assert LayaEngine(settings).facts.model == "copied-int8"

    export_fused(copied)

    assert LayaEngine(settings).facts.model == "copied"


@pytest.mark.parametrize("upright", [False, True])
def test_a_community_export_in_two_files_is_served(copied: Path, upright: bool) -> None:
    export_split(copied, upright=upright)

    desk = opened(copied, LayaSettings(copied, harden=False))

    assert isinstance(desk.network, SplitNetwork)
    _is_like_the_reference(desk)


def test_an_exports_settings_may_be_nested_and_its_tokenizer_at_the_root(copied: Path) -> None:
    export_fused(copied)
    own = copied / "rl_agent_config.json"
    (copied / "config.json").write_text(json.dumps({"laya": json.loads(own.read_text("utf-8"))}))
    own.unlink()
    for path in (copied / "tokenizer").iterdir():
        path.rename(copied / path.name)

    engine = LayaEngine(LayaSettings(copied, language="any"))

    piece = engine.prepare(Inquiry("s", {"q": Noul("Is it?")}))[0]
    assert len(engine.read([piece])[0]["q"].log_weights) == 2


def test_a_graph_that_cannot_be_loaded_is_named(copied: Path) -> None:
    (copied / "model.safetensors").unlink()
    (copied / "model.onnx").write_bytes(b"not a graph")

    with pytest.raises(CheckpointError, match=r"model\.onnx"):
        opened(copied, LayaSettings(copied))


def test_int8_is_refused_on_a_gpu(copied: Path) -> None:
    with pytest.raises(CheckpointError, match="int8"):
        opened(copied, LayaSettings(copied, precision="int8", device="cuda"))


@pytest.mark.gpu
def test_a_gpu_answers_like_the_cpu(copied: Path) -> None:
    from engines.runtime import onnxruntime

    if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
        pytest.skip("no CUDA device here")
    desk = opened(copied, LayaSettings(copied, harden=False, device="cuda"))

    _is_like_the_reference(desk)
