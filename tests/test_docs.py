"""What the documentation tells people to run, run as it stands there."""

import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from gateway.cli import main
from gateway.config_file import load

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ADDRESS = "http://127.0.0.1:8080"


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks of a page in this language."""
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


@pytest.fixture(scope="module")
def served() -> Iterator[str]:
    """The URL of a gateway on the shipped configuration."""
    process = subprocess.Popen(
        [sys.executable, "-m", "gateway", "serve", "--config", "config.toml", "--port", "0"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    yield process.stdout.readline().split()[4]
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0
    process.stdout.close()


def test_the_curl_of_the_readme_is_answered_as_it_says(served: str) -> None:
    (curl,) = blocks(README, "bash")

    printed = subprocess.run(
        ["bash", "-c", curl.replace(ADDRESS, served)], capture_output=True, text=True, check=True
    ).stdout

    answers = json.loads(printed)["answers"]
    assert answers["team"]["choice"] == "billing"
    assert answers["refund"]["x_reason"] == "not_competent"
    assert 0.2 < answers["refund"]["noul"] < 0.8


def test_the_python_of_the_readme_is_answered_as_it_says(served: str) -> None:
    (program,) = blocks(README, "python")
    assert ADDRESS in program

    printed = subprocess.run(
        [sys.executable, "-c", program.replace(ADDRESS, served)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert printed == "billing\n"


def test_the_environment_variable_of_the_readme_does_the_same(served: str) -> None:
    program = blocks(README, "python")[0].replace(f'base_url="{ADDRESS}", ', "")
    environment = os.environ | {"TYPESAFE_BASE_URL": f"{served}/v1"}

    printed = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    ).stdout

    assert printed == "billing\n"


def test_the_configuration_of_the_readme_is_valid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (toml,) = blocks(README, "toml")
    monkeypatch.setenv("TIERGATE_KEY_SUPPORT", "tg_0123456789abcdefghij")
    path = tmp_path / "config.toml"
    path.write_text(toml)

    assert list(load(path).settings.auth.keys) == ["support-team"]


def test_every_command_of_the_readme_exists(capsys: pytest.CaptureFixture[str]) -> None:
    commands = set(re.findall(r"^tiergate (\w+)", README, re.MULTILINE))
    assert commands == {
        *("ask", "models", "check", "usage", "keys", "engine", "fit"),
        *("calibrate", "serve", "audit", "drift"),
    }

    for command in commands:
        with pytest.raises(SystemExit) as stopped:
            main([command, "--help"])
        assert stopped.value.code == 0


def test_the_ask_of_the_readme_is_answered_as_it_stands(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    lines = [line.partition("#")[0].split() for line in README.splitlines()]
    asks = [line[1:] for line in lines if line[:2] == ["tiergate", "ask"]]

    for arguments in asks:
        assert main(arguments) == 0

    assert len(asks) == 2
    assert "billing" in capsys.readouterr().out


@pytest.mark.slow
def test_from_labels_to_a_bill_as_the_readme_has_it(tmp_path: Path) -> None:
    section = README[README.index("## From labels to a bill") :]
    steps, _, asks, _, looks, *_ = re.findall(r"```\n(.*?)```", section, re.DOTALL)
    for folder in ("tests", "docs"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    asks = asks.replace("serve ", "serve --port 18743 ").replace("jsonl 300", "jsonl 60 $URL")
    ready = "until curl -sf $URL/ready > ready.json; do sleep 0.2; done"
    script = f"""
        set -euo pipefail
        {steps}
        {asks.replace("python docs", f"{ready}; python docs")}
        {looks}
        kill %1
        wait %1
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    run = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env=os.environ | {"PATH": path, "URL": "http://127.0.0.1:18743"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 0, run.stdout + run.stderr
    assert "35.3 %" in run.stdout
    assert "60 questions, " in run.stdout
    assert "low_confidence" in run.stdout
    assert "helps" in run.stdout


def test_the_errors_of_the_api_page_are_the_ones_that_are_sent(served: str) -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    wrong_state, unknown_model = (json.loads(line) for line in blocks(page, "json")[0].splitlines())
    questions = {"q": {"type": "noul", "instructions": "?"}}

    refused = httpx.post(f"{served}/v1/systemone", json={"state": 5, "questions": questions})
    unknown = httpx.post(
        f"{served}/v1/systemone", json={"state": "", "questions": questions, "model": "x"}
    )

    assert refused.json() == wrong_state
    sentence = unknown_model["detail"]["message"].rstrip(".")
    assert unknown.json()["detail"]["message"].startswith(sentence)
    assert unknown.json()["detail"]["error_type"] == unknown_model["detail"]["error_type"]


def test_every_status_of_the_code_is_on_the_api_page() -> None:
    from gateway.errors import STATUS

    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    table = page[page.index("| status |") :]

    missing = [status for status in set(STATUS.values()) if str(status) not in table]
    assert missing == []


def test_extras_are_those_of_this_folder_and_no_package_of_the_name_is_fetched() -> None:
    """Nobody owns the name on PyPI; whoever takes it could have it run what he likes."""
    told = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    told += [path for room in ("engines", "gateway") for path in (ROOT / room).rglob("*.py")]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = "\n".join(path.read_text(encoding="utf-8") for path in told)

    named = re.findall(r"'\.\[([a-z,]+)\]'", text)

    assert not re.search(r"tiergate\[|pip install '?tiergate", text)
    assert len(named) > 10
    assert {one for extras in named for one in extras.split(",")} <= set(
        project["optional-dependencies"]
    )


def test_every_test_that_the_threat_model_names_is_there() -> None:
    named = re.findall(r"`(tests/[\w./]+)`", (ROOT / "SECURITY.md").read_text(encoding="utf-8"))

    assert len(named) > 10
    assert [name for name in named if not (ROOT / name).exists()] == []
