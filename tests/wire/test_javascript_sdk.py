"""The official JavaScript SDK against a running gateway, where node and npm are installed."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from .serving import KEY, Address

_VERSION = "0.6.0"
_CACHE = Path(__file__).parents[2] / "build/javascript"
_MODULE = _CACHE / "node_modules/@typesafe-ai/sdk/dist/index.mjs"
_SMOKE = Path(__file__).with_name("smoke.mjs")


@pytest.fixture(scope="session")
def module() -> Path:
    """The SDK's module, installed once; skips where that cannot be done."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("node and npm are not installed")
    if not _MODULE.is_file():
        _CACHE.mkdir(parents=True, exist_ok=True)
        flags = ["--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(_CACHE)]
        command = [npm, "install", *flags, f"@typesafe-ai/sdk@{_VERSION}"]
        try:
            subprocess.run(command, capture_output=True, timeout=120, check=True)
        except subprocess.SubprocessError as error:
            pytest.skip(f"npm cannot install the SDK: {error}")
    return _MODULE


def test_the_javascript_sdk_lists_asks_and_understands_errors(
    server: Address, module: Path
) -> None:
    command = ["node", str(_SMOKE), module.as_uri(), server.url, KEY]

    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert run.returncode == 0, run.stderr
    said = json.loads(run.stdout)
    assert "jev-latest" in {model["name"] for model in said["models"]}
    answers = said["response"]["answers"]
    assert list(answers) == ["__team", "refund", "mood"]
    assert answers["__team"]["choice"] in ("billing", "technical")
    assert 0 <= answers["refund"]["noul"] <= 1
    assert answers["mood"]["legend"] == {"0": "calm", "1": {"tone": "angry"}}
    assert (said["failure"]["name"], said["failure"]["status"]) == ("BadRequestError", 400)
    assert said["failure"]["requestId"]
    assert "no model" in said["failure"]["message"]
