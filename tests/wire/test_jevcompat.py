"""The public conformance suite against a running gateway; its reports stay in build/reports/."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from .conftest import CONFIGS, need
from .serving import KEY, SCRIPTED, keyed, process

pytestmark = pytest.mark.slow

_REPORTS = Path(__file__).parents[2] / "build/reports"
_RUN = "import sys; from jevcompat.cli import main; sys.exit(main(sys.argv[1:]))"


def _report(config: str, name: str, folder: Path, *options: str) -> dict[str, Any]:
    """The suite's report on a gateway of its own, kept under `name`."""
    _REPORTS.mkdir(parents=True, exist_ok=True)
    path = _REPORTS / f"jevcompat-{name}.json"
    path.unlink(missing_ok=True)
    with process(config, folder) as address:
        command = [sys.executable, "-c", _RUN, "test", address.url, "--json", str(path), *options]
        run = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert path.is_file(), run.stdout + run.stderr
    report: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return report


def _passed(report: dict[str, Any]) -> tuple[int, int, list[str]]:
    """MUSTs met, SHOULDs met, and what else there is to say, with the suite's findings.

    Raises:
        AssertionError: the suite could not finish.
    """
    assert not report["aborted"]
    assert not report["case_errors"]
    assert not report["inconclusive"]
    met = Counter(one["level"] for one in report["results"] if one["status"] == "pass")
    rest = [
        f"{one['level']} {one['id']}: {one['status']} {one['findings']}"
        for one in report["results"]
        if one["status"] not in ("pass", "skip")
    ]
    return met["MUST"], met["SHOULD"], rest


@pytest.mark.parametrize("engine", list(CONFIGS))
def test_jevcompat_finds_every_must_and_every_should_without_keys(
    engine: str, tmp_path: Path
) -> None:
    need(engine)

    report = _report(CONFIGS[engine], f"{engine}-open", tmp_path)

    assert _passed(report) == (32, 13, [])


@pytest.mark.parametrize("engine", list(CONFIGS))
def test_jevcompat_finds_every_must_and_every_should_with_a_key(
    engine: str, tmp_path: Path
) -> None:
    need(engine)

    report = _report(keyed(CONFIGS[engine]), f"{engine}-keyed", tmp_path, "--key", KEY)

    assert _passed(report) == (32, 15, [])


def test_jevcompat_finds_the_same_with_a_key_of_the_ledger(tmp_path: Path) -> None:
    config = SCRIPTED + f'\n[ledger]\npath = "{tmp_path / "ledger.db"}"\n'
    settings = tmp_path / "keys.toml"
    settings.write_text(config)
    limits = ("--rpm", "100000", "--tpm", "100000000", "--tokens-per-day", "1000000000")
    command = [sys.executable, "-m", "gateway", "keys", "create", "suite", *limits]
    made = subprocess.run(
        [*command, "--config", str(settings)], capture_output=True, text=True, check=True
    )

    report = _report(config, "ledger-keyed", tmp_path, "--key", made.stdout.strip())

    assert _passed(report) == (32, 15, [])
