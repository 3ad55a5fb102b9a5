"""The command line when something is wrong: a sentence on standard error and an exit code."""

from pathlib import Path
from typing import Any

import pytest

from gateway.cli import main
from tests.gateway.commands import CONFIG


@pytest.mark.parametrize("url", ["ftp://a", "http://127.0.0.1:abc", "127.0.0.1:8080"])
def test_a_url_that_is_none_is_told(
    url: str, questions: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ask", "-s", "s", "-q", questions, "--url", url]) in (2, 4)
    assert capsys.readouterr().err.startswith("tiergate: ")


@pytest.mark.parametrize("where", ["--config", "--url"])
def test_what_json_cannot_hold_exits_2(
    where: str, config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "questions.json"
    path.write_text('{"q": {"type": "noul", "instructions": [NaN]}}')
    there = config if where == "--config" else "http://127.0.0.1:9"

    assert main(["ask", "-s", "s", "-q", str(path), where, there]) == 2
    assert "NaN" in capsys.readouterr().err


@pytest.mark.parametrize("port", ["99999", "-1", "x"])
def test_a_port_that_is_none_is_a_usage_error(
    port: str, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["serve", "--config", config, f"--port={port}"])

    assert stopped.value.code == 2
    assert "is not a port" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["serve", "check", "models"])
def test_a_bad_configuration_exits_2_and_names_the_line(
    command: str, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(config).write_text("[server]\nprot = 1\n")

    assert main([command, "--config", config]) == 2
    assert f"{config}:2: server.prot" in capsys.readouterr().err


def test_a_port_that_is_taken_exits_4(served: str, config: str, capsys: Any) -> None:
    port = served.rsplit(":", 1)[1]

    assert main(["serve", "--config", config, "--port", port]) == 4
    assert "cannot listen on 127.0.0.1" in capsys.readouterr().err


def test_serving_others_without_keys_exits_2(config: str, capsys: Any) -> None:
    Path(config).write_text(CONFIG + '[server]\nhost = "0.0.0.0"\n')

    assert main(["serve", "--config", config]) == 2
    assert "[auth.keys]" in capsys.readouterr().err


def test_usage_errors_exit_2() -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["no-such-command"])

    assert stopped.value.code == 2


@pytest.mark.parametrize("command", [["serve"], ["check"], ["check", "--no-load"], ["doctor"]])
@pytest.mark.parametrize(
    "broken",
    [
        ("policy", 'version = 1\ncreated = "now"\nrisk = "low"\n', ":3: risk"),
        ("calibration", '{\n"version": 1,\n"engines": {"a": 5}}', ":3: engines.a"),
    ],
)
def test_a_broken_file_of_the_cascade_is_found_before_engines_are_loaded(
    command: list[str], broken: tuple[str, str, str], config: str, tmp_path: Path, capsys: Any
) -> None:
    key, text, words = broken
    path = tmp_path / "broken"
    path.write_text(text)
    engine = CONFIG.replace('kind = "scripted"', f'kind = "laya"\npath = "{tmp_path}/none"')
    Path(config).write_text(f'{engine}[cascade]\n{key} = "{path}"\n')

    assert main([*command, "--config", config]) == 2
    assert f"tiergate: {path}{words}" in capsys.readouterr().err
