"""`tiergate calibrate --log` on a ledger with decisions in it."""

import time
from contextlib import closing
from pathlib import Path

import pytest

from gateway.cli import main
from gateway.ledger.sqlite import SqliteStore
from gateway.policy_file import load_calibration, load_policy
from tests.gateway.calibrating.test_logged import traffic

CONFIG = """
default_model = "cascade"
[engines.small]
kind = "scripted"
[engines.large]
kind = "scripted"
script = "even"
[models.cascade]
tiers = ["small", "large"]
[models.alone]
engine = "small"
[ledger]
path = "{path}"
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "ledger.db")


@pytest.fixture
def config(tmp_path: Path, path: str) -> str:
    file = tmp_path / "config.toml"
    file.write_text(CONFIG.format(path=path))
    return str(file)


def fill(path: str, n: int, *, age_s: float = 60.0) -> None:
    """So many decisions with second opinions on all that was kept."""
    at_s = time.time() - age_s
    with closing(SqliteStore(path)) as store:
        store.log_decisions([one._replace(at_s=at_s) for one in traffic(n, 0.7, 1.0)], [])


def calibrated(config: str, tmp_path: Path, *arguments: str) -> int:
    out = ["--config", config, "--out", str(tmp_path / "out")]
    return main(["calibrate", "--log", *out, *arguments])


def test_the_log_becomes_a_policy_that_holds(
    config: str, path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(path, 2000)

    assert calibrated(config, tmp_path, "--risk", "0.2") == 0
    policy = load_policy(tmp_path / "out" / "policy.toml")
    (floor,) = policy.floors
    assert (policy.mode, floor.engine, floor.promised) == ("agreement", "small", True)
    assert list(load_calibration(tmp_path / "out" / "calibration.json").engines) == ["small"]
    assert "kept answers differ" in capsys.readouterr().out
    assert "<svg" in (tmp_path / "out" / "report.html").read_text()

    verify = ["policy", "verify", "--config", config, str(tmp_path / "out" / "policy.toml")]
    assert main(verify) == 0


def test_decisions_of_other_weights_do_not_count(
    config: str, path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(path, 500)
    with closing(SqliteStore(path)) as store:
        store.engine_seen("large", "old", time.time() - 3600)
        store.engine_seen("large", "new", time.time() - 5)

    assert calibrated(config, tmp_path) == 2
    assert "no question of 'cascade' was read by both engines" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--model", "alone"], "'alone' has 1"),
        (["--model", "none"], "there are: cascade, alone"),
        (["--engine", "small"], "those of --model"),
        (["labels.jsonl"], "or --log"),
        (["--since", "soon"], "'soon' is no time"),
        ([], "shadow_share"),
    ],
)
def test_what_cannot_be_done_is_said_and_exits_2(
    config: str,
    tmp_path: Path,
    arguments: list[str],
    words: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fill(str(tmp_path / "ledger.db"), 50, age_s=40 * 86_400.0)

    assert calibrated(config, tmp_path, *arguments) == 2
    assert words in capsys.readouterr().err


def test_without_files_and_without_a_log_there_is_nothing_to_do(
    config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["calibrate", "--config", config]) == 2
    assert "or --log" in capsys.readouterr().err
