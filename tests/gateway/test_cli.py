"""The command line as a person or a script uses it: output and exit codes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from gateway import __version__
from gateway.cli import main
from gateway.cli.waiting import told_when_slow
from tests.gateway.commands import CONFIG, QUESTIONS


def test_ask_answers_in_this_process_as_json(
    config: str, questions: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["ask", "--config", config, "-s", "a state", "-q", questions, "--json"])

    answer = json.loads(capsys.readouterr().out)
    assert code == 0
    assert list(answer["answers"]) == ["team", "urgent", "mood"]


def test_ask_gives_the_same_answers_through_a_gateway(
    served: str, config: str, questions: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["ask", "-s", "a state", "-q", questions, "--json"]
    assert main([*arguments, "--url", served]) == 0
    there = json.loads(capsys.readouterr().out)

    assert main([*arguments, "--config", config]) == 0
    assert json.loads(capsys.readouterr().out) == there


def test_ask_shows_a_table_with_bars(
    config: str, questions: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = tmp_path / "state.json"
    state.write_text('{"subject": "double charge"}')

    assert main(["ask", "--config", config, "-f", str(state), "-q", questions]) == 0

    shown = capsys.readouterr().out
    assert "█" in shown
    for word in ("team", "urgent", "mood", "calm", "scripted-1"):
        assert word in shown


def test_names_in_brackets_and_colons_are_shown_as_they_are(
    config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    criteria = {"[red]": "x", ":smile:": "y"}
    question = {"type": "choice", "instructions": "Which?", "criteria": criteria}
    path = tmp_path / "questions.json"
    path.write_text(json.dumps({"[/team]": question}))

    assert main(["ask", "--config", config, "-s", "a state", "-q", str(path)]) == 0

    table = capsys.readouterr().out
    for name in ("[/team]", "[red]", ":smile:"):
        assert name in table


def test_ask_takes_a_whole_request_as_questions(
    config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "request.json"
    path.write_text(json.dumps({"state": "ignored", "questions": QUESTIONS}))

    assert main(["ask", "--config", config, "-s", "s", "-q", str(path), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["answers"]) == 3


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", ["not valid JSON"]),
        ('{"q": {"type": "x"}}', ["questions.q", "Unknown question type"]),
        ("5", ["questions"]),
    ],
)
def test_ask_says_what_is_wrong_with_the_questions_and_exits_2(
    config: str, tmp_path: Path, content: str, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "questions.json"
    path.write_text(content)

    code = main(["ask", "--config", config, "-s", "s", "-q", str(path)])

    assert code == 2
    error = capsys.readouterr().err
    assert all(word in error for word in words)


def test_ask_exits_4_when_nobody_answers_at_the_url(
    questions: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["ask", "-s", "s", "-q", questions, "--url", "http://127.0.0.1:9"])

    assert code == 4
    assert "cannot be reached" in capsys.readouterr().err


def test_models_lists_names_and_aliases(
    served: str, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["models", "--config", config, "--json"]) == 0
    here = json.loads(capsys.readouterr().out)
    assert main(["models", "--url", served, "--json"]) == 0

    assert json.loads(capsys.readouterr().out) == here
    assert [model["name"] for model in here["models"]] == ["scripted-1", "jev-latest"]


def test_check_shows_values_with_origins_and_exits_1_on_findings(
    config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "--config", config, "--json"]) == 1

    shown: dict[str, Any] = json.loads(capsys.readouterr().out)
    origins = {value["key"]: value["origin"] for value in shown["values"]}
    assert origins["default_model"] == f"{config}:2"
    assert origins["server.port"] == "default"
    assert "judges nothing" in shown["findings"][0]


def test_check_finds_deadlines_the_sdk_will_not_wait_for(
    config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(config).write_text(CONFIG + "[server]\ndeadline_s = 12.0\nkeep_alive_s = 20\n")

    assert main(["check", "--config", config, "--no-load"]) == 1

    shown = capsys.readouterr().out
    assert "deadline_s is 12" in shown
    assert "keep_alive_s is 20" in shown


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])

    assert capsys.readouterr().out == f"tiergate {__version__}\n"


def test_what_serve_prints_can_be_pasted(served: str, config: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "gateway", "serve", "--config", config, "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        printed = ""
        while not printed.endswith("}}}'\n"):
            printed += process.stdout.readline()
        pasted = printed[printed.index("curl ") :]

        answer = subprocess.run(
            ["bash", "-c", pasted], capture_output=True, text=True, check=True
        ).stdout

        assert set(json.loads(answer)["answers"]) == {"team", "refund"}
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0
        process.stdout.close()
    finally:
        process.kill()


def test_slow_loading_is_told_and_quick_loading_is_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with told_when_slow(patience_s=60.0) as told:
        told("quick")
    assert capsys.readouterr().err == ""

    with told_when_slow(patience_s=0.0) as told:
        told("slow")
        while not (shown := capsys.readouterr().err):
            time.sleep(0.001)
    assert "loading slow" in shown


def test_a_secret_is_in_no_output(config: str, tmp_path: Path) -> None:
    key = "tg_a_secret_that_must_not_be_seen"
    Path(config).write_text(
        CONFIG + '[log]\nlevel = "debug"\naccess = true\n[auth.keys]\nteam = "${A_KEY}"\n'
    )
    environment = os.environ | {"A_KEY": key}
    process = subprocess.Popen(
        [sys.executable, "-m", "gateway", "serve", "--config", config, "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert process.stdout is not None
    url = process.stdout.readline().split()[4]
    path = tmp_path / "questions.json"
    path.write_text(json.dumps(QUESTIONS))
    asked = subprocess.run(
        [
            *(sys.executable, "-m", "gateway", "ask", "--json", "--url", url),
            *("-s", "s", "-q", str(path), "--key-env", "A_KEY"),
        ],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=10)
    checked = subprocess.run(
        [sys.executable, "-m", "gateway", "check", "--config", config],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    everything = out + err + asked.stdout + asked.stderr + checked.stdout + checked.stderr
    assert key not in everything
    assert "status=200" in err
    assert '"team"' in asked.stdout
