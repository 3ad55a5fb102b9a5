"""ONNX Runtime reads here, and tells nobody about it."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
READ = """
from engines.minilm import pinned
from engines.minilm.embed import Embedder
Embedder(pinned.load().model)
"""
ROOMS = ("engines", "policies", "gateway", "bench", "training", "tests", "scripts")


def test_loading_the_embedded_model_leaves_nothing_at_home(tmp_path: Path) -> None:
    """What would be sent is kept below the home directory first, beside the machine's identifier.

    The environment is bare, because ONNX Runtime is silent where it sees that CI runs.
    """
    done = subprocess.run(
        [sys.executable, "-c", READ],
        cwd=ROOT,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert [str(path) for path in tmp_path.rglob("*")] == []


def test_nothing_imports_onnx_runtime_but_through_here() -> None:
    own = re.compile(r"^\s*import onnxruntime", re.MULTILINE)
    importing = [
        str(path.relative_to(ROOT))
        for room in ROOMS
        for path in (ROOT / room).rglob("*.py")
        if own.search(path.read_text(encoding="utf-8"))
    ]

    assert importing == ["engines/runtime.py"]
