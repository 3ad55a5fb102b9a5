"""`tiergate calibrate` and `tiergate policy` as a person or a script uses them."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from engines.contract import Choice, Inquiry
from engines.scripted import ScriptedEngine
from gateway.cli import main
from gateway.policy_file import load_calibration, load_policy
from tests.gateway.calibrating.rows import QUESTION, chance

CONFIG = """
default_model = "pair"
[engines.small]
kind = "scripted"
[engines.large]
kind = "scripted"
script = "even"
[models.pair]
tiers = ["small", "large"]
[models.alone]
engine = "small"
[cascade]
policy = "POLICY"
calibration = "CALIBRATION"
"""
OPTIONS = list(QUESTION["criteria"])


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "config.toml"
    text = CONFIG.replace("POLICY", str(tmp_path / "policy.toml"))
    path.write_text(text.replace("CALIBRATION", str(tmp_path / "calibration.json")))
    return str(path)


def rows(path: Path, n: int, *, first: int = 0, wrong: float = 0.02, labels: bool = True) -> str:
    """Rows that the engine `small` answers rightly but for a share `wrong`."""
    engine = ScriptedEngine()
    question = Choice(QUESTION["criteria"], QUESTION["instructions"])
    lines = []
    for i in range(first, first + n):
        one: dict[str, Any] = {"state": f"state {i}", "questions": {"q": QUESTION}}
        (piece,) = engine.prepare(Inquiry(f"state {i}", {"q": question}))
        weights = list(engine.read([piece])[0]["q"].log_weights)
        best = weights.index(max(weights))
        label = (best + 1) % 3 if chance("wrong", i) < wrong else best
        lines.append(json.dumps(one | ({"labels": {"q": OPTIONS[label]}} if labels else {})))
    path.write_text("\n".join(lines))
    return str(path)


def calibrated(tmp_path: Path, config: str, *arguments: str) -> int:
    return main(["calibrate", *arguments, "--config", config, "--out", str(tmp_path)])


def test_labels_become_a_policy_a_calibration_and_a_report(
    tmp_path: Path, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = rows(tmp_path / "labels.jsonl", 600)

    assert calibrated(tmp_path, config, labels, "--risk", "0.1") == 0

    shown = capsys.readouterr()
    policy = load_policy(tmp_path / "policy.toml")
    (floor,) = policy.floors
    assert (policy.risk, policy.delta, policy.mode) == (0.1, 0.1, "labels")
    assert (floor.engine, floor.cell, floor.promised) == ("small", "choice:3-5", True)
    assert list(policy.engines) == ["small"]
    assert list(load_calibration(tmp_path / "calibration.json").engines) == ["small", "large"]
    assert "<svg" in (tmp_path / "report.html").read_text()
    assert json.loads((tmp_path / "report.json").read_text())["floors"][0]["promised"]
    for words in ("at most 10 %", "choice:3-5", 'calibration = "'):
        assert words in shown.out
    assert "reading with small" in shown.err


def test_the_gateway_takes_the_policy_and_verify_holds_it_to_the_engines(
    tmp_path: Path, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    calibrated(tmp_path, config, rows(tmp_path / "l.jsonl", 600), "--risk", "0.1")
    asked = tmp_path / "q.json"
    asked.write_text(json.dumps({"q": QUESTION}))
    capsys.readouterr()

    assert main(["policy", "verify", "--config", config]) == 0
    assert "holds" in capsys.readouterr().out
    ask = ["ask", "--config", config, "-s", "state 1", "-q", str(asked), "--json"]
    assert main(ask) == 0
    assert json.loads(capsys.readouterr().out)["answers"]["q"]["x_reason"] == "confident"

    changed = (
        (tmp_path / "calibration.json").read_text().replace('"temperature": ', '"temperature": 1')
    )
    (tmp_path / "calibration.json").write_text(changed)
    assert main(["policy", "verify", "--config", config, "--json"]) == 3
    (verdict,) = json.loads(capsys.readouterr().out)
    assert verdict["holds"] is False
    assert "not the one" in verdict["why"]
    assert main(ask) == 0
    assert json.loads(capsys.readouterr().out)["answers"]["q"]["x_reason"] == "suspended"


def test_a_policy_is_shown_with_its_evidence(
    tmp_path: Path, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    calibrated(tmp_path, config, rows(tmp_path / "l.jsonl", 600), "--risk", "0.1")
    capsys.readouterr()

    assert main(["policy", "show", "--config", config]) == 0
    shown = capsys.readouterr().out
    assert main(["policy", "show", str(tmp_path / "policy.toml"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)

    assert "choice:3-5" in shown
    assert "When traffic changes" in " ".join(shown.split())
    assert said["floors"][0]["says"].startswith("Of the answers that small gives")


def test_a_run_that_was_stopped_goes_on_and_a_second_one_reads_nothing(
    tmp_path: Path, config: str
) -> None:
    labels = rows(tmp_path / "labels.jsonl", 300)
    calibrated(tmp_path, config, labels)
    (readings,) = (tmp_path / "readings").glob("scripted.jsonl")
    whole = sorted(readings.read_text().splitlines())
    policy = load_policy(tmp_path / "policy.toml")
    readings.write_text("\n".join(readings.read_text().splitlines()[:100]))  # torn in its last line

    calibrated(tmp_path, config, labels)

    keys = {json.loads(line).get("key") for line in readings.read_text().splitlines()}
    assert len(keys) == len(whole)
    assert load_policy(tmp_path / "policy.toml").floors == policy.floors
    size = readings.stat().st_size
    calibrated(tmp_path, config, labels)
    assert readings.stat().st_size == size


def test_too_few_labels_promise_nothing_and_exit_1(
    tmp_path: Path, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert calibrated(tmp_path, config, rows(tmp_path / "l.jsonl", 30)) == 1

    assert "labels in all are needed" in " ".join(capsys.readouterr().out.split())
    (floor,) = load_policy(tmp_path / "policy.toml").floors
    assert floor.floor is None
    assert floor.needs is not None


def test_json_is_all_that_a_program_sees(
    tmp_path: Path, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = rows(tmp_path / "l.jsonl", 400)
    assert calibrated(tmp_path, config, labels, "--risk", "0.1", "--per", "question", "--json") == 0

    said = json.loads(capsys.readouterr().out)
    assert said["floors"][0]["name"] == "q"
    assert len(said["floors"][0]["question"]) == 16
    assert said["cost_unit"] == "tokens a question"


def test_engines_with_prices_are_compared_in_money(
    tmp_path: Path, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    prices = "".join(
        f"[[prices.engines.{name}]]\neffective = 2026-01-01\nusd_per_million_tokens = {usd}\n"
        for name, usd in (("small", 1), ("large", 10))
    )
    Path(config).write_text(Path(config).read_text() + prices)
    labels = rows(tmp_path / "l.jsonl", 400)
    calibrated(tmp_path, config, labels, "--risk", "0.1", "--json")

    said = json.loads(capsys.readouterr().out)
    assert said["cost_unit"] == "USD a million questions"
    assert said["floors"][0]["cost_accuracy"][0]["cost"] == pytest.approx(2 * 1 + 2 * 10)


def test_agreement_needs_no_labels(
    tmp_path: Path, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    states = rows(tmp_path / "states.jsonl", 400, labels=False)
    engine = ["--engine", "small", "--against", "large", "--agreement"]

    assert calibrated(tmp_path, config, states, *engine) == 1  # the large one always says the same
    assert "kept answers differ" in capsys.readouterr().out
    assert load_policy(tmp_path / "policy.toml").mode == "agreement"

    Path(config).write_text(Path(config).read_text().replace('script = "even"', 'script = "hash"'))
    assert calibrated(tmp_path, config, states, "--agreement") == 0
    (floor,) = load_policy(tmp_path / "policy.toml").floors
    assert (floor.floor, floor.errors, floor.coverage) == (0.0, 0, 1.0)
    assert "Agreement is not truth" in " ".join(capsys.readouterr().out.split())


def test_given_parts_may_not_share_states(
    tmp_path: Path, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    one = rows(tmp_path / "one.jsonl", 200)
    other = rows(tmp_path / "other.jsonl", 300, first=199)
    apart = rows(tmp_path / "apart.jsonl", 300, first=200)

    assert calibrated(tmp_path, config, one, "--certify", other) == 2
    error = capsys.readouterr().err
    assert "other.jsonl:1" in error
    assert "one.jsonl:200" in error
    assert calibrated(tmp_path, config, one, "--certify", apart, "--risk", "0.1") == 0
    (floor,) = load_policy(tmp_path / "policy.toml").floors
    assert floor.labels == 300


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--engine", "smal"], "there are: small, large"),
        (["--against", "large"], "--engine"),
        (["--engine", "small", "--against", "small"], "an engine is not above itself"),
        (["--model", "none"], "there are: pair, alone"),
        (["--model", "alone", "--agreement"], "there is only one"),
        (["none.jsonl"], "none.jsonl: cannot be read"),
    ],
)
def test_what_cannot_be_done_is_said_and_exits_2(
    tmp_path: Path,
    config: str,
    arguments: Sequence[str],
    words: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    labels = rows(tmp_path / "l.jsonl", 5)

    assert calibrated(tmp_path, config, labels, *arguments) == 2
    assert words in capsys.readouterr().err


def test_unlabelled_rows_are_refused_without_agreement(
    tmp_path: Path, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    states = rows(tmp_path / "states.jsonl", 50, labels=False)

    assert calibrated(tmp_path, config, states) == 2
    assert "--agreement" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--risk", "--delta"])
@pytest.mark.parametrize("value", ["0", "1", "nan", "inf", "x"])
def test_risk_and_delta_are_shares(
    option: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["calibrate", "labels.jsonl", option, value])
    assert stopped.value.code == 2
    assert f"{option}: '{value}' is not a number between 0 and 1" in capsys.readouterr().err


def test_verify_says_when_the_engines_of_a_policy_are_gone(
    tmp_path: Path, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    calibrated(tmp_path, config, rows(tmp_path / "l.jsonl", 400), "--risk", "0.1")
    other = tmp_path / "other.toml"
    other.write_text(Path(config).read_text().replace("small", "tiny"))

    assert main(["policy", "verify", "--config", str(other)]) == 2
    assert "the policy is about small" in capsys.readouterr().err


def test_nothing_of_the_states_is_written_anywhere(tmp_path: Path, config: str) -> None:
    labels = rows(tmp_path / "labels.jsonl", 60)
    text = Path(labels).read_text().replace("state ", "SECRET ")
    Path(labels).write_text(text)
    environment = os.environ | {"TIERGATE_CONFIG": config}
    command = [sys.executable, "-m", "gateway", "calibrate", labels, "--out", str(tmp_path / "o")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert done.returncode in {0, 1}
    written = [path.read_text() for path in (tmp_path / "o").rglob("*") if path.is_file()]
    assert len(written) == 6
    assert not any("SECRET" in one for one in (*written, done.stdout, done.stderr))
