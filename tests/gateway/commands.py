"""What the tests of the command line have in common."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

QUESTIONS = {
    "team": {"type": "choice", "instructions": "Which team?", "criteria": {"a": "x", "b": "y"}},
    "urgent": {"type": "noul", "instructions": "Is it urgent?"},
    "mood": {"type": "score", "criteria": ["calm", "angry"]},
}
CONFIG = """
default_model = "scripted-1"
[engines.scripted]
kind = "scripted"
[models.scripted-1]
engine = "scripted"
aliases = ["jev-latest"]
"""


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "scripted.toml"
    path.write_text(CONFIG)
    return str(path)


@pytest.fixture
def questions(tmp_path: Path) -> str:
    path = tmp_path / "questions.json"
    path.write_text(json.dumps(QUESTIONS))
    return str(path)


@pytest.fixture
def served(config: str) -> Iterator[str]:
    """The URL of a gateway in a process of its own."""
    process = subprocess.Popen(
        [sys.executable, "-m", "gateway", "serve", "--config", config, "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    yield process.stdout.readline().split()[4]
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 0
    process.stdout.close()
