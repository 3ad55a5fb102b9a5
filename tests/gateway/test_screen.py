"""What is printed is what was meant: names that look like markup or pictures stay as they are."""

import json
import re
from pathlib import Path

import pytest

from gateway.cli import main
from gateway.policy_file import load_policy
from tests.gateway.calibrating.rows import QUESTION
from tests.gateway.test_cli_calibrate import CONFIG, rows

NAMES = ("[/q]", "[red]a", ":fire:")
ROOT = Path(__file__).parents[2]


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "config.toml"
    path.write_text(CONFIG.split("[cascade]")[0])
    return str(path)


@pytest.fixture
def questions(tmp_path: Path) -> str:
    path = tmp_path / "q.json"
    path.write_text(
        json.dumps({name: {**QUESTION, "criteria": {"[/o]": "x", "[b]": "y"}} for name in NAMES})
    )
    return str(path)


def shown(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out


def test_answers_show_names_of_questions_and_options(
    config: str, questions: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["ask", "--config", config, "-m", "alone", "-s", "s", "-q", questions]

    assert main(arguments) == 0

    said = shown(capsys)
    assert all(name in said for name in (*NAMES, "[/o]", "[b]"))


def test_checked_questions_show_their_names(
    config: str, questions: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["question", "check", questions, "--config", config, "-m", "alone"]) in (0, 1)

    said = shown(capsys)
    assert all(name in said for name in NAMES)


def test_policies_show_the_names_of_questions(
    tmp_path: Path, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = Path(rows(tmp_path / "l.jsonl", 60))
    labels.write_text(labels.read_text().replace('"q":', '"[/q]":'))
    arguments = ["calibrate", str(labels), "--config", config, "--out", str(tmp_path)]

    assert main([*arguments, "--per", "question"]) == 1
    assert "[/q]" in shown(capsys)
    assert main(["policy", "show", str(tmp_path / "policy.toml")]) == 0

    assert "[/q]" in shown(capsys)
    assert load_policy(tmp_path / "policy.toml").floors[0].name == "[/q]"


def test_settings_show_what_stands_in_the_file(
    config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        Path(config).read_text().replace("[models.alone]", '[models.alone]\ndescription = "[/d]"')
    )
    Path(config).write_text(text)

    assert main(["check", "--config", config]) == 1
    assert '"[/d]"' in shown(capsys)


def test_no_command_writes_to_a_terminal_that_takes_names_for_markup() -> None:
    for path in (ROOT / "gateway" / "cli").glob("*.py"):
        if path.name != "screen.py":
            assert not re.search(r"\bConsole\(", path.read_text(encoding="utf-8")), path.name
            columns = re.findall(r"TextColumn\(.*\)", path.read_text(encoding="utf-8"))
            assert all("markup=False" in one for one in columns), path.name
