"""`tiergate engine import | plan | pull | verify` for Clef."""

import json
import sys
from pathlib import Path

import pytest

from gateway.cli import main
from gateway.config_file import load
from tests.engines.clef.golden import TINY

Capture = pytest.CaptureFixture[str]


def test_import_checks_and_prints_a_configuration_that_serves_as_it_stands(
    tmp_path: Path, capsys: Capture
) -> None:
    code = main(["engine", "import", "clef", str(TINY), "--precision", "fp32"])

    said = capsys.readouterr().out
    assert code == 0
    config = tmp_path / "config.toml"
    text = said[said.index("config.toml:\n") + len("config.toml:\n") :]
    config.write_text(text.replace('["cuda"]', '["cpu"]'), "utf-8")
    section = load(config).settings.engines["clef"].model_dump()
    assert (section["path"], section["precision"]) == (str(TINY), "fp32")
    assert main(["check", "--config", str(config)]) == 0


def test_the_documented_configuration_can_be_read(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/engines/clef.md").read_text("utf-8")
    config = tmp_path / "config.toml"
    config.write_text(page.split("```toml\n")[1].split("```")[0], "utf-8")

    assert load(config).settings.default_model == "clef"


def test_import_refuses_another_head_than_the_digest_names(capsys: Capture) -> None:
    code = main(["engine", "import", "clef", str(TINY), "--sha256", "0" * 64])

    assert code == 4
    assert "SHA-256" in capsys.readouterr().err


def test_import_of_something_else_names_the_missing_file(tmp_path: Path, capsys: Capture) -> None:
    code = main(["engine", "import", "clef", str(tmp_path)])

    assert code == 4
    assert "config.json" in capsys.readouterr().err


def test_import_says_which_extra_is_missing(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("safetensors", "engines.clef.weights"):
        monkeypatch.setitem(sys.modules, name, None)

    code = main(["engine", "import", "clef", str(TINY)])

    assert code == 4
    assert "in tiergate's folder: pip install '.[clef]'" in capsys.readouterr().err


def test_the_27b_model_is_refused_by_name(capsys: Capture) -> None:
    code = main(["engine", "pull", "clef"])

    assert code == 4
    assert "27B" in capsys.readouterr().err


def test_pull_without_a_hub_says_what_to_copy_where(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")

    code = main(["engine", "pull", "clef-flash", "--into", str(tmp_path / "here")])

    assert code == 4
    said = capsys.readouterr().err
    assert "joint_head.safetensors" in said
    assert str(tmp_path / "here") in said


def test_a_plan_shows_the_arithmetic_and_what_fits(capsys: Capture) -> None:
    code = main(["engine", "plan", "clef-flash", "--gpu", "24GB", "--max-tokens", "16384"])

    said = capsys.readouterr().out
    assert code == 0
    assert "13.84" in said
    assert "16,384 tokens" in said


def test_a_plan_in_json_says_what_does_not_fit_and_1_when_nothing_does(capsys: Capture) -> None:
    command = ["engine", "plan", "clef-flash", "--json", "--gpu"]

    assert main([*command, "16GB"]) == 0
    sixteen = json.loads(capsys.readouterr().out)
    assert main([*command, "8 GiB"]) == 1

    assert [one["fits"] for one in sixteen] == [False, True, True]
    assert sixteen[0]["need"]["decoder_bytes"] == pytest.approx(13.84e9, rel=1e-3)


def test_a_card_without_a_size_is_a_usage_error(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["engine", "plan", "clef-flash", "--gpu", "large"])

    assert ended.value.code == 2
    assert "24GB" in capsys.readouterr().err


def test_verify_prints_json_and_fails_with_1(capsys: Capture) -> None:
    command = ["engine", "verify", "clef", str(TINY), "--json", "--max-delta", "0.000001"]

    code = main(command)

    lines = json.loads(capsys.readouterr().out)
    assert code == 1
    assert {line["status"] for line in lines} >= {"ok", "failed"}


def test_verify_on_a_device_that_is_not_there_is_an_environment_error(capsys: Capture) -> None:
    code = main(["engine", "verify", "clef", str(TINY), "--device", "cuda:63"])

    assert code == 4
    assert "CUDA" in capsys.readouterr().err or "cuda" in capsys.readouterr().err


@pytest.mark.parametrize(
    "option", ["--max-tokens=0", "--max-tokens=262145", "--chunk-tokens=1", "--images=-1"]
)
def test_a_plan_of_what_no_engine_can_be_told_is_a_usage_error(
    option: str, capsys: Capture
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["engine", "plan", "clef-flash", "--gpu", "24GB", option])

    assert ended.value.code == 2
    assert "is no value of" in capsys.readouterr().err
