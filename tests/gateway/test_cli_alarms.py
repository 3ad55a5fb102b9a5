"""`tiergate alarms` ends the alarms of the ledger that was named, and makes none."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from gateway.cli import main
from gateway.ledger.decisions import Alarm
from gateway.ledger.sqlite import SqliteStore
from tests.gateway.test_cli_logged import CONFIG


def written(folder: Path, name: str) -> tuple[str, Path]:
    """A configuration and the path of its ledger, which is not there yet."""
    config, ledger = folder / f"{name}.toml", folder / f"{name}.db"
    config.write_text(CONFIG.format(path=ledger))
    return str(config), ledger


def raised(ledger: Path) -> None:
    with closing(SqliteStore(str(ledger))) as store:
        store.raise_alarm(Alarm("disagreement", "small", "choice:2", "They disagree.", 5.0))


@pytest.mark.parametrize("before", [True, False])
def test_the_configuration_may_stand_before_the_action_and_after_it(
    before: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    here, ledger_here = written(tmp_path, "here")
    there, ledger_there = written(tmp_path, "there")
    raised(ledger_here)
    raised(ledger_there)
    monkeypatch.setenv("TIERGATE_CONFIG", here)
    options = ["--config", there, "--json"]

    arguments = [*options, "clear"] if before else ["clear", *options]
    assert main(["alarms", *arguments, "--all"]) == 0

    assert [one["alarm"] for one in json.loads(capsys.readouterr().out)] == [1]
    assert main(["alarms", "--config", there]) == 0
    assert main(["alarms", "--config", here]) == 3, "the other ledger's alarm still holds"


def test_clearing_what_is_not_there_says_so_and_makes_no_ledger(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, ledger = written(tmp_path, "here")

    assert main(["alarms", "clear", "--all", "--config", config]) == 4
    assert f"ledger.path: {ledger}: there is no ledger yet" in capsys.readouterr().err
    assert not ledger.exists()

    raised(ledger)
    clear = ["alarms", "clear", "--config", config]
    assert main([*clear, "7"]) == 2
    assert "no alarm 7 holds" in capsys.readouterr().err
    assert main([*clear, "1", "1"]) == 0
    assert capsys.readouterr().out.count("cleared alarm 1") == 1
    assert main([*clear, "--all"]) == 0
    assert "no alarm holds" in capsys.readouterr().out
