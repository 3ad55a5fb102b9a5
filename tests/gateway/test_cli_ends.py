"""How commands end that are not let finish: interrupted, unread, without room to write."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import gateway.__main__
from gateway.calibrating.results import Read, Results
from gateway.cli import main
from tests.gateway.test_cli_calibrate import CONFIG, rows

SHOW = [sys.executable, "-m", "gateway", "threshold", "translate", "--from", "jev:0.5"]


def test_an_interrupted_calibration_leaves_what_was_read_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config, out = tmp_path / "config.toml", tmp_path / "out"
    config.write_text(CONFIG)
    labels = rows(tmp_path / "labels.jsonl", 300)
    put = Results.put
    told: list[str] = []

    def put_and_interrupt(self: Results, key: str, read: Read) -> None:
        put(self, key, read)
        told.append(key)
        if len(told) == 100:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Results, "put", put_and_interrupt)

    assert main(["calibrate", labels, "--config", str(config), "--out", str(out)]) == 130

    assert "the same command goes on from there\ntiergate: interrupted" in capsys.readouterr().err
    (kept,) = [path for path in out.rglob("*") if path.is_file()]
    lines = [json.loads(line) for line in kept.read_text().splitlines()]
    assert 100 <= len(lines) - 1 <= len(told)


def test_interrupted_while_it_is_loaded_the_command_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupted(ModuleType):
        def __getattr__(self, name: str) -> object:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "gateway.cli", Interrupted("gateway.cli"))

    assert gateway.__main__.main() == 130
    assert capsys.readouterr().err == "tiergate: interrupted\n"


def test_a_full_disk_behind_the_output_is_told() -> None:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [*SHOW, "--to", "top", "--json"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert (ended.returncode, ended.stderr) == (4, "tiergate: No space left on device\n")


def test_a_terminal_that_lacks_a_character_is_shown_its_number() -> None:
    ended = subprocess.run(
        [*SHOW, "--to", "top", "--options", "2"],
        env=os.environ | {"PYTHONIOENCODING": "latin-1"},
        capture_output=True,
        encoding="latin-1",
        check=False,
    )

    assert (ended.returncode, ended.stderr) == (0, "")
    assert "jev \\u2265 0.5 as top" in " ".join(ended.stdout.split())


def test_output_that_nobody_reads_ends_without_a_word() -> None:
    reads, writes = os.pipe()
    os.close(reads)

    ended = subprocess.run(
        [*SHOW, "--to", "top", "--json"],
        stdout=writes,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writes)

    assert (ended.returncode, ended.stderr) == (141, "")


@pytest.mark.parametrize("kind", ["file", "pipe", "missing"])
def test_where_nothing_can_be_written_nothing_is_read(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config.toml"
    config.write_text(CONFIG)
    out = tmp_path / "out"
    if kind == "file":
        out.touch()
    elif kind == "pipe":
        out.mkdir()
        os.mkfifo(out / "policy.toml")
    else:
        out = Path("/proc/none")
    labels = rows(tmp_path / "l.jsonl", 5)

    assert main(["calibrate", labels, "--config", str(config), "--out", str(out)]) == 2

    told = capsys.readouterr().err
    assert f"tiergate: {out}" in told
    assert "cannot be written" in told
    assert "reading with" not in told
