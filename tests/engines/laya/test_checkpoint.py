"""A directory that is not a checkpoint is refused with the file and the key to blame."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engines.laya.artifact import imported
from engines.laya.checkpoint import load
from engines.laya.tensors import CheckpointError, Tensors


def _edit(path: Path, **changes: Any) -> None:
    """Change keys of a JSON file; `None` removes one."""
    tree = json.loads(path.read_text("utf-8")) | changes
    path.write_text(json.dumps({k: v for k, v in tree.items() if v is not None}), "utf-8")


@pytest.mark.parametrize(
    "missing",
    [
        "rl_agent_config.json",
        "model.safetensors",
        "encoder/config.json",
        "tokenizer/tokenizer.json",
        "tokenizer/tokenizer_config.json",
    ],
)
def test_each_of_the_five_files_is_missed_by_name(copied: Path, missing: str) -> None:
    (copied / missing).unlink()

    with pytest.raises(CheckpointError, match=Path(missing).name):
        load(copied)


@pytest.mark.parametrize(
    ("file", "change", "named"),
    [
        ("rl_agent_config.json", {"encoder": None}, "'encoder' is missing"),
        ("rl_agent_config.json", {"head_layers": None}, "'head_layers' is missing"),
        ("rl_agent_config.json", {"option_layout": "parallel"}, "option_layout"),
        ("rl_agent_config.json", {"temperature": [1.0, 1.0]}, "temperature"),
        ("rl_agent_config.json", {"max_len": "512"}, "max_len"),
        ("encoder/config.json", {"hidden_size": None}, "hidden_size"),
        ("encoder/config.json", {"model_type": "bert"}, "modernbert"),
        ("encoder/config.json", {"layer_types": ["full_attention"]}, "layer_types"),
        ("encoder/config.json", {"attention_bias": True}, "attention_bias"),
        ("tokenizer/tokenizer_config.json", {"mask_token": None}, "mask_token"),
        ("tokenizer/tokenizer_config.json", {"sep_token": "<none>"}, "sep_token"),
    ],
)
def test_a_key_that_cannot_be_served_is_named(
    copied: Path, file: str, change: dict[str, Any], named: str
) -> None:
    _edit(copied / file, **change)

    with pytest.raises(CheckpointError, match=named) as refused:
        load(copied)
    assert file.rsplit("/", maxsplit=1)[-1] in str(refused.value)


def test_special_tokens_may_be_objects_and_the_class_does_not_matter(copied: Path) -> None:
    _edit(
        copied / "tokenizer/tokenizer_config.json",
        mask_token={"content": "[MASK]", "lstrip": True},
        tokenizer_class="TokenizersBackend",
        extra_special_tokens=["<a>", "<b>"],
    )

    assert load(copied).specials.mask_text == "[MASK]"


def test_rope_bases_come_from_the_file_and_fall_back_to_the_older_keys(copied: Path) -> None:
    own = load(copied).encoder
    _edit(copied / "encoder/config.json", rope_parameters=None, local_rope_theta=77.0)
    older = load(copied).encoder

    assert own is not None
    assert older is not None
    assert set(own.thetas) == {160_000.0, 10_000.0}
    assert set(older.thetas) == {160_000.0, 77.0}


def _rewrite(path: Path, change: Any) -> None:
    """The safetensors file again, after `change` has edited its name → array mapping."""
    tensors = Tensors(path)
    arrays = {name: tensors.read(name) for name in tensors.shapes}
    tensors.close()
    change(arrays)
    header, blobs, begin = {}, [], 0
    for name, array in arrays.items():
        blob = array.astype("<f4").tobytes()
        end = begin + len(blob)
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [begin, end]}
        blobs.append(blob)
        begin = end
    head = json.dumps(header).encode()
    path.write_bytes(len(head).to_bytes(8, "little") + head + b"".join(blobs))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda tensors: tensors.pop("type_emb.weight"), "'type_emb.weight' is missing"),
        (lambda tensors: tensors.pop("temperature"), "'temperature' is missing"),
        (
            lambda tensors: tensors.update({"scorer.3.bias": np.zeros(2, np.float32)}),
            r"'scorer.3.bias' is \[2\], but \[1\]",
        ),
        (
            lambda tensors: tensors.update({"extra.weight": np.zeros(2, np.float32)}),
            "'extra.weight' belongs to no",
        ),
    ],
)
def test_a_tensor_that_is_missing_misshapen_or_too_many_is_named(
    copied: Path, change: Any, named: str
) -> None:
    _rewrite(copied / "model.safetensors", change)

    with pytest.raises(CheckpointError, match=named):
        imported(load(copied), "fp32")


def test_a_weights_file_that_is_cut_off_is_refused(copied: Path) -> None:
    weights = copied / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])

    with pytest.raises(CheckpointError, match="beyond the end"):
        imported(load(copied), "fp32")


def test_a_file_that_is_no_safetensors_is_refused(copied: Path) -> None:
    (copied / "model.safetensors").write_bytes(b"<html>not found</html>")

    with pytest.raises(CheckpointError, match="not a safetensors file"):
        imported(load(copied), "fp32")


def test_bfloat16_tensors_are_read(tmp_path: Path) -> None:
    header = b'{"x":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}}'
    path = tmp_path / "bf16.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"\x80\x3f\x00\xc0")

    assert Tensors(path).read("x").tolist() == [1.0, -2.0]


def test_a_calibration_file_replaces_the_checkpoints_temperatures(copied: Path) -> None:
    shipped = load(copied)
    _write_calibration(copied, {"version": 2, "temperature": [0.1, 2.0, 3.0]})

    fitted = load(copied)

    assert shipped.temperatures.of("noul", 2) == pytest.approx(1.9834, abs=1e-4)
    assert shipped.temperatures.of("choice", 12) == 0.5
    assert fitted.temperatures.of("noul", 2) == 3.0
    assert fitted.temperatures.of("choice", 12) == 0.5  # clamped as the reference clamps
    assert fitted.text_digest != shipped.text_digest


def test_a_calibration_file_of_a_later_version_is_refused(copied: Path) -> None:
    _write_calibration(copied, {"version": 3, "temperature": [1, 1, 1]})

    with pytest.raises(CheckpointError, match="version"):
        load(copied)


def _write_calibration(folder: Path, tree: dict[str, Any]) -> None:
    (folder / "calibration.json").write_text(json.dumps(tree), "utf-8")
