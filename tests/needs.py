"""Tests that need a program which not every machine has: skipped without it, failed in CI."""

import os
import shutil
import sys
from pathlib import Path

import pytest


def without(reason: str) -> None:
    """Skip; in CI, where everything must be there, fail."""
    (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)


def program(name: str, package: str) -> str:
    """The path of a program that a Debian package brings, or that stands beside this Python."""
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        without(f"{name} is not installed: apt install {package}")
    return str(found)
