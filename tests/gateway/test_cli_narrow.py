"""Commands on a terminal of 80 columns: nothing that matters is cut off."""

import re
from contextlib import closing
from pathlib import Path

import pytest

import gateway.cli
from gateway.cli import main
from gateway.ledger.decisions import Alarm
from gateway.ledger.sqlite import SqliteStore
from tests.gateway.test_cli_logged import CONFIG, UP, fill

_COLUMNS = 80


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal, as far as rich can tell."""
    monkeypatch.setenv("COLUMNS", str(_COLUMNS))
    monkeypatch.setenv("FORCE_COLOR", "1")


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "ledger.db")


@pytest.fixture
def config(tmp_path: Path, path: str) -> str:
    file = tmp_path / "config.toml"
    file.write_text(CONFIG.format(path=path))
    return str(file)


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What was printed, without colours."""
    shown = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()
    assert max(map(len, shown)) <= _COLUMNS
    return shown


def test_the_audit_is_two_tables_with_whole_numbers(
    config: str, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(path, (1200, UP | {"truth": 1}), (1300, UP | {"truth": 0}), (700, {"truth": 0}))

    main(["audit", "--config", config])

    shown = lines(capsys)
    headings = [line.split() for line in shown if line.startswith(("went up", "kept"))]
    rows = [line.split() for line in shown if re.match("[0-9a-f]{16} ", line)]
    assert " ".join(headings[0][2:]) == "answers changed fixed broken same p USD a fix"
    assert headings[1][1:] == ["answers", "wrong", "disagreed"]
    assert rows[0][1:6] == ["2500", "2500", "1200", "1300", "0"]
    assert rows[1][1:] == ["700", "0", "of", "700"]


def test_alarms_are_sentences(config: str, path: str, capsys: pytest.CaptureFixture[str]) -> None:
    message = "Second opinions disagree with 40 of 120 kept answers, and at most 6 were promised."
    with closing(SqliteStore(path)) as store:
        store.raise_alarm(Alarm("disagreement", "small", "choice:3-5", message, 1_796_000_000.0))

    code = main(["alarms", "--config", config])

    first, *rest = lines(capsys)
    assert code == 3
    assert first.startswith("1: disagreement of small: choice:3-5, since 2026-11-30T")
    assert " ".join(line.strip() for line in rest) == message


def test_keys_have_their_ids_and_limits_whole(
    config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    limits = ("--tokens-per-month", "1000000000", "--escalations-per-month", "50")
    ends = ("--expires", "90d", "--models", "cascade")
    main(["keys", "create", "support-desk-eu", "--config", config, *limits, *ends])
    capsys.readouterr()

    main(["keys", "list", "--config", config])

    listed = "\n".join(lines(capsys))
    for whole in ("support-desk-eu", "tokens_per_month", "1000000000"):
        assert whole in listed
    for pattern in (r"^k_[0-9a-f]{10} ", r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00 "):
        assert re.search(pattern, listed, re.MULTILINE)


def test_every_command_prints_its_tables_whole() -> None:
    """`ask` bends its bars to the width instead."""
    folder = Path(gateway.cli.__file__).parent
    others = [
        path.name
        for path in folder.glob("*.py")
        if ".print(table" in path.read_text("utf-8") and path.name not in ("whole.py", "ask.py")
    ]
    assert others == []
