"""The audit: what could not be asked about is told apart from what nothing is known about."""

import re
from pathlib import Path
from typing import Any

import pytest

from .loading import SCRIPTS, script

audit = script("audit")

FINE: dict[str, Any] = {"name": "fine", "version": "1", "vulns": []}
SKIPPED = {"name": "unseen", "skip_reason": "Dependency not found on PyPI"}
BAD = {
    "name": "bad",
    "version": "1.2",
    "vulns": [{"id": "PYSEC-1", "fix_versions": ["1.3"], "aliases": [], "description": "x"}],
}


@pytest.mark.parametrize(
    ("packages", "code", "words"),
    [
        ([FINE], 0, []),
        ([FINE, BAD], 1, ["vulnerable: bad 1.2: PYSEC-1, fixed in 1.3"]),
        ([FINE, SKIPPED], 3, ["NOT CHECKED: PyPI could not be asked about unseen"]),
        ([BAD, SKIPPED], 1, ["vulnerable: bad", "NOT CHECKED"]),
        ([{**SKIPPED, "name": str(n)} for n in range(9)], 3, ["0, 1, 2, 3, 4 and 4 more"]),
        ([], 3, ["NOT CHECKED: PyPI could not be asked about any package"]),
    ],
)
def test_what_was_skipped_is_never_green(
    packages: list[dict[str, Any]], code: int, words: list[str]
) -> None:
    found, sentences = audit.verdict(packages)

    assert found == code
    assert len(sentences) == len(words)
    assert all(word in sentence for word, sentence in zip(words, sentences, strict=True))


@pytest.mark.parametrize(
    ("output", "code"),
    [
        ('{"dependencies": [{"name": "fine", "version": "1", "vulns": []}]}', 0),
        ('{"dependencies": []}', 3),
        ("", 3),
        ("no json", 3),
    ],
)
def test_an_auditor_that_says_nothing_has_checked_nothing(
    output: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    auditor = tmp_path / "pip-audit"
    auditor.write_text(f"#!/bin/sh\nprintf '%s' '{output}'\n")
    auditor.chmod(0o755)
    monkeypatch.setattr(audit, "installed", lambda: auditor)
    report = tmp_path / "reports" / "audit.json"

    assert audit.main(["--json", str(report)]) == code
    assert f'"exit code": {code}' in report.read_text()


def test_the_lock_that_is_audited_has_every_package_of_the_other() -> None:
    def pins(name: str) -> set[str]:
        text = (SCRIPTS.parent / "requirements" / name).read_text()
        return set(re.findall(r"^([a-z0-9.-]+==\S+)", text, re.MULTILINE))

    assert pins("cpu.lock") <= pins("dev.lock")
