"""Checkpoints that are not exactly what this engine reads are refused with a sentence."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from engines.clef.checkpoint import HEAD, load
from engines.clef.model import opened, refuse_if_too_small
from engines.clef.refusals import CheckpointError, DeviceError
from engines.clef.settings import ClefSettings
from engines.clef.shapes import head_shapes, text_shapes
from engines.clef.weights import Weights, fingerprint

from .golden import TINY


def test_the_shape_comes_from_the_configuration(copied: Path) -> None:
    text = load(copied).text

    assert text.linear == (True, True, True, False) * 2
    assert text.rotary.theta == 1e7
    assert text.rotary.sections == (3, 3, 2)
    assert text.rotary.dims == 16


def test_tensors_are_those_of_the_geometry_and_no_others() -> None:
    checkpoint = load(TINY)
    weights = Weights(checkpoint)

    assert set(weights.head()) == set(head_shapes(checkpoint.head))
    assert len(text_shapes(checkpoint.text)) + len(weights.vision_names) == len(checkpoint.files)
    weights.close()


def changed(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    tree = json.loads(path.read_text("utf-8"))
    change(tree)
    path.write_text(json.dumps(tree), "utf-8")


CONFIGS: list[tuple[str, Callable[[dict[str, Any]], object], str]] = [
    ("config.json", lambda t: t.update(architectures=["Other"]), "'architectures' is"),
    ("config.json", lambda t: t.pop("text_config"), "'text_config' is missing"),
    ("config.json", lambda t: t["text_config"].pop("layer_types"), "'layer_types'"),
    ("config.json", lambda t: t["text_config"].pop("rope_parameters"), "'rope_parameters' is"),
    (
        "config.json",
        lambda t: t["text_config"]["rope_parameters"].pop("rope_theta"),
        "lacks 'rope_theta'",
    ),
    ("config.json", lambda t: t["text_config"].update(attn_output_gate=False), "attn_output_gate"),
    ("config.json", lambda t: t["text_config"].update(attention_bias=True), "attention_bias"),
    ("config.json", lambda t: t["text_config"].update(output_gate_type="swish"), r"Clef \(27B\)"),
    ("config.json", lambda t: t["text_config"].update(hidden_size=5120), r"Clef \(27B\)"),
    ("config.json", lambda t: t.update(tie_word_embeddings=True), "tie_word_embeddings"),
    ("config.json", lambda t: t.pop("vision_config"), "max_images = 0"),
    ("joint_head_config.json", lambda t: t.update(dropout=0.1), "unknown key 'dropout'"),
    ("joint_head_config.json", lambda t: t.pop("heads"), "'heads' is missing"),
    ("joint_head_config.json", lambda t: t.update(heads=5), "no multiple"),
    ("joint_head_config.json", lambda t: t.update(hidden_size=32), "the decoder's is 64"),
    ("joint_head_config.json", lambda t: t.update(layers="4"), "positive integer"),
    (
        "model.safetensors.index.json",
        lambda t: t["weight_map"].update({"lm_head.weight": "../else.safetensors"}),
        "no file of this directory",
    ),
    (
        "model.safetensors.index.json",
        lambda t: t["weight_map"].update({"lm_head.weight": "missing.safetensors"}),
        "this file is missing",
    ),
]


@pytest.mark.parametrize(("file", "change", "said"), CONFIGS, ids=[c[2] for c in CONFIGS])
def test_a_configuration_that_cannot_be_served_is_refused_by_file_and_key(
    copied: Path, file: str, change: Callable[[dict[str, Any]], object], said: str
) -> None:
    changed(copied / file, change)

    with pytest.raises(CheckpointError, match=said) as refused:
        load(copied)

    assert str(copied) in str(refused.value)


@pytest.mark.parametrize("file", ["config.json", "joint_head_config.json", "tokenizer.json", HEAD])
def test_a_missing_file_is_named(copied: Path, file: str) -> None:
    (copied / file).unlink()

    with pytest.raises(CheckpointError, match=file):
        load(copied)


def test_a_missing_directory_says_what_it_must_hold(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"joint_head\.safetensors"):
        load(tmp_path / "nowhere")


def reweighed(path: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path)


LAST = "model-00004-of-00004.safetensors"
TENSORS: list[tuple[str, Callable[[dict[str, torch.Tensor]], object], str]] = [
    (HEAD, lambda t: t.pop("residual_gate"), "'residual_gate' is missing"),
    (HEAD, lambda t: t.update(extra=torch.zeros(1)), "'extra' is unknown"),
    (HEAD, lambda t: t.update(residual_gate=torch.zeros(2)), "is 2, not a scalar"),
    (HEAD, lambda t: t.update(residual_gate=torch.zeros((), dtype=torch.int64)), "I64"),
    (LAST, lambda t: t.pop("lm_head.weight"), "the index says so"),
    (LAST, lambda t: t.update({"lm_head.weight": torch.zeros(4, 64)}), "is 4×64, not 1024×64"),
]


@pytest.mark.parametrize(("file", "change", "said"), TENSORS, ids=[t[2] for t in TENSORS])
def test_a_tensor_that_is_amiss_is_named(
    copied: Path, file: str, change: Callable[[dict[str, torch.Tensor]], object], said: str
) -> None:
    reweighed(copied / file, change)

    with pytest.raises(CheckpointError, match=said):
        Weights(load(copied))


def test_a_tensor_that_the_index_lacks_is_named(copied: Path) -> None:
    changed(
        copied / "model.safetensors.index.json", lambda t: t["weight_map"].pop("lm_head.weight")
    )

    with pytest.raises(CheckpointError, match=r"'lm_head\.weight' is missing"):
        Weights(load(copied))


def test_a_file_that_is_cut_off_is_refused(copied: Path) -> None:
    content = (copied / LAST).read_bytes()
    (copied / LAST).write_bytes(content[: len(content) // 2])

    with pytest.raises(CheckpointError, match="cut off"):
        Weights(load(copied))


def test_one_file_without_an_index_is_served_too(copied: Path) -> None:
    tensors: dict[str, torch.Tensor] = {}
    for shard in sorted(copied.glob("model-*.safetensors")):
        tensors |= load_file(shard)
        shard.unlink()
    (copied / "model.safetensors.index.json").unlink()
    save_file(tensors, copied / "model.safetensors")

    Weights(load(copied)).close()


def test_code_in_the_directory_is_never_run(copied: Path) -> None:
    (copied / "joint_schema_model.py").write_text("raise SystemExit('ran')", "utf-8")
    changed(
        copied / "config.json",
        lambda t: t.update(auto_map={"AutoModel": "joint_schema_model.Model"}),
    )

    opened(load(copied), ClefSettings(copied, device="cpu", precision="fp32"))


def test_other_weights_have_another_fingerprint(copied: Path) -> None:
    before = fingerprint(load(copied))
    reweighed(copied / HEAD, lambda t: t["residual_gate"].add_(1))

    assert fingerprint(load(copied)) != before


def test_loading_tells_how_far_it_is(copied: Path) -> None:
    told: list[tuple[int, int]] = []

    opened(
        load(copied),
        ClefSettings(copied, device="cpu"),
        lambda done, total: told.append((done, total)),
    )

    assert told[-1][0] == told[-1][1]
    assert [done for done, _ in told] == sorted(done for done, _ in told)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_missing_device_is_told(copied: Path) -> None:
    with pytest.raises(DeviceError, match="no CUDA device"):
        opened(load(copied), ClefSettings(copied, device="cuda"))


def test_a_card_that_is_too_small_is_refused_with_both_numbers(
    copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (100 << 20, 8 << 30))

    with pytest.raises(DeviceError, match=r"has 0\.1 GiB free, but \d\.\d GiB are needed"):
        refuse_if_too_small(load(copied), ClefSettings(copied), torch.device("cuda"), 0)
