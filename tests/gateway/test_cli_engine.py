"""`tiergate engine import | pull | verify` on a tiny checkpoint."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from engines.laya.artifact import sha256_of
from gateway.cli import main
from gateway.config import Settings
from gateway.config_file import load
from tests.engines.laya.golden import GOLDENS

pytest.importorskip("onnx")


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return Path(shutil.copytree(GOLDENS / "tiny-english", tmp_path / "tiny"))


def test_import_prints_a_configuration_that_serves_as_it_stands(
    checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["engine", "import", "laya", str(checkpoint), "--precision", "int8"])

    said = capsys.readouterr().out
    assert code == 0
    assert sha256_of(checkpoint / "model.safetensors") in said
    config = tmp_path / "config.toml"
    config.write_text(said[said.index("config.toml:\n") + len("config.toml:\n") :], "utf-8")
    settings = load(config).settings
    section = settings.engines["laya"].model_dump()
    assert settings.default_model == "laya"
    assert settings.models["laya"].aliases == Settings().models["starter"].aliases
    assert main(["check", "--config", str(config)]) == 0
    assert (section["path"], section["precision"]) == (str(checkpoint), "int8")
    assert (checkpoint / "tiergate-row-int8/manifest.json").is_file()


def test_the_documented_configuration_serves_as_it_stands(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/engines/laya.md").read_text("utf-8")
    config = tmp_path / "config.toml"
    config.write_text(page.split("```toml\n")[1].split("```")[0], "utf-8")

    settings = load(config).settings

    assert settings.default_model == "laya"
    assert settings.models["laya"].aliases == Settings().models["starter"].aliases


def test_import_refuses_other_weights_than_the_digest_names(
    checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["engine", "import", "laya", str(checkpoint), "--sha256", "0" * 64])

    assert code == 4
    assert "SHA-256" in capsys.readouterr().err


def test_import_says_which_package_is_missing(
    checkpoint: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("onnx", "engines.laya.graph", "engines.laya.brush", "engines.laya.sketch"):
        monkeypatch.setitem(sys.modules, name, None)

    code = main(["engine", "import", "laya", str(checkpoint)])

    assert code == 4
    assert "in tiergate's folder: pip install '.[cpu,laya]'" in capsys.readouterr().err


def test_pull_without_a_hub_says_what_to_copy_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("huggingface_hub")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")

    code = main(["engine", "pull", "laya", "--into", str(tmp_path / "here")])

    assert code == 4
    said = capsys.readouterr().err
    assert "model.safetensors" in said
    assert str(tmp_path / "here") in said


def test_a_mistyped_directory_is_not_taken_for_a_repository_without_a_word(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = main(["engine", "import", "laya", "models/lya"])

    assert code == 4
    assert "no directory here" in capsys.readouterr().err


def test_verify_prints_json_and_fails_with_1(
    checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["engine", "verify", "laya", str(checkpoint), "--json", "--max-delta", "0.000001"]

    code = main(command)

    lines = json.loads(capsys.readouterr().out)
    assert code == 1
    assert {line["status"] for line in lines} >= {"ok", "failed"}


def test_verify_of_something_else_is_an_environment_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["engine", "verify", "laya", str(tmp_path)])

    assert code == 4
    assert "there is no model.safetensors" in capsys.readouterr().err
