"""The engines where memory cannot be written and then run, as under the unit of systemd.

The kernel's own switch for it stands in the place of systemd's, which is a filter of system calls.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

_PR_SET_MDWE, _REFUSE_EXEC_GAIN = 65, 1
_DENIED = """
import ctypes, sys
ended = ctypes.CDLL(None).prctl({switch}, {value}, 0, 0, 0)
if ended:
    sys.exit(77)
sys.argv = ["tiergate", *sys.argv[1:]]
from gateway.cli import main
sys.exit(main())
"""
CLEF = Path(__file__).parents[1] / "data/clef/tiny-clef"
QUESTION = {"q": {"type": "noul", "instructions": "Is it about money?"}}


def denied(config: str, folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """A command of tiergate that has ended, in a process that runs nothing it wrote."""
    path = folder / "config.toml"
    path.write_text(config, encoding="utf-8")
    program = _DENIED.format(switch=_PR_SET_MDWE, value=_REFUSE_EXEC_GAIN)
    command = [sys.executable, "-c", program, *arguments, "--config", str(path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode == 77:
        pytest.skip("this kernel has no such switch (Linux 6.3)")
    return ended


def test_the_embedded_engine_answers_there(tmp_path: Path) -> None:
    questions = tmp_path / "questions.json"
    questions.write_text(json.dumps(QUESTION), encoding="utf-8")

    asked = denied("", tmp_path, "ask", "-s", "Send it back.", "-q", str(questions), "--json")

    assert asked.returncode == 0, asked.stderr
    assert 0 <= json.loads(asked.stdout)["answers"]["q"]["noul"] <= 1


@pytest.mark.parametrize("precision", ["bf16", "fp32"])
def test_clef_on_a_cpu_does_not_start_there_and_says_why(tmp_path: Path, precision: str) -> None:
    pytest.importorskip("torch", reason="the extra 'clef' is not installed")
    section = f'[engines.clef]\nkind = "clef"\npath = "{CLEF}"\ndevices = ["cpu"]\n'
    model = '[models.m]\nengine = "clef"\n'

    asked = denied(
        f'default_model = "m"\n{section}precision = "{precision}"\n{model}',
        tmp_path,
        *("doctor", "--json"),
    )

    assert asked.returncode == 4, asked.stderr
    assert "MemoryDenyWriteExecute" in asked.stdout
